#include "exec/gather.h"

#include <algorithm>
#include <cstring>

#include "exec/work_size.h"

namespace tenfold {
namespace {

bool is_c_order(const Value& value, std::size_t from_axis) {
    int64_t stride = dtype_of(value.type->dtype).bytes;
    const auto& shape = value.type->shape;
    for (std::size_t axis = shape.size(); axis-- > from_axis; stride *= shape[axis])
        if (shape[axis] > 1 && !value.strides.empty() && value.strides[axis] != stride)
            return false;
    return true;
}

} // namespace

bool is_gather(const Node& node) {
    return node.op->gathers && node.params && node.params->has_axes;
}

bool are_rows(const Value& rows, const Value& index, const Value& array, std::size_t indexed_axes) {
    std::vector<int64_t> shape = index.type->shape;
    const auto& array_shape = array.type->shape;
    shape.insert(shape.end(), array_shape.begin() + std::ptrdiff_t(indexed_axes),
                 array_shape.end());
    return rows.type->dtype == array.type->dtype && rows.type->shape == shape &&
           rows.strides.empty();
}

bool is_scatter(const Node& node) {
    return node.op->scatters && node.params && node.params->has_axes;
}

Gather::Gather(const Value& array, std::span<const Value* const> indices, void* rows,
               Direction direction, int threads)
    : array_(static_cast<char*>(array.buffers[0].address())), first_row_(static_cast<char*>(rows)),
      direction_(direction) {
    const auto& shape = array.type->shape;
    fits_ = indices.size() <= MAX_INDICES && is_c_order(array, indices.size());
    row_bytes_ = dtype_of(array.type->dtype).bytes;
    for (std::size_t axis = indices.size(); axis < shape.size(); ++axis) row_bytes_ *= shape[axis];
    row_stride_ = row_bytes_;
    std::vector<int64_t> strides = array.strides;
    if (strides.empty()) {
        strides.resize(indices.size());
        int64_t stride = row_bytes_;
        for (std::size_t axis = indices.size(); axis-- > 0; stride *= shape[axis])
            strides[axis] = stride;
    }
    rows_ = indices[0]->type->size();
    for (std::size_t axis = 0; fits_ && axis < indices.size(); ++axis)
        fits_ = indices[axis]->type->shape == indices[0]->type->shape &&
                add_index(*indices[axis], shape[axis], strides[axis]);
    threads_ = threads_for(rows_ * std::max<int64_t>(1, row_bytes_ / 8), threads);
}

bool Gather::add_index(const Value& index, int64_t length, int64_t source_stride) {
    const DType& dtype = dtype_of(index.type->dtype);
    if (dtype.kind != 'i' || dtype.bytes < 4) return false;
    const auto& shape = index.type->shape;
    bool is_contiguous = is_c_order(index, 0);
    if (!is_contiguous && shape.size() != 1) return false;
    int64_t stride = is_contiguous ? int64_t(dtype.bytes) : index.strides[0];
    indices_[num_indices_++] = {static_cast<const char*>(index.buffers[0].address()), stride,
                                length, source_stride, dtype.bytes == 4};
    return true;
}

// A position along an axis, negative ones counted from the end; it may be out of bounds.
int64_t Gather::position_of(const Index& index, int64_t row) {
    int64_t position = 0;
    if (index.is_short) {
        int32_t narrow;
        std::memcpy(&narrow, index.first + row * index.stride, sizeof narrow);
        position = narrow;
    } else {
        std::memcpy(&position, index.first + row * index.stride, sizeof position);
    }
    return position < 0 ? position + index.length : position;
}

// BYTES of a row; 0: as many as it has.
template <std::size_t BYTES> bool Gather::copy_rows(int64_t begin, int64_t end) const {
    for (int64_t row = begin; row < end; ++row) {
        bool in_bounds = true;
        int64_t offset = 0;
        for (std::size_t i = 0; i < num_indices_; ++i) {
            int64_t position = position_of(indices_[i], row);
            in_bounds &= position >= 0 && position < indices_[i].length;
            if (in_bounds) offset += position * indices_[i].source_stride;
        }
        if (!in_bounds) return false;
        std::size_t bytes = BYTES ? BYTES : std::size_t(row_bytes_);
        char *element = array_ + offset, *other = first_row_ + row * row_stride_;
        std::memcpy(direction_ == gather ? other : element, direction_ == gather ? element : other,
                    bytes);
    }
    return true;
}

int64_t Gather::run(void** buffers, const int64_t*, const double*, void*, int64_t begin,
                    int64_t end) {
    const auto& self = *static_cast<const Gather*>(buffers[0]);
    int64_t last = std::min(end * MAX_UNIT_ELEMENTS, self.rows_);
    begin *= MAX_UNIT_ELEMENTS;
    bool in_bounds = self.row_bytes_ == 8    ? self.copy_rows<8>(begin, last)
                     : self.row_bytes_ == 4  ? self.copy_rows<4>(begin, last)
                     : self.row_bytes_ == 16 ? self.copy_rows<16>(begin, last)
                                             : self.copy_rows<0>(begin, last);
    return in_bounds ? 0 : 1;
}

Work Gather::work() {
    Work work;
    buffer_ = this;
    work.kernel = run;
    work.buffers = &buffer_;
    work.units = (rows_ + MAX_UNIT_ELEMENTS - 1) / MAX_UNIT_ELEMENTS;
    work.grain = direction_ == gather ? 1 : work.units; // one range: in order
    work.threads = direction_ == gather ? threads_ : std::min(threads_, 1);
    return work;
}

} // namespace tenfold
