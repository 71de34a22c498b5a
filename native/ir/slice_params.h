// Slice parameters: the slices that the Params of `index` and `update` describe, read from their
// bytes. The canonical bytes are those of ops/indexing.py and ops/assignment.py. A pick is an int,
// or start, count and step. An index map has an axis of the part or None, a coefficient and a
// start.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/op.h"
#include "ir/params.h"
#include "ir/type.h"
#include "ir/view_map.h"

namespace tenfold {

// Numbers, one for each axis of an array.
class AxisVector {
  public:
    AxisVector() = default;
    explicit AxisVector(std::span<const int64_t> numbers) : count_(numbers.size()) {
        if (count_ > inline_.size()) heap_.resize(count_);
        std::copy(numbers.begin(), numbers.end(), data());
    }
    std::size_t size() const { return count_; }
    int64_t operator[](std::size_t axis) const { return span()[axis]; }
    std::span<const int64_t> span() const {
        return {count_ > inline_.size() ? heap_.data() : inline_.data(), count_};
    }
    bool operator==(const AxisVector& other) const {
        return std::ranges::equal(span(), other.span());
    }

  private:
    int64_t* data() { return count_ > inline_.size() ? heap_.data() : inline_.data(); }

    std::size_t count_ = 0;
    std::array<int64_t, 4> inline_;
    std::vector<int64_t> heap_;
};

// Where a part begins on each axis of the array. Parts that differ in nothing else have one
// pattern: the Params of the part that begins at 0.
struct Starts {
    AxisVector starts;
    const Params* pattern = nullptr; // the Params themselves, or a pattern that they own
    Op::Part part = Op::none;
    // Of a pattern: the Params of `update` for the part that `index` reads of an array of this
    // Type. Empty if they are not cached; under the GIL.
    mutable Ref<Type> array;
    mutable Ref<Params> update_params;
    // Of a pattern: assignments to such parts were not computed together in one go.
    mutable std::atomic<bool> not_deferred{false};
};

// Of the Params of an op that reads or replaces a part (Op::part); cached in them.
const Starts& starts_of(const Op& op, const Params& params);
// The Params of the part that begins there.
Ref<Params> params_with_starts(const Op& op, const Params& pattern, const AxisVector& starts);
// The canonical bytes of any Params.
std::string bytes_of(const Params& params);

// The Params with which `update` replaces the part that `index` reads. Equal parts have the same
// canonical Params. Empty if the part is empty, or the whole array. Under the GIL.
Ref<Params> update_params_for(const Op& index, const Op& update, const Params& picks, Type& array);

// Appends the shape of an `index` result to `shape`. False if its array has another rank.
bool slice_shape(const Params& picks, const Type& array, std::vector<int64_t>& shape);
// How `index` reads its array; starts may stand for those of `picks`.
ViewMap slice_view_map(const Params& picks);

// The part that `update` replaces, from its pattern: its view of the array, and its shape.
struct SliceUpdate {
    ViewMap view_map;
    std::vector<int64_t> shape;
};
SliceUpdate parse_slice_update(const Params& pattern);

// Whether `index` takes all of an array, as it is.
bool is_full_slice(const Params& picks, const Type& array);

// Appends a length-independent form of a slice to `words`: the words and the lengths determine the
// slice. False if it is not the full slice, up to inserted axes of length 1.
bool append_slice_key(const Op& index, const Params& picks, const Type& array,
                      std::vector<uint64_t>& words);

// Writes the canonical bytes of Params.
void write_tuple(std::string& bytes, int64_t length);
void write_integer(std::string& bytes, int64_t number);
void write_none(std::string& bytes);

} // namespace tenfold
