#include "exec/op_interpreter.h"

#include <algorithm>
#include <chrono>

#include "exec/iteration_space.h"
#include "exec/part_copy.h"
#include "ir/cse.h"
#include "ir/slice_params.h"
#include "memory/deferred_decref.h"

namespace tenfold {
namespace {

// More are worth a plan at once, and of long graphs plans of pieces.
constexpr int64_t MOST_ELEMENTS = 1 << 17, MOST_IN_LONG = 1 << 13;
constexpr int64_t MOST_ASSIGNED = 1 << 21; // where parts are replaced, which have no templates
constexpr int64_t MOST_LAUNCHES = 4096;    // of one node, whose outer axes they go through
constexpr int64_t QUICK = 1 << 12, ALONE = 1 << 15; // elements that keep the GIL, and one thread
constexpr int64_t LANES = 64;                   // of packets, which are whole in a unit, the most
constexpr int64_t PART = 4096, GRAIN = 1 << 14; // elements of a unit of work, of a range

bool has_loops(const Node& node) {
    return node.op->shapes == Op::broadcast && node.inference->loops;
}
bool has_folds(const Node& node) { return node.op->folds != Op::nothing; }

constexpr std::span<const int64_t> NO_STARTS{};

const Params* pattern_of(const Node& node) { return starts_of(*node.op, *node.params).pattern; }

class ColdGraphRun : public OpInterpreter {
  public:
    ColdGraphRun(const LinearizedGraph& walked, int threads, OpKernelCompiler& maker,
                 ExecutionContext& surroundings, std::vector<Ran>* ran)
        : walked_(walked), threads_(threads), maker_(maker), surroundings_(surroundings), ran_(ran),
          values_(walked.nodes.size()), left_(walked.nodes.size()) {}
    ~ColdGraphRun() { give_up_claims(); }

    bool run() {
        begin();
        claim();
        if (!compute_all()) return false;
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i)
            if (walked_.nodes[i].held && !walked_.nodes[i].value && values_[i])
                publish(walked_.nodes[i].node.get(), values_[i]);
        publish_common_subexpressions(walked_);
        return true;
    }

    // For leaves that are given; again and again.
    Ref<Value> run(const GraphTemplate& pattern, std::span<const TemplateInput> leaves) {
        begin();
        scalars_.resize(values_.size());
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            uint32_t place = pattern.leaves[i];
            if (place == GraphTemplate::NOWHERE) continue;
            scalars_[place] = leaves[i].scalar;
            if (leaves[i].value) values_[place] = *leaves[i].value;
        }
        return compute_all() ? std::move(values_[pattern.output]) : Ref<Value>();
    }

    void begin() {
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i) {
            left_[i] = walked_.nodes[i].uses;
            values_[i] = nullptr;
        }
    }

    bool compute_one(uint32_t position) override {
        const Node& node = *walked_.nodes[position].node;
        if (has_loops(node)) return compute(position);
        if (has_folds(node)) return fold(position);
        bool assigns = node.op->part == Op::replaced && !stale_.empty(); // not in groups
        return assigns ? assign(position) : view(position) || compute_by_plan(position);
    }

    Ref<Value>& value(uint32_t position) override { return values_[position]; }

    void is_done(uint32_t position) override {
        for (uint32_t input : walked_.inputs(walked_.nodes[position]))
            if (--left_[input] == 0 && !walked_.nodes[input].held) values_[input] = nullptr;
    }

  private:
    // Of a leaf, what was there; of others, what has been computed.
    const Ref<Value>& there(uint32_t position) const {
        const Ref<Value>& made = values_[position];
        return made ? made : walked_.nodes[position].value;
    }

    bool compute_all() {
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i) {
            if (there(i) || walked_.nodes[i].node->is_scalar() || walked_.is_merged(i)) continue;
            if (!compute_one(i)) return false;
            is_done(i);
        }
        return true;
    }

    bool compute(uint32_t position) {
        const LinearizedNode& entry = walked_.nodes[position];
        const Node& node = *entry.node;
        const Type& type = *node.type;
        std::array<const Value*, Loops::OPERANDS> arrays{};
        std::size_t count = 0;
        for (uint32_t input : walked_.inputs(entry)) {
            if (walked_.nodes[input].node->is_scalar()) continue;
            if (count == arrays.size()) return false;
            arrays[count++] = there(input).get();
        }
        IterationSpace lying;
        std::vector<int64_t> strides;
        if (!is_contiguous(type, {arrays.data(), count}, lying)) {
            Order order;
            if (!axis_order(type, {arrays.data(), count}, order)) return false;
            strides = strides_in(order, type);
            if (!lie(type, {arrays.data(), count}, order, strides, lying)) return false;
        }
        const Loop* loop = loop_for(entry, {arrays.data(), count}, lying);
        if (!loop || !loop->kernel) return false;
        write_numbers(node, entry);
        Ref<Value> made = memory_for(position, type, std::move(strides));
        if (!made) return false;
        if (!entry.held) surroundings_.count(Counter::temporaries);
        surroundings_.count(Counter::kernels);
        int64_t begun = ran_ ? now() : 0;
        if (type.size() > 0 && !launched(*loop, lying, {arrays.data(), count}, *made)) return false;
        if (ran_) ran_->push_back({&node.op->name, true, begun, now()});
        values_[position] = std::move(made);
        return true;
    }

    // False for a node that is not a view, or not one without a copy.
    bool view(uint32_t position) {
        const LinearizedNode& entry = walked_.nodes[position];
        const Node& node = *entry.node;
        if (!node.op->view) return false;
        const Value& input = *there(walked_.inputs(entry)[0]);
        const ViewMap* movement = movement_of(node, *input.type);
        if (!movement) return false;
        bool part = node.op->part == Op::taken;
        auto starts = part ? starts_of(*node.op, *node.params).starts.span() : NO_STARTS;
        values_[position] = viewed(*movement, input, node.type, starts);
        return bool(values_[position]);
    }

    const ViewMap* movement_of(const Node& node, const Type& input) {
        return there_or_made(node.inference->movement, [&] {
            return node.op->part == Op::taken ? new ViewMap(taken_movement(*pattern_of(node)))
                                              : maker_.movement(node, input);
        });
    }

    // From now on other threads that reach a donated input wait until the result is published.
    void claim() {
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i) {
            const LinearizedNode& entry = walked_.nodes[i];
            if (entry.value || !entry.node->op || entry.node->op->part != Op::replaced) continue;
            if (walked_.nodes[walked_.inputs(entry)[0]].dying) claim(walked_.inputs(entry)[0]);
            stale_.resize(walked_.nodes.size());
        }
    }
    void claim(uint32_t position) {
        claimed_.push_back(walked_.nodes[position].node.get());
        claimed_.back()->claim.store(this_thread(), std::memory_order_release);
    }
    // What has not been written over yet stays as it is.
    void give_up_claims() {
        for (Node* node : claimed_) node->claim.store(0, std::memory_order_release);
        claimed_.clear();
    }
    bool is_claimed(uint32_t position) const {
        return std::ranges::find(claimed_, walked_.nodes[position].node.get()) != claimed_.end();
    }

    // In place if no other reference is left, else in a copy.
    bool assign(uint32_t position) {
        const LinearizedNode& entry = walked_.nodes[position];
        uint32_t whole = walked_.inputs(entry)[0];
        const Value& before = *there(whole);
        bool over = may_write_over(whole);
        Ref<Value> made =
            over ? Value::in(before.buffers[0].allocation, entry.node->type, before.strides)
                 : Value::of(entry.node->type);
        if (!made) return false;
        if (over) made->buffers[0].offset = before.buffers[0].offset;
        int64_t begun = ran_ ? now() : 0;
        if (!over) surroundings_.count(Counter::copies);
        if (!over && !copy(*made, &before)) return false;
        uint32_t given = walked_.inputs(entry)[1];
        bool is_number = walked_.nodes[given].node->is_scalar();
        numbers_.clear();
        if (is_number) write_number(walked_.nodes[given].node->scalar, entry.node->type->dtype);
        if (over) publish_readers(whole); // else they could be computed again of what is there then
        if (!copy(*part_of(*entry.node, *made), is_number ? nullptr : there(given).get()))
            return false;
        surroundings_.count(Counter::kernels);
        if (ran_) ran_->push_back({&entry.node->op->name, true, begun, now()});
        if (over) {
            bool stays = walked_.nodes[whole].value || is_claimed(whole);
            stale_[position] = stale_[whole] + stays;
            claim(position);
            publish(entry.node.get(), made); // what it was made of is gone
        }
        values_[position] = std::move(made);
        return true;
    }

    // What has been computed from a value that is to be written over, and others.
    void publish_readers(uint32_t of) {
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i)
            if (values_[i] && i != of) publish(walked_.nodes[i].node.get(), values_[i]);
        publish_common_subexpressions(walked_);
    }

    // No other reference to a value or its memory is left, and this is its last reader.
    bool may_write_over(uint32_t position) const {
        const LinearizedNode& entry = walked_.nodes[position];
        bool is_published = is_claimed(position);
        if (left_[position] != 1 || entry.held || (entry.value && !is_published)) return false;
        const Value& value = *there(position);
        const Allocation& memory = *value.buffers[0].allocation;
        if (memory.owner || value.next) return false;
        for (std::size_t axis = 0; axis < value.strides.size(); ++axis)
            if (value.strides[axis] == 0 && value.type->shape[axis] > 1) return false;
        return value.references.load(std::memory_order_relaxed) == 1u + is_published &&
               memory.references.load(std::memory_order_relaxed) == 1 + stale_[position];
    }

    bool copy(const Value& to, const Value* from) {
        Element element{};
        if (!from) std::ranges::copy(numbers_, element.begin());
        bool packs = numbers_.size() == 2 && dtype_of(to.type->dtype).bytes == 8; // of two floats
        if (!from && packs) element[0] |= element[1] << 32;
        Assignment assignment(to, from, element, threads_);
        if (!assignment.fits()) return false;
        Work work = assignment.work();
        if (work.units == 0) return true;
        surroundings_.count(Counter::launches);
        return surroundings_.launch(work).outcome == Outcome::done;
    }

    bool fold(uint32_t position) {
        const LinearizedNode& entry = walked_.nodes[position];
        const Value& input = *there(walked_.inputs(entry)[0]);
        int64_t begun = ran_ ? now() : 0;
        Folded made = folded(*entry.node, input, threads_, maker_, surroundings_);
        if (!made.fits) return !alone() && compute_by_plan(position);
        if (!made.value) return false;
        if (!entry.held) surroundings_.count(Counter::temporaries);
        if (ran_) ran_->push_back({&entry.node->op->name, true, begun, now()});
        values_[position] = std::move(made.value);
        return true;
    }

    // Whether one node is all that is pending: its plan is that of the whole.
    bool alone() const {
        return std::count_if(walked_.nodes.begin(), walked_.nodes.end(), [](const auto& entry) {
                   return !entry.value && !entry.node->is_scalar();
               }) == 1;
    }

    // Its inputs are given their values first, and keep them until their last reader has run.
    bool compute_by_plan(uint32_t position) {
        if (!scalars_.empty()) return false; // the nodes of a pattern are not computed
        const LinearizedNode& entry = walked_.nodes[position];
        // What was written may equal what is read.
        std::vector<Ref<Node>> written = inputs_of(entry.node.get());
        for (std::size_t k = 0; k < written.size(); ++k) {
            uint32_t input = walked_.inputs(entry)[k];
            if (!walked_.nodes[input].value && !written[k]->is_scalar())
                publish(written[k].get(), values_[input]);
        }
        give_up_claims(); // this thread may come to them
        if (!maker_.compute(*entry.node)) return false;
        values_[position] = value_of(entry.node.get());
        return bool(values_[position]);
    }

    const Loop* loop_for(const LinearizedNode& entry, std::span<const Value* const> arrays,
                         const IterationSpace& lying) {
        std::string steps;
        std::size_t form = 0;
        for (std::size_t k = 0; k < arrays.size(); ++k) {
            int64_t stride = lying.stride(k, 0), item = dtype_of(arrays[k]->type->dtype).bytes;
            bool whole = lying.axes == 0 || stride == item;
            steps.push_back(whole ? '1' : stride == 0 ? '0' : 's');
            form = form * 3 + (whole ? 1 : stride == 0 ? 0 : 2);
        }
        return there_or_made(entry.node->inference->loops->loops[form], [&] {
            std::vector<const Node*> inputs;
            for (uint32_t input : walked_.inputs(entry))
                inputs.push_back(walked_.nodes[input].node.get());
            return maker_.make(*entry.node, inputs, steps);
        });
    }

    void write_numbers(const Node& node, const LinearizedNode& entry) {
        numbers_.clear();
        auto inputs = walked_.inputs(entry);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const Node& input = *walked_.nodes[inputs[i]].node;
            if (!input.is_scalar()) continue;
            const Scalar* given = scalars_.empty() ? nullptr : scalars_[inputs[i]];
            write_number(given ? *given : input.scalar, node.inference->operands[i]);
        }
    }

    void write_number(const Scalar& scalar, uint16_t dtype) {
        Executable::Number as{.dtype = dtype};
        numbers_.push_back(number_bits(scalar, as));
        as.imaginary = true;
        if (dtype_of(dtype).kind == 'c') numbers_.push_back(number_bits(scalar, as));
    }

    // An operand that was made here, and is read for the last time, gives its own.
    Ref<Value> memory_for(uint32_t position, const Type& type, std::vector<int64_t> strides) {
        const LinearizedNode& entry = walked_.nodes[position];
        Ref<Allocation> memory;
        for (uint32_t input : walked_.inputs(entry)) {
            const LinearizedNode& below = walked_.nodes[input];
            if (left_[input] != 1 || below.held || below.value || !values_[input]) continue;
            const Value& value = *values_[input];
            const Ref<Allocation>& own = value.buffers[0].allocation;
            bool alone = value.references.load(std::memory_order_relaxed) == 1 &&
                         own->references.load(std::memory_order_relaxed) == 1;
            if (alone && value.type.get() == &type && value.strides == strides &&
                value.buffers[0].offset == 0)
                memory = own;
        }
        if (!memory) memory = Allocation::from_pool(type.bytes());
        return Value::in(std::move(memory), entry.node->type, std::move(strides));
    }

    bool launched(const Loop& loop, const IterationSpace& lying,
                  std::span<const Value* const> arrays, const Value& made) {
        int64_t inner = lying.length(0), outer = lying.length(1), launches = 1;
        for (std::size_t axis = 0; axis + 2 < lying.axes; ++axis) launches *= lying.lengths[axis];
        if (launches > MOST_LAUNCHES) return false;
        int64_t part = std::min((inner + LANES - 1) / LANES * LANES, PART);
        sizes_.clear();
        for (const Loop::Size& size : loop.sizes) {
            switch (size.what) {
            case Loop::length: sizes_.push_back(size.first == 1 ? inner : outer); break;
            case Loop::stride: sizes_.push_back(lying.stride(size.first, 1u - size.axis)); break;
            case Loop::part: sizes_.push_back(part); break;
            case Loop::nothing: sizes_.push_back(0); break;
            }
        }
        Work work;
        work.kernel = loop.kernel;
        work.sizes = sizes_.data();
        work.scalars = reinterpret_cast<const double*>(numbers_.data());
        work.units = outer * ((inner + part - 1) / part);
        work.grain = std::max<int64_t>(1, GRAIN / std::min(part, inner));
        int64_t elements = inner * outer;
        work.threads = elements <= QUICK ? 0 : elements <= ALONE ? 1 : threads_;
        std::array<char*, Loops::OPERANDS + 1> begin{};
        for (std::size_t k = 0; k < arrays.size(); ++k)
            begin[k] = static_cast<char*>(arrays[k]->buffers[0].address());
        begin[arrays.size()] = static_cast<char*>(made.buffers[0].address());
        for (int64_t number = 0; number < launches; ++number)
            if (!launched_at(work, lying, begin, number)) return false;
        return true;
    }

    // One of the launches over the outer axes, of which the last is gone through first.
    bool launched_at(Work& work, const IterationSpace& lying,
                     const std::array<char*, Loops::OPERANDS + 1>& begin, int64_t number) {
        std::array<void*, Loops::OPERANDS + 1> buffers{};
        std::array<int64_t, Loops::OPERANDS + 1> offsets{};
        for (std::size_t axis = lying.axes > 2 ? lying.axes - 2 : 0; axis-- > 0;) {
            int64_t index = number % lying.lengths[axis];
            number /= lying.lengths[axis];
            for (std::size_t k = 0; k < lying.operands; ++k)
                offsets[k] += index * lying.strides[k][axis];
        }
        for (std::size_t k = 0; k < lying.operands; ++k) buffers[k] = begin[k] + offsets[k];
        work.buffers = buffers.data();
        surroundings_.count(Counter::launches);
        Result result = surroundings_.launch(work);
        return result.outcome == Outcome::done && result.status == 0;
    }

    static int64_t now() {
        auto since = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
    }

    const LinearizedGraph& walked_;
    const int threads_;
    OpKernelCompiler& maker_;
    ExecutionContext& surroundings_;
    std::vector<Ran>* ran_;
    std::vector<Ref<Value>> values_;
    std::vector<uint32_t> left_;         // readers to come
    std::vector<const Scalar*> scalars_; // of a pattern: those that are given
    std::vector<uint64_t> numbers_;
    std::vector<int64_t> sizes_;
    std::vector<Node*> claimed_;
    std::vector<uint32_t> stale_; // Values before one that have its memory, too; of a run
};

// Of what is to be computed: then only that part may be.
bool is_small_part(const LinearizedGraph& walked, const LinearizedNode& entry) {
    constexpr int64_t SMALL_SHARE = 4;
    const LinearizedNode& whole = walked.nodes[walked.inputs(entry)[0]];
    return !whole.value && entry.node->type->size() * SMALL_SHARE < whole.node->type->size();
}

bool is_small(const Type& type, uint8_t device, int64_t most) {
    return type.device == device && type.storage == 0 && type.size() <= most;
}

bool may_be_computed(const LinearizedGraph& walked, const LinearizedNode& entry) {
    const Node& node = *entry.node;
    if (node.op && node.op->part == Op::replaced) return can_assign(walked, entry);
    return node.op && node.op->rule_free && node.inference->results.size() == 1 &&
           (node.op->part == Op::none || !is_small_part(walked, entry));
}

} // namespace

bool is_looped(const Node& node) { return has_loops(node) || has_folds(node) || node.op->view; }

bool is_large(const LinearizedGraph& walked) {
    return std::ranges::any_of(walked.nodes, [](const LinearizedNode& entry) {
        return !entry.node->is_scalar() && entry.node->type->size() > MOST_ELEMENTS;
    });
}

bool has_assignments(const LinearizedGraph& walked) {
    return std::ranges::any_of(walked.nodes, [](const LinearizedNode& entry) {
        return !entry.value && entry.node->op && entry.node->op->part == Op::replaced;
    });
}

bool fits_singly(const LinearizedGraph& walked, uint8_t device) {
    bool assigns = has_assignments(walked), loops = assigns;
    if (assigns && is_long(walked)) return false;
    int64_t most = assigns ? MOST_ASSIGNED : is_long(walked) ? MOST_IN_LONG : MOST_ELEMENTS;
    for (const LinearizedNode& entry : walked.nodes) {
        const Node& node = *entry.node;
        if (node.is_scalar()) continue;
        if (!is_small(*node.type, device, most)) return false;
        if (entry.value) continue;
        if (!may_be_computed(walked, entry)) return false;
        loops |= is_looped(node);
    }
    return loops;
}

std::unique_ptr<OpInterpreter> one_by_one(const LinearizedGraph& walked, int threads,
                                          OpKernelCompiler& maker, ExecutionContext& surroundings,
                                          std::vector<Ran>* ran) {
    auto made = std::make_unique<ColdGraphRun>(walked, threads, maker, surroundings, ran);
    made->begin();
    return made;
}

bool interpret(const LinearizedGraph& walked, int threads, OpKernelCompiler& maker,
               ExecutionContext& surroundings, std::vector<Ran>* ran) {
    return ColdGraphRun(walked, threads, maker, surroundings, ran).run();
}

GraphTemplate::~GraphTemplate() {
    walked.nodes.clear(); // first: the last count of a node must be what is kept
    release_later(kept);
}

bool GraphTemplate::fits(uint8_t device) const {
    auto fit = [&](const LinearizedNode& entry) {
        const Node& node = *entry.node;
        if (node.is_scalar() || !is_small(*node.type, device, MOST_ELEMENTS))
            return node.is_scalar();
        return entry.value || !node.op || (may_be_computed(walked, entry) && is_looped(node));
    };
    return walked.nodes[output].node->op && std::ranges::all_of(walked.nodes, fit);
}

void compute_pattern(const GraphTemplate& pattern, std::span<const TemplateInput> leaves,
                     std::span<Ref<Value>> made, OpKernelCompiler& maker,
                     ExecutionContext& surroundings) {
    ColdGraphRun singly(pattern.walked, 1, maker, surroundings, nullptr);
    for (Ref<Value>& value : made) {
        value = singly.run(pattern, leaves.first(pattern.leaves.size()));
        leaves = leaves.subspan(pattern.leaves.size());
    }
}

} // namespace tenfold
