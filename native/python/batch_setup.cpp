// Batch setup: prepares batches of tenfold's operations, once per Types, to run without Python.
#include <algorithm>

#include "python/engine_bindings.h"
#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

// What stands for the inputs while it is found out.
struct Inputs {
    std::vector<Ref<Node>> nodes;
    std::vector<Node*> borrowed;
    bool arrays = false, scalars = false, ours = true;

    // With values there is memory, whatever is in it.
    explicit Inputs(std::span<Type* const> types, bool values = false) {
        for (Type* type : types) {
            Scalar one{Scalar::integer, 1, 1, 0};
            if (dtype_of(type->dtype).kind == 'f') one.form = Scalar::real_number;
            if (dtype_of(type->dtype).kind == 'c') one.form = Scalar::complex_number;
            if (dtype_of(type->dtype).kind == 'b') one.form = Scalar::boolean;
            Ref<Value> value = values ? Value::of(Ref<Type>(type)) : Ref<Value>();
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
        return node ? nb::steal(arrays_of(std::move(node), nullptr)) : nb::object();
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
    for (nb::handle each : nb::tuple(nb::borrow(arrays)))
        if (is_array(each.ptr())) nodes.push_back(node_of(each.ptr()));
    return nodes;
}

std::unique_ptr<GraphTemplate> pattern_of(nb::object array, const Inputs& inputs) {
    auto made = std::make_unique<GraphTemplate>();
    made->walked = walk_at_rest(nodes_in(array));
    made->output = made->walked.outputs[0];
    made->leaves.assign(inputs.nodes.size(), GraphTemplate::NOWHERE);
    for (uint32_t i = 0; i < made->walked.nodes.size(); ++i) {
        made->walked.nodes[i].held = std::ranges::count(made->walked.outputs, i) > 0;
        for (std::size_t k = 0; k < inputs.nodes.size(); ++k)
            if (inputs.nodes[k] == made->walked.nodes[i].node) made->leaves[k] = i;
    }
    made->kept = array.release().ptr();
    return made;
}

// Whether it runs without Python, without end, and writes over nothing that it is given.
bool is_reusable(const Ref<Executable>& plan) {
    return plan && plan->left < 0 && plan->donated_inputs.empty() &&
           std::ranges::none_of(plan->instructions, [](const auto& each) {
               return std::holds_alternative<Indirect<Executable::Call>>(each);
           });
}

// Plans an operation on arrays of these Types, if no call of it needs Python. With values in its
// inputs it must make what it has made without.
void plan(GilFreeCall& planned, const Operation& operation, std::span<Type* const> types) {
    Inputs inputs(types, true);
    nb::object arrays = applied(operation, inputs);
    if (!arrays.is_valid()) return;
    if (is_array(arrays.ptr())) arrays = nb::make_tuple(arrays);
    std::vector<Node*> pending = nodes_in(arrays);
    if (pending.empty() || !are_alike(walk_at_rest(pending), planned.pattern->walked)) return;
    Ref<Executable> plan = known_plan(pending, planned.moved);
    if (!is_reusable(plan)) {
        nb::object made =
            nb::steal(PyObject_CallFunctionObjArgs(engine_hooks.plan, arrays.ptr(), nullptr));
        if (!made.is_valid() || made.is_none()) return;
        plan = nb::cast<PlanHandle&>(made).plan;
        planned.moved = plan->moved;
    }
    if (is_reusable(plan)) planned.plan = std::move(plan);
}

Ref<GilFreeCall> planned_of(nb::object array, const Inputs& inputs, const Operation& operation,
                            std::span<Type* const> types) {
    auto made = Ref<GilFreeCall>::adopt(new GilFreeCall);
    made->pattern = pattern_of(std::move(array), inputs);
    made->outputs = made->pattern->walked.outputs;
    plan(*made, operation, types);
    return made;
}

bool are_matrices(const Operation& operation, std::span<Type* const> types) {
    bool product = operation.kind == Operation::product && types.size() == 2;
    return product && types[0]->dtype == types[1]->dtype &&
           std::ranges::all_of(
               types, [](const Type* type) { return type->shape.size() == 2 && !type->weak; });
}

class PythonPanelCompiler : public PanelCompiler {
  public:
    const GilFreeCall* make(const Products& products, Products::Form form,
                            std::size_t count) override {
        auto left = products.factor(0, form, int64_t(count));
        auto right = products.factor(1, form, int64_t(count));
        std::array types{left.get(), right.get()};
        Inputs inputs(types);
        nb::object array = applied(*products.operation, inputs);
        Ref<GilFreeCall> panel =
            array.is_valid() ? planned_of(std::move(array), inputs, *products.operation, types)
                             : Ref<GilFreeCall>::adopt(new GilFreeCall);
        PyErr_Clear(); // each alone says what was wrong
        return panel.detach();
    }
};

} // namespace

Ref<GilFreeCall> plan_of_call(const Operation& operation, std::span<Type* const> types) {
    Inputs inputs(types);
    nb::object arrays = inputs.ours ? applied(operation, inputs) : nb::object();
    Ref<GilFreeCall> made = arrays.is_valid()
                                ? planned_of(std::move(arrays), inputs, operation, types)
                                : Ref<GilFreeCall>::adopt(new GilFreeCall);
    PyErr_Clear(); // who runs it says what is wrong
    return made;
}

PanelCompiler& panel_maker() {
    static PythonPanelCompiler only;
    return only;
}

void prepare(Engine& engine, Operation& operation, std::span<Type* const> types) {
    Batcher made;
    if (operation.planned) {
        made.kind = Operation::elements;
        made.calls = true;
        engine.add_batcher(Engine::signature_of(operation, types), std::move(made));
        return;
    }
    made.operation = Ref<Operation>(&operation);
    for (Type* type : types) made.types.emplace_back(type);
    Inputs inputs(types);
    nb::object array;
    if (inputs.arrays && inputs.ours) array = applied(operation, inputs);
    PyErr_Clear(); // who runs it says what is wrong
    Node* node = array.is_valid() && is_array(array.ptr()) ? node_of(array.ptr()) : nullptr;
    bool native = inputs.arrays && inputs.ours && node && node->op && !value_of(node);
    if (native && are_matrices(operation, types)) {
        made.kind = Operation::product;
        made.products = std::make_unique<Products>();
        made.products->operation = made.operation;
        made.products->types = {Ref<Type>(types[0]), Ref<Type>(types[1])};
        made.products->type = node->type;
    } else if (native) {
        bool same = operation.kind == Operation::elements && node->op == operation.op;
        for (Type* type : types) same &= type->weak || type->shape == node->type->shape;
        const Loop* loop = same ? contiguous_loop(*node, inputs.borrowed) : nullptr;
        PyErr_Clear();
        if (loop && loop->kernel)
            made.rows.emplace(BatchRows{node->inference, Ref<Type>(node->type), loop});
        made.pattern = pattern_of(array, inputs);
        if (!made.pattern->fits(types[0]->device)) made.pattern.reset();
        if (made.is_native())
            made.kind = Operation::elements;
        else if (!inputs.scalars)
            made.planned = planned_of(std::move(array), inputs, operation, types);
        if (made.planned && !made.planned->plan) made.planned = nullptr;
        PyErr_Clear();
    }
    engine.add_batcher(Engine::signature_of(operation, types), std::move(made));
}

} // namespace tenfold::bindings
