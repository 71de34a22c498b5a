// Pushed calls: turn a pushed call of a traced function into an operation with a plan. That needs a
// matching earlier call, or arguments that it can be traced for. The push captures the arrays that
// the plan reads. Otherwise the function is called when its inputs are ready.
#include <algorithm>

#include "python/call_cache.h"
#include "python/numpy_abi.h"

namespace tenfold::bindings {
namespace {

// Called with a function, arguments and names.
PythonFunction trace_pushed{"tenfold.transforms.pushed_functions", "trace_pushed"},
    make_deferred_call{"tenfold.transforms.pushed_functions", "deferred_call"};
// The caller of the traced function of tenfold's operation; None for other operators.
PythonFunction traced_operation{"tenfold.transforms.pushed_functions", "traced_operation"};

constexpr std::size_t MAX_OPERANDS = 16; // operands of a traced operation: plans of more take long

// The present values of a call's captured arrays. False if it must be traced again, or with a
// Python error.
bool capture(const CachedCall& call, std::vector<Ref<Value>>& captured) {
    for (const auto& [array, node] : call.read_arrays)
        if (reinterpret_cast<ArrayObject*>(array.ptr())->node != node.get()) return false;
    for (const CapturedArray& captured_array : call.captured) {
        Ref<Node> node = captured_array.original;
        if (captured_array.source.is_valid()) {
            if (!is_immediate(captured_array.source.ptr())) return false;
            node = Ref<Node>(node_of(captured_array.source.ptr()));
        }
        if (!node || node->type != captured_array.original->type) return false;
        if (!value_of(node.get()) || may_have_external_buffers()) {
            nb::object array = nb::steal(new_array(node));
            array = nb::steal(PyObject_CallOneArg(engine_hooks.import, array.ptr()));
            if (!array.is_valid()) return false;
            node = Ref<Node>(node_of(array.ptr()));
        }
        captured.push_back(value_of(node.get()));
    }
    return true;
}

// The operation of a call under some options; reused while its captured values are the same.
Ref<Operation> operation_for(CachedCall& call, const Ref<OptionSet>& options) {
    std::vector<Ref<Value>> captured;
    if (!capture(call, captured)) return {};
    auto has_options = [&](const Ref<Operation>& each) {
        return each->options->number == options->number;
    };
    auto previous = std::ranges::find_if(call.pushed_operations, has_options);
    if (previous != call.pushed_operations.end() && (*previous)->captured == captured)
        return *previous;
    auto operation = Ref<Operation>::adopt(new Operation);
    operation->kind = Operation::general;
    operation->name = call.op->name;
    operation->op = call.op;
    operation->cost_class = call.op;
    operation->python = Py_NewRef(call.runner.ptr());
    operation->options = options;
    operation->call = call.params;
    if (!call.result_tree.is_none()) operation->result_tree = Py_NewRef(call.result_tree.ptr());
    PyObject* constants = PyTuple_New(Py_ssize_t(captured.size()));
    operation->constants = constants;
    for (std::size_t i = 0; i < captured.size(); ++i)
        PyTuple_SET_ITEM(constants, Py_ssize_t(i), new_array(value_node(captured[i])));
    operation->captured = std::move(captured);
    if (previous != call.pushed_operations.end()) {
        operation->planned_graph = (*previous)->planned_graph;
    } else {
        std::vector<Type*> types;
        for (std::size_t index : call.input_order) types.push_back(call.types[index].get());
        for (const CapturedArray& captured_array : call.captured)
            types.push_back(captured_array.original->type.get());
        operation->planned_graph = plan_call(*operation, types);
    }
    operation->memoized = bool(operation->planned_graph->plan);
    std::erase_if(call.pushed_operations, has_options);
    call.pushed_operations.push_back(operation);
    return operation;
}

// Whether the previous call with a key of this slot had this key.
bool was_seen(std::span<const uint64_t> words) {
    static std::array<std::size_t, 1024> hashes{};
    std::size_t hash = words.size();
    for (uint64_t word : words) hash = mix(hash, word);
    return std::exchange(hashes[hash % hashes.size()], hash) == hash;
}

// Empty without a Python error where only a run can tell, and `if_repeated` for a new key.
Ref<Operation> cached_operation(CallerObject& self, std::span<PyObject* const> args,
                                PyObject* names, std::vector<PyObject*>& inputs,
                                bool if_repeated = false) {
    Ref<OptionSet> options = current_option_set();
    if (!options || !options->usual) return {};
    constexpr int MAX_ATTEMPTS = 4; // a type of trees is known the next time
    bool traced = false;
    for (int attempt = 0; attempt < MAX_ATTEMPTS && !PyErr_Occurred(); ++attempt) {
        BorrowedArguments borrowed;
        if (!write_call_key(args.data(), Py_ssize_t(args.size()), names, borrowed.args)) continue;
        if (borrowed.args.has_components) return {}; // Python runs the function
        auto call = find(self, borrowed.args);
        if (!call && !traced && if_repeated && !was_seen(borrowed.args.words)) return {};
        Ref<Operation> operation = call ? operation_for(*call, options) : Ref<Operation>();
        for (std::size_t i = 0; operation && i < call->input_order.size(); ++i)
            inputs.push_back(borrowed.args.arrays[call->input_order[i]]);
        if (operation || std::exchange(traced, true) || PyErr_Occurred()) return operation;
        nb::list arguments;
        for (PyObject* arg : args) arguments.append(nb::handle(arg));
        nb::object traced_ok = nb::steal(PyObject_CallFunctionObjArgs(
            trace_pushed.get().ptr(), self.python, nb::tuple(arguments).ptr(),
            names ? names : Py_None, nullptr));
        if (!traced_ok.is_valid()) return {};
    }
    return {};
}

PythonFunction bytes_without_run{"tenfold.transforms.pushed_functions", "expected_bytes"};

// An ndarray argument becomes an Array.
nb::object import_array(PyObject* object) {
    bool is_foreign = !is_array(object) && !is_handle(object) &&
                      PyObject_HasAttrString(object, "__array_interface__");
    return is_foreign ? nb::steal(PyObject_CallOneArg(engine_hooks.import, object))
                      : nb::borrow(object);
}

// The items of a list or tuple; none of another object.
std::span<PyObject* const> items_of(PyObject* object) {
    if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return {};
    return {PySequence_Fast_ITEMS(object), std::size_t(PySequence_Fast_GET_SIZE(object))};
}

// So do the ndarrays in a list or tuple.
nb::object import_arrays(PyObject* object) {
    std::span<PyObject* const> items = items_of(object);
    if (items.empty()) return import_array(object);
    if (std::ranges::none_of(items, is_ndarray)) return nb::borrow(object);
    nb::list imported;
    for (PyObject* item : items) {
        nb::object array = import_array(item);
        if (!array.is_valid()) return {};
        imported.append(array);
    }
    return PyTuple_CheckExact(object) ? nb::object(nb::tuple(imported)) : nb::object(imported);
}

// All arguments of a call, imported; `call` owns them. False with a Python error.
bool import_arguments(std::span<PyObject* const> args, PyObject* names, PushedCall& call) {
    std::size_t count = args.size() + std::size_t(names ? PyTuple_GET_SIZE(names) : 0);
    for (PyObject* arg : std::span(args.data(), count)) {
        call.imported.push_back(import_arrays(arg));
        if (!call.imported.back().is_valid()) return call.arguments.clear(), false;
        call.arguments.push_back(call.imported.back().ptr());
    }
    return true;
}

bool is_operand(PyObject* object) {
    return is_handle(object) || is_array(object) || is_ndarray(object);
}

// Whether inputs fit an operation only as arguments of a call: lists of operands, a text before
// them, or many of them. `any`: others do, too. All that are no operands have value semantics.
bool are_call_arguments(std::span<PyObject* const> args, PyObject* names, bool any) {
    std::size_t num_operands = 0;
    std::string constants;
    for (PyObject* arg : args) {
        if (is_operand(arg)) {
            any |= ++num_operands > Future::INLINE_INPUTS;
        } else if (PyList_CheckExact(arg) || PyTuple_CheckExact(arg)) {
            std::span<PyObject* const> items = items_of(arg);
            if (!std::ranges::all_of(items, is_operand)) return false;
            num_operands += items.size();
            any = true;
        } else {
            any |= num_operands == 0 && PyUnicode_CheckExact(arg);
            if (!append_plain_bytes(constants, arg)) return false;
        }
    }
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
        if (!append_plain_bytes(constants, args.data()[args.size() + std::size_t(i)])) return false;
    return any && num_operands > 0 && num_operands <= MAX_OPERANDS;
}

} // namespace

Ref<Operation> make_repeated_call(PyObject* operator_, std::span<PyObject* const>& args,
                                  PyObject* names, bool any, PushedCall& call) {
    call.inputs.clear();
    if (!are_call_arguments(args, names, any)) return {};
    nb::object caller = nb::steal(PyObject_CallOneArg(traced_operation.get().ptr(), operator_));
    if (!caller.is_valid()) nb::raise_python_error();
    if (caller.is_none()) return {};
    Ref<Operation> operation;
    if (!call.arguments.empty() || import_arguments(args, names, call)) {
        CallerObject& self = *as_caller(caller.ptr());
        args = std::span(call.arguments).first(args.size());
        operation = cached_operation(self, call.arguments, names, call.inputs, true);
    }
    PyErr_Clear(); // the push of the operation reports the error
    if (!operation || !operation->memoized) return {};
    args = call.inputs;
    return operation;
}

bool is_caller(PyObject* object) { return Py_TYPE(object) == caller_type; }

Ref<Operation> make_call_operation(PyObject* caller, std::span<PyObject* const>& args,
                                   PyObject* names, PyObject* params, PushedCall& call) {
    if (!import_arguments(args, names, call)) return {};
    CallerObject& self = *as_caller(caller);
    Ref<Operation> operation = cached_operation(self, call.arguments, names, call.inputs);
    if (operation) return args = call.inputs, operation;
    if (PyErr_Occurred()) return {};
    nb::list positional;
    for (PyObject* arg : args) positional.append(nb::handle(arg));
    nb::object deferred = nb::steal(PyObject_CallFunctionObjArgs(
        make_deferred_call.get().ptr(), self.python, nb::tuple(positional).ptr(),
        params ? params : Py_None, nullptr));
    return deferred.is_valid() ? make_operation(deferred.ptr(), params, args) : Ref<Operation>();
}

PyObject* value_to_python(const Operation* operation, Ref<Value> value) {
    if (!operation || !operation->result_tree) return new_array(value_node(std::move(value)));
    nb::list arrays;
    for (const Value* result = value.get(); result; result = result->next.get())
        arrays.append(nb::steal(new_array(value_node(Value::alias_of(*result)))));
    Py_ssize_t next = 0;
    return build_tree(static_cast<PyObject*>(operation->result_tree), nb::tuple(arrays).ptr(),
                      next);
}

std::size_t expected_bytes(Engine& engine, const Operation& operation,
                           std::span<PyObject* const> args, std::span<Future* const> inputs) {
    std::size_t bytes = engine.expected_bytes(operation, inputs);
    if (bytes || !operation.is_builtin() || !operation.pure || operation.planned_graph)
        return bytes;
    nb::list arguments;
    for (std::size_t i = 0; i < args.size(); ++i) {
        Type* type = inputs[i]->scalar ? nullptr : inputs[i]->known_type();
        arguments.append(type ? nb::steal(new_array(placeholder_node(Ref<Type>(type))))
                              : nb::borrow(args[i]));
    }
    if (operation.constants)
        arguments.extend(nb::handle(static_cast<PyObject*>(operation.constants)));
    nb::object params = operation.params ? nb::borrow(static_cast<PyObject*>(operation.params))
                                         : nb::object(nb::dict());
    return nb::cast<std::size_t>(bytes_without_run.get()(
        nb::handle(static_cast<PyObject*>(operation.python)), arguments, params));
}

// traced_placeholder(handle) -> a placeholder Array for a trace, or the number; None if it is not
// known.
nb::object stand_in(nb::handle handle) {
    bool is_known_handle = is_handle(handle.ptr());
    const Future* future =
        is_known_handle ? reinterpret_cast<HandleObject*>(handle.ptr())->future : nullptr;
    Type* type = future ? future->known_type() : nullptr;
    if (!type) return nb::none();
    if (future->scalar) return nb::borrow(static_cast<PyObject*>(future->object));
    return nb::steal(new_array(placeholder_node(Ref<Type>(type))));
}

void declare_pushed_calls(nb::module_& module) {
    using namespace nb::literals;
    module.def("traced_placeholder", stand_in, "handle"_a);
}

} // namespace tenfold::bindings
