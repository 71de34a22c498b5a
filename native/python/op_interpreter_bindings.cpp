// Op interpreter bindings: get the loops of an operation and its dtypes from Python, once each.
// Graphs that are seen for the first few times are computed node by node with them.
#include "exec/tier_policy.h"
#include "exec/update_deferral.h"
#include "ir/cse.h"
#include "memory/cache_registry.h"
#include "memory/direct_mapped.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/engine_bindings.h"
#include "python/graph_batches.h"
#include "python/joined_products.h"

namespace tenfold::bindings {
namespace {

PythonFunction loop_factory{"tenfold.runtime.op_kernels", "loop"};
PythonFunction reduction_factory{"tenfold.runtime.reduction_kernels", "fold_loop"};
PythonFunction index_map_factory{"tenfold.runtime.op_kernels", "view_access"};
PythonFunction launch_factory{"tenfold.runtime.product_kernels", "product_launch"};
PythonFunction fill_factory{"tenfold.runtime.op_kernels", "fill_element"};
PythonFunction row_factory{"tenfold.runtime.op_kernels", "row_kernel"};

bool compute_results(Node& node, bool may_compile);

// The launches of products, by operation, target, dtype and layouts. Under the GIL.
struct LaunchEntry {
    std::vector<uint64_t> key;
    std::shared_ptr<const ProductLaunch> launch;
    explicit operator bool() const { return bool(launch); }
};
using LaunchTable = DirectMapped<LaunchEntry, 8>;
LaunchTable* const product_launches = new LaunchTable; // outlives the interpreter

[[maybe_unused]] Cache& product_launches_registered = register_cache(
    {"product launches", "choosing the kernel of a product takes longer than a small one",
     LaunchTable::NUM_SLOTS, [] { return product_launches->size(); },
     [] { product_launches->clear(); }});

std::vector<uint64_t> launch_key(const Node& node, const ProductLayout& first,
                                 const ProductLayout& second) {
    std::vector<uint64_t> key{node.op->id, current_options().target,
                              uint64_t(current_options().threads), node.type->kind()};
    for (const ProductLayout* operand : {&first, &second})
        for (const std::vector<int64_t>* numbers : {&operand->shape, &operand->strides}) {
            key.push_back(numbers->size());
            key.insert(key.end(), numbers->begin(), numbers->end());
        }
    return key;
}

// The result of a function of Python; invalid, with a Python error, where it has failed.
template <class... Arguments> nb::object call(PythonFunction& function, Arguments... arguments) {
    return nb::steal(
        PyObject_CallFunctionObjArgs(function.get().ptr(), arguments..., (PyObject*)nullptr));
}

PyObject* truth(bool fact) { return fact ? Py_True : Py_False; }

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
        nb::object compiled =
            call(reduction_factory, node.op->python, dtype_object(source),
                 dtype_object(node.inference->operands[0]), dtype_object(node.type->dtype),
                 truth(form.reduce_outer), truth(form.strided), truth(form.first_pass),
                 truth(form.last_pass));
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

    std::shared_ptr<const ProductLaunch> product_launch(const Node& node,
                                                        const ProductLayout& first,
                                                        const ProductLayout& second) override {
        std::vector<uint64_t> key = launch_key(node, first, second);
        LaunchEntry& entry = product_launches->slot(hash_of(key) * 0x9e3779b97f4a7c15ULL);
        if (!entry || entry.key != key) {
            auto launch = compile_product_launch(node, first, second);
            if (!launch) return {};
            entry = {std::move(key), std::move(launch)};
        }
        return entry.launch;
    }

    bool fill_element(const Node& node, ElementBytes& element) override {
        nb::object params = nb::steal(params_to_python(node.params.get()));
        nb::object bytes =
            call(fill_factory, node.op->python, params.ptr(), dtype_object(node.type->dtype));
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
        nb::object steps = call(index_map_factory, node.op->python, params.ptr(), shape.ptr());
        if (!steps.is_valid()) return nullptr;
        auto map = std::make_unique<IndexMap>();
        if (steps.is_none()) return map.release();
        map->kind = nb::len(steps) < input.shape.size() ? IndexMap::in_order : IndexMap::affine;
        map->steps = index_steps(steps);
        return map.release();
    }

    bool compute_node(Node& node) override {
        SingleNodeScope single_node;
        // A batch of one may change the last bits of a product. Results must not depend on earlier
        // calls.
        bool may_compile = !batching_ || node.op->weight == 1 || node.op->multiplies;
        if (node.op->weight > 1 && node.inference->results.size() > 1)
            return compute_results(node, may_compile);
        if (compute_by_plan(Ref<Node>(&node))) return true;
        if (!may_compile && !is_worth_compiling(node, current_options().tiers())) return false;
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
    static std::shared_ptr<const ProductLaunch> compile_product_launch(
        const Node& node, const ProductLayout& first, const ProductLayout& second) {
        auto tuple = [](const std::vector<int64_t>& items) { return nb::tuple(nb::cast(items)); };
        nb::object compiled = call(launch_factory, node.op->python, dtype_object(node.type->dtype),
                                   tuple(first.shape).ptr(), tuple(first.strides).ptr(),
                                   tuple(second.shape).ptr(), tuple(second.strides).ptr());
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
        if (!may_compile && !is_worth_compiling(node, current_options().tiers())) return false;
        nb::object computed =
            nb::steal(PyObject_CallFunctionObjArgs(hooks.evaluate_all, arrays.ptr(), nullptr));
        if (!computed.is_valid() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
        if (!computed.is_valid()) return false;
    }
    Ref<Value> first;
    for (std::size_t i = results.size(); i-- > 0;) {
        Ref<Value> result = value_of(results[i]);
        if (!result) return false;
        first = Value::alias_of(*result, std::move(first));
    }
    publish(&node, std::move(first));
    return true;
}

// Records the batches without computing them.
class BatchDryRun : public GraphBatchCompiler, public OpInterpreter {
  public:
    BatchDryRun() : GraphBatchCompiler({}) { dry_run = true; }
    std::vector<Ref<Value>> compute(const Batch& members, std::span<const StackedOperand>,
                                    const BatchSignature*) override {
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
    const Key no_key;
    TierPolicy policy{graph, options, current_options().tiers(), {no_key, nullptr}};
    BatchDryRun dry_run;
    merge_common_subexpressions(graph);
    bool is_batched = is_long(graph) && dry_run.max_members > 1 && policy.should_batch() &&
                      run_in_batches(graph, loop_device(graph), dry_run, &dry_run);
    return is_batched ? nb::object(dry_run.batches) : nb::none();
}

// Computes the number by a plan that serves all positions, then interprets the assignment: a plan
// of both serves the positions of one alignment. To defer such assignments saves nothing.
bool run_separately(LinearizedGraph& graph, Node& number, ExecutionContext& context,
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

// As `row_kernel`, made once for each device: their code stays.
KernelHandle compile_row_kernel(uint8_t device, RowForm form, uint16_t dtype) {
    static std::array<std::array<std::array<std::atomic<EntryPoint*>, 32>, 3>, MAX_DEVICES> kernels;
    auto& kernel = kernels[device_of(device).number][std::size_t(form)].at(dtype);
    if (!kernel.load(std::memory_order_acquire)) {
        if (!PyGILState_Check()) return {};
        nb::object made = call(row_factory, device_name(device), nb::int_(uint8_t(form)).ptr(),
                               dtype_object(dtype));
        if (!made.is_valid()) return {};
        // released: a worker that finds it reads the kernel without the GIL
        kernel.store(new EntryPoint(nb::cast<EntryPoint&>(made)), std::memory_order_release);
    }
    return kernel.load(std::memory_order_acquire)->kernel;
}

} // namespace

bool try_interpret(LinearizedGraph& graph, const OptionKey& options, const GraphIdentity& identity,
                   ExecutionContext& context, std::vector<StepTiming>* timings) {
    const TierPolicy policy{graph, options, current_options().tiers(), identity};
    if (policy.should_batch()) {
        if (is_long(graph)) merge_common_subexpressions(graph);
        GraphBatchCompiler batcher(options);
        bool is_batching = is_long(graph) && batcher.max_members > 1;
        std::optional<JoinedProducts> products;
        if (is_batching) batcher.goes_on = !products.emplace(graph, batcher.max_members).is_empty();
        PythonKernelCompiler compiler(is_batching);
        auto interpreter =
            make_op_interpreter(graph, current_options().threads, compiler, context, timings);
        if (!is_long(graph)) policy.count_run();
        if (run_in_batches(graph, loop_device(graph), *interpreter,
                           is_batching ? &batcher : nullptr)) {
            if (products) products->publish();
            return true;
        }
        if (products) products->take_back();
        if (PyErr_Occurred()) return false;
    }
    const TierChoice choice = policy.choose();
    if (choice.tier == TierChoice::planned) return false;
    if (choice.tier == TierChoice::separate)
        return run_separately(graph, *choice.number, context, timings);
    PythonKernelCompiler compiler;
    return interpret(graph, current_options().threads, compiler, context, timings);
}

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
    module.def("batches_of", batches_of, "nodes"_a, "options"_a);
    row_kernel = compile_row_kernel;
}

} // namespace tenfold::bindings
