// Batch setup: prepares batches of tenfold's operations, once per Types, to run without Python.
#include <algorithm>

#include "exec/batch_policy.h"
#include "python/engine_bindings.h"
#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

// Drops a Python error: each member, computed alone, reports its own. Throws what is no Exception,
// such as an interrupt.
void drop_error() {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();
    PyErr_Clear();
}

// The result of a part of batch setup; empty where it fails.
template <class F> auto made_by(F&& setup) -> decltype(setup()) {
    try {
        auto result = setup();
        drop_error();
        return result;
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_Exception)) throw;
    }
    return {};
}

// Placeholders for an operation's inputs during batch setup. A number has no value there either:
// a plan that depends on the number would not serve another one.
struct Inputs {
    std::vector<Ref<Node>> nodes;
    std::vector<Node*> borrowed;
    bool arrays = false, scalars = false, ours = true;

    // `values`: the inputs have values, in uninitialized memory.
    template <class Types> explicit Inputs(const Types& types, bool values = false) {
        for (const auto& each : types) {
            Type* type = &*each;
            Ref<Value> value = values ? Value::uninitialized(Ref<Type>(type)) : Ref<Value>();
            nodes.push_back(value ? value_node(std::move(value))
                                  : placeholder_node(Ref<Type>(type)));
            borrowed.push_back(nodes.back().get());
            (type->weak ? scalars : arrays) = true;
            ours &= type->weak || (type->storage == 0 && has_loops_on(type->device));
        }
    }
};

// The Array that it makes of them, pending, or Arrays; none where it makes none, or needs values.
nb::object applied(const Operation& operation, const Inputs& inputs) {
    if (operation.call) {
        Ref<Node> node = make_node(operation.op, inputs.borrowed, operation.call);
        return node ? nb::steal(wrap_results(std::move(node), nullptr)) : nb::object();
    }
    if (operation.kind != Operation::general) {
        Ref<Node> node = make_node(operation.op, inputs.borrowed, {});
        return node ? nb::steal(new_array(std::move(node))) : nb::object();
    }
    if (inputs.scalars) return {}; // they may say how it is computed
    nb::list arrays;
    for (const Ref<Node>& node : inputs.nodes) arrays.append(nb::steal(new_array(node)));
    if (operation.constants) arrays.extend(nb::handle(static_cast<PyObject*>(operation.constants)));
    return nb::steal(PyObject_Call(static_cast<PyObject*>(operation.python),
                                   nb::tuple(arrays).ptr(),
                                   static_cast<PyObject*>(operation.params)));
}

// Whether graphs are made of the same operations, on leaves that may have values or not.
bool are_alike(const LinearizedGraph& one, const LinearizedGraph& other) {
    auto same = [](const LinearizedNode& a, const LinearizedNode& b) {
        const Op* op = a.node->op;
        if (op != b.node->op || a.node->type != b.node->type) return false;
        if (!op || a.node->params == b.node->params) return true;
        if (op->part == Op::none) return false;
        const Starts &first = starts_of(*a.node->params), &second = starts_of(*b.node->params);
        return first.pattern == second.pattern && first.starts == second.starts;
    };
    return std::ranges::equal(one.nodes, other.nodes, same) && one.edges == other.edges;
}

// The nodes of one Array, or of the Arrays in a tuple.
std::vector<Node*> nodes_in(nb::handle arrays) {
    if (is_array(arrays.ptr())) return {node_of(arrays.ptr())};
    std::vector<Node*> nodes;
    for (nb::handle item : nb::tuple(nb::borrow(arrays)))
        if (is_array(item.ptr())) nodes.push_back(node_of(item.ptr()));
    return nodes;
}

// The place of a number in a template: each call has its own number for it.
Ref<Node> number_node(const Ref<Type>& type) {
    const char kind = dtype_of(type->dtype).kind;
    return scalar_node({kind == 'b'   ? Scalar::boolean
                        : kind == 'f' ? Scalar::real_number
                        : kind == 'c' ? Scalar::complex_number
                                      : Scalar::integer},
                       type);
}

// Null where a number of the inputs is not in the graph.
std::unique_ptr<GraphTemplate> graph_template_of(nb::object array,
                                                 std::span<const Ref<Node>> inputs) {
    auto result = std::make_unique<GraphTemplate>();
    result->graph = linearize_when_unclaimed(nodes_in(array));
    result->output = result->graph.outputs[0];
    result->leaves.assign(inputs.size(), GraphTemplate::NONE);
    for (uint32_t i = 0; i < result->graph.nodes.size(); ++i) {
        result->graph.nodes[i].live_out = std::ranges::count(result->graph.outputs, i) > 0;
        for (std::size_t k = 0; k < inputs.size(); ++k)
            if (inputs[k] == result->graph.nodes[i].node) result->leaves[k] = i;
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (!inputs[k]->type->weak) continue;
        if (result->leaves[k] == GraphTemplate::NONE) return {};
        result->graph.nodes[result->leaves[k]].node = number_node(inputs[k]->type);
    }
    result->owner = array.release().ptr();
    return result;
}

// Plans results on inputs with values, whose graph must be that on placeholders. What Python's
// `planner` made; none without a plan that runs any number of times and overwrites no input.
nb::object bind_plan(PlannedGraph& planned, const LinearizedGraph& graph, nb::handle results,
                     nb::handle planner) {
    if (!are_alike(graph, planned.graph_template->graph)) return {};
    nb::object made = nb::steal(PyObject_CallOneArg(planner.ptr(), results.ptr()));
    if (!made.is_valid() || made.is_none()) return {};
    nb::object handle = PyTuple_Check(made.ptr()) ? nb::object(made[0]) : made;
    Ref<Executable> plan = nb::cast<PlanHandle&>(handle).plan;
    if (!plan || plan->remaining_runs >= 0 || !plan->donated_inputs.empty()) return {};
    planned.calls_python = std::ranges::any_of(plan->instructions, [](const auto& each) {
        return std::holds_alternative<Indirect<Executable::Call>>(each);
    });
    planned.base_offsets = plan->base_offsets;
    planned.plan = std::move(plan);
    return made;
}

// Plans an operation on arrays of these Types, if no call of it needs Python.
void plan(PlannedGraph& planned, const Operation& operation, std::span<Type* const> types) {
    Inputs inputs(types, true);
    nb::object arrays = applied(operation, inputs);
    if (!arrays.is_valid()) return;
    if (is_array(arrays.ptr())) arrays = nb::make_tuple(arrays);
    bind_plan(planned, linearize_when_unclaimed(nodes_in(arrays)), arrays, engine_hooks.plan);
    if (planned.calls_python) planned.plan = nullptr;
}

// `interprets`: it needs no plan.
Ref<PlannedGraph> planned_of(std::unique_ptr<GraphTemplate> graph_template, bool interprets,
                             const Operation& operation, std::span<Type* const> types) {
    auto result = Ref<PlannedGraph>::adopt(new PlannedGraph);
    result->graph_template = std::move(graph_template);
    result->interprets = interprets;
    if (!result->graph_template) return result;
    result->outputs = result->graph_template->graph.outputs;
    bool has_numbers = std::ranges::any_of(types, &Type::weak);
    if (!interprets && !has_numbers) plan(*result, operation, types);
    return result;
}

PythonFunction batch_pushed{"tenfold.transforms.batch_compiler", "batch_pushed"},
    plan_batch{"tenfold.transforms.batch_compiler", "plan_batch"};

// Plans a batch: the member on placeholders, its batch by the batch rules, its plan.
class BatchSetup {
  public:
    BatchSetup(const Batcher& batcher, const Operation& operation,
               std::span<const MemberOperands> operands, std::size_t rows)
        : batcher_(batcher), operation_(operation), operands_(operands), rows_(rows) {
        for (const MemberOperands& operand : operands)
            types_.push_back(
                operand.form == OperandForm::numbers
                    ? intern_type({{}, operand.dtype, batcher.result->device, 0, false})
                    : operand.type);
    }

    // Without a template where members must be computed one by one.
    Ref<PlannedGraph> plan() {
        auto result = Ref<PlannedGraph>::adopt(new PlannedGraph);
        result->rows = rows_;
        Inputs member(types_);
        nb::object results = applied(operation_, member);
        if (!results.is_valid()) return result;
        nb::list inputs, flags;
        for (std::size_t i = 0; i < types_.size(); ++i) {
            inputs.append(nb::steal(new_array(member.nodes[i])));
            flags.append(is_stacked(operands_[i].form));
        }
        nb::object batch = batch_pushed.get()(results, inputs, flags, rows_);
        if (batch.is_none()) return result;
        std::vector<Ref<Node>> leaves;
        for (Node* placeholder : nodes_from(batch[1])) leaves.emplace_back(placeholder);
        result->graph_template = graph_template_of(batch[0], leaves);
        if (!result->graph_template) return result;
        const GraphTemplate& graph_template = *result->graph_template;
        result->outputs = graph_template.graph.outputs;
        if (batcher_.interprets() && (member.scalars || is_few_launches(graph_template)) &&
            graph_template.can_run(batcher_.result->device))
            return result;
        if (member.scalars || !plan_rows(*result, batch, leaves)) result->graph_template = nullptr;
        return result;
    }

  private:
    bool plan_rows(PlannedGraph& result, nb::handle batch, std::span<const Ref<Node>> leaves) {
        nb::list arrays;
        std::vector<char> stacked;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
            Ref<Value> value = Value::uninitialized(leaves[i]->type);
            if (!value) return false;
            if (operands_[i].form == OperandForm::transposed)
                value->strides = transposed_strides(*value->type);
            value->is_view = !value->strides.empty();
            result.input_strides.push_back(value->strides);
            stacked.push_back(is_stacked(operands_[i].form));
            arrays.append(nb::steal(new_array(value_node(std::move(value)))));
        }
        nb::object results = batch[2](arrays);
        LinearizedGraph graph = linearize_when_unclaimed(nodes_in(results));
        nb::object planned = bind_plan(result, graph, results, plan_batch.get());
        if (!planned.is_valid()) return false;
        if (nb::cast<bool>(batch[3]))
            result.open_rows(graph, stacked, option_key_from(planned[1]), false);
        if (result.symbolic && result.symbolic->template_plan->remaining_runs >= 0)
            result.symbolic = nullptr;
        return true;
    }

    const Batcher& batcher_;
    const Operation& operation_;
    const std::span<const MemberOperands> operands_;
    const std::size_t rows_;
    std::vector<Ref<Type>> types_;
};

class PythonBatchPlanner : public BatchPlanner {
  public:
    Ref<PlannedGraph> plan(const Batcher& batcher, const Operation& operation,
                           std::span<const MemberOperands> operands, std::size_t rows) override {
        Ref<PlannedGraph> planned =
            made_by([&] { return BatchSetup(batcher, operation, operands, rows).plan(); });
        if (planned) return planned;
        planned = Ref<PlannedGraph>::adopt(new PlannedGraph);
        planned->rows = rows;
        return planned;
    }
    ExecutionContext* python() override { return &python_context(); }
};

} // namespace

Ref<PlannedGraph> plan_call(const Operation& operation, std::span<Type* const> types) {
    Inputs inputs(types);
    Ref<PlannedGraph> result = made_by([&]() -> Ref<PlannedGraph> {
        if (!inputs.ours || inputs.scalars) return {};
        nb::object arrays = applied(operation, inputs);
        if (!arrays.is_valid()) return {};
        return planned_of(graph_template_of(std::move(arrays), inputs.nodes), false, operation,
                          types);
    });
    return result ? result : Ref<PlannedGraph>::adopt(new PlannedGraph);
}

BatchPlanner& python_batch_planner() {
    static PythonBatchPlanner only;
    return only;
}

namespace {

// How a member is computed without Python, if it can be.
void set_native_ways(Batcher& batcher, nb::object array, const Inputs& inputs,
                     std::span<Type* const> types) {
    const Operation& operation = *batcher.operation;
    const Node& node = *node_of(array.ptr());
    bool same = operation.kind == Operation::elementwise && node.op == operation.op;
    const bool is_host = device_of(node.type->device).is_host, is_only = same;
    for (Type* type : types) same &= type->weak || type->shape == node.type->shape;
    auto graph_template = made_by([&] { return graph_template_of(array, inputs.nodes); });
    same &= bool(graph_template);
    const Loop* loop = made_by([&] { return same ? contiguous_loop(*graph_template) : nullptr; });
    if (loop && loop->kernel && is_host)
        batcher.rows.emplace(BatchRows{node.inference, Ref<Type>(node.type), loop});
    bool interprets =
        graph_template && graph_template->can_run(types[0]->device, TIERS.max_elements);
    batcher.plans_numbers = !is_host && is_only && graph_template && inputs.scalars;
    if (interprets || batcher.plans_numbers || (!batcher.rows && !inputs.scalars))
        batcher.planned_graph = made_by(
            [&] { return planned_of(std::move(graph_template), interprets, operation, types); });
}

} // namespace

void prepare_batcher(Engine& engine, Operation& operation, std::span<Type* const> types) {
    Batcher result;
    result.operation = Ref<Operation>(&operation);
    if (operation.planned_graph) {
        result.runs_alone = false;
        result.planned_graph = operation.planned_graph;
        const GraphTemplate* graph_template = result.planned_graph->graph_template.get();
        if (graph_template && !operation.result_tree) result.result = graph_template->type();
        result.stacks = true;
        return void(engine.add_batcher(Engine::signature_of(operation, types), std::move(result)));
    }
    for (Type* type : types) result.types.emplace_back(type);
    Inputs inputs(types);
    nb::object array = made_by(
        [&] { return inputs.arrays && inputs.ours ? applied(operation, inputs) : nb::object(); });
    operation.has_several_results = array.is_valid() && !is_array(array.ptr());
    Node* node = array.is_valid() && is_array(array.ptr()) ? node_of(array.ptr()) : nullptr;
    if (node && node->op && !value_of(node)) {
        result.result = Ref<Type>(node->type);
        set_native_ways(result, array, inputs, types);
        result.stacks = (result.is_native() || !inputs.scalars) &&
                        are_stackable(types, result.planned_graph.get(), result.result.get());
        const bool is_on_device = !device_of(node->type->device).is_host && result.is_native();
        result.runs_alone = !result.stacks && !result.rows && !result.interprets() &&
                            !(is_on_device && has_native_kernel(*node));
    }
    engine.add_batcher(Engine::signature_of(operation, types), std::move(result));
}

} // namespace tenfold::bindings
