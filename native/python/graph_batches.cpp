#include "python/graph_batches.h"

#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

PythonFunction compute_batch{"tenfold.transforms.batch_compiler", "compute_batch"};

uint32_t position_of(const LinearizedGraph& graph, const Node* node) {
    for (uint32_t i = 0; i < graph.nodes.size(); ++i)
        if (graph.nodes[i].node.get() == node) return i;
    return LinearizedGraph::NONE;
}

// From Python's (outputs, placeholders, which outputs are stacked, the numbers of the options,
// whether rules apply, whether rules of Tenfold made it). Null without a plan that lasts.
Ref<PlannedGraph> planned_from(nb::handle spec, const Batch& batch,
                               std::span<const StackedOperand> operands) {
    auto planned = Ref<PlannedGraph>::adopt(new PlannedGraph);
    planned->graph_template = std::make_unique<GraphTemplate>();
    GraphTemplate& graph_template = *planned->graph_template;
    std::vector<Node*> outputs = nodes_from(spec[0]), pending = outputs;
    std::erase_if(pending, [](const Node* node) { return !node->op; });
    if (pending.empty()) return {};
    LinearizedGraph& graph = graph_template.graph = linearize(pending);
    graph_template.owner = nb::object(nb::borrow(spec)).release().ptr();
    for (Node* output : outputs) {
        planned->outputs.push_back(position_of(graph, output));
        if (planned->outputs.back() == LinearizedGraph::NONE) return {};
    }
    for (nb::handle is_stacked : spec[2])
        planned->stacked_outputs.push_back(nb::cast<bool>(is_stacked));
    std::vector<Node*> placeholders = nodes_from(spec[1]);
    std::vector<char> stacked;
    std::size_t next = 0;
    for (const StackedOperand& operand : operands) {
        uint32_t position =
            operand.scalar ? GraphTemplate::NONE : position_of(graph, placeholders[next++]);
        graph_template.leaves.push_back(position);
        stacked.push_back(operand.stacked);
        planned->input_strides.emplace_back();
        if (operand.scalar) continue;
        planned->input_strides.back() = operand.value->strides;
        if (position != GraphTemplate::NONE) graph.nodes[position].value = operand.value;
    }
    planned->params = batch.node(0)->params;
    for (uint32_t input : batch.graph.inputs(batch.graph.nodes[batch.positions[0]]))
        planned->types.push_back(batch.graph.nodes[input].node->type);
    planned->rows = batch.num_rows;
    const OptionKey options = option_key_from(spec[3]);
    const bool rules = nb::cast<bool>(spec[4]);
    planned->plan = find_or_instantiate_plan(graph, options, rules, planned->base_offsets);
    if (planned->plan && nb::cast<bool>(spec[5]))
        planned->open_rows(graph, stacked, options, rules);
    for (LinearizedNode& entry : graph.nodes)
        if (!entry.node->op) entry.value = nullptr;
    bool lasts =
        planned->plan && !planned->plan->calls_user && planned->plan->donated_inputs.empty();
    return lasts ? planned : Ref<PlannedGraph>();
}

} // namespace

GraphBatchCompiler::GraphBatchCompiler(const OptionKey& key) {
    if (current_options().batch_limit) max_members = current_options().batch_limit;
    auto words = key.words();
    options.assign(words.begin(), words.end());
    threads = current_options().threads;
    pads_rows = !current_options().verify;
    caches = !is_timeline_recording() && !current_options().verify;
}

std::vector<Ref<Value>> GraphBatchCompiler::compute(const Batch& batch,
                                                    std::span<const StackedOperand> operands,
                                                    const BatchSignature* signature) {
    nb::object compiled = compile_in_python(batch, operands, signature);
    std::vector<Ref<Value>> results;
    if (compiled.is_none()) return results;
    for (nb::handle result : compiled[0]) results.push_back(nb::cast<ValueHandle&>(result).value);
    if (signature && !compiled[1].is_none())
        if (Ref<PlannedGraph> planned = planned_from(compiled[1], batch, operands))
            cache_batch_plan(*signature, std::move(planned));
    return results;
}

ExecutionContext* GraphBatchCompiler::python() { return &python_context(); }

bool GraphBatchCompiler::may_compute_again() {
    if (!PyErr_Occurred()) return true;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();
    PyErr_Clear();
    return false;
}

nb::object GraphBatchCompiler::compile_in_python(const Batch& batch,
                                                 std::span<const StackedOperand> operands,
                                                 bool wants_plan) {
    const Node& representative = *batch.node(0);
    nb::list operand_args;
    for (const StackedOperand& operand : operands) {
        nb::object value = operand.scalar ? nb::steal(scalar_to_python(*operand.scalar))
                                          : nb::cast(ValueHandle{operand.value});
        operand_args.append(nb::make_tuple(value, operand.stacked));
    }
    nb::list nodes; // nodes of all members, where they are to be compared
    for (std::size_t row = 0; current_options().verify && row < batch.size(); ++row)
        nodes.append(nb::cast(NodeHandle{batch.node(row)}));
    nb::object params = nb::steal(params_to_python(representative.params.get()));
    nb::object compiled = nb::steal(PyObject_CallFunction(
        compute_batch.get().ptr(), "OOOnnOnOOOO", representative.op->python, params.ptr(),
        nb::tuple(operand_args).ptr(), Py_ssize_t(batch.size()), Py_ssize_t(batch.num_rows),
        nodes.ptr(), Py_ssize_t(batch.group), batch.is_continuation ? Py_True : Py_False,
        batch_notes_.ptr(), wants_plan ? Py_True : Py_False, batch.recurs ? Py_True : Py_False));
    if (!compiled.is_valid()) nb::raise_python_error();
    return compiled;
}

void declare_graph_batches(nb::module_& module) {
    using namespace nb::literals;
    module.def("forget_batches", forget_batch_plans, "op"_a);
}

} // namespace tenfold::bindings
