// Stacking: puts the operands of a batch's members side by side along a new first axis.
#pragma once
#include <span>
#include <utility>

#include "ir/node.h"
#include "threads/device.h"

namespace tenfold {

// An input of a batch: a Python scalar, a value shared by all members, or a stack of rows.
struct StackedOperand {
    const Scalar* scalar = nullptr;
    Ref<Value> value;
    bool stacked = false;
};

// Memory of an array; `strides` is null for C order.
struct StridedRef {
    Allocation* allocation;
    int64_t offset;
    const std::vector<int64_t>* strides;

    static StridedRef of(const Value& value) {
        const Buffer& buffer = value.buffers[0];
        return {buffer.allocation.get(), buffer.offset,
                value.strides.empty() ? nullptr : &value.strides};
    }
};

inline int64_t bytes_of(const Type& type) { return type.size() * dtype_of(type.dtype).bytes; }

// What a device does with rows, by a kernel that finds them by a table in its arguments; as
// `RowForm` in codegen/simt/row_table.py.
enum class RowForm : uint8_t { copy, numbers, sum };

// The kernel of a device, by its id, for rows of a dtype. Null where it is missing and the thread
// has no GIL to make it. The bindings set this function.
extern KernelHandle (*row_kernel)(uint8_t device, RowForm form, uint16_t dtype);
// Queues a launch of it for arrays of this Type: as many threads as elements of the result at `to`.
// False without a kernel.
bool launch_rows(RowForm form, const Type& type, int64_t threads, void* to,
                 std::span<const int64_t> sizes, std::span<void* const> rows,
                 std::span<const uint64_t> numbers = {});

// The elements of a value, in C order, in memory of its device. False where they have too many
// axes for it.
bool copy_elements(char* to, const Value& from);

// Stacks the arrays of members, all of one Type, and repeats the last one up to so many rows. It
// copies nothing where they are equally spaced in one allocation, and the padding is readable. It
// uses so many threads at most. False where memory runs out.
bool stack_operands(StackedOperand& operand, std::span<const StridedRef> members, const Type& type,
                    std::size_t rows, int threads);
// The same for arrays that are joined along their first axis, or along a new one before it; so they
// are not padded, and memory of which they are a small part, or that is the user's, is not kept.
Ref<Value> join_rows(std::span<const StridedRef> members, const Type& member,
                     const Ref<Type>& result, int threads);
// The elements of a value in C order, as often as `type` has room for them. Empty where memory runs
// out.
Ref<Value> repeated_rows(const Value& value, const Ref<Type>& type);
// The same once; the Value itself, if it is in C order.
Ref<Value> in_c_order(const Ref<Value>& value);
// Stacks Python scalars in the dtype of the operation. False if native code does not
// know their bits.
bool stack_scalars(StackedOperand& operand, std::span<const Scalar* const> scalars, uint16_t dtype,
                   uint8_t device, std::size_t rows);

// Values of the rows of a batch's result. They are views of it, or copies with memory of their own.
class RowViews {
  public:
    // Another device has views alone.
    RowViews(const Value& whole, const Ref<Type>& type, std::size_t count, bool copies)
        : buffer_(whole.buffers[0]), bytes_(std::size_t(bytes_of(*type))),
          copies_(copies && device_of(type->device).is_host), types_(type, count),
          memory_(buffer_.allocation, count) {}

    // `next`: the following result of the same member.
    Ref<Value> row_value(std::size_t row, Ref<Value> next);

  private:
    const Buffer& buffer_;
    const std::size_t bytes_;
    const bool copies_;
    BulkRef<Type> types_;
    BulkRef<Allocation> memory_;
};

} // namespace tenfold
