#include "exec/reduction_kernels.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "exec/iteration_space.h"
#include "exec/kernel_table.h"
#include "exec/op_interpreter.h"
#include "exec/work_size.h"
#include "ir/inferred_shapes.h"
#include "memory/target_facts.h"

namespace tenfold {
namespace {

constexpr int64_t COLUMN_BYTES = 1 << 15; // scratch memory for some packets of columns

// Kernels by operation, dtypes and form.
KernelTable<ReductionLoop>* const reduction_loops =
    new KernelTable<ReductionLoop>; // outlives every thread

uint64_t key_of(const Node& node, uint16_t source, ReductionForm form) {
    uint64_t key = node.op->id;
    for (uint16_t dtype : {source, node.inference->operands[0], node.type->dtype})
        key = key << 8 | dtype;
    for (bool fact : {form.reduce_outer, form.strided, form.first_pass, form.last_pass})
        key = key << 1 | fact;
    return key;
}

// Null with an error of Python where Python has failed.
const ReductionLoop* find_or_compile(const Node& node, uint16_t source, ReductionForm form,
                                     OpKernelCompiler& compiler) {
    return reduction_loops->find_or_make(compiler.target(), key_of(node, source, form), [&] {
        return compiler.compile_reduction(node, source, form);
    });
}

struct Axis {
    uint8_t index = 0;              // in the input
    int64_t length = 1, stride = 0; // stride: in bytes, of the source
    int64_t output_stride = 0;      // in elements, of the result
};

struct Axes {
    std::size_t count = 0;
    std::array<Axis, MAX_AXES> items;

    void push(const Axis& axis) { items[count++] = axis; }
    Axis* begin() { return items.data(); }
    Axis* end() { return items.data() + count; }
};

class ReductionRun {
  public:
    ReductionRun(const Node& node, const Value& input, int threads, OpKernelCompiler& compiler,
                 ExecutionContext& context)
        : node_(node), input_(input), threads_(threads), compiler_(compiler), context_(context),
          device_(device_of(node.type->device)) {}

    ReductionResult run() {
        if (!split_axes()) return {};
        source_address_ = static_cast<char*>(input_.buffers[0].address());
        source_dtype_ = input_.type->dtype;
        ReductionResult result{true, {}};
        for (bool first_pass = true; reduced_axes_.count > 0; first_pass = false) {
            Axis axis = reduced_axes_.items[0]; // the innermost is folded first
            std::copy(reduced_axes_.begin() + 1, reduced_axes_.end(), reduced_axes_.begin());
            --reduced_axes_.count;
            Axes remaining = memory_order();
            Axes loops = coalesce(remaining);
            bool last_pass = reduced_axes_.count == 0;
            ReductionForm form = form_of(axis, loops, first_pass, last_pass);
            const ReductionLoop* loop = find_or_compile(node_, source_dtype_, form, compiler_);
            if (!loop) return result;
            if (!loop->kernel) return {};
            Ref<Allocation> memory = memory_for(*loop, remaining);
            if (!memory || !launch(*loop, form, axis, loops, static_cast<char*>(memory->data)))
                return result;
            if (last_pass)
                result.value = value_in(std::move(memory), remaining);
            else
                read_next(std::move(memory), *loop, remaining);
        }
        return result;
    }

  private:
    // Splits the axes into kept and reduced ones, without axes of length 1. False for reductions
    // that only plans support.
    bool split_axes() {
        const Type& type = *input_.type;
        std::size_t rank = type.shape.size();
        const Params* params = node_.params.get();
        if (rank > MAX_AXES || type.size() == 0 || !params || !read_axes(*params, rank, axes_))
            return false;
        Strides strides(type, input_.strides, rank);
        for (std::size_t i = rank; i-- > 0;) {
            Axis axis{uint8_t(i), type.shape[i], strides.stride(i)};
            if (axis.length == 1) continue;
            if (!axes_.is_reduced(i))
                kept_axes_.push(axis);
            else if (!try_merge(axis))
                reduced_axes_.push(axis);
        }
        if (reduced_axes_.count == 0) reduced_axes_.push({});
        return reduced_axes_.count == 1 || node_.op->folding != Op::as_one;
    }

    // With the axis inside of it, where they may be folded as one and can be gone through as one.
    bool try_merge(const Axis& axis) {
        if (node_.op->folding == Op::each || reduced_axes_.count == 0) return false;
        Axis& inner = reduced_axes_.items[reduced_axes_.count - 1];
        if (axis.stride != inner.stride * inner.length) return false;
        inner.length *= axis.length;
        return true;
    }

    // The axes of one pass's result in memory order, innermost first. C order if an axis is
    // broadcast.
    Axes memory_order() {
        Axes axes = kept_axes_;
        for (const Axis& other : reduced_axes_) axes.push(other);
        bool has_broadcast =
            std::any_of(axes.begin(), axes.end(), [](auto& a) { return a.stride == 0; });
        std::sort(axes.begin(), axes.end(), [&](const Axis& a, const Axis& b) {
            int64_t one = std::abs(a.stride), other = std::abs(b.stride);
            return has_broadcast || one == other ? a.index > b.index : one < other;
        });
        int64_t next = 1;
        for (Axis& axis : axes) {
            axis.output_stride = next;
            next *= axis.length;
        }
        return axes;
    }

    ReductionForm form_of(const Axis& reduced, const Axes& loops, bool first_pass,
                          bool last_pass) const {
        ReductionForm form{false, false, first_pass, last_pass};
        const Axis& columns = loops.items[0];
        if (loops.count > 0)
            form.reduce_outer = reduced.length < TREE_LANES
                                    ? columns.length >= TREE_LANES / 2
                                    : std::abs(columns.stride) < std::abs(reduced.stride);
        const Axis& packets = form.reduce_outer ? columns : reduced;
        form.strided = packets.length > 1 && packets.stride != dtype_of(source_dtype_).bytes;
        return form;
    }

    // Axes that can be gone through as one are so.
    static Axes coalesce(const Axes& axes) {
        Axes coalesced;
        for (std::size_t i = 0; i < axes.count; ++i) {
            const Axis& axis = axes.items[i];
            Axis* inner = coalesced.count > 0 ? coalesced.end() - 1 : nullptr;
            if (inner && axis.stride == inner->stride * inner->length)
                inner->length *= axis.length;
            else
                coalesced.push(axis);
        }
        return coalesced;
    }

    Ref<Allocation> memory_for(const ReductionLoop& loop, Axes& remaining) const {
        int64_t bytes = dtype_of(loop.dtype).bytes;
        for (const Axis& axis : remaining) bytes *= axis.length;
        return Allocation::on_device(device_, std::size_t(bytes));
    }

    bool launch(const ReductionLoop& loop, ReductionForm form, const Axis& reduced, Axes& loops,
                char* to) {
        int64_t itemsize = dtype_of(loop.dtype).bytes;
        for (Axis& axis : loops) axis.output_stride *= itemsize;
        std::size_t first = form.reduce_outer ? 1 : 0;
        while (loops.count < first + 2) loops.push({});
        const Axis &inner = loops.items[first], &outer = loops.items[first + 1];
        std::array<int64_t, 16> sizes{};
        std::size_t count = 0;
        auto add = [&](auto... numbers) { ((sizes[count++] = numbers), ...); };
        Work work;
        work.units = outer.length * inner.length;
        int64_t elements = work.units * reduced.length, block = 0, slots = 0;
        add(outer.length, inner.length, reduced.length); // as `Kernel.sizes` has them
        if (form.reduce_outer) {
            const Axis& columns = loops.items[0];
            int64_t lanes = loop.lanes;
            slots = std::bit_width(uint64_t((reduced.length + TREE_BLOCK - 1) / TREE_BLOCK)) + 1;
            int64_t row = 8 * loop.parts * (TREE_LANES + slots);
            block = std::max<int64_t>(COLUMN_BYTES / row / lanes, 1) * lanes;
            block = std::min(block, (columns.length + lanes - 1) / lanes * lanes);
            work.units *= (columns.length + block - 1) / block;
            work.grain = std::max<int64_t>(1, GRAIN_ELEMENTS / (block * reduced.length));
            work.scratch = std::size_t((block + lanes) * row);
            elements *= columns.length;
            add(columns.length, outer.stride, inner.stride, reduced.stride);
            if (form.strided) add(columns.stride);
        } else {
            work.grain = std::max<int64_t>(1, GRAIN_ELEMENTS / reduced.length);
            add(outer.stride, inner.stride);
            if (form.strided) add(reduced.stride);
        }
        work.scratch += 64;
        add(outer.output_stride, inner.output_stride, block, slots);
        work.kernel = loop.kernel;
        work.sizes = {sizes.data(), count};
        work.threads = threads_for(elements, threads_);
        context_.count(Counter::kernels);
        return launch_outer(work, loops, first + 2, to);
    }

    // A launch for each index of the axes for which the kernel has no loop.
    bool launch_outer(Work& work, const Axes& loops, std::size_t first, char* to) {
        int64_t launches = 1;
        for (std::size_t i = first; i < loops.count; ++i) launches *= loops.items[i].length;
        for (int64_t number = 0; number < launches; ++number) {
            int64_t index_in_launch = number;
            std::array<void*, 2> buffers{source_address_, to};
            for (std::size_t i = first; i < loops.count; ++i) {
                const Axis& axis = loops.items[i];
                int64_t index = index_in_launch % axis.length;
                index_in_launch /= axis.length;
                buffers[0] = static_cast<char*>(buffers[0]) + index * axis.stride;
                buffers[1] = static_cast<char*>(buffers[1]) + index * axis.output_stride;
            }
            work.buffers = buffers;
            context_.count(Counter::launches);
            if (!context_.launch_and_wait(device_, work).succeeded()) return false;
        }
        return true;
    }

    // The next pass reduces the result of this one.
    void read_next(Ref<Allocation> memory, const ReductionLoop& loop, Axes& remaining) {
        int64_t itemsize = dtype_of(loop.dtype).bytes;
        context_.count(Counter::temporaries);
        intermediate_ = std::move(memory);
        source_address_ = static_cast<char*>(intermediate_->data);
        source_dtype_ = loop.dtype;
        for (Axes* axes : {&kept_axes_, &reduced_axes_})
            for (Axis& axis : *axes)
                for (const Axis& produced : remaining)
                    if (produced.index == axis.index)
                        axis.stride = produced.output_stride * itemsize;
    }

    Ref<Value> value_in(Ref<Allocation> memory, Axes& remaining) {
        return Value::in_memory(std::move(memory), node_.type, strides_of(*node_.type, remaining));
    }

    // Strides of a result whose axes are in this order; empty for C order.
    std::vector<int64_t> strides_of(const Type& type, Axes& remaining) const {
        bool in_c_order = std::is_sorted(remaining.begin(), remaining.end(),
                                         [](auto& a, auto& b) { return a.index > b.index; });
        if (in_c_order) return {};
        int64_t itemsize = dtype_of(type.dtype).bytes;
        std::vector<int64_t> strides(type.shape.size(), itemsize);
        for (const Axis& axis : remaining) {
            std::size_t output_axis = axis.index;
            for (std::size_t i = 0; !axes_.keepdims && i < axis.index; ++i)
                output_axis -= axes_.is_reduced(i);
            strides[output_axis] = axis.output_stride * itemsize;
        }
        return strides;
    }

    const Node& node_;
    const Value& input_;
    const int threads_;
    OpKernelCompiler& compiler_;
    ExecutionContext& context_;
    const Device& device_;
    ReducedAxes axes_;
    Axes kept_axes_, reduced_axes_; // innermost first
    Ref<Allocation> intermediate_;
    char* source_address_ = nullptr;
    uint16_t source_dtype_ = 0;
};

} // namespace

ReductionResult run_reduction(const Node& node, const Value& input, int threads,
                              OpKernelCompiler& compiler, ExecutionContext& context) {
    return ReductionRun(node, input, threads, compiler, context).run();
}

} // namespace tenfold
