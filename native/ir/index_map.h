// Index map: where a slice or a view lies in an array. Python hands it over as data
// (core/index_map.py); the parameters of `index` and `set_at` are one.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/params.h"
#include "ir/value.h"

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

struct IndexMap {
    static constexpr int64_t NO_AXIS = -1;
    // One axis of the array: the axis of the slice along it, or NO_AXIS, the step in elements,
    // and the start.
    struct Step {
        int64_t axis, coefficient, start;
    };
    // in_order: the same bytes in C order; an array in another order has no view.
    enum Kind : uint8_t { affine, in_order, other } kind = other;
    std::vector<Step> steps;
    std::vector<int64_t> shape; // shape of a slice; a view has the shape of its Type
};

// Where a slice begins on each axis of the array. Slices that differ in nothing else have one
// pattern: the Params of the slice that begins at 0.
struct Starts {
    AxisVector starts;
    const Params* pattern = nullptr; // the Params themselves, or a pattern that they own
    IndexMap map;
    // The `set_at` pattern of an `index` pattern with axes of length 1. Under the GIL.
    mutable Ref<Params> update_pattern;
    // Forms of values whose assignments to a pattern were not computed in one go; 0: none.
    mutable std::array<std::atomic<uint64_t>, 4> not_deferred{};
};

// The Params of a slice. Under the GIL.
Ref<Params> slice_params(IndexMap map);
// The Params with which `set_at` replaces the slice that `index` reads: there an axis of one
// position is fixed, so that equal slices have equal Params. Under the GIL.
Ref<Params> update_params(const Params& slice);
// The Params of the slice of the same pattern that begins there.
Ref<Params> params_with_starts(const Params& pattern, const AxisVector& starts);

// The starts of a slice, from its Params.
inline const Starts& starts_of(const Params& params) {
    return *params.starts.load(std::memory_order_acquire);
}
inline const Starts& pattern_of(const Params& params) {
    return starts_of(*starts_of(params).pattern);
}

// Whether a slice of `index` is all of an array, as it is.
bool is_full_slice(const Params& params, const Type& array);

// Appends a length-independent form of a slice to `words`: the words and the lengths determine the
// slice. False if it does not take all elements, up to inserted axes of length 1.
bool append_slice_key(const Params& params, const Type& array, std::vector<uint64_t>& words);

// The view of a Value; empty if elements would have to be copied. `starts`, if not empty, replace
// those of the steps.
Ref<Value> make_view(const IndexMap& map, const Value& input, Ref<Type> type,
                     std::span<const int64_t> starts);
// The view that shows the slice with these Params.
Ref<Value> make_slice(const Params& params, const Value& input, Ref<Type> type);

} // namespace tenfold
