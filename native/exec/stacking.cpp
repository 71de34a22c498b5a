#include "exec/stacking.h"

#include <algorithm>
#include <cstring>

#include "exec/executable.h"
#include "threads/counters.h"
#include "threads/worker_pool.h"

namespace tenfold {
namespace {

constexpr int64_t RANGE = 1 << 16; // bytes of rows that a thread copies at once

// Of so many members' arrays, side by side.
Ref<Type> stacked(const Type& type, std::size_t members) {
    std::vector<int64_t> shape{int64_t(members)};
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    return intern_type({shape, type.dtype, type.device, type.storage, false});
}

bool are_the_same(double one, double other) { return std::memcmp(&one, &other, sizeof one) == 0; }

void copy_strided(char* to, const char* from, std::span<const int64_t> shape,
                  std::span<const int64_t> strides, int64_t item) {
    if (shape.empty()) {
        std::memcpy(to, from, std::size_t(item));
        return;
    }
    int64_t row = item;
    for (int64_t length : shape.subspan(1)) row *= length;
    for (int64_t i = 0; i < shape[0]; ++i)
        copy_strided(to + i * row, from + i * strides[0], shape.subspan(1), strides.subspan(1),
                     item);
}

// Memory for the rows of members; null where there is none.
char* room(StackedOperand& column, const Type& type, std::size_t members) {
    Ref<Allocation> memory = Allocation::from_pool(members * std::size_t(bytes_of(type)));
    if (!memory) return nullptr;
    auto* data = static_cast<char*>(memory->data);
    column.stacked = true;
    column.value = Ref<Value>::adopt(new Value);
    column.value->type = stacked(type, members);
    column.value->buffers[0].allocation = std::move(memory);
    return data;
}

// Whether rows lie so already. Others are copied even where they lie equally far apart: each
// distance would be another plan.
bool lie_in_a_row(StackedOperand& column, std::span<const StridedRef> members, const Type& type,
                  std::size_t rows) {
    const StridedRef& first = members[0];
    const Allocation& memory = *first.buffer->allocation;
    int64_t bytes = bytes_of(type);
    bool further = rows > members.size(); // foreign memory is not read past its members
    if (further && (memory.owner || first.offset + int64_t(rows) * bytes > int64_t(memory.bytes)))
        return false;
    for (std::size_t row = 0; row < members.size(); ++row)
        if (members[row].strides || members[row].buffer->allocation.get() != &memory ||
            members[row].offset != first.offset + int64_t(row) * bytes)
            return false;
    column.stacked = true;
    column.value = Ref<Value>::adopt(new Value);
    column.value->type = stacked(type, rows);
    column.value->part = true;
    column.value->buffers[0] = {first.buffer->allocation, first.offset};
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
    static constexpr int64_t SOON = 8, LINE = 64, LINES = 8;

    const StridedRef& member(int64_t row) const {
        return from[std::min(std::size_t(row), from.size() - 1)];
    }

    static const char* data(const StridedRef& lies) {
        return static_cast<char*>(lies.buffer->allocation->data) + lies.offset;
    }

    void copy(int64_t row) const {
        fetch_ahead(row);
        const StridedRef& lies = member(row);
        if (lies.strides)
            copy_strided(to + row * bytes, data(lies), type.shape, *lies.strides,
                         dtype_of(type.dtype).bytes);
        else
            std::memcpy(to + row * bytes, data(lies), std::size_t(bytes));
    }

    // Each lies somewhere else, and where is known only to an Allocation that lies elsewhere, too.
    void fetch_ahead(int64_t row) const {
        __builtin_prefetch(member(row + 2 * SOON).buffer->allocation.get());
        const char* soon = data(member(row + SOON));
        for (int64_t at = 0; at < std::min(bytes, LINES * LINE); at += LINE)
            __builtin_prefetch(soon + at);
    }
};

} // namespace

void copy_elements(char* to, const Value& from) {
    auto* data = static_cast<const char*>(from.buffers[0].address());
    if (from.strides.empty())
        std::memcpy(to, data, std::size_t(bytes_of(*from.type)));
    else
        copy_strided(to, data, from.type->shape, from.strides, dtype_of(from.type->dtype).bytes);
}

bool stack_operands(StackedOperand& column, std::span<const StridedRef> members, const Type& type,
                    std::size_t rows, int threads) {
    if (lie_in_a_row(column, members, type, rows)) return true;
    char* to = room(column, type, rows);
    if (!to) return false;
    count(Counter::gathers);
    RowCopier copied{members, type, to};
    void* buffers[] = {&copied};
    Work work;
    work.kernel = RowCopier::copy;
    work.buffers = buffers;
    work.units = int64_t(rows);
    work.grain = std::max<int64_t>(1, RANGE / (copied.bytes + 1));
    work.threads = threads;
    return Launch(work).run().outcome == Outcome::done;
}

bool write_scalars(StackedOperand& column, std::span<const Scalar* const> scalars, uint16_t dtype,
                   uint8_t device, std::size_t rows) {
    const Scalar& first = *scalars[0];
    auto same = [&](const Scalar* other) {
        return other->form == first.form && other->whole == first.whole &&
               are_the_same(other->real, first.real) &&
               are_the_same(other->imaginary, first.imaginary);
    };
    column.scalar = &first;
    if (std::ranges::all_of(scalars, same)) return true;
    const DType& kind = dtype_of(dtype);
    if (kind.kind == 'c' || (kind.kind == 'f' && kind.bytes < 4)) return false;
    char* to = room(column, *intern_type({{}, dtype, device, 0, false}), rows);
    for (std::size_t row = 0; to && row < rows; ++row) {
        uint64_t bits = number_bits(*scalars[std::min(row, scalars.size() - 1)], {.dtype = dtype});
        std::memcpy(to + row * kind.bytes, &bits, kind.bytes);
    }
    column.scalar = nullptr;
    return to;
}

} // namespace tenfold
