// Pushed calls: turn a pushed call of a traced function into an operation with a plan. That needs a
// matching earlier call, or arguments that it can be traced for; the plan captures at the push what
// it reads. Otherwise the function is called when its inputs are ready.
#include <algorithm>

#include "python/call_cache.h"

namespace tenfold::bindings {
namespace {

PyObject *trace_pushed = nullptr, *call_later = nullptr; // of a function, arguments and names

// What a call has captured, as it is now; false where it is to be traced anew, or with a Python
// error.
bool capture(const Call& call, std::vector<Ref<Value>>& captured) {
    for (const auto& [array, node] : call.read)
        if (reinterpret_cast<ArrayObject*>(array.ptr())->node != node.get()) return false;
    for (const Captured& each : call.captured) {
        Ref<Node> node = each.node;
        if (each.source.is_valid()) {
            if (!is_immediate(each.source.ptr())) return false;
            node = Ref<Node>(node_of(each.source.ptr()));
        }
        if (!node || node->type != each.node->type) return false;
        if (!value_of(node.get())) {
            nb::object array = nb::steal(new_array(node));
            if (!nb::steal(PyObject_CallOneArg(engine_hooks.import, array.ptr())).is_valid())
                return false;
        }
        captured.push_back(value_of(node.get()));
    }
    return true;
}

// The operation of a call under some options; the same as long as what it captures is the same.
Ref<Operation> operation_for(Call& call, const Ref<Submitted>& options) {
    std::vector<Ref<Value>> captured;
    if (!capture(call, captured)) return {};
    auto alike = [&](const Ref<Operation>& each) {
        return each->options->number == options->number;
    };
    auto last = std::ranges::find_if(call.pushed, alike);
    if (last != call.pushed.end() && (*last)->captured == captured) return *last;
    auto made = Ref<Operation>::adopt(new Operation);
    made->kind = Operation::general;
    made->name = call.op->name;
    made->op = call.op;
    made->family = call.op;
    made->python = Py_NewRef(call.run.ptr());
    made->options = options;
    made->call = call.params;
    if (!call.form.is_none()) made->form = Py_NewRef(call.form.ptr());
    PyObject* constants = PyTuple_New(Py_ssize_t(captured.size()));
    made->constants = constants;
    for (std::size_t i = 0; i < captured.size(); ++i)
        PyTuple_SET_ITEM(constants, Py_ssize_t(i), new_array(value_node(captured[i])));
    made->captured = std::move(captured);
    if (last != call.pushed.end()) {
        made->planned = (*last)->planned;
    } else {
        std::vector<Type*> types;
        for (std::size_t at : call.order) types.push_back(call.types[at].get());
        for (const Captured& each : call.captured) types.push_back(each.node->type.get());
        made->planned = plan_of_call(*made, types);
    }
    made->kept = bool(made->planned->plan);
    std::erase_if(call.pushed, alike);
    call.pushed.push_back(made);
    return made;
}

// Empty without a Python error where only a run can tell.
Ref<Operation> known_operation(CallerObject& self, std::span<PyObject* const> given,
                               PyObject* names, std::vector<PyObject*>& inputs) {
    Ref<Submitted> options = submitted_here();
    if (!options || !options->usual) return {};
    constexpr int TIMES = 4; // a type of trees is known the next time
    bool traced = false;
    for (int time = 0; time < TIMES && !PyErr_Occurred(); ++time) {
        BorrowedArguments borrowed;
        if (!write_all(given.data(), Py_ssize_t(given.size()), names, borrowed.given)) continue;
        auto call = find(self, borrowed.given);
        Ref<Operation> made = call ? operation_for(*call, options) : Ref<Operation>();
        for (std::size_t i = 0; made && i < call->order.size(); ++i)
            inputs.push_back(borrowed.given.arrays[call->order[i]]);
        if (made || std::exchange(traced, true) || PyErr_Occurred()) return made;
        nb::list arguments;
        for (PyObject* each : given) arguments.append(nb::handle(each));
        nb::object done = nb::steal(PyObject_CallFunctionObjArgs(trace_pushed, self.python,
                                                                 nb::tuple(arguments).ptr(),
                                                                 names ? names : Py_None, nullptr));
        if (!done.is_valid()) return {};
    }
    return {};
}

// An ndarray that is given by itself becomes an Array.
nb::object imported(PyObject* object) {
    bool foreign = !is_array(object) && !is_handle(object) &&
                   PyObject_HasAttrString(object, "__array_interface__");
    return foreign ? nb::steal(PyObject_CallOneArg(engine_hooks.import, object))
                   : nb::borrow(object);
}

} // namespace

bool is_caller(PyObject* object) { return Py_TYPE(object) == caller_type; }

Ref<Operation> operation_of_call(PyObject* caller, std::span<PyObject* const>& given,
                                 PyObject* names, PyObject* params, PushedCall& call) {
    std::size_t count = given.size() + std::size_t(names ? PyTuple_GET_SIZE(names) : 0);
    std::vector<PyObject*> all;
    for (PyObject* each : std::span(given.data(), count)) {
        call.imported.push_back(imported(each));
        if (!call.imported.back().is_valid()) return {};
        all.push_back(call.imported.back().ptr());
    }
    CallerObject& self = *as_caller(caller);
    Ref<Operation> made = known_operation(self, all, names, call.inputs);
    if (made) return given = call.inputs, made;
    if (PyErr_Occurred()) return {};
    nb::list positional;
    for (PyObject* each : given) positional.append(nb::handle(each));
    nb::object later = nb::steal(PyObject_CallFunctionObjArgs(
        call_later, self.python, nb::tuple(positional).ptr(), params ? params : Py_None, nullptr));
    return later.is_valid() ? operation_of(later.ptr(), params, given) : Ref<Operation>();
}

PyObject* value_to_python(const Operation* operation, Ref<Value> value) {
    if (!operation || !operation->form) return new_array(value_node(std::move(value)));
    nb::list arrays;
    for (const Value* each = value.get(); each; each = each->next.get())
        arrays.append(nb::steal(new_array(value_node(Value::like(*each)))));
    Py_ssize_t next = 0;
    return tree(static_cast<PyObject*>(operation->form), nb::tuple(arrays).ptr(), next);
}

// stand_in(handle) -> what the Array will be to a trace, or the number; None where that is not
// known.
nb::object stand_in(nb::handle handle) {
    bool known = is_handle(handle.ptr());
    const Future* future = known ? reinterpret_cast<HandleObject*>(handle.ptr())->future : nullptr;
    Type* type = future ? future->known_type() : nullptr;
    if (!type) return nb::none();
    if (future->scalar) return nb::borrow(static_cast<PyObject*>(future->object));
    return nb::steal(new_array(placeholder_node(Ref<Type>(type))));
}

void declare_pushed_calls(nb::module_& module) {
    using namespace nb::literals;
    module.def(
        "set_pushed_calls",
        [](nb::object trace, nb::object later) {
            trace_pushed = trace.release().ptr();
            call_later = later.release().ptr();
        },
        "trace"_a, "later"_a);
    module.def("stand_in", stand_in, "handle"_a);
}

} // namespace tenfold::bindings
