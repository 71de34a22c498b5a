#include "exec/iteration_space.h"

#include <algorithm>
#include <optional>

namespace tenfold {

bool is_contiguous(const Type& result, std::span<const Value* const> arrays,
                   IterationSpace& space) {
    for (const Value* array : arrays)
        if (!array->strides.empty() || array->type->shape != result.shape) return false;
    space.axes = 1;
    space.lengths[0] = result.size();
    for (const Value* array : arrays)
        space.strides[space.operands++][0] = dtype_of(array->type->dtype).bytes;
    space.strides[space.operands++][0] = dtype_of(result.dtype).bytes;
    return true;
}

bool axis_order(const Type& result, std::span<const Value* const> arrays, Order& order) {
    std::size_t count = result.shape.size();
    if (count > MAX_AXES) return false;
    for (std::size_t i = 0; i < count; ++i) order.axes[i] = uint8_t(count - 1 - i);
    const Value* reference = nullptr;
    for (const Value* array : arrays) {
        if (array->type->shape != result.shape) continue;
        if (array->strides.empty() || (reference && reference->strides != array->strides))
            return true;
        reference = array;
    }
    if (!reference) return true;
    auto axes = order.axes;
    std::stable_sort(axes.begin(), axes.begin() + std::ptrdiff_t(count), [&](uint8_t a, uint8_t b) {
        return reference->strides[a] < reference->strides[b];
    });
    int64_t next = dtype_of(reference->type->dtype).bytes;
    for (std::size_t i = 0; i < count; ++i) {
        int64_t length = result.shape[axes[i]];
        if (length != 1 && reference->strides[axes[i]] != next) return true;
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

bool coalesce_axes(const Type& result, std::span<const Value* const> arrays, const Order& order,
                   std::span<const int64_t> strides_of_result, IterationSpace& space) {
    std::size_t count = result.shape.size();
    std::array<std::optional<Strides>, Loops::OPERANDS + 1> operand_strides;
    for (const Value* array : arrays)
        operand_strides[space.operands++].emplace(*array->type, array->strides, count);
    operand_strides[space.operands++].emplace(result, strides_of_result, count);
    // The innermost axis stands first here; they are turned around below.
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t axis = order.axes[i];
        int64_t length = result.shape[axis];
        std::array<int64_t, Loops::OPERANDS + 1> strides{};
        for (std::size_t k = 0; k < space.operands; ++k)
            strides[k] = operand_strides[k]->stride(axis);
        if (length == 1) continue;
        std::size_t last = space.axes - 1;
        bool merges = space.axes > 0;
        for (std::size_t k = 0; merges && k < space.operands; ++k)
            merges = strides[k] == space.strides[k][last] * space.lengths[last];
        if (merges) {
            space.lengths[last] *= length;
            continue;
        }
        if (space.axes == MAX_AXES) return false;
        space.lengths[space.axes] = length;
        for (std::size_t k = 0; k < space.operands; ++k) space.strides[k][space.axes] = strides[k];
        ++space.axes;
    }
    auto reverse_axes = [&](auto& numbers) {
        std::reverse(numbers.begin(), numbers.begin() + space.axes);
    };
    reverse_axes(space.lengths);
    for (std::size_t k = 0; k < space.operands; ++k) reverse_axes(space.strides[k]);
    return true;
}

} // namespace tenfold
