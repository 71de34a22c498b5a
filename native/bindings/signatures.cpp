// Signatures of operations of tenfold: what is to be known of some Types before pushes of them can
// run as one batch, without Python.
#include <algorithm>

#include "engine.h"
#include "plans.h"

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

// The Array that it makes of them, pending; none where it makes none, or needs values.
nb::object applied(const Operation& operation, const Inputs& inputs) {
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

std::unique_ptr<Pattern> pattern_of(nb::object array, const Inputs& inputs) {
    Node* output = node_of(array.ptr());
    auto made = std::make_unique<Pattern>();
    made->walked = walk_at_rest(std::array{output});
    made->output = made->walked.outputs[0];
    made->leaves.assign(inputs.nodes.size(), Pattern::NOWHERE);
    for (uint32_t i = 0; i < made->walked.nodes.size(); ++i) {
        made->walked.nodes[i].held = i == made->output;
        for (std::size_t k = 0; k < inputs.nodes.size(); ++k)
            if (inputs.nodes[k] == made->walked.nodes[i].node) made->leaves[k] = i;
    }
    made->kept = array.release().ptr();
    return made;
}

// Whether it runs without Python, and without end.
bool lasts(const Ref<BoundPlan>& plan) {
    return plan && plan->left < 0 && std::ranges::none_of(plan->instructions, [](const auto& each) {
               return std::holds_alternative<Boxed<BoundPlan::Call>>(each);
           });
}

// The plan for an operation on arrays of these Types, if no call of it needs Python.
Ref<BoundPlan> plan_for(const Operation& operation, std::span<Type* const> types) {
    Inputs factors(types, true);
    nb::object array = applied(operation, factors);
    if (!array.is_valid()) return {};
    Ref<BoundPlan> plan = known_plan(node_of(array.ptr()));
    if (lasts(plan)) return plan;
    nb::object made =
        nb::steal(PyObject_CallFunctionObjArgs(engine_hooks.plan, array.ptr(), nullptr));
    if (made.is_valid() && !made.is_none()) plan = nb::cast<PlanHandle&>(made).plan;
    return lasts(plan) ? plan : Ref<BoundPlan>();
}

class Maker : public PanelMaker {
  public:
    const Products::Panel* make(const Products& products, Products::Form form,
                                std::size_t count) override {
        auto left = products.factor(0, form, int64_t(count));
        auto right = products.factor(1, form, int64_t(count));
        std::array types{left.get(), right.get()};
        Inputs inputs(types);
        auto panel = std::make_unique<Products::Panel>();
        if (nb::object array = applied(*products.operation, inputs); array.is_valid()) {
            panel->pattern = pattern_of(std::move(array), inputs);
            panel->plan = plan_for(*products.operation, types);
        }
        PyErr_Clear(); // each alone says what was wrong
        return panel.release();
    }
};

} // namespace

PanelMaker& panel_maker() {
    static Maker only;
    return only;
}

void prepare(Engine& engine, Operation& operation, std::span<Type* const> types) {
    Batcher made;
    made.operation = Ref<Operation>(&operation);
    for (Type* type : types) made.types.emplace_back(type);
    Inputs inputs(types);
    nb::object array;
    if (inputs.arrays && inputs.ours) array = applied(operation, inputs);
    PyErr_Clear(); // who runs it says what is wrong
    Node* node = array.is_valid() && is_array(array.ptr()) ? node_of(array.ptr()) : nullptr;
    if (operation.kind == Operation::product) {
        bool matrices = types.size() == 2 && types[0]->dtype == types[1]->dtype && node;
        for (Type* type : types) matrices &= type->shape.size() == 2 && !type->weak;
        if (matrices && inputs.ours) {
            made.kind = Operation::product;
            made.products = std::make_unique<Products>();
            made.products->operation = made.operation;
            made.products->types = {Ref<Type>(types[0]), Ref<Type>(types[1])};
            made.products->type = node->type;
        }
    } else if (node) {
        bool same = operation.kind == Operation::elements && node->op == operation.op;
        for (Type* type : types) same &= type->weak || type->shape == node->type->shape;
        const Loop* loop = same ? contiguous_loop(*node, inputs.borrowed) : nullptr;
        PyErr_Clear();
        if (loop && loop->kernel)
            made.rows.emplace(Rows{node->inference, Ref<Type>(node->type), loop});
        made.pattern = pattern_of(array, inputs);
        if (!made.pattern->fits(types[0]->device)) made.pattern.reset();
        if (made.is_native()) made.kind = Operation::elements;
    }
    engine.add_batcher(Engine::signature_of(operation, types), std::move(made));
}

} // namespace tenfold::bindings
