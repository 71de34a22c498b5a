// Batch setup: prepares batches of tenfold's operations, once per Types, to run without Python.
#include <algorithm>

#include "python/engine_bindings.h"
#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

// Placeholders for an operation's inputs during batch setup.
struct Inputs {
    std::vector<Ref<Node>> nodes;
    std::vector<Node*> borrowed;
    bool arrays = false, scalars = false, ours = true;

    // `values`: the inputs have values, in uninitialized memory.
    explicit Inputs(std::span<Type* const> types, bool values = false) {
        for (Type* type : types) {
            Scalar one{Scalar::integer, 1, 1, 0};
            if (dtype_of(type->dtype).kind == 'f') one.form = Scalar::real_number;
            if (dtype_of(type->dtype).kind == 'c') one.form = Scalar::complex_number;
            if (dtype_of(type->dtype).kind == 'b') one.form = Scalar::boolean;
            Ref<Value> value = values ? Value::uninitialized(Ref<Type>(type)) : Ref<Value>();
            nodes.push_back(type->weak ? scalar_node(one, Ref<Type>(type))
                            : value    ? value_node(std::move(value))
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
        return a.node->op == b.node->op && a.node->type == b.node->type &&
               (!a.node->op || a.node->params == b.node->params);
    };
    return std::ranges::equal(one.nodes, other.nodes, same) && one.edges == other.edges;
}

// Of one Array, or a tuple of some.
std::vector<Node*> nodes_in(nb::handle arrays) {
    if (is_array(arrays.ptr())) return {node_of(arrays.ptr())};
    std::vector<Node*> nodes;
    for (nb::handle item : nb::tuple(nb::borrow(arrays)))
        if (is_array(item.ptr())) nodes.push_back(node_of(item.ptr()));
    return nodes;
}

std::unique_ptr<GraphTemplate> pattern_of(nb::object array, const Inputs& inputs) {
    auto result = std::make_unique<GraphTemplate>();
    result->graph = linearize_when_unclaimed(nodes_in(array));
    result->output = result->graph.outputs[0];
    result->leaves.assign(inputs.nodes.size(), GraphTemplate::NONE);
    for (uint32_t i = 0; i < result->graph.nodes.size(); ++i) {
        result->graph.nodes[i].live_out = std::ranges::count(result->graph.outputs, i) > 0;
        for (std::size_t k = 0; k < inputs.nodes.size(); ++k)
            if (inputs.nodes[k] == result->graph.nodes[i].node) result->leaves[k] = i;
    }
    result->owner = array.release().ptr();
    return result;
}

// Whether it runs without Python, any number of times, and overwrites no input.
bool is_reusable(const Ref<Executable>& plan) {
    return plan && plan->remaining_runs < 0 && plan->donated_inputs.empty() &&
           std::ranges::none_of(plan->instructions, [](const auto& each) {
               return std::holds_alternative<Indirect<Executable::Call>>(each);
           });
}

// Plans an operation on arrays of these Types, if no call of it needs Python. Inputs with values
// must yield the same graph as the placeholders.
void plan(GilFreeCall& planned, const Operation& operation, std::span<Type* const> types) {
    Inputs inputs(types, true);
    nb::object arrays = applied(operation, inputs);
    if (!arrays.is_valid()) return;
    if (is_array(arrays.ptr())) arrays = nb::make_tuple(arrays);
    std::vector<Node*> pending = nodes_in(arrays);
    if (pending.empty() ||
        !are_alike(linearize_when_unclaimed(pending), planned.graph_template->graph))
        return;
    Ref<Executable> plan = find_or_instantiate_plan(pending, planned.base_offsets);
    if (!is_reusable(plan)) {
        nb::object result =
            nb::steal(PyObject_CallFunctionObjArgs(engine_hooks.plan, arrays.ptr(), nullptr));
        if (!result.is_valid() || result.is_none()) return;
        plan = nb::cast<PlanHandle&>(result).plan;
        planned.base_offsets = plan->base_offsets;
    }
    if (is_reusable(plan)) planned.plan = std::move(plan);
}

Ref<GilFreeCall> planned_of(nb::object array, const Inputs& inputs, const Operation& operation,
                            std::span<Type* const> types) {
    auto result = Ref<GilFreeCall>::adopt(new GilFreeCall);
    result->graph_template = pattern_of(std::move(array), inputs);
    result->outputs = result->graph_template->graph.outputs;
    plan(*result, operation, types);
    return result;
}

bool are_matrices(const Operation& operation, std::span<Type* const> types) {
    bool product = operation.kind == Operation::product && types.size() == 2;
    return product && types[0]->dtype == types[1]->dtype &&
           std::ranges::all_of(
               types, [](const Type* type) { return type->shape.size() == 2 && !type->weak; });
}

class PythonPanelCompiler : public PanelCompiler {
  public:
    const GilFreeCall* compile(const Products& products, Products::Form form,
                               std::size_t count) override {
        auto left = products.factor(0, form, int64_t(count));
        auto right = products.factor(1, form, int64_t(count));
        std::array types{left.get(), right.get()};
        Inputs inputs(types);
        nb::object array = applied(*products.operation, inputs);
        Ref<GilFreeCall> panel =
            array.is_valid() ? planned_of(std::move(array), inputs, *products.operation, types)
                             : Ref<GilFreeCall>::adopt(new GilFreeCall);
        PyErr_Clear(); // each member, computed alone, reports its own error
        return panel.detach();
    }
};

} // namespace

Ref<GilFreeCall> plan_call(const Operation& operation, std::span<Type* const> types) {
    Inputs inputs(types);
    nb::object arrays = inputs.ours ? applied(operation, inputs) : nb::object();
    Ref<GilFreeCall> result = arrays.is_valid()
                                  ? planned_of(std::move(arrays), inputs, operation, types)
                                  : Ref<GilFreeCall>::adopt(new GilFreeCall);
    PyErr_Clear(); // the run reports the error
    return result;
}

PanelCompiler& python_panel_compiler() {
    static PythonPanelCompiler only;
    return only;
}

void prepare_batcher(Engine& engine, Operation& operation, std::span<Type* const> types) {
    Batcher result;
    if (operation.gil_free_call) {
        result.kind = Operation::elementwise;
        result.has_calls = true;
        engine.add_batcher(Engine::signature_of(operation, types), std::move(result));
        return;
    }
    result.operation = Ref<Operation>(&operation);
    for (Type* type : types) result.types.emplace_back(type);
    Inputs inputs(types);
    nb::object array;
    if (inputs.arrays && inputs.ours) array = applied(operation, inputs);
    PyErr_Clear(); // the run reports the error
    Node* node = array.is_valid() && is_array(array.ptr()) ? node_of(array.ptr()) : nullptr;
    bool native = inputs.arrays && inputs.ours && node && node->op && !value_of(node);
    if (native && are_matrices(operation, types)) {
        result.kind = Operation::product;
        result.products = std::make_unique<Products>();
        result.products->operation = result.operation;
        result.products->types = {Ref<Type>(types[0]), Ref<Type>(types[1])};
        result.products->type = node->type;
    } else if (native) {
        bool same = operation.kind == Operation::elementwise && node->op == operation.op;
        for (Type* type : types) same &= type->weak || type->shape == node->type->shape;
        const Loop* loop = same ? contiguous_loop(*node, inputs.borrowed) : nullptr;
        PyErr_Clear();
        if (loop && loop->kernel)
            result.rows.emplace(BatchRows{node->inference, Ref<Type>(node->type), loop});
        result.graph_template = pattern_of(array, inputs);
        if (!result.graph_template->fits(types[0]->device)) result.graph_template.reset();
        if (result.is_native())
            result.kind = Operation::elementwise;
        else if (!inputs.scalars)
            result.gil_free_call = planned_of(std::move(array), inputs, operation, types);
        if (result.gil_free_call && !result.gil_free_call->plan) result.gil_free_call = nullptr;
        PyErr_Clear();
    }
    engine.add_batcher(Engine::signature_of(operation, types), std::move(result));
}

} // namespace tenfold::bindings
