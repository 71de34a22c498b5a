#include "exec/stacking.h"

#include <algorithm>
#include <cstring>

#include "exec/batch_policy.h"
#include "exec/executable.h"
#include "exec/part_copy.h"
#include "threads/counters.h"
#include "threads/cpu_device.h"
#include "threads/device.h"

namespace tenfold {
namespace {

constexpr int64_t GRAIN_BYTES = 1 << 16; // bytes of rows that a thread copies at once

// The Type of so many members' arrays, side by side.
Ref<Type> stacked_type(const Type& type, std::size_t members) {
    std::vector<int64_t> shape{int64_t(members)};
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    return intern_type({shape, type.dtype, type.device, type.storage, false});
}

void copy_strided(char* to, const char* from, std::span<const int64_t> shape,
                  std::span<const int64_t> strides, int64_t itemsize) {
    if (shape.empty()) {
        std::memcpy(to, from, std::size_t(itemsize));
        return;
    }
    int64_t row = itemsize;
    for (int64_t length : shape.subspan(1)) row *= length;
    for (int64_t i = 0; i < shape[0]; ++i)
        copy_strided(to + i * row, from + i * strides[0], shape.subspan(1), strides.subspan(1),
                     itemsize);
}

// Memory for the rows of members; null when memory is short.
char* allocate_rows(StackedOperand& operand, const Type& type, std::size_t members) {
    Ref<Allocation> memory =
        Allocation::on_device(device_of(type.device), members * std::size_t(bytes_of(type)));
    if (!memory) return nullptr;
    auto* data = static_cast<char*>(memory->data);
    operand.stacked = true;
    operand.value = Value::in_memory(std::move(memory), stacked_type(type, members));
    return data;
}

// Whether the rows are already contiguous. Equidistant rows are copied as well: each distance would
// need its own plan.
bool view_if_contiguous(StackedOperand& operand, std::span<const StridedRef> members,
                        const Type& type, std::size_t rows) {
    const StridedRef& first = members[0];
    Allocation& memory = *first.allocation;
    int64_t bytes = bytes_of(type);
    bool is_padded = rows > members.size(); // foreign memory is not read past its members
    if (is_padded && (memory.owner || first.offset + int64_t(rows) * bytes > int64_t(memory.bytes)))
        return false;
    for (std::size_t row = 0; row < members.size(); ++row)
        if (members[row].strides || members[row].allocation != &memory ||
            members[row].offset != first.offset + int64_t(row) * bytes)
            return false;
    operand.stacked = true;
    operand.value = Value::in_memory(Ref<Allocation>(&memory), stacked_type(type, rows));
    operand.value->is_view = true;
    operand.value->buffers[0].offset = first.offset;
    return true;
}

// Arrays of members, on the way to one place.
struct RowCopier {
    std::span<const StridedRef> from;
    const Type& type;
    char* to;
    int64_t bytes = bytes_of(type);

    // A kernel: of rows from `begin` to `end`.
    static int64_t copy(void** buffers, const int64_t*, const double*, void*, int64_t begin,
                        int64_t end) {
        const RowCopier& rows = *static_cast<const RowCopier*>(buffers[0]);
        for (int64_t row = begin; row < end; ++row) rows.copy(row);
        return 0;
    }

  private:
    static constexpr int64_t PREFETCH_DISTANCE = 8, CACHE_LINE_BYTES = 64, MAX_PREFETCH_LINES = 8;

    const StridedRef& member(int64_t row) const {
        return from[std::min(std::size_t(row), from.size() - 1)];
    }

    static const char* data(const StridedRef& ref) {
        return static_cast<char*>(ref.allocation->data) + ref.offset;
    }

    void copy(int64_t row) const {
        prefetch(row);
        const StridedRef& ref = member(row);
        if (ref.strides)
            copy_strided(to + row * bytes, data(ref), type.shape, *ref.strides,
                         dtype_of(type.dtype).bytes);
        else
            std::memcpy(to + row * bytes, data(ref), std::size_t(bytes));
    }

    // Prefetches upcoming rows. A row's address needs its Allocation, so that comes first.
    void prefetch(int64_t row) const {
        __builtin_prefetch(member(row + 2 * PREFETCH_DISTANCE).allocation);
        const char* upcoming = data(member(row + PREFETCH_DISTANCE));
        for (int64_t offset = 0; offset < std::min(bytes, MAX_PREFETCH_LINES * CACHE_LINE_BYTES);
             offset += CACHE_LINE_BYTES)
            __builtin_prefetch(upcoming + offset);
    }
};

// Copies by a launch for each row: the kernels of another device cannot follow the pointers of a
// RowCopier.
bool copy_each_row(const Value& whole, std::span<const StridedRef> members, const Type& type,
                   std::size_t rows) {
    Value from, to;
    from.type = to.type = Ref<Type>(const_cast<Type*>(&type));
    for (std::size_t row = 0; row < rows; ++row) {
        const StridedRef& member = members[std::min(row, members.size() - 1)];
        from.strides = member.strides ? *member.strides : std::vector<int64_t>();
        from.buffers[0] = {Ref<Allocation>(member.allocation), member.offset};
        to.buffers[0] = {whole.buffers[0].allocation, int64_t(row) * bytes_of(type)};
        Assignment assignment(to, &from, {}, 1);
        Work work = assignment.work();
        if (!assignment.fits() ||
            !DirectLauncher().launch_and_wait(device_of(type.device), work).succeeded())
            return false;
    }
    return true;
}

// The rows, each in C order, one behind the other in the memory of `whole`.
bool copy_rows(const Value& whole, std::span<const StridedRef> members, const Type& type,
               std::size_t rows, int threads) {
    if (!device_of(type.device).is_host) return copy_each_row(whole, members, type, rows);
    RowCopier copier{members, type, static_cast<char*>(whole.buffers[0].address())};
    return launch_object(RowCopier::copy, &copier, int64_t(rows), GRAIN_BYTES / (copier.bytes + 1),
                         threads);
}

} // namespace

void copy_elements(char* to, const Value& from) {
    const char* data = host_data(from);
    if (from.strides.empty())
        std::memcpy(to, data, std::size_t(bytes_of(*from.type)));
    else
        copy_strided(to, data, from.type->shape, from.strides, dtype_of(from.type->dtype).bytes);
}

bool stack_operands(StackedOperand& operand, std::span<const StridedRef> members, const Type& type,
                    std::size_t rows, int threads) {
    if (view_if_contiguous(operand, members, type, rows)) return true;
    if (!allocate_rows(operand, type, rows)) return false;
    count(Counter::gathers);
    return copy_rows(*operand.value, members, type, rows, threads);
}

Ref<Value> join_rows(std::span<const StridedRef> members, const Type& member,
                     const Ref<Type>& result, int threads) {
    const Allocation& memory = *members[0].allocation;
    const auto bytes = std::size_t(bytes_of(*result));
    StackedOperand joined;
    if (!memory.owner && bytes * BATCHES.sparse_ratio >= memory.bytes &&
        view_if_contiguous(joined, members, member, members.size())) {
        joined.value->type = result;
        return joined.value;
    }
    Ref<Value> copied = Value::uninitialized(result);
    return copied && copy_rows(*copied, members, member, members.size(), threads) ? copied
                                                                                  : Ref<Value>();
}

Ref<Value> repeated_rows(const Value& value, const Ref<Type>& type) {
    Ref<Value> result = Value::uninitialized(type);
    const StridedRef row = StridedRef::of(value);
    auto rows = std::size_t(type->size() / std::max<int64_t>(1, value.type->size()));
    return result && copy_rows(*result, {&row, 1}, *value.type, rows, 1) ? result : Ref<Value>();
}

Ref<Value> in_c_order(const Ref<Value>& value) {
    return value->strides.empty() ? value : repeated_rows(*value, value->type);
}

bool stack_scalars(StackedOperand& operand, std::span<const Scalar* const> scalars, uint16_t dtype,
                   uint8_t device, std::size_t rows) {
    const Scalar& first = *scalars[0];
    auto is_same = [&](const Scalar* other) { return other->has_equal_bits(first); };
    operand.scalar = &first;
    if (std::ranges::all_of(scalars, is_same)) return true;
    const DType& kind = dtype_of(dtype);
    if (kind.kind == 'c' || (kind.kind == 'f' && kind.bytes < 4)) return false;
    char* to = allocate_rows(operand, *intern_type({{}, dtype, device, 0, false}), rows);
    operand.scalar = nullptr;
    if (!to) return false;
    std::vector<char> numbers(rows * kind.bytes);
    for (std::size_t row = 0; row < rows; ++row) {
        uint64_t bits = scalar_bits(*scalars[std::min(row, scalars.size() - 1)], {.dtype = dtype});
        std::memcpy(&numbers[row * kind.bytes], &bits, kind.bytes);
    }
    device_of(device).copy(to, numbers.data(), numbers.size(), Device::from_host);
    return true;
}

Ref<Value> RowViews::row_value(std::size_t row, Ref<Value> next) {
    auto value = Ref<Value>::adopt(new Value);
    Buffer& buffer = value->buffers[0];
    const void* address = static_cast<char*>(buffer_.address()) + row * bytes_;
    value->type = types_.take();
    value->next = std::move(next);
    if (copies_ && (buffer.allocation = Allocation::from_pool(bytes_))) {
        std::memcpy(buffer.address(), address, bytes_);
        return value;
    }
    value->is_view = true;
    buffer = {memory_.take(), buffer_.offset + int64_t(row * bytes_)};
    return value;
}

} // namespace tenfold
