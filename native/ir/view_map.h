// View map: how a view reads its input, whatever the input's layout.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/value.h"

namespace tenfold {

struct ViewMap {
    // Of each axis of the input: the axis of the result along which it is stepped through, or
    // NO_AXIS, by how many of its elements, and where it begins.
    static constexpr int64_t NO_AXIS = -1;
    struct Step {
        int64_t axis, coefficient, start;
    };
    // in_order: the same bytes in C order; an input in another order has no view.
    enum Kind : uint8_t { affine, in_order, other } kind = other;
    std::vector<Step> steps;
};

// The view of a Value; empty where there is none without copying elements. `starts`, where there
// are any, stand for those of the steps: views that differ in nothing else have one Movement.
Ref<Value> make_view(const ViewMap& map, const Value& input, Ref<Type> type,
                     std::span<const int64_t> starts);

} // namespace tenfold
