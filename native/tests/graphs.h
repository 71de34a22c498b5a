// Test graphs: small pieces from which the native tests build graphs without Python.
#pragma once
#include "ir/node.h"

namespace tenfold::testing {

inline Ref<Type> vector_type(int64_t length) {
    int64_t shape[] = {length};
    return intern_type({shape, 1, 0, 0, false});
}

inline Ref<Node> leaf(int64_t length) {
    auto* value = new Value;
    value->type = vector_type(length);
    value->buffers[0].allocation = Allocation::from_pool(std::size_t(length) * 8);
    return value_node(Ref<Value>::adopt(value));
}

inline const Op* add_op() {
    static const Op* op = &declare_op("add");
    return op;
}

// As Python's rules say it of two operands of this Type.
inline Inferred inferred(const Ref<Type>& type) {
    auto inference = Ref<Inference>::adopt(new Inference);
    inference->kind = MAP;
    inference->results.push_back(type);
    inference->operands = {type->dtype, type->dtype};
    return {inference, type};
}

inline Ref<Node> add(const Ref<Node>& a, const Ref<Node>& b) {
    Type* types[] = {a->type.get(), b->type.get()};
    InferenceQuery query{add_op(), nullptr, false, types};
    Inferred known = find_inference(query);
    if (!known) {
        known = inferred(a->type);
        cache_inference(query, known.inference);
    }
    Node* inputs[] = {a.get(), b.get()};
    return operation_node(add_op(), {}, std::move(known), inputs);
}

} // namespace tenfold::testing
