// Iteration space: coalesces the axes of a result and its operands into as few loops as possible.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "exec/strided_kernels.h"
#include "ir/value.h"

namespace tenfold {

constexpr std::size_t MAX_AXES = 16;

// Iteration space: strides of all operands over the coalesced axes of a result. Axes of length 1
// are dropped. The last operand is the result.
struct IterationSpace {
    std::size_t operands = 0, axes = 0;
    // The first `axes` and `operands` entries are valid; strides in bytes.
    std::array<int64_t, MAX_AXES> lengths;
    std::array<std::array<int64_t, MAX_AXES>, Loops::OPERANDS + 1> strides;

    int64_t length(std::size_t from_last) const {
        return from_last < axes ? lengths[axes - 1 - from_last] : 1;
    }
    int64_t stride(std::size_t operand, std::size_t from_last) const {
        return from_last < axes ? strides[operand][axes - 1 - from_last] : 0;
    }
};

// The strides of an array over the axes of its broadcast result.
class Strides {
  public:
    Strides(const Type& type, std::span<const int64_t> strides, std::size_t axes)
        : type_(type), strides_(strides), num_missing_(axes - type.shape.size()) {
        int64_t stride = dtype_of(type.dtype).bytes;
        for (std::size_t i = type.shape.size(); strides.empty() && i-- > 0;) {
            in_c_order_[i] = stride;
            stride *= type.shape[i];
        }
    }

    int64_t stride(std::size_t axis) const {
        if (axis < num_missing_ || type_.shape[axis - num_missing_] == 1) return 0;
        return strides_.empty() ? in_c_order_[axis - num_missing_] : strides_[axis - num_missing_];
    }

  private:
    const Type& type_;
    std::span<const int64_t> strides_;
    std::size_t num_missing_;
    std::array<int64_t, MAX_AXES> in_c_order_{};
};

// The order of a result's axes in memory, innermost first. It is the common order of the gap-free
// arrays of its shape, if they agree, else C order.
struct Order {
    std::array<uint8_t, MAX_AXES> axes{};
    bool is_c = true;
};

// Fast path: all arrays have one shape and are in C order. False otherwise.
bool is_contiguous(const Type& result, std::span<const Value* const> arrays, IterationSpace& space);

// False if the result has more than MAX_AXES axes.
bool axis_order(const Type& result, std::span<const Value* const> arrays, Order& order);

// The strides of a result in this order; empty for C's order.
std::vector<int64_t> strides_in(const Order& order, const Type& type);

// False if more than MAX_AXES axes remain.
bool coalesce_axes(const Type& result, std::span<const Value* const> arrays, const Order& order,
                   std::span<const int64_t> strides_of_result, IterationSpace& space);

} // namespace tenfold
