// The key of a walk: everything a plan may depend on, as words that are compared in full. Types,
// parameters and inferences count by identity, so a kept Key holds them: their addresses cannot be
// taken over. A Python scalar counts by its form alone, unless its value is one that rules know, or
// the key is `exact`.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "walk.h"

namespace tenfold {

// Numbers that rewrite rules may tell from others: halves of whole numbers up to 16, and what is
// not finite.
bool is_notable(const Scalar& scalar);

// Writes the key over what `words` has; false for a walk that cannot be planned: it holds a
// placeholder.
bool write_key(const Walked& walked, std::span<const uint64_t> options, bool exact,
               std::vector<uint64_t>& words);

// What the addresses in a key belong to.
struct Owned {
    std::vector<Ref<Type>> types;
    std::vector<Ref<Params>> params;
    std::vector<Ref<Inference>> inferences;

    explicit Owned(const Walked& walked);
};

} // namespace tenfold
