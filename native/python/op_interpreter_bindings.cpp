// Op interpreter bindings: get the loops of an operation and its dtypes from Python, once each.
// Graphs that are seen for the first few times are computed node by node with them.
#include "ir/cse.h"
#include "memory/cache_registry.h"
#include "memory/direct_mapped.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <unordered_map>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/batch_cache.h"
#include "python/engine_bindings.h"

namespace tenfold::bindings {
namespace {

constexpr std::size_t NUM_SLOTS = 4096, NUM_WAYS = 8;

PythonFunction loop_factory{"tenfold.runtime.op_kernels", "loop"};
PythonFunction reduction_factory{"tenfold.runtime.reduction_kernels", "fold_loop"};
PythonFunction index_map_factory{"tenfold.runtime.op_kernels", "movement"};
PythonFunction launch_factory{"tenfold.runtime.product_kernels", "product_launch"};
PythonFunction fill_factory{"tenfold.runtime.op_kernels", "fill_element"};
PythonFunction product_factory{"tenfold.runtime.product_kernels", "vector_product"};

constexpr uint8_t NO_DEVICE = UINT8_MAX; // no Type has it

// The device that a graph is computed on, if it runs loops.
uint8_t loop_device(const LinearizedGraph& graph) {
    uint8_t device = graph.nodes[graph.outputs[0]].node->type->device;
    return has_loops_on(device) ? device : NO_DEVICE;
}

// Hotness of a graph, by hash: equal hashes only compile a plan earlier. Forms also count attempts
// at a symbolic executable. After MAX_FAILED_PLANS of them, hot graphs are compiled for their
// shapes.
struct HotnessCount {
    uint64_t hash = 0;
    uint16_t count = 0, num_failed_plans = 0;
};
constexpr uint16_t MAX_FAILED_PLANS = 64; // twice for a plan
using HotnessTable = std::array<HotnessCount, NUM_SLOTS>;
// Structures and graphs have separate tables: many shapes of one structure must not evict its
// count.
HotnessTable structure_hotness, graph_hotness;

bool compute_results(Node& node, bool may_compile);

// Valid until the next call. The graphs of a loop that share a slot would reset each other's count
// for ever: a new one replaces the least recently used of several.
HotnessCount& hotness_of(std::span<const uint64_t> words, HotnessTable& table) {
    uint64_t hash = hash_of(words);
    std::span<HotnessCount> ways(&table[hash % (NUM_SLOTS / NUM_WAYS) * NUM_WAYS], NUM_WAYS);
    auto found = std::ranges::find(ways, hash, &HotnessCount::hash);
    if (found == ways.end()) *--found = {hash, 0, 0};
    std::rotate(ways.begin(), found, found + 1);
    return ways.front();
}

// Whether a call is worth a plan of its own. Each pattern of equal inputs needs one: a batch of one
// has the plan of all batches of the op. So only patterns that come often are compiled, and few.
constexpr uint16_t MAX_COMPILED_PATTERNS = 4;
bool is_worth_compiling(Node& node) {
    std::vector<Ref<Node>> inputs;
    load_value_or_inputs(&node, inputs);
    std::vector<uint64_t> words{node.op->id};
    std::unordered_map<const Node*, uint64_t> first_positions;
    for (const Ref<Node>& input : inputs)
        words.push_back(first_positions.emplace(input.get(), words.size()).first->second);
    if (HotnessCount& pattern = hotness_of(words, structure_hotness);
        pattern.count < current_options().hot_threshold) {
        ++pattern.count;
        return false;
    }
    HotnessCount& compiled = hotness_of(std::array{uint64_t(node.op->id)}, structure_hotness);
    return compiled.count < MAX_COMPILED_PATTERNS && ++compiled.count;
}

// The launches of products, by operation, target, Types and strides. Under the GIL.
struct LaunchEntry {
    std::vector<uint64_t> key;
    Ref<Type> first, second; // the key has their addresses
    std::shared_ptr<const ProductLaunch> launch;
    explicit operator bool() const { return bool(launch); }
};
using LaunchTable = DirectMapped<LaunchEntry, 8>;
LaunchTable* const product_launches = new LaunchTable; // outlives the interpreter

[[maybe_unused]] Cache& product_launches_registered = register_cache(
    {"product launches", "choosing the kernel of a product takes longer than a small one",
     LaunchTable::NUM_SLOTS, [] { return product_launches->size(); },
     [] { product_launches->clear(); }});

std::vector<uint64_t> launch_key(const Node& node, const Value& first, const Value& second) {
    std::vector<uint64_t> key{node.op->id, current_options().target,
                              uint64_t(current_options().threads)};
    for (const Value* operand : {&first, &second}) {
        key.push_back(reinterpret_cast<uint64_t>(operand->type.get()));
        key.push_back(operand->strides.size());
        for (int64_t stride : operand->strides) key.push_back(uint64_t(stride));
    }
    return key;
}

// A single node is being computed: batching is off.
thread_local int single_node_depth = 0;
struct SingleNodeScope {
    SingleNodeScope() { ++single_node_depth; }
    ~SingleNodeScope() { --single_node_depth; }
};

class PythonKernelCompiler : public OpKernelCompiler {
  public:
    // `batching`: a node that is not computed here may become a batch of one.
    explicit PythonKernelCompiler(bool batching = false)
        : OpKernelCompiler(current_options().target), batching_(batching) {}

    // Null with a Python error where Python has failed.
    const Loop* compile_loop(const Node& node, std::span<const Node* const> input_nodes,
                             const std::string& steps) override {
        nb::list inputs, operands;
        for (const Node* input : input_nodes) {
            nb::object dtype = nb::borrow(dtype_object(input->type->dtype));
            inputs.append(nb::make_tuple(dtype, input->is_scalar()));
        }
        for (uint16_t dtype : node.inference->operands)
            operands.append(nb::borrow(dtype_object(dtype)));
        nb::object params = nb::steal(params_to_python(node.params.get()));
        nb::object compiled = nb::steal(
            PyObject_CallFunction(loop_factory.get().ptr(), "OOOOOs", node.op->python, params.ptr(),
                                  nb::tuple(inputs).ptr(), nb::tuple(operands).ptr(),
                                  dtype_object(node.type->dtype), steps.c_str()));
        if (!compiled.is_valid()) return nullptr;
        auto loop = std::make_unique<Loop>();
        if (compiled.is_none()) return loop.release();
        auto& entry_point = nb::cast<EntryPoint&>(compiled[0]);
        loop->kernel = entry_point.kernel;
        loop->code = entry_point.code;
        for (nb::handle size : compiled[1])
            loop->sizes.push_back({Loop::SizeKind(nb::cast<uint8_t>(size[0])),
                                   nb::cast<uint8_t>(size[1]), nb::cast<uint8_t>(size[2])});
        return loop.release();
    }

    // As `make`.
    const ReductionLoop* compile_reduction(const Node& node, uint16_t source,
                                           ReductionForm form) override {
        auto truth = [](bool fact) { return fact ? Py_True : Py_False; };
        nb::object compiled = nb::steal(PyObject_CallFunctionObjArgs(
            reduction_factory.get().ptr(), node.op->python, dtype_object(source),
            dtype_object(node.inference->operands[0]), dtype_object(node.type->dtype),
            truth(form.reduce_outer), truth(form.strided), truth(form.first_pass),
            truth(form.last_pass), nullptr));
        if (!compiled.is_valid()) return nullptr;
        auto loop = std::make_unique<ReductionLoop>();
        auto& entry = nb::cast<EntryPoint&>(compiled[0]);
        loop->kernel = entry.kernel;
        loop->code = entry.code;
        loop->dtype = uint16_t(dtype_id(nb::object(compiled[1]).ptr()));
        loop->lanes = nb::cast<uint32_t>(compiled[2]);
        loop->parts = nb::cast<uint32_t>(compiled[3]);
        return loop.release();
    }

    const VectorProductKernel* compile_product(const Node& node, bool first_contiguous,
                                               bool second_contiguous) override {
        auto truth = [](bool fact) { return fact ? Py_True : Py_False; };
        nb::object compiled = nb::steal(PyObject_CallFunctionObjArgs(
            product_factory.get().ptr(), node.op->python, dtype_object(node.type->dtype),
            truth(first_contiguous), truth(second_contiguous), nullptr));
        if (!compiled.is_valid()) return nullptr;
        auto& entry = nb::cast<EntryPoint&>(compiled);
        return new VectorProductKernel{entry.kernel, entry.code};
    }

    std::shared_ptr<const ProductLaunch> product_launch(const Node& node, const Value& first,
                                                        const Value& second) override {
        std::vector<uint64_t> key = launch_key(node, first, second);
        LaunchEntry& entry = product_launches->slot(hash_of(key) * 0x9e3779b97f4a7c15ULL);
        if (!entry || entry.key != key) {
            auto launch = compile_product_launch(node, first, second);
            if (!launch) return {};
            entry = {std::move(key), first.type, second.type, std::move(launch)};
        }
        return entry.launch;
    }

    bool fill_element(const Node& node, ElementBytes& element) override {
        nb::object params = nb::steal(params_to_python(node.params.get()));
        nb::object bytes = nb::steal(
            PyObject_CallFunctionObjArgs(fill_factory.get().ptr(), node.op->python, params.ptr(),
                                         dtype_object(node.type->dtype), nullptr));
        if (!bytes.is_valid()) return false;
        auto size = std::size_t(PyBytes_Size(bytes.ptr()));
        if (size > sizeof element) return false;
        std::memcpy(element.data(), PyBytes_AsString(bytes.ptr()), size);
        return true;
    }

    // As `make`.
    const IndexMap* index_map(const Node& node, const Type& input) override {
        nb::object params = nb::steal(params_to_python(node.params.get()));
        nb::object shape = nb::tuple(nb::cast(input.shape));
        nb::object steps = nb::steal(PyObject_CallFunctionObjArgs(
            index_map_factory.get().ptr(), node.op->python, params.ptr(), shape.ptr(), nullptr));
        if (!steps.is_valid()) return nullptr;
        auto map = std::make_unique<IndexMap>();
        if (steps.is_none()) return map.release();
        map->kind = nb::len(steps) < input.shape.size() ? IndexMap::in_order : IndexMap::affine;
        map->steps = index_steps(steps);
        return map.release();
    }

    bool compute_node(Node& node) override {
        SingleNodeScope single_node_depth;
        // A batch of one may change the last bits of a product. Results must not depend on earlier
        // calls.
        bool may_compile = !batching_ || node.op->weight == 1 || node.op->multiplies;
        if (node.op->weight > 1 && node.inference->results.size() > 1)
            return compute_results(node, may_compile);
        if (compute_by_plan(Ref<Node>(&node))) return true;
        if (!may_compile && !is_worth_compiling(node)) return false;
        nb::object array = nb::steal(new_array(Ref<Node>(&node)));
        nb::object computed = nb::steal(
            array.is_valid() ? PyObject_CallFunctionObjArgs(hooks.evaluate, array.ptr(), nullptr)
                             : nullptr);
        if (!computed.is_valid() && PyErr_ExceptionMatches(PyExc_Exception))
            PyErr_Clear(); // all is computed again by the planner, which reports the error
        return computed.is_valid() && value_of(&node);
    }

  private:
    // Null with a Python error where Python has failed.
    static std::shared_ptr<const ProductLaunch> compile_product_launch(const Node& node,
                                                                       const Value& first,
                                                                       const Value& second) {
        auto shape = [](const Value& value) { return nb::tuple(nb::cast(value.type->shape)); };
        auto strides = [](const Value& value) { return nb::tuple(nb::cast(value.strides)); };
        nb::object compiled = nb::steal(PyObject_CallFunctionObjArgs(
            launch_factory.get().ptr(), node.op->python, dtype_object(node.type->dtype),
            shape(first).ptr(), strides(first).ptr(), shape(second).ptr(), strides(second).ptr(),
            nullptr));
        if (!compiled.is_valid()) return {};
        auto launch = std::make_shared<ProductLaunch>();
        if (compiled.is_none()) return launch;
        auto& entry = nb::cast<EntryPoint&>(compiled[0]);
        launch->kernel = entry.kernel;
        launch->code = entry.code;
        launch->swapped = nb::cast<bool>(compiled[1]);
        launch->sizes = nb::cast<std::vector<int64_t>>(compiled[2]);
        launch->scratch = nb::cast<std::size_t>(compiled[3]);
        launch->units = nb::cast<int64_t>(compiled[4]);
        launch->grain = nb::cast<int64_t>(compiled[5]);
        launch->threads = nb::cast<int>(compiled[6]);
        launch->multiply_adds = nb::cast<int64_t>(compiled[7]);
        return launch;
    }

    const bool batching_;
};

// Computes a call with several results through the graph of its results.
bool compute_results(Node& node, bool may_compile) {
    nb::object arrays = nb::steal(wrap_results(Ref<Node>(&node), nullptr));
    if (!arrays.is_valid()) nb::raise_python_error();
    std::vector<Node*> results;
    for (nb::handle array : nb::tuple(arrays)) results.push_back(node_of(array.ptr()));
    if (!compute_by_plan(results)) {
        if (!may_compile && !is_worth_compiling(node)) return false;
        nb::object computed =
            nb::steal(PyObject_CallFunctionObjArgs(hooks.evaluate_all, arrays.ptr(), nullptr));
        if (!computed.is_valid() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
        if (!computed.is_valid()) return false;
    }
    Ref<Value> first;
    for (std::size_t i = results.size(); i-- > 0;) {
        Ref<Value> result = value_of(results[i]);
        if (!result) return false;
        auto alias = Ref<Value>::adopt(new Value);
        alias->type = result->type;
        alias->strides = result->strides;
        alias->is_view = true;
        alias->buffers = result->buffers;
        alias->next = std::move(first);
        first = std::move(alias);
    }
    publish(&node, std::move(first));
    return true;
}

// Counts by form, so that a structure with ever new shapes gets a symbolic executable.
HotnessCount& hotness_of(const GraphIdentity& identity) {
    if (identity.form) {
        HotnessCount& hotness = hotness_of(identity.form->words, structure_hotness);
        if (hotness.num_failed_plans < MAX_FAILED_PLANS) return hotness;
    }
    return hotness_of(identity.key.words, graph_hotness);
}

} // namespace

bool may_interpret(const LinearizedGraph& graph, const OptionKey& options, bool counted) {
    bool is_enabled = current_options().interpret_cold && !options.has_user_rules();
    return is_enabled && can_interpret(graph, loop_device(graph), counted);
}

constexpr uint16_t MAX_HOT_THRESHOLD_LONG = 4; // of a long graph, whose plan saves more

// A graph that replaces a part of an array has no template. Plans are counted by its operations and
// dtypes: each one doubles the uses from which the next pays, for other lengths. A graph of large
// arrays is interpreted once, after MAX_NEW_LENGTHS plans.
constexpr uint16_t MAX_NEW_LENGTHS = 4, MAX_DOUBLINGS = 8;

// The uses from which a plan of an assignment pays. A plan takes as long as hundreds of operations
// on few elements, and saves half of their time.
static uint32_t assignment_threshold(const LinearizedGraph& graph) {
    constexpr int64_t FEW_ELEMENTS_FACTOR = 16, FEW_ELEMENTS = 4096;
    const int64_t threshold = current_options().hot_threshold, elements = mean_elements(graph);
    int64_t uses = threshold * FEW_ELEMENTS_FACTOR * FEW_ELEMENTS / (FEW_ELEMENTS + elements);
    return uint32_t(std::max(uses, threshold));
}

std::vector<uint64_t> words_ignoring_lengths(const LinearizedGraph& graph) {
    std::vector<uint64_t> words;
    if (!has_assignments(graph)) return words;
    for (const LinearizedNode& entry : graph.nodes) {
        const Node& node = *entry.node;
        bool pending = !entry.value && node.op;
        words.push_back(pending ? 2 * node.op->id + 1 : 0);
        words.push_back(node.is_scalar() ? 0 : node.type->kind() | node.type->shape.size() << 40);
        for (uint32_t input : graph.inputs(entry)) words.push_back(input);
    }
    return words;
}

void count_plan(std::span<const uint64_t> words) {
    HotnessCount& plans = hotness_of(words, structure_hotness);
    if (!words.empty() && plans.count < UINT16_MAX) ++plans.count;
}

bool is_cold(const LinearizedGraph& graph, const OptionKey& options,
             const GraphIdentity& identity) {
    if (is_long(graph) && may_interpret(graph, options, false)) return true;
    if (identity.key.words.empty() || !may_interpret(graph, options, true)) return false;
    const uint16_t count = hotness_of(identity).count, threshold = current_options().hot_threshold;
    if (!has_assignments(graph))
        return count < (is_long(graph) ? std::min(MAX_HOT_THRESHOLD_LONG, threshold) : threshold);
    uint16_t num_plans = hotness_of(words_ignoring_lengths(graph), structure_hotness).count;
    if (is_large(graph)) return num_plans >= MAX_NEW_LENGTHS && count < 1;
    return count < assignment_threshold(graph) << std::min(num_plans, MAX_DOUBLINGS);
}

// A graph of calls of traced functions, with nothing beside them that rules could look at together.
static bool consists_of_calls(const LinearizedGraph& graph) {
    auto is_call_or_leaf = [](const LinearizedNode& entry) {
        const Op* op = entry.node->op;
        return entry.value || !op || !op->python || op->rule_free || op->weight > 1;
    };
    return graph.num_calls > 1 && std::ranges::all_of(graph.nodes, is_call_or_leaf);
}

// Whether a graph is interpreted in batches. A long graph is. A short one of several calls runs
// call by call, until it is hot. Its plan has the same bits.
static bool should_batch(const LinearizedGraph& graph, const OptionKey& options,
                         const GraphIdentity& identity) {
    const Options& options_now = current_options();
    bool is_enabled = options_now.interpret_cold || options_now.verify;
    if (single_node_depth || !is_enabled || options.has_user_rules()) return false;
    if (is_long(graph))
        return identity.key.words.empty() && (graph.num_calls > 0 || !has_assignments(graph));
    return hotness_of(identity).count < options_now.hot_threshold && consists_of_calls(graph);
}

namespace {

// Records the batches without computing them.
class BatchDryRun : public DynamicBatcher, public OpInterpreter {
  public:
    BatchDryRun() : DynamicBatcher({}) { dry_run = true; }
    std::vector<Ref<Value>> compute(const Batch& members,
                                    std::span<const StackedOperand>) override {
        nb::list positions;
        for (uint32_t position : members.positions) positions.append(position);
        batches.append(nb::make_tuple(members.group, positions, members.worth_batching,
                                      members.is_continuation));
        return {};
    }
    bool compute_node(uint32_t) override { return true; }
    Ref<Value>& value(uint32_t) override { return no_value; }
    void release_inputs(uint32_t) override {}

    nb::list batches;
    Ref<Value> no_value;
};

// batches_of(nodes, options) -> the batches in order of computation. Each is (number, positions in
// the linearized graph, whether batched, whether it continues a batch at the size limit). None if
// the graph is not batched.
nb::object batches_of(nb::handle nodes, nb::handle option_numbers) {
    const OptionKey options = option_key_from(option_numbers);
    LinearizedGraph graph = linearize(nodes_from(nodes));
    BatchDryRun dry_run;
    merge_common_subexpressions(graph);
    bool is_batched = is_long(graph) && dry_run.max_members > 1 &&
                      should_batch(graph, options, {Key{}, nullptr}) &&
                      run_in_batches(graph, loop_device(graph), dry_run, &dry_run);
    return is_batched ? nb::object(dry_run.batches) : nb::none();
}

} // namespace

// The pending number that a graph assigns to a computed array, if the interpreter takes the
// assignment but not what computes the number; else null. No rule reads both of them together.
static Node* separable_number(const LinearizedGraph& graph, const OptionKey& options) {
    if (!current_options().interpret_cold || options.has_user_rules()) return nullptr;
    const LinearizedNode& update = graph.nodes[graph.outputs[0]];
    bool is_single_update = graph.outputs.size() == 1 && !is_long(graph) && !update.value &&
                            update.node->op->part == Op::slice_update && can_assign(graph, update);
    if (!is_single_update) return nullptr;
    auto inputs = graph.inputs(update);
    const LinearizedNode& number = graph.nodes[inputs[1]];
    bool is_number = !number.value && number.node->op && number.node->type->size() == 1;
    if (!is_number || !graph.nodes[inputs[0]].value) return nullptr;
    bool may_run_twice = std::ranges::all_of(graph.nodes, [](const LinearizedNode& entry) {
        const Op* op = entry.node->op;
        return entry.value || !op || (op->python && op->is_permanent && op->pure);
    });
    return may_run_twice && !may_interpret(graph, options) ? number.node.get() : nullptr;
}

// Computes the number by a plan that serves all positions, then interprets the assignment: a plan
// of both serves the positions of one alignment. To defer such assignments saves nothing.
static bool run_separately(LinearizedGraph& graph, Node& number, ExecutionContext& context,
                           std::vector<StepTiming>* timings) {
    Ref<Node> update = graph.nodes[graph.outputs[0]].node;
    Ref<Node> operand(&number);
    graph = {}; // its references would prevent an assignment in place
    disable_deferral(*update);
    PythonKernelCompiler compiler;
    if (!compiler.compute_node(*operand)) return false;
    operand = nullptr;
    Node* output = update.get();
    graph = linearize_when_unclaimed({&output, 1});
    if (graph.nodes[graph.outputs[0]].value) return true; // another thread has computed it
    return can_interpret(graph, loop_device(graph), true) &&
           interpret(graph, current_options().threads, compiler, context, timings);
}

bool try_interpret(LinearizedGraph& graph, const OptionKey& options, const GraphIdentity& identity,
                   ExecutionContext& context, std::vector<StepTiming>* timings) {
    if (should_batch(graph, options, identity)) {
        if (is_long(graph)) merge_common_subexpressions(graph);
        DynamicBatcher batcher(options);
        bool is_batching = is_long(graph) && batcher.max_members > 1;
        PythonKernelCompiler compiler(is_batching);
        auto interpreter =
            make_op_interpreter(graph, current_options().threads, compiler, context, timings);
        if (!is_long(graph)) ++hotness_of(identity).count;
        if (run_in_batches(graph, loop_device(graph), *interpreter,
                           is_batching ? &batcher : nullptr))
            return true;
        if (PyErr_Occurred()) return false;
    }
    const bool counted = !identity.key.words.empty();
    if (!is_cold(graph, options, identity)) {
        if (!counted) return false;
        HotnessCount& hotness = hotness_of(identity);
        Node* number = separable_number(graph, options);
        if (number && hotness.count < assignment_threshold(graph)) {
            ++hotness.count;
            return run_separately(graph, *number, context, timings);
        }
        hotness.num_failed_plans += hotness.count >= current_options().hot_threshold;
        return false;
    }
    if (counted)
        if (HotnessCount& hotness = hotness_of(identity); hotness.count < UINT16_MAX)
            ++hotness.count;
    PythonKernelCompiler compiler;
    return interpret(graph, current_options().threads, compiler, context, timings);
}

namespace {

void clear_hotness() { structure_hotness = graph_hotness = {}; }

std::size_t num_hotness_entries() {
    std::size_t entries = 0;
    for (const HotnessTable* table : {&structure_hotness, &graph_hotness})
        entries += std::size_t(
            std::ranges::count_if(*table, [](const HotnessCount& s) { return s.count > 0; }));
    return entries;
}

[[maybe_unused]] Cache& registered =
    register_cache({"hotness counts", "only graphs that come often are worth compiling",
                    2 * NUM_SLOTS, num_hotness_entries, clear_hotness});

} // namespace

void reset_hotness(const Form& form) { hotness_of(form.words, structure_hotness).count = 0; }

std::unique_ptr<OpKernelCompiler> make_kernel_compiler() {
    return std::make_unique<PythonKernelCompiler>();
}

const Loop* contiguous_loop(const GraphTemplate& graph_template) {
    const LinearizedGraph& graph = graph_template.graph;
    const LinearizedNode& entry = graph.nodes[graph_template.output];
    const Node& node = *entry.node;
    if (node.op->shapes != Op::broadcast || !node.inference->loops) return nullptr;
    std::vector<const Node*> inputs;
    std::string steps;
    std::size_t form = 0;
    for (uint32_t position : graph.inputs(entry)) {
        inputs.push_back(graph.nodes[position].node.get());
        if (inputs.back()->is_scalar()) continue;
        steps.push_back('1');
        form = form * 3 + 1;
    }
    if (steps.empty() || steps.size() > Loops::OPERANDS) return nullptr;
    PythonKernelCompiler compiler;
    return node.inference->loops->find_or_make(
        compiler.target(), form, [&] { return compiler.compile_loop(node, inputs, steps); });
}

void declare_op_interpreter(nb::module_& module) {
    using namespace nb::literals;
    module.attr("HOT_THRESHOLD") = HOT_THRESHOLD;
    module.def("batches_of", batches_of, "nodes"_a, "options"_a);
}

} // namespace tenfold::bindings
