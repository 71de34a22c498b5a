// Operations: what Python says of an operator that is pushed; of tenfold's own once.
#include "engine.h"

#include <unordered_map>

#include <nanobind/stl/string.h>

namespace tenfold::bindings {
namespace {

// The operations of tenfold that were pushed; they keep their Python objects.
std::unordered_map<PyObject*, Ref<Operation>>& known_operations() {
    static auto* all = new std::unordered_map<PyObject*, Ref<Operation>>;
    return *all;
}

// What Python says of an operator: (kind, pure, name, fewest, most, plain run, plain add, op id).
Ref<Operation> describe(PyObject* operator_, PyObject* params) {
    nb::object said = nb::steal(PyObject_CallFunctionObjArgs(engine_hooks.describe, operator_,
                                                             params ? params : Py_None, nullptr));
    if (!said.is_valid()) return {};
    auto make = [&](Operation::Kind kind) {
        auto made = Ref<Operation>::adopt(new Operation);
        made->kind = kind;
        made->pure = nb::cast<bool>(said[1]);
        made->name = nb::cast<std::string>(said[2]);
        made->fewest = nb::cast<uint8_t>(said[3]);
        made->most = nb::cast<uint8_t>(said[4]);
        made->plain_run = nb::cast<bool>(said[5]);
        made->plain_add = nb::cast<bool>(said[6]);
        made->op = find_op(nb::cast<uint32_t>(said[7]));
        made->python = Py_NewRef(operator_);
        made->params = params ? Py_NewRef(params) : nullptr;
        return made;
    };
    Ref<Operation> made = make(Operation::Kind(nb::cast<int>(said[0])));
    if (made->kind == Operation::cumulative) {
        made->sum = make(Operation::fold);
        made->sum->pure = true;
    }
    return made;
}

} // namespace

Ref<Operation> operation_of(PyObject* operator_, PyObject* params) {
    static PyObject* last = nullptr; // kept by the table
    static Ref<Operation>* found = new Ref<Operation>;
    if (params) return describe(operator_, params);
    if (operator_ == last) return *found;
    int ours = PyObject_IsInstance(operator_, engine_hooks.op);
    if (ours < 0) return {};
    if (!ours) return describe(operator_, nullptr);
    Ref<Operation>& known = known_operations()[operator_];
    if (!known) known = describe(operator_, nullptr);
    if (!known) {
        known_operations().erase(operator_);
        return {};
    }
    last = operator_;
    *found = known;
    return known;
}

} // namespace tenfold::bindings
