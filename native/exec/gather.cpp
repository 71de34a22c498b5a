#include "exec/gather.h"

#include <algorithm>
#include <cstring>

#include "exec/work_size.h"
#include "threads/cpu_device.h"

namespace tenfold {
namespace {

bool is_in_c_order(const Value& value, std::size_t from_axis) {
    return value.strides.empty() || is_c_order(*value.type, value.strides, from_axis);
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
    : buffers_{array.buffers[0].address(), rows} {
    const auto& shape = array.type->shape;
    fits_ = indices.size() <= MAX_INDICES && is_in_c_order(array, indices.size());
    int64_t row_bytes = dtype_of(array.type->dtype).bytes;
    for (std::size_t axis = indices.size(); axis < shape.size(); ++axis) row_bytes *= shape[axis];
    const std::vector<int64_t> strides = strides_of(array);
    sizes_.direction = direction;
    sizes_.row_bytes = sizes_.row_stride = row_bytes;
    sizes_.rows = indices[0]->type->size();
    for (std::size_t axis = 0; fits_ && axis < indices.size(); ++axis)
        fits_ = indices[axis]->type->shape == indices[0]->type->shape &&
                add_index(*indices[axis], shape[axis], strides[axis]);
    threads_ = threads_for(sizes_.rows * std::max<int64_t>(1, row_bytes / 8), threads);
}

bool Gather::add_index(const Value& index, int64_t length, int64_t source_stride) {
    const DType& dtype = dtype_of(index.type->dtype);
    if (dtype.kind != 'i' || dtype.bytes < 4) return false;
    const auto& shape = index.type->shape;
    bool is_contiguous = is_in_c_order(index, 0);
    if (!is_contiguous && shape.size() != 1) return false;
    int64_t stride = is_contiguous ? int64_t(dtype.bytes) : index.strides[0];
    buffers_[2 + sizes_.num_indices] = index.buffers[0].address();
    sizes_.indices[sizes_.num_indices++] = {stride, length, source_stride, dtype.bytes == 4};
    return true;
}

// A position along an axis, negative ones counted from the end; it may be out of bounds.
int64_t Gather::position_of(const Index& index, const void* first, int64_t row) {
    const char* element = static_cast<const char*>(first) + row * index.stride;
    int64_t position = 0;
    if (index.is_short) {
        int32_t narrow;
        std::memcpy(&narrow, element, sizeof narrow);
        position = narrow;
    } else {
        std::memcpy(&position, element, sizeof position);
    }
    return position < 0 ? position + index.length : position;
}

// BYTES of a row; 0: as many as it has.
template <std::size_t BYTES>
bool Gather::copy_rows(void** buffers, const Sizes& sizes, int64_t begin, int64_t end) {
    auto* array = static_cast<char*>(buffers[0]);
    const void* first_row = buffers[1] ? buffers[1] : sizes.element.data();
    for (int64_t row = begin; row < end; ++row) {
        bool in_bounds = true;
        int64_t offset = 0;
        for (std::size_t i = 0; i < sizes.num_indices; ++i) {
            const Index& index = sizes.indices[i];
            int64_t position = position_of(index, buffers[2 + i], row);
            in_bounds &= position >= 0 && position < index.length;
            if (in_bounds) offset += position * index.source_stride;
        }
        if (!in_bounds) return false;
        std::size_t bytes = BYTES ? BYTES : std::size_t(sizes.row_bytes);
        char* element = array + offset;
        const char* other = static_cast<const char*>(first_row) + row * sizes.row_stride;
        if (sizes.direction == gather)
            std::memcpy(const_cast<char*>(other), element, bytes);
        else
            std::memcpy(element, other, bytes);
    }
    return true;
}

int64_t Gather::run(void** buffers, const int64_t* sizes, const double*, void*, int64_t begin,
                    int64_t end) {
    const auto& read = *reinterpret_cast<const Sizes*>(sizes);
    int64_t last = std::min(end * MAX_UNIT_ELEMENTS, read.rows);
    begin *= MAX_UNIT_ELEMENTS;
    auto copy = read.row_bytes == 8    ? copy_rows<8>
                : read.row_bytes == 4  ? copy_rows<4>
                : read.row_bytes == 16 ? copy_rows<16>
                                       : copy_rows<0>;
    return copy(buffers, read, begin, last) ? 0 : 1;
}

Work Gather::work() {
    Work work;
    bool gathers = sizes_.direction == gather;
    work.kernel = HostKernel(run);
    work.buffers = {buffers_.data(), 2 + sizes_.num_indices};
    work.sizes = words_of(sizes_);
    work.units = (sizes_.rows + MAX_UNIT_ELEMENTS - 1) / MAX_UNIT_ELEMENTS;
    work.grain = gathers ? 1 : work.units; // one range: in order
    work.threads = gathers ? threads_ : std::min(threads_, 1);
    return work;
}

} // namespace tenfold
