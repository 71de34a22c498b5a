#include "exec/iteration_space.h"

#include <algorithm>
#include <optional>

namespace tenfold {

bool is_contiguous(const Type& result, std::span<const Value* const> arrays,
                   IterationSpace& lying) {
    for (const Value* array : arrays)
        if (!array->strides.empty() || array->type->shape != result.shape) return false;
    lying.axes = 1;
    lying.lengths[0] = result.size();
    for (const Value* array : arrays)
        lying.strides[lying.operands++][0] = dtype_of(array->type->dtype).bytes;
    lying.strides[lying.operands++][0] = dtype_of(result.dtype).bytes;
    return true;
}

bool axis_order(const Type& result, std::span<const Value* const> arrays, Order& order) {
    std::size_t count = result.shape.size();
    if (count > MOST_AXES) return false;
    for (std::size_t i = 0; i < count; ++i) order.axes[i] = uint8_t(count - 1 - i);
    const Value* like = nullptr;
    for (const Value* array : arrays) {
        if (array->type->shape != result.shape) continue;
        if (array->strides.empty() || (like && like->strides != array->strides)) return true;
        like = array;
    }
    if (!like) return true;
    auto axes = order.axes;
    std::stable_sort(axes.begin(), axes.begin() + std::ptrdiff_t(count),
                     [&](uint8_t a, uint8_t b) { return like->strides[a] < like->strides[b]; });
    int64_t next = dtype_of(like->type->dtype).bytes;
    for (std::size_t i = 0; i < count; ++i) {
        int64_t length = result.shape[axes[i]];
        if (length != 1 && like->strides[axes[i]] != next) return true;
        next *= length;
    }
    order = {axes, false};
    return true;
}

std::vector<int64_t> strides_in(const Order& order, const Type& type) {
    if (order.is_c) return {};
    std::vector<int64_t> strides(type.shape.size());
    int64_t next = dtype_of(type.dtype).bytes;
    for (std::size_t i = 0; i < strides.size(); ++i) {
        strides[order.axes[i]] = next;
        next *= type.shape[order.axes[i]];
    }
    return strides;
}

bool lie(const Type& result, std::span<const Value* const> arrays, const Order& order,
         std::span<const int64_t> strides_of_result, IterationSpace& lying) {
    std::size_t count = result.shape.size();
    std::array<std::optional<Strides>, Loops::OPERANDS + 1> each;
    for (const Value* array : arrays)
        each[lying.operands++].emplace(*array->type, array->strides, count);
    each[lying.operands++].emplace(result, strides_of_result, count);
    // The innermost axis stands first here; they are turned around below.
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t axis = order.axes[i];
        int64_t length = result.shape[axis];
        std::array<int64_t, Loops::OPERANDS + 1> strides{};
        for (std::size_t k = 0; k < lying.operands; ++k) strides[k] = each[k]->along(axis);
        if (length == 1) continue;
        std::size_t last = lying.axes - 1;
        bool merges = lying.axes > 0;
        for (std::size_t k = 0; merges && k < lying.operands; ++k)
            merges = strides[k] == lying.strides[k][last] * lying.lengths[last];
        if (merges) {
            lying.lengths[last] *= length;
            continue;
        }
        if (lying.axes == MOST_AXES) return false;
        lying.lengths[lying.axes] = length;
        for (std::size_t k = 0; k < lying.operands; ++k) lying.strides[k][lying.axes] = strides[k];
        ++lying.axes;
    }
    auto turn = [&](auto& numbers) { std::reverse(numbers.begin(), numbers.begin() + lying.axes); };
    turn(lying.lengths);
    for (std::size_t k = 0; k < lying.operands; ++k) turn(lying.strides[k]);
    return true;
}

} // namespace tenfold
