#include "exec/op_interpreter.h"

#include <algorithm>
#include <chrono>

#include "exec/gather.h"
#include "exec/iteration_space.h"
#include "exec/part_copy.h"
#include "exec/stacking.h"
#include "exec/work_size.h"
#include "ir/cse.h"
#include "ir/index_map.h"
#include "memory/deferred_decref.h"

namespace tenfold {
namespace {

constexpr int64_t MAX_LAUNCHES = 4096; // launches of one node, over its outer axes
constexpr int64_t LANES = 64;          // elements; a block is a multiple of it: whole SIMD vectors

class ColdGraphRun : public OpInterpreter {
  public:
    ColdGraphRun(const LinearizedGraph& graph, int threads, OpKernelCompiler& compiler,
                 ExecutionContext& context, std::vector<StepTiming>* timings)
        : graph_(graph), threads_(threads), compiler_(compiler), context_(context),
          timings_(timings), values_(graph.nodes.size()), num_pending_readers_(graph.nodes.size()) {
    }
    ~ColdGraphRun() { release_claims(); }

    bool run() {
        begin();
        claim();
        if (!compute_all()) return false;
        for (uint32_t i = 0; i < graph_.nodes.size(); ++i)
            if (graph_.nodes[i].live_out && !graph_.nodes[i].value && values_[i])
                publish(graph_.nodes[i].node.get(), values_[i]);
        publish_common_subexpressions(graph_);
        return true;
    }

    // Runs a template on inputs; may be called repeatedly.
    Ref<Value> run(const GraphTemplate& graph_template, std::span<const TemplateInput> inputs) {
        begin();
        scalars_.resize(values_.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            uint32_t position = graph_template.leaves[i];
            if (position == GraphTemplate::NONE) continue;
            scalars_[position] = inputs[i].scalar;
            if (inputs[i].value) values_[position] = *inputs[i].value;
        }
        return compute_all() ? std::move(values_[graph_template.output]) : Ref<Value>();
    }

    void begin() {
        for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
            num_pending_readers_[i] = graph_.nodes[i].num_uses;
            values_[i] = nullptr;
        }
    }

    bool compute_node(uint32_t position) override {
        const Node& node = *graph_.nodes[position].node;
        if (!device_of(node.type->device).is_host) // loops are of the host
            return run_join(position) || run_view(position) || compute_by_plan(position);
        if (has_loops(node)) return run_elementwise(position);
        if (has_reduction(node)) return run_reduction_node(position);
        if (node.op->constant_fill) return run_fill(position);
        if (is_plain_product(graph_, graph_.nodes[position])) return run_product(position);
        if (is_gather(node)) return run_gather(position) || compute_by_plan(position);
        if (is_scatter(node)) return run_scatter(position) || compute_by_plan(position);
        if (node.op->joins) return run_join(position) || compute_by_plan(position);
        bool is_in_place_update =
            node.op->part == Op::slice_update && !num_stale_aliases_.empty(); // never in batches
        return is_in_place_update ? run_update(position)
                                  : run_view(position) || compute_by_plan(position);
    }

    Ref<Value>& value(uint32_t position) override { return values_[position]; }

    void release_inputs(uint32_t position) override {
        for (uint32_t input : graph_.inputs(graph_.nodes[position]))
            if (--num_pending_readers_[input] == 0 && !graph_.nodes[input].live_out)
                values_[input] = nullptr;
    }

  private:
    // The value of a leaf, or the computed value of a node.
    const Ref<Value>& computed_value(uint32_t position) const {
        const Ref<Value>& computed = values_[position];
        return computed ? computed : graph_.nodes[position].value;
    }

    // The number of a scalar: that of the call, where a template is run.
    const Scalar& scalar_of(uint32_t at) const {
        return !scalars_.empty() && scalars_[at] ? *scalars_[at] : graph_.nodes[at].node->scalar;
    }

    bool compute_all() {
        for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
            if (computed_value(i) || graph_.nodes[i].node->is_scalar() || graph_.is_merged(i))
                continue;
            if (!compute_node(i)) return false;
            release_inputs(i);
        }
        return true;
    }

    bool run_elementwise(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        const Node& node = *entry.node;
        const Type& type = *node.type;
        std::array<const Value*, Loops::OPERANDS> arrays{};
        std::size_t count = 0;
        for (uint32_t input : graph_.inputs(entry)) {
            if (graph_.nodes[input].node->is_scalar()) continue;
            if (count == arrays.size()) return false;
            arrays[count++] = computed_value(input).get();
        }
        IterationSpace space;
        std::vector<int64_t> strides;
        if (!is_contiguous(type, {arrays.data(), count}, space)) {
            Order order;
            if (!axis_order(type, {arrays.data(), count}, order)) return false;
            strides = strides_in(order, type);
            if (!coalesce_axes(type, {arrays.data(), count}, order, strides, space)) return false;
        }
        const Loop* loop = loop_for(entry, {arrays.data(), count}, space);
        if (!loop) return false;
        if (!loop->kernel) // one of a user may be read in part: a plan sees it
            return node.op->is_permanent && !is_only_pending() && compute_by_plan(position);
        write_numbers(node, entry);
        Ref<Value> result = memory_for(position, type, std::move(strides));
        if (!result) return false;
        int64_t start = timings_ ? now() : 0;
        if (type.size() > 0 && !launch_all(*loop, space, {arrays.data(), count}, *result))
            return false;
        context_.count(Counter::kernels);
        return finish(position, std::move(result), start);
    }

    bool run_fill(uint32_t position) {
        const Node& node = *graph_.nodes[position].node;
        ElementBytes element{};
        Ref<Value> result = Value::uninitialized(node.type);
        int64_t start = timings_ ? now() : 0;
        if (!result || !compiler_.fill_element(node, element)) return false;
        if (!copy(*result, nullptr, element)) return false;
        context_.count(Counter::kernels);
        return finish(position, std::move(result), start);
    }

    bool run_product(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        auto inputs = graph_.inputs(entry);
        int64_t start = timings_ ? now() : 0;
        const Value &first = *computed_value(inputs[0]), &second = *computed_value(inputs[1]);
        ProductResult product = run_matrix_product(*entry.node, first, second, compiler_, context_);
        if (!product.supported) return compute_by_plan(position);
        if (!product.value) return false;
        return finish(position, std::move(product.value), start, false);
    }

    // Gives a node its value, which was computed since `start`.
    [[gnu::always_inline]] bool finish(uint32_t position, Ref<Value> result, int64_t start,
                                       bool is_kernel = true) {
        const LinearizedNode& entry = graph_.nodes[position];
        if (!entry.live_out) context_.count(Counter::temporaries);
        if (timings_) timings_->push_back({entry.node->op->name, is_kernel, start, now()});
        values_[position] = std::move(result);
        return true;
    }

    // False for operands that it does not take, and for an index out of bounds.
    bool run_gather(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        auto inputs = graph_.inputs(entry);
        std::vector<const Value*> indices;
        for (uint32_t input : inputs.subspan(1)) indices.push_back(computed_value(input).get());
        Ref<Value> result = Value::uninitialized(entry.node->type);
        if (!result) return false;
        Gather gather(*computed_value(inputs[0]), indices, result->buffers[0].address(),
                      Gather::gather, threads_);
        return gather.fits() && launch_gather(position, gather, std::move(result));
    }

    // In a copy of the array. False as `run_gather`.
    bool run_scatter(uint32_t position) {
        auto inputs = graph_.inputs(graph_.nodes[position]);
        const Node& node = *graph_.nodes[position].node;
        const Node& assigned = *graph_.nodes[inputs[1]].node;
        std::vector<const Value*> indices;
        for (uint32_t input : inputs.subspan(2)) indices.push_back(computed_value(input).get());
        ElementBytes element{};
        void* rows = nullptr;
        if (assigned.is_scalar()) {
            if (!is_exact_scalar(scalar_of(inputs[1]), dtype_of(node.type->dtype))) return false;
            numbers_.clear();
            write_number(scalar_of(inputs[1]), node.type->dtype);
            element = element_of(node);
        } else {
            rows = computed_value(inputs[1])->buffers[0].address();
        }
        Ref<Value> result = Value::uninitialized(node.type);
        if (!result) return false;
        Gather scatter(*result, indices, rows, Gather::scatter, threads_);
        if (!scatter.fits()) return false;
        if (assigned.is_scalar()) {
            if (scatter.row_bytes() != int64_t(dtype_of(node.type->dtype).bytes)) return false;
            scatter.repeat(element);
        } else if (!are_rows(*computed_value(inputs[1]), *indices[0], *result, indices.size())) {
            return false;
        }
        context_.count(Counter::copies);
        return copy(*result, computed_value(inputs[0]).get()) &&
               launch_gather(position, scatter, std::move(result));
    }

    bool launch_gather(uint32_t position, Gather& gather, Ref<Value> result) {
        int64_t start = timings_ ? now() : 0;
        if (!launch(gather.work(), *result)) return false;
        context_.count(Counter::kernels);
        return finish(position, std::move(result), start);
    }

    // False for operands that are not rows of one Type.
    bool run_join(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        if (!is_join(graph_, entry)) return false;
        int64_t start = timings_ ? now() : 0;
        std::vector<StridedRef> rows;
        auto inputs = graph_.inputs(entry);
        rows.reserve(inputs.size());
        for (uint32_t input : inputs) rows.push_back(StridedRef::of(*computed_value(input)));
        const Type& row = *graph_.nodes[inputs[0]].node->type;
        Ref<Value> result = join_rows(rows, row, entry.node->type, threads_);
        if (!result) return false;
        if (!result->is_view) context_.count(Counter::kernels);
        return finish(position, std::move(result), start);
    }

    // False for a node that is not a view, or not one without a copy.
    bool run_view(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        const Node& node = *entry.node;
        if (!node.op->view) return false;
        const Value& input = *computed_value(graph_.inputs(entry)[0]);
        if (node.op->part == Op::slice) {
            values_[position] = make_slice(*node.params, input, node.type);
            return true;
        }
        const IndexMap* map = get_or_create(node.inference->index_map,
                                            [&] { return compiler_.index_map(node, *input.type); });
        if (!map) return false;
        values_[position] = make_view(*map, input, node.type, {});
        return bool(values_[position]);
    }

    // From now on other threads that reach a donated input wait until the result is published.
    void claim() {
        for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
            const LinearizedNode& entry = graph_.nodes[i];
            if (entry.value || !entry.node->op || entry.node->op->part != Op::slice_update)
                continue;
            if (graph_.nodes[graph_.inputs(entry)[0]].dead_after_read)
                claim(graph_.inputs(entry)[0]);
            num_stale_aliases_.resize(graph_.nodes.size());
        }
    }
    void claim(uint32_t position) {
        claimed_nodes_.push_back(graph_.nodes[position].node.get());
        claimed_nodes_.back()->claimed_by.store(this_thread(), std::memory_order_release);
    }
    // Inputs that were not overwritten keep their values.
    void release_claims() {
        for (Node* node : claimed_nodes_) node->claimed_by.store(0, std::memory_order_release);
        claimed_nodes_.clear();
    }
    bool is_claimed(uint32_t position) const {
        return std::ranges::find(claimed_nodes_, graph_.nodes[position].node.get()) !=
               claimed_nodes_.end();
    }

    // In place if no other reference is left, else in a copy.
    bool run_update(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        uint32_t target = graph_.inputs(entry)[0], rhs = graph_.inputs(entry)[1];
        const Value& old_value = *computed_value(target);
        if (is_view_of(rhs, old_value) && !copy_view(rhs)) return false;
        bool in_place = can_reuse_buffer(target);
        Ref<Value> result = in_place ? Value::in_memory(old_value.buffers[0].allocation,
                                                        entry.node->type, old_value.strides)
                                     : Value::uninitialized(entry.node->type);
        if (!result) return false;
        if (in_place) result->buffers[0].offset = old_value.buffers[0].offset;
        int64_t start = timings_ ? now() : 0;
        if (!in_place) context_.count(Counter::copies);
        if (!in_place && !copy(*result, &old_value)) return false;
        bool is_number = graph_.nodes[rhs].node->is_scalar();
        numbers_.clear();
        if (is_number) write_number(graph_.nodes[rhs].node->scalar, entry.node->type->dtype);
        if (in_place)
            publish_readers(target); // else they could be recomputed from the overwritten memory
        if (!copy(*updated_slice(*entry.node, *result),
                  is_number ? nullptr : computed_value(rhs).get(), element_of(*entry.node)))
            return false;
        context_.count(Counter::kernels);
        if (timings_) timings_->push_back({entry.node->op->name, true, start, now()});
        if (in_place) {
            bool has_alias = graph_.nodes[target].value || is_claimed(target);
            num_stale_aliases_[position] = num_stale_aliases_[target] + has_alias;
            claim(position);
            publish(entry.node.get(), result); // its operand's value has been overwritten
        }
        values_[position] = std::move(result);
        return true;
    }

    // Whether a node is a view of this value, and is read here only.
    bool is_view_of(uint32_t position, const Value& value) const {
        const LinearizedNode& entry = graph_.nodes[position];
        if (entry.node->is_scalar() || entry.value || entry.live_out) return false;
        const Value& view = *computed_value(position);
        return view.is_view && num_pending_readers_[position] == 1 &&
               view.buffers[0].allocation == value.buffers[0].allocation;
    }

    // The right-hand side in memory of its own: then the update may be in place.
    bool copy_view(uint32_t position) {
        Ref<Value> copied = Value::uninitialized(graph_.nodes[position].node->type);
        if (!copied || !copy(*copied, computed_value(position).get())) return false;
        context_.count(Counter::copies);
        values_[position] = std::move(copied);
        return true;
    }

    // Publishes all other results before a value is overwritten.
    void publish_readers(uint32_t position) {
        for (uint32_t i = 0; i < graph_.nodes.size(); ++i)
            if (values_[i] && i != position) publish(graph_.nodes[i].node.get(), values_[i]);
        publish_common_subexpressions(graph_);
    }

    // No other reference to a value or its memory is left, and this is its last reader.
    bool can_reuse_buffer(uint32_t position) const {
        const LinearizedNode& entry = graph_.nodes[position];
        bool is_published = is_claimed(position);
        if (num_pending_readers_[position] != 1 || entry.live_out || (entry.value && !is_published))
            return false;
        const Value& value = *computed_value(position);
        const Allocation& memory = *value.buffers[0].allocation;
        if (memory.owner || value.next || may_overlap_itself(value)) return false;
        return value.references.load(std::memory_order_relaxed) == 1u + is_published &&
               memory.references.load(std::memory_order_relaxed) ==
                   1 + num_stale_aliases_[position];
    }

    // The bytes of an element from the numbers that were written last.
    ElementBytes element_of(const Node& node) const {
        ElementBytes element{};
        std::ranges::copy(numbers_, element.begin());
        bool packs_complex64 =
            numbers_.size() == 2 && dtype_of(node.type->dtype).bytes == 8; // two floats
        if (packs_complex64) element[0] |= element[1] << 32;
        return element;
    }

    // Copies a value; null: the element to each position.
    bool copy(const Value& to, const Value* from, const ElementBytes& element = {}) {
        Assignment assignment(to, from, element, threads_);
        if (!assignment.fits()) return false;
        return launch(assignment.work(), to);
    }

    bool launch(Work work, const Value& result) {
        if (work.units == 0) return true;
        context_.count(Counter::launches);
        return context_.launch_and_wait(device_of(result.type->device), work).succeeded();
    }

    bool run_reduction_node(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        const Value& input = *computed_value(graph_.inputs(entry)[0]);
        int64_t start = timings_ ? now() : 0;
        ReductionResult reduced = run_reduction(*entry.node, input, threads_, compiler_, context_);
        if (!reduced.supported) return !is_only_pending() && compute_by_plan(position);
        return reduced.value && finish(position, std::move(reduced.value), start);
    }

    // Whether one node is all that is pending: its plan is that of the whole.
    bool is_only_pending() const {
        return std::count_if(graph_.nodes.begin(), graph_.nodes.end(), [](const auto& entry) {
                   return !entry.value && !entry.node->is_scalar();
               }) == 1;
    }

    // Publishes the inputs first; they stay until their last reader has run.
    bool compute_by_plan(uint32_t position) {
        if (!scalars_.empty()) return false; // template nodes are never published
        const LinearizedNode& entry = graph_.nodes[position];
        // After CSE the node's own inputs may differ from the graph's inputs.
        std::vector<Ref<Node>> original_inputs = inputs_of(entry.node.get());
        for (std::size_t k = 0; k < original_inputs.size(); ++k) {
            uint32_t input = graph_.inputs(entry)[k];
            if (!graph_.nodes[input].value && !original_inputs[k]->is_scalar())
                publish(original_inputs[k].get(), values_[input]);
        }
        release_claims(); // this thread may come to them
        if (!compiler_.compute_node(*entry.node)) return false;
        values_[position] = value_of(entry.node.get());
        return bool(values_[position]);
    }

    const Loop* loop_for(const LinearizedNode& entry, std::span<const Value* const> arrays,
                         const IterationSpace& space) {
        std::string steps;
        std::size_t variant = 0;
        for (std::size_t k = 0; k < arrays.size(); ++k) {
            int64_t stride = space.stride(k, 0), itemsize = dtype_of(arrays[k]->type->dtype).bytes;
            bool is_unit_stride = space.axes == 0 || stride == itemsize;
            steps.push_back(is_unit_stride ? '1' : stride == 0 ? '0' : 's');
            variant = variant * 3 + (is_unit_stride ? 1 : stride == 0 ? 0 : 2);
        }
        return entry.node->inference->loops->find_or_make(compiler_.target(), variant, [&] {
            std::vector<const Node*> inputs;
            for (uint32_t input : graph_.inputs(entry))
                inputs.push_back(graph_.nodes[input].node.get());
            return compiler_.compile_loop(*entry.node, inputs, steps);
        });
    }

    void write_numbers(const Node& node, const LinearizedNode& entry) {
        numbers_.clear();
        auto inputs = graph_.inputs(entry);
        for (std::size_t i = 0; i < inputs.size(); ++i)
            if (graph_.nodes[inputs[i]].node->is_scalar())
                write_number(scalar_of(inputs[i]), node.inference->operands[i]);
    }

    void write_number(const Scalar& scalar, uint16_t dtype) {
        Executable::Number spec{.dtype = dtype};
        numbers_.push_back(scalar_bits(scalar, spec));
        spec.imaginary = true;
        if (dtype_of(dtype).kind == 'c') numbers_.push_back(scalar_bits(scalar, spec));
    }

    // An operand that was made here, and is read for the last time, gives its own.
    Ref<Value> memory_for(uint32_t position, const Type& type, std::vector<int64_t> strides) {
        const LinearizedNode& entry = graph_.nodes[position];
        Ref<Allocation> memory;
        for (uint32_t input : graph_.inputs(entry)) {
            const LinearizedNode& input_entry = graph_.nodes[input];
            if (num_pending_readers_[input] != 1 || input_entry.live_out || input_entry.value ||
                !values_[input])
                continue;
            const Value& value = *values_[input];
            const Ref<Allocation>& candidate = value.buffers[0].allocation;
            bool is_unaliased = value.references.load(std::memory_order_relaxed) == 1 &&
                                candidate->references.load(std::memory_order_relaxed) == 1;
            if (is_unaliased && value.type.get() == &type && value.strides == strides &&
                value.buffers[0].offset == 0)
                memory = candidate;
        }
        if (!memory) memory = Allocation::on_device(device_of(type.device), type.bytes());
        return Value::in_memory(std::move(memory), entry.node->type, std::move(strides));
    }

    bool launch_all(const Loop& loop, const IterationSpace& space,
                    std::span<const Value* const> arrays, const Value& result) {
        int64_t inner = space.length(0), outer = space.length(1), launches = 1;
        for (std::size_t axis = 0; axis + 2 < space.axes; ++axis) launches *= space.lengths[axis];
        if (launches > MAX_LAUNCHES) return false;
        int64_t block = std::min((inner + LANES - 1) / LANES * LANES, MAX_UNIT_ELEMENTS);
        loop.write_sizes(sizes_, inner, outer, block, [&](std::size_t operand, uint8_t axis) {
            return space.stride(operand, 1u - axis);
        });
        Work work;
        work.kernel = loop.kernel;
        work.sizes = sizes_;
        work.scalars = numbers_;
        work.units = outer * ((inner + block - 1) / block);
        work.grain = std::max<int64_t>(1, GRAIN_ELEMENTS / std::min(block, inner));
        int64_t elements = inner * outer;
        work.threads = threads_for(elements, threads_);
        std::array<char*, Loops::OPERANDS + 1> addresses{};
        for (std::size_t k = 0; k < arrays.size(); ++k)
            addresses[k] = static_cast<char*>(arrays[k]->buffers[0].address());
        addresses[arrays.size()] = static_cast<char*>(result.buffers[0].address());
        const Device& device = device_of(result.type->device);
        for (int64_t launch = 0; launch < launches; ++launch)
            if (!launch_one(device, work, space, addresses, launch)) return false;
        return true;
    }

    // One of the launches over the outer axes, of which the last is gone through first.
    bool launch_one(const Device& device, Work& work, const IterationSpace& space,
                    const std::array<char*, Loops::OPERANDS + 1>& addresses, int64_t launch) {
        std::array<void*, Loops::OPERANDS + 1> buffers{};
        std::array<int64_t, Loops::OPERANDS + 1> offsets{};
        for (std::size_t axis = space.axes > 2 ? space.axes - 2 : 0; axis-- > 0;) {
            int64_t index = launch % space.lengths[axis];
            launch /= space.lengths[axis];
            for (std::size_t k = 0; k < space.operands; ++k)
                offsets[k] += index * space.strides[k][axis];
        }
        for (std::size_t k = 0; k < space.operands; ++k) buffers[k] = addresses[k] + offsets[k];
        work.buffers = {buffers.data(), space.operands};
        context_.count(Counter::launches);
        return context_.launch_and_wait(device, work).succeeded();
    }

    static int64_t now() {
        auto since = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
    }

    const LinearizedGraph& graph_;
    const int threads_;
    OpKernelCompiler& compiler_;
    ExecutionContext& context_;
    std::vector<StepTiming>* timings_;
    std::vector<Ref<Value>> values_;
    std::vector<uint32_t> num_pending_readers_; // readers to come
    std::vector<const Scalar*> scalars_;        // scalar inputs of a template
    std::vector<uint64_t> numbers_;
    std::vector<int64_t> sizes_;
    std::vector<Node*> claimed_nodes_;
    std::vector<uint32_t>
        num_stale_aliases_; // Values before one that have its memory, too; of a run
};

} // namespace

std::unique_ptr<OpInterpreter> make_op_interpreter(const LinearizedGraph& graph, int threads,
                                                   OpKernelCompiler& compiler,
                                                   ExecutionContext& context,
                                                   std::vector<StepTiming>* timings) {
    auto interpreter = std::make_unique<ColdGraphRun>(graph, threads, compiler, context, timings);
    interpreter->begin();
    return interpreter;
}

bool interpret(const LinearizedGraph& graph, int threads, OpKernelCompiler& compiler,
               ExecutionContext& context, std::vector<StepTiming>* timings) {
    return ColdGraphRun(graph, threads, compiler, context, timings).run();
}

GraphTemplate::~GraphTemplate() {
    graph.nodes.clear(); // first: `owner` must hold the last reference of each node
    defer_decref(owner);
}

void run_template(const GraphTemplate& graph_template, std::span<const TemplateInput> inputs,
                  std::span<Ref<Value>> results, OpKernelCompiler& compiler,
                  ExecutionContext& context, int threads) {
    ColdGraphRun interpreter(graph_template.graph, threads, compiler, context, nullptr);
    for (Ref<Value>& value : results) {
        value = interpreter.run(graph_template, inputs.first(graph_template.leaves.size()));
        inputs = inputs.subspan(graph_template.leaves.size());
    }
}

} // namespace tenfold
