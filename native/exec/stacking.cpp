#include "exec/stacking.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "exec/batch_policy.h"
#include "exec/executable.h"
#include "memory/target_facts.h"
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

// As `copy_rows`, by launches whose kernel reads the rows by a table in its arguments.
bool copy_rows_on_device(char* to, std::span<const StridedRef> members, const Type& type,
                         std::size_t rows) {
    const DType& dtype = dtype_of(type.dtype);
    const int64_t parts = dtype.kind == 'c' ? 2 : 1, word = dtype.bytes / parts;
    if (type.shape.size() + 1 > TABLE_AXES) return false;
    auto member = [&](std::size_t row) -> const StridedRef& {
        return members[std::min(row, members.size() - 1)];
    };
    for (std::size_t row = 0, end = 0; row < rows && type.size() > 0; row = end) {
        const std::vector<int64_t>* strides = member(row).strides;
        std::vector<void*> table;
        for (; end < rows && table.size() < TABLE_ROWS; ++end) {
            const StridedRef& next = member(end);
            bool is_alike = !strides == !next.strides && (!strides || *strides == *next.strides);
            if (!is_alike) break;
            table.push_back(static_cast<char*>(next.allocation->data) + next.offset);
        }
        std::vector<int64_t> sizes{type.size() * parts, 0};
        if (!strides)
            sizes.insert(sizes.end(), {sizes[0], word});
        else if (parts > 1)
            sizes.insert(sizes.end(), {parts, word});
        for (std::size_t axis = type.shape.size(); strides && axis-- > 0;)
            sizes.insert(sizes.end(), {type.shape[axis], (*strides)[axis]});
        sizes[1] = int64_t(sizes.size() - 2) / 2;
        if (!launch_rows(RowForm::copy, type, int64_t(table.size()) * sizes[0],
                         to + int64_t(row) * bytes_of(type), sizes, table))
            return false;
    }
    return true;
}

// The rows, each in C order, one behind the other in the memory of `whole`.
bool copy_rows(const Value& whole, std::span<const StridedRef> members, const Type& type,
               std::size_t rows, int threads) {
    auto* to = static_cast<char*>(whole.buffers[0].address());
    if (!device_of(type.device).is_host) return copy_rows_on_device(to, members, type, rows);
    RowCopier copier{members, type, to};
    return launch_object(RowCopier::copy, &copier, int64_t(rows), GRAIN_BYTES / (copier.bytes + 1),
                         threads);
}

} // namespace

KernelHandle (*row_kernel)(uint8_t, RowForm, uint16_t) = nullptr;

bool launch_rows(RowForm form, const Type& type, int64_t threads, void* to,
                 std::span<const int64_t> sizes, std::span<void* const> rows,
                 std::span<const uint64_t> numbers) {
    // Whole tables: the places of all arguments are the same for each launch.
    std::array<void*, 1 + TABLE_ROWS> buffers{to};
    std::array<int64_t, 3 + 2 * TABLE_AXES> all_sizes{threads};
    std::ranges::copy(rows, buffers.begin() + 1);
    std::ranges::copy(sizes, all_sizes.begin() + 1);
    Work work;
    work.kernel = row_kernel(type.device, form, type.dtype);
    work.buffers = std::span(buffers).first(form == RowForm::numbers ? 1 : buffers.size());
    work.sizes = all_sizes;
    work.scalars = numbers;
    work.written = 1; // `to`
    work.units = work.grain = threads;
    if (!work.kernel) return false;
    DirectLauncher().launch(device_of(type.device), work); // it cannot fail for its operands
    return true;
}

bool copy_elements(char* to, const Value& from) {
    if (!device_of(from.type->device).is_host) {
        const StridedRef row = StridedRef::of(from);
        return copy_rows_on_device(to, {&row, 1}, *from.type, 1);
    }
    const char* data = host_data(from);
    if (from.strides.empty())
        std::memcpy(to, data, std::size_t(bytes_of(*from.type)));
    else
        copy_strided(to, data, from.type->shape, from.strides, dtype_of(from.type->dtype).bytes);
    return true;
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
    const DType& kind = dtype_of(dtype);
    const std::size_t parts = kind.kind == 'c' ? 2 : 1, bytes = kind.bytes / parts;
    if (kind.kind == 'f' && kind.bytes < 4) return false;
    const Ref<Type> type = intern_type({{}, dtype, device, 0, false});
    char* to = allocate_rows(operand, *type, rows);
    if (!to) return false;
    std::vector<uint64_t> numbers;
    for (std::size_t i = 0; i < rows * parts; ++i) {
        const Scalar& scalar = *scalars[std::min(i / parts, scalars.size() - 1)];
        numbers.push_back(scalar_bits(scalar, {.dtype = dtype, .imaginary = i % parts == 1}));
    }
    if (device_of(device).is_host)
        for (std::size_t i = 0; i < numbers.size(); ++i)
            std::memcpy(to + i * bytes, &numbers[i], bytes);
    else
        for (std::size_t i = 0; i < numbers.size(); i += TABLE_ROWS) {
            auto some = std::span(numbers).subspan(i, std::min(TABLE_ROWS, numbers.size() - i));
            if (!launch_rows(RowForm::numbers, *type, int64_t(some.size()), to + i * bytes, {}, {},
                             some))
                return false;
        }
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
