#include "exec/reduction_kernels.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "exec/iteration_space.h"
#include "exec/op_interpreter.h"
#include "ir/inferred_shapes.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

constexpr int64_t BLOCK = 1024, LANES = 32; // of the tree
constexpr int64_t SHORT_AXIS = 32;          // rows that are shorter leave lanes of the tree empty
constexpr int64_t COLUMN_BYTES = 1 << 15;   // of scratch memory, for some packets of columns
constexpr int64_t QUICK = 1 << 12, ALONE = 1 << 15; // elements that keep the GIL, and one thread
constexpr int64_t GRAIN = 1 << 14;                  // elements of a range of units

// The loops of this process, which are few: by operation, dtypes and form.
struct KnownReductions {
    Lock lock;
    std::unordered_map<uint64_t, std::unique_ptr<const ReductionLoop>> loops;
};
KnownReductions* const the_known = new KnownReductions; // outlives every thread

uint64_t key_of(const Node& node, uint16_t source, ReductionForm form) {
    uint64_t key = node.op->id;
    for (uint16_t dtype : {source, node.inference->operands[0], node.type->dtype})
        key = key << 8 | dtype;
    for (bool fact : {form.column, form.strided, form.enters, form.leaves}) key = key << 1 | fact;
    return key;
}

// Null with an error of Python where Python has failed.
const ReductionLoop* loop_of(const Node& node, uint16_t source, ReductionForm form,
                             OpKernelCompiler& maker) {
    uint64_t key = key_of(node, source, form);
    {
        Guard guard(the_known->lock);
        auto found = the_known->loops.find(key);
        if (found != the_known->loops.end()) return found->second.get();
    }
    std::unique_ptr<const ReductionLoop> made(maker.make_fold(node, source, form));
    if (!made) return nullptr;
    Guard guard(the_known->lock);
    return the_known->loops.try_emplace(key, std::move(made)).first->second.get();
}

struct Axis {
    uint8_t number = 0;             // in the input
    int64_t length = 1, stride = 0; // in bytes, of what is read
    int64_t written = 0;            // the stride, in elements, of what is made
};

struct Axes {
    std::size_t count = 0;
    std::array<Axis, MOST_AXES> each;

    void push(const Axis& axis) { each[count++] = axis; }
    Axis* begin() { return each.data(); }
    Axis* end() { return each.data() + count; }
};

class Fold {
  public:
    Fold(const Node& node, const Value& input, int threads, OpKernelCompiler& maker,
         ExecutionContext& surroundings)
        : node_(node), input_(input), threads_(threads), maker_(maker),
          surroundings_(surroundings) {}

    Folded run() {
        if (!sort_axes()) return {};
        from_ = static_cast<char*>(input_.buffers[0].address());
        source_ = input_.type->dtype;
        Folded result{true, {}};
        for (bool enters = true; folded_.count > 0; enters = false) {
            Axis axis = folded_.each[0]; // the innermost is folded first
            std::copy(folded_.begin() + 1, folded_.end(), folded_.begin());
            --folded_.count;
            Axes rest = in_order();
            Axes loops = merged_axes(rest);
            bool leaves = folded_.count == 0;
            ReductionForm form = form_of(axis, loops, enters, leaves);
            const ReductionLoop* loop = loop_of(node_, source_, form, maker_);
            if (!loop) return result;
            if (!loop->kernel) return {};
            Ref<Allocation> memory = memory_for(*loop, rest);
            if (!memory || !launched(*loop, form, axis, loops, static_cast<char*>(memory->data)))
                return result;
            if (leaves)
                result.value = value_in(std::move(memory), rest);
            else
                read_next(std::move(memory), *loop, rest);
        }
        return result;
    }

  private:
    // What stays and what is folded, without axes of length 1; false for what only plans compute.
    bool sort_axes() {
        const Type& type = *input_.type;
        std::size_t rank = type.shape.size();
        const Params* params = node_.params.get();
        if (rank > MOST_AXES || type.size() == 0 || !params || params->moved ||
            !read_axes(params->bytes, rank, axes_))
            return false;
        Strides strides(type, input_.strides, rank);
        for (std::size_t i = rank; i-- > 0;) {
            Axis axis{uint8_t(i), type.shape[i], strides.along(i)};
            if (axis.length == 1) continue;
            if (!axes_.folds(i))
                kept_.push(axis);
            else if (!merged(axis))
                folded_.push(axis);
        }
        if (folded_.count == 0) folded_.push({});
        return folded_.count == 1 || node_.op->folds != Op::as_one;
    }

    // With the axis inside of it, where they may be folded as one and can be gone through as one.
    bool merged(const Axis& axis) {
        if (node_.op->folds == Op::each || folded_.count == 0) return false;
        Axis& inner = folded_.each[folded_.count - 1];
        if (axis.stride != inner.stride * inner.length) return false;
        inner.length *= axis.length;
        return true;
    }

    // What one fold leaves, in the order in which it lies in memory, innermost first; that of C
    // where one is not stepped through.
    Axes in_order() {
        Axes rest = kept_;
        for (const Axis& other : folded_) rest.push(other);
        bool repeats = std::any_of(rest.begin(), rest.end(), [](auto& a) { return a.stride == 0; });
        std::sort(rest.begin(), rest.end(), [&](const Axis& a, const Axis& b) {
            int64_t one = std::abs(a.stride), other = std::abs(b.stride);
            return repeats || one == other ? a.number > b.number : one < other;
        });
        int64_t next = 1;
        for (Axis& axis : rest) {
            axis.written = next;
            next *= axis.length;
        }
        return rest;
    }

    ReductionForm form_of(const Axis& folded, const Axes& loops, bool enters, bool leaves) const {
        ReductionForm form{false, false, enters, leaves};
        const Axis& columns = loops.each[0];
        if (loops.count > 0)
            form.column = folded.length < SHORT_AXIS
                              ? columns.length >= SHORT_AXIS / 2
                              : std::abs(columns.stride) < std::abs(folded.stride);
        const Axis& packets = form.column ? columns : folded;
        form.strided = packets.length > 1 && packets.stride != dtype_of(source_).bytes;
        return form;
    }

    // Axes that can be gone through as one are so.
    static Axes merged_axes(const Axes& axes) {
        Axes found;
        for (std::size_t i = 0; i < axes.count; ++i) {
            const Axis& axis = axes.each[i];
            Axis* inner = found.count > 0 ? found.end() - 1 : nullptr;
            if (inner && axis.stride == inner->stride * inner->length)
                inner->length *= axis.length;
            else
                found.push(axis);
        }
        return found;
    }

    static Ref<Allocation> memory_for(const ReductionLoop& loop, Axes& rest) {
        int64_t bytes = dtype_of(loop.made).bytes;
        for (const Axis& axis : rest) bytes *= axis.length;
        return Allocation::from_pool(std::size_t(bytes));
    }

    bool launched(const ReductionLoop& loop, ReductionForm form, const Axis& folded, Axes& loops,
                  char* to) {
        int64_t item = dtype_of(loop.made).bytes;
        for (Axis& axis : loops) axis.written *= item;
        std::size_t first = form.column ? 1 : 0; // of the outer ones
        while (loops.count < first + 2) loops.push({});
        const Axis &inner = loops.each[first], &outer = loops.each[first + 1];
        std::array<int64_t, 16> sizes{};
        std::size_t count = 0;
        auto add = [&](auto... numbers) { ((sizes[count++] = numbers), ...); };
        Work work;
        work.units = outer.length * inner.length;
        int64_t elements = work.units * folded.length, part = 0, slots = 0;
        add(outer.length, inner.length, folded.length); // as `Kernel.sizes` has them
        if (form.column) {
            const Axis& columns = loops.each[0];
            int64_t lanes = loop.lanes;
            slots = std::bit_width(uint64_t((folded.length + BLOCK - 1) / BLOCK)) + 1;
            int64_t row = 8 * loop.parts * (LANES + slots);
            part = std::max<int64_t>(COLUMN_BYTES / row / lanes, 1) * lanes;
            part = std::min(part, (columns.length + lanes - 1) / lanes * lanes);
            work.units *= (columns.length + part - 1) / part;
            work.grain = std::max<int64_t>(1, GRAIN / (part * folded.length));
            work.scratch = std::size_t((part + lanes) * row);
            elements *= columns.length;
            add(columns.length, outer.stride, inner.stride, folded.stride);
            if (form.strided) add(columns.stride);
        } else {
            work.grain = std::max<int64_t>(1, GRAIN / folded.length);
            add(outer.stride, inner.stride);
            if (form.strided) add(folded.stride);
        }
        work.scratch += 64;
        add(outer.written, inner.written, part, slots);
        work.kernel = loop.kernel;
        work.sizes = sizes.data();
        work.threads = elements <= QUICK ? 0 : elements <= ALONE ? 1 : threads_;
        surroundings_.count(Counter::kernels);
        return gone_through(work, loops, first + 2, to);
    }

    // A launch for each index of the axes for which the kernel has no loop.
    bool gone_through(Work& work, const Axes& loops, std::size_t first, char* to) {
        int64_t launches = 1;
        for (std::size_t i = first; i < loops.count; ++i) launches *= loops.each[i].length;
        for (int64_t number = 0; number < launches; ++number) {
            int64_t rest = number;
            std::array<void*, 2> buffers{from_, to};
            for (std::size_t i = first; i < loops.count; ++i) {
                const Axis& axis = loops.each[i];
                int64_t index = rest % axis.length;
                rest /= axis.length;
                buffers[0] = static_cast<char*>(buffers[0]) + index * axis.stride;
                buffers[1] = static_cast<char*>(buffers[1]) + index * axis.written;
            }
            work.buffers = buffers.data();
            surroundings_.count(Counter::launches);
            Result result = surroundings_.launch(work);
            if (result.outcome != Outcome::done || result.status != 0) return false;
        }
        return true;
    }

    // The next axis is folded in what was made of this one.
    void read_next(Ref<Allocation> memory, const ReductionLoop& loop, Axes& rest) {
        int64_t item = dtype_of(loop.made).bytes;
        surroundings_.count(Counter::temporaries);
        between_ = std::move(memory);
        from_ = static_cast<char*>(between_->data);
        source_ = loop.made;
        for (Axes* axes : {&kept_, &folded_})
            for (Axis& axis : *axes)
                for (const Axis& made : rest)
                    if (made.number == axis.number) axis.stride = made.written * item;
    }

    Ref<Value> value_in(Ref<Allocation> memory, Axes& rest) {
        return Value::in(std::move(memory), node_.type, strides_of(*node_.type, rest));
    }

    // Of the result, whose axes lie in this order; none for C's.
    std::vector<int64_t> strides_of(const Type& type, Axes& rest) const {
        bool in_c_order = std::is_sorted(rest.begin(), rest.end(),
                                         [](auto& a, auto& b) { return a.number > b.number; });
        if (in_c_order) return {};
        int64_t item = dtype_of(type.dtype).bytes;
        std::vector<int64_t> strides(type.shape.size(), item);
        for (const Axis& axis : rest) {
            std::size_t place = axis.number;
            for (std::size_t i = 0; !axes_.keeps && i < axis.number; ++i) place -= axes_.folds(i);
            strides[place] = axis.written * item;
        }
        return strides;
    }

    const Node& node_;
    const Value& input_;
    const int threads_;
    OpKernelCompiler& maker_;
    ExecutionContext& surroundings_;
    ReducedAxes axes_;
    Axes kept_, folded_; // innermost first
    Ref<Allocation> between_;
    char* from_ = nullptr;
    uint16_t source_ = 0;
};

} // namespace

Folded folded(const Node& node, const Value& input, int threads, OpKernelCompiler& maker,
              ExecutionContext& surroundings) {
    return Fold(node, input, threads, maker, surroundings).run();
}

} // namespace tenfold
