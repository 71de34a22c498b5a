#include "exec/part_copy.h"

#include <algorithm>
#include <cstring>

#include "exec/iteration_space.h"
#include "ir/intern.h"
#include "ir/slice_params.h"

namespace tenfold {
namespace {

constexpr int64_t SPAN = 4096;                      // elements of a unit, the most
constexpr int64_t GRAIN = 1 << 14;                  // of a range
constexpr int64_t QUICK = 1 << 12, ALONE = 1 << 15; // that keep the GIL, and one thread

template <std::size_t BYTES>
void copy_line(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t count) {
    if (to_step == int64_t(BYTES) && from_step == int64_t(BYTES)) {
        std::memcpy(to, from, std::size_t(count) * BYTES);
        return;
    }
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, BYTES);
}

bool is_known(const Scalar& scalar, const DType& dtype) {
    bool is_short_float = dtype.kind == 'f' && dtype.bytes < 4;
    return scalar.form != Scalar::huge && scalar.form != Scalar::large && !is_short_float;
}

} // namespace

bool can_assign(const LinearizedGraph& walked, const LinearizedNode& entry) {
    const Node& node = *entry.node;
    if (node.op->part != Op::replaced || entry.width != 2) return false;
    const Node& whole = *walked.nodes[walked.inputs(entry)[0]].node;
    const Node& given = *walked.nodes[walked.inputs(entry)[1]].node;
    if (whole.is_scalar() || whole.type->dtype != node.type->dtype) return false;
    if (given.is_scalar()) return is_known(given.scalar, dtype_of(node.type->dtype));
    return given.type->dtype == node.type->dtype;
}

Ref<Value> part_of(const Node& update, const Value& whole) {
    const Starts& known = starts_of(*update.op, *update.params);
    Replaced part = replaced_by(*known.pattern);
    const Type& type = *whole.type;
    Ref<Type> of = intern_type({part.shape, type.dtype, type.device, type.storage, false});
    return viewed(part.movement, whole, std::move(of), known.starts.span());
}

Assignment::Assignment(const Value& part, const Value* given, const Element& element, int threads)
    : item_(dtype_of(part.type->dtype).bytes), to_(static_cast<char*>(part.buffers[0].address())),
      element_(element) {
    from_ = given ? static_cast<const char*>(given->buffers[0].address())
                  : reinterpret_cast<const char*>(element_.data());
    const Type& type = *part.type;
    int64_t elements = type.size();
    threads_ = elements <= QUICK ? 0 : elements <= ALONE ? 1 : threads;
    IterationSpace lying;
    Order order;
    std::span<const Value* const> read{&given, given ? 1u : 0u};
    fits_ = type.shape.size() <= MOST_AXES;
    if (!fits_ || elements == 0) return;
    for (std::size_t i = 0; i < type.shape.size(); ++i)
        order.axes[i] = uint8_t(type.shape.size() - 1 - i);
    fits_ = lie(type, read, order, part.strides, lying);
    count_ = lying.axes;
    units_ = 1;
    for (std::size_t i = 0; i < count_; ++i) {
        axes_[i] = {lying.length(i), lying.stride(lying.operands - 1, i),
                    given ? lying.stride(0, i) : 0};
        if (i > 0) units_ *= axes_[i].length;
    }
    if (count_ == 0) axes_[count_++] = {1, item_, item_};
    span_ = std::min(axes_[0].length, SPAN);
    units_ *= (axes_[0].length + span_ - 1) / span_;
}

Work Assignment::work() {
    Work work;
    buffer_ = this;
    work.kernel = copy;
    work.buffers = &buffer_;
    work.units = units_;
    work.grain = std::max<int64_t>(1, GRAIN / span_);
    work.threads = threads_;
    work.whole = true;
    return work;
}

int64_t Assignment::copy(void** buffers, const int64_t*, const double*, void*, int64_t begin,
                         int64_t end) {
    const auto& self = *static_cast<const Assignment*>(buffers[0]);
    for (int64_t unit = begin; unit < end; ++unit) self.copy_unit(unit);
    return 0;
}

void Assignment::copy_unit(int64_t unit) const {
    int64_t spans = (axes_[0].length + span_ - 1) / span_, first = unit % spans * span_;
    int64_t count = std::min(span_, axes_[0].length - first);
    char* to = to_ + first * axes_[0].to;
    const char* from = from_ + first * axes_[0].from;
    unit /= spans;
    for (std::size_t i = 1; i < count_; ++i) {
        int64_t index = unit % axes_[i].length;
        unit /= axes_[i].length;
        to += index * axes_[i].to;
        from += index * axes_[i].from;
    }
    auto line = item_ == 1   ? copy_line<1>
                : item_ == 2 ? copy_line<2>
                : item_ == 4 ? copy_line<4>
                : item_ == 8 ? copy_line<8>
                             : copy_line<16>;
    line(to, axes_[0].to, from, axes_[0].from, count);
}

} // namespace tenfold
