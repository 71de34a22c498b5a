// View map: how a view reads its input, whatever the input's layout.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/value.h"

namespace tenfold {

struct ViewMap {
    // For each axis of the input: the result axis along it, or NO_AXIS, the step in elements, and
    // the start.
    static constexpr int64_t NO_AXIS = -1;
    struct Step {
        int64_t axis, coefficient, start;
    };
    // in_order: the same bytes in C order; an input in another order has no view.
    enum Kind : uint8_t { affine, in_order, other } kind = other;
    std::vector<Step> steps;
};

// The view of a Value; empty if elements would have to be copied. `starts`, if not empty, replace
// those of the steps: views that differ in nothing else share one ViewMap.
Ref<Value> make_view(const ViewMap& map, const Value& input, Ref<Type> type,
                     std::span<const int64_t> starts);

} // namespace tenfold
