// Parts: the regular parts of an array that the Params of `index` and `update` say, read from their
// canonical bytes (ops/indexing.py, ops/assignment.py: a pick is an int, or start, count and step;
// an access an axis of the part or None, a coefficient and a start).
#pragma once
#include <cstdint>
#include <vector>

#include "op.h"
#include "params.h"
#include "type.h"

namespace tenfold {

// Where a part begins on each axis of the array. Parts that differ in nothing else have one
// pattern: the Params of the part that begins at 0.
struct Starts {
    std::vector<int64_t> starts;
    const Params* pattern; // the Params themselves, or what they own
    // What `update` has for the part that `index` takes of an array of this Type; under the GIL.
    mutable Ref<Type> array;
    mutable Ref<Params> replaced;
    // Of a pattern: assignments to such parts were not computed together in one go.
    mutable std::atomic<bool> apart{false};
};

// Of the Params of an op that takes or replaces a part (Op::part); kept with them.
const Starts& starts_of(const Op& op, const Params& params);

// The Params with which `update` replaces what `index` takes of an array, in the one form that
// equal parts have; empty where that is nothing, or all.
Ref<Params> replaced_part(const Op& index, const Params& picks, Type& array);

// Whether `index` takes all of an array, as it is.
bool is_all(const Params& picks, const Type& array);

// Writes the canonical bytes of Params.
void write_tuple(std::string& bytes, int64_t length);
void write_integer(std::string& bytes, int64_t number);
void write_none(std::string& bytes);

} // namespace tenfold
