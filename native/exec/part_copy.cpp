#include "exec/part_copy.h"

#include <algorithm>
#include <cstring>

#include "exec/iteration_space.h"
#include "exec/work_size.h"
#include "ir/index_map.h"
#include "ir/intern.h"
#include "threads/cpu_device.h"

namespace tenfold {
namespace {

template <std::size_t BYTES>
void copy_line(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count) {
    if (to_step == int64_t(BYTES) && from_step == int64_t(BYTES)) {
        std::memcpy(to, from, std::size_t(count) * BYTES);
        return;
    }
    if (to_step == int64_t(BYTES) && from_step == 0) {
        std::array<char, BYTES> element;
        std::memcpy(element.data(), from, BYTES);
        for (int64_t i = 0; i < count; ++i)
            std::memcpy(to + i * int64_t(BYTES), element.data(), BYTES);
        return;
    }
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, BYTES);
}

} // namespace

bool is_exact_scalar(const Scalar& scalar, const DType& dtype) {
    bool is_short_float = dtype.kind == 'f' && dtype.bytes < 4;
    return scalar.form != Scalar::big_integer && scalar.form != Scalar::uint64_integer &&
           !is_short_float;
}

bool can_assign(const LinearizedGraph& graph, const LinearizedNode& entry) {
    const Node& node = *entry.node;
    if (node.op->part != Op::slice_update || entry.num_inputs != 2) return false;
    const Node& target = *graph.nodes[graph.inputs(entry)[0]].node;
    const Node& rhs = *graph.nodes[graph.inputs(entry)[1]].node;
    if (target.is_scalar() || target.type->dtype != node.type->dtype) return false;
    if (rhs.is_scalar()) return is_exact_scalar(rhs.scalar, dtype_of(node.type->dtype));
    return rhs.type->dtype == node.type->dtype;
}

Ref<Value> updated_slice(const Node& update, const Value& whole) {
    const Type& type = *whole.type;
    const std::vector<int64_t>& shape = pattern_of(*update.params).map.shape;
    Ref<Type> slice_type = intern_type({shape, type.dtype, type.device, type.storage, false});
    return make_slice(*update.params, whole, std::move(slice_type));
}

Assignment::Assignment(const Value& part, const Value* rhs, const ElementBytes& element,
                       int threads)
    : buffers_{part.buffers[0].address(), rhs ? rhs->buffers[0].address() : nullptr} {
    sizes_.itemsize = dtype_of(part.type->dtype).bytes;
    sizes_.element = element;
    const Type& type = *part.type;
    int64_t elements = type.size();
    threads_ = threads_for(elements, threads);
    IterationSpace space;
    Order order;
    std::span<const Value* const> operands{&rhs, rhs ? 1u : 0u};
    fits_ = type.shape.size() <= MAX_AXES;
    if (!fits_ || elements == 0) return;
    for (std::size_t i = 0; i < type.shape.size(); ++i)
        order.axes[i] = uint8_t(type.shape.size() - 1 - i);
    fits_ = coalesce_axes(type, operands, order, part.strides, space);
    auto& axes = sizes_.axes;
    units_ = 1;
    for (std::size_t i = 0; i < space.axes; ++i) {
        axes[i] = {space.length(i), space.stride(space.operands - 1, i),
                   rhs ? space.stride(0, i) : 0};
        if (i > 0) units_ *= axes[i].length;
    }
    sizes_.num_axes = std::max<int64_t>(1, int64_t(space.axes));
    if (space.axes == 0) axes[0] = {1, sizes_.itemsize, sizes_.itemsize};
    sizes_.span = std::min(axes[0].length, MAX_UNIT_ELEMENTS);
    units_ *= (axes[0].length + sizes_.span - 1) / sizes_.span;
}

Work Assignment::work() {
    Work work;
    work.kernel = HostKernel(copy);
    work.buffers = buffers_;
    work.sizes = words_of(sizes_);
    work.units = units_;
    work.grain = std::max<int64_t>(1, GRAIN_ELEMENTS / sizes_.span);
    work.threads = threads_;
    work.uninterruptible = true;
    return work;
}

int64_t Assignment::copy(void** buffers, const int64_t* sizes, const double*, void*, int64_t begin,
                         int64_t end) {
    const auto& read = *reinterpret_cast<const Sizes*>(sizes);
    auto* to = static_cast<char*>(buffers[0]);
    const void* from = buffers[1] ? buffers[1] : read.element.data();
    for (int64_t unit = begin; unit < end; ++unit)
        copy_unit(read, to, static_cast<const char*>(from), unit);
    return 0;
}

void Assignment::copy_unit(const Sizes& sizes, char* to, const char* from, int64_t unit) {
    const auto& axes = sizes.axes;
    int64_t spans = (axes[0].length + sizes.span - 1) / sizes.span;
    int64_t first = unit % spans * sizes.span;
    int64_t count = std::min(sizes.span, axes[0].length - first);
    to += first * axes[0].to;
    from += first * axes[0].from;
    unit /= spans;
    for (std::size_t i = 1; i < std::size_t(sizes.num_axes); ++i) {
        int64_t index = unit % axes[i].length;
        unit /= axes[i].length;
        to += index * axes[i].to;
        from += index * axes[i].from;
    }
    auto line = sizes.itemsize == 1   ? copy_line<1>
                : sizes.itemsize == 2 ? copy_line<2>
                : sizes.itemsize == 4 ? copy_line<4>
                : sizes.itemsize == 8 ? copy_line<8>
                                      : copy_line<16>;
    line(to, axes[0].to, from, axes[0].from, count);
}

} // namespace tenfold
