// Signatures of operations of tenfold: what is to be known of some Types before pushes of them can
// run as one batch, without Python.
#include "engine.h"

namespace tenfold::bindings {

void prepare(Engine& engine, const Operation& operation, std::span<Type* const> types) {
    Batcher made;
    std::vector<Ref<Node>> nodes;
    std::vector<Node*> inputs;
    bool arrays = false, ours = true;
    for (Type* type : types) {
        made.types.emplace_back(type);
        Scalar one{Scalar::integer, 1, 1, 0};
        if (dtype_of(type->dtype).kind == 'f') one.form = Scalar::real_number;
        if (dtype_of(type->dtype).kind == 'c') one.form = Scalar::complex_number;
        if (dtype_of(type->dtype).kind == 'b') one.form = Scalar::boolean;
        nodes.push_back(type->weak ? scalar_node(one, type) : placeholder_node(Ref<Type>(type)));
        inputs.push_back(nodes.back().get());
        if (type->weak) continue;
        ours &= type->storage == 0 && has_loops_on(type->device);
        arrays = true;
    }
    Ref<Node> node = arrays && ours ? make_node(operation.op, inputs, {}) : Ref<Node>();
    PyErr_Clear(); // who runs it says what is wrong
    if (operation.kind == Operation::product) {
        bool matrices = types.size() == 2 && types[0]->dtype == types[1]->dtype && node;
        for (Type* type : types) matrices &= type->shape.size() == 2 && !type->weak;
        if (matrices) made.kind = Operation::product;
    } else if (node && node->op == operation.op) {
        bool same = true;
        for (Type* type : types) same &= type->weak || type->shape == node->type->shape;
        const Loop* loop = same ? contiguous_loop(*node, inputs) : nullptr;
        PyErr_Clear();
        if (loop && loop->kernel) {
            made.kind = Operation::elements;
            made.rows.emplace(Rows{node->inference, Ref<Type>(node->type), loop});
        }
    }
    engine.add_batcher(Engine::signature_of(operation.op, types), std::move(made));
}

} // namespace tenfold::bindings
