#include "columns.h"

#include <algorithm>
#include <cstring>

#include "counters.h"
#include "plan.h"

namespace tenfold {
namespace {

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
char* room(Column& column, const Type& type, std::size_t members) {
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
bool lie_in_a_row(Column& column, std::span<const Lies> rows, const Type& type) {
    const Lies& first = rows[0];
    for (std::size_t row = 0; row < rows.size(); ++row)
        if (rows[row].strides || rows[row].buffer->allocation != first.buffer->allocation ||
            rows[row].offset != first.offset + int64_t(row) * bytes_of(type))
            return false;
    column.stacked = true;
    column.value = Ref<Value>::adopt(new Value);
    column.value->type = stacked(type, rows.size());
    column.value->part = true;
    column.value->buffers[0] = {first.buffer->allocation, first.offset};
    return true;
}

} // namespace

void copy_elements(char* to, const Value& from) {
    auto* data = static_cast<const char*>(from.buffers[0].address());
    if (from.strides.empty())
        std::memcpy(to, data, std::size_t(bytes_of(*from.type)));
    else
        copy_strided(to, data, from.type->shape, from.strides, dtype_of(from.type->dtype).bytes);
}

bool write_rows(Column& column, std::span<const Lies> rows, const Type& type) {
    if (lie_in_a_row(column, rows, type)) return true;
    char* to = room(column, type, rows.size());
    if (!to) return false;
    count(Counter::gathers);
    for (const Lies& from : rows) {
        const char* data = static_cast<char*>(from.buffer->allocation->data) + from.offset;
        if (from.strides)
            copy_strided(to, data, type.shape, *from.strides, dtype_of(type.dtype).bytes);
        else
            std::memcpy(to, data, std::size_t(bytes_of(type)));
        to += bytes_of(type);
    }
    return true;
}

bool write_scalars(Column& column, std::span<const Scalar* const> scalars, uint16_t dtype,
                   uint8_t device) {
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
    char* to = room(column, *intern_type({{}, dtype, device, 0, false}), scalars.size());
    for (std::size_t row = 0; to && row < scalars.size(); ++row) {
        uint64_t bits = number_bits(*scalars[row], {.dtype = dtype});
        std::memcpy(to + row * kind.bytes, &bits, kind.bytes);
    }
    column.scalar = nullptr;
    return to;
}

} // namespace tenfold
