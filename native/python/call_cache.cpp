// Call cache: a call of a traced function that equals an earlier one makes its node without Python
// code. Equal calls have arrays of equal Types, and equal other arguments.
#include <nanobind/stl/vector.h>

#include "ir/intern.h"
#include "python/call_cache.h"
#include "threads/thread_local.h"

#include <algorithm>
#include <memory>

#include <structmember.h>

namespace tenfold::bindings {
namespace {

constexpr std::size_t REMEMBERED = 64; // calls of one function
constexpr int DEEPEST = 100;           // of trees of arguments

PyObject* fields_of = nullptr; // of a type: names of fields, () for a tuple, None for a leaf
PyObject* known_fields = nullptr;

uint64_t number(const void* object) { return reinterpret_cast<uint64_t>(object); }

// Names of the fields of an object whose parts are arguments too, None for a leaf; null for a type
// on its first request: the next call knows it.
PyObject* fields(PyTypeObject* type) {
    auto* key = reinterpret_cast<PyObject*>(type);
    if (PyObject* known = PyDict_GetItemWithError(known_fields, key)) return known;
    nb::object found = nb::steal(PyErr_Occurred() ? nullptr : PyObject_CallOneArg(fields_of, key));
    if (!found.is_valid() || PyDict_SetItem(known_fields, key, found.ptr()) != 0)
        nb::raise_python_error();
    return nullptr;
}

// False where only Python can tell what an argument is.
bool write(PyObject* object, CallArguments& to, int depth = 0);

bool write_parts(PyObject* object, CallArguments& to, int depth) {
    to.words.push_back(number(Py_TYPE(object)));
    to.others.push_back(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (PyTuple_Check(object) || PyList_Check(object)) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
        to.words.push_back(uint64_t(count));
        for (Py_ssize_t i = 0; i < count; ++i)
            if (!write(PySequence_Fast_ITEMS(object)[i], to, depth)) return false;
        return true;
    }
    PyObject *key, *item;
    to.words.push_back(uint64_t(PyDict_GET_SIZE(object)));
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);) {
        to.words.push_back(number(key));
        to.others.push_back(key);
        if (!write(item, to, depth)) return false;
    }
    return true;
}

bool write_number(PyObject* object, CallArguments& to) {
    to.words.push_back(number(Py_TYPE(object)));
    if (PyFloat_CheckExact(object)) {
        to.words.push_back(std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(object)));
        return true;
    }
    int overflow = 0;
    to.words.push_back(uint64_t(PyLong_AsLongLongAndOverflow(object, &overflow)));
    return !overflow;
}

bool write_array(PyObject* object, CallArguments& to, Node* node, const Type* type) {
    if (!type) return false;
    to.words.push_back(number(type));
    to.nodes.push_back(node);
    to.arrays.push_back(object);
    return true;
}

bool write(PyObject* object, CallArguments& to, int depth) {
    if (is_array(object)) {
        Node* node = is_immediate(object) ? node_of(object) : nullptr;
        return write_array(object, to, node, node ? node->type.get() : nullptr);
    }
    if (is_handle(object)) { // of what will be an Array, or is a number
        const Future* future = reinterpret_cast<HandleObject*>(object)->future;
        Type* type = future ? future->known_type() : nullptr;
        return type && future->scalar ? write(static_cast<PyObject*>(future->object), to, depth)
                                      : write_array(object, to, nullptr, type);
    }
    if (depth > DEEPEST) return false;
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object))
        return write_parts(object, to, depth + 1);
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object)) return write_number(object, to);
    PyObject* names = fields(Py_TYPE(object));
    if (!names) return false;
    if (names != Py_None && PyTuple_Check(object)) return write_parts(object, to, depth + 1);
    to.words.push_back(number(Py_TYPE(object)));
    to.others.push_back(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (names == Py_None) { // by its identity
        to.words.push_back(number(object));
        to.others.push_back(object);
        return true;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
        nb::object part = nb::steal(PyObject_GetAttr(object, PyTuple_GET_ITEM(names, i)));
        if (!part.is_valid()) nb::raise_python_error();
        // it must outlive the call, and does where the object keeps it; a property need not
        if (Py_REFCNT(part.ptr()) < 2 || !write(part.ptr(), to, depth + 1)) return false;
    }
    return true;
}

} // namespace

bool write_all(PyObject* const* given, Py_ssize_t count, PyObject* names, CallArguments& to) {
    const Options& options = current_options();
    to.words.push_back(uint64_t(options.strict) | uint64_t(options.device) << 8);
    to.words.push_back(uint64_t(count));
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
        to.words.push_back(number(PyTuple_GET_ITEM(names, i)));
        to.others.push_back(PyTuple_GET_ITEM(names, i));
    }
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!write(given[i], to)) return false;
    return true;
}

namespace {

std::size_t hash_of_words(std::span<const uint64_t> words) {
    std::size_t hash = words.size();
    for (uint64_t word : words) hash = mix(hash, word);
    return hash;
}

} // namespace

PyTypeObject* caller_type = nullptr;

std::shared_ptr<Call> find(const CallerObject& self, const CallArguments& given) {
    auto& calls = *self.calls;
    std::size_t hash = hash_of_words(given.words);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (calls[i]->hash != hash || calls[i]->words != given.words) continue;
        if (i > 0) std::swap(calls[i], calls[i / 2]); // the usual ones come to stand first
        return calls[i / 2];
    }
    return nullptr;
}

BorrowedArguments::BorrowedArguments()
    : shared_(ThreadLocal<CallArguments>::get()), given(shared_.in_use ? own_ : shared_) {
    given.in_use = true;
    given.clear();
}

PyObject* tree(PyObject* form, PyObject* arrays, Py_ssize_t& next) {
    if (form == Py_None) return Py_NewRef(PyTuple_GET_ITEM(arrays, next++));
    PyObject *type = PyTuple_GET_ITEM(form, 0), *keys = PyTuple_GET_ITEM(form, 1),
             *children = PyTuple_GET_ITEM(form, 2);
    Py_ssize_t count = PyTuple_GET_SIZE(children);
    auto is = [&](PyTypeObject& known) { return type == reinterpret_cast<PyObject*>(&known); };
    if (type == Py_None) return Py_NewRef(Py_None);
    auto* made_of = reinterpret_cast<PyTypeObject*>(type);
    bool in_row = PyType_IsSubtype(made_of, &PyTuple_Type);
    nb::object made = nb::steal(
        in_row            ? PyTuple_New(count)
        : is(PyList_Type) ? PyList_New(count)
        : is(PyDict_Type) ? PyDict_New()
                          : PyBaseObject_Type.tp_new(made_of, nb::tuple().ptr(), nullptr));
    if (!made.is_valid()) nb::raise_python_error();
    for (Py_ssize_t i = 0; i < count; ++i) {
        nb::object part = nb::steal(tree(PyTuple_GET_ITEM(children, i), arrays, next));
        int failed = 0;
        if (in_row)
            PyTuple_SET_ITEM(made.ptr(), i, part.release().ptr());
        else if (is(PyList_Type))
            PyList_SET_ITEM(made.ptr(), i, part.release().ptr());
        else if (is(PyDict_Type))
            failed = PyDict_SetItem(made.ptr(), PyTuple_GET_ITEM(keys, i), part.ptr());
        else
            failed = PyObject_GenericSetAttr(made.ptr(), PyTuple_GET_ITEM(keys, i), part.ptr());
        if (failed) nb::raise_python_error();
    }
    if (in_row && !is(PyTuple_Type)) return PyObject_CallObject(type, made.ptr()); // a named one
    return made.release().ptr();
}

namespace {

// Null without an error where something that the function read has changed.
PyObject* made_by(const Call& call, const CallArguments& given) {
    for (const auto& [array, node] : call.read)
        if (reinterpret_cast<ArrayObject*>(array.ptr())->node != node.get()) return nullptr;
    if (watches)
        for (const auto& [array, node] : call.read) note_look(array.ptr(), node.get());
    std::vector<Node*> inputs;
    inputs.reserve(call.order.size() + call.captured.size());
    for (std::size_t at : call.order) inputs.push_back(given.nodes[at]);
    for (const Captured& each : call.captured) {
        Node* node = each.node.get();
        if (each.source.is_valid()) {
            if (!is_immediate(each.source.ptr())) return nullptr;
            node = node_of(each.source.ptr());
        }
        if (!node || node->type.get() != each.node->type.get()) return nullptr;
        inputs.push_back(node);
    }
    Ref<Node> node = make_node(call.op, inputs, call.params);
    if (!node) return nullptr;
    bool one = node->inference->results.size() == 1;
    nb::object arrays = nb::steal(finish(std::move(node), nullptr));
    if (call.form.is_none()) return arrays.release().ptr();
    if (!arrays.is_valid()) return nullptr;
    if (one) arrays = nb::make_tuple(arrays);
    Py_ssize_t next = 0;
    return tree(call.form.ptr(), arrays.ptr(), next);
}

PyObject* call_caller(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
    return guarded([&]() -> PyObject* {
        CallerObject& self = *as_caller(object);
        Py_ssize_t positional = PyVectorcall_NARGS(flags);
        Py_ssize_t count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
        BorrowedArguments borrowed;
        if (write_all(arguments, count, names, borrowed.given)) {
            if (auto call = find(self, borrowed.given)) {
                PyObject* made = made_by(*call, borrowed.given);
                if (made || PyErr_Occurred()) return made;
            }
        } else if (PyErr_Occurred()) {
            return nullptr;
        }
        return PyObject_Vectorcall(self.python, arguments, std::size_t(positional), names);
    });
}

// remember(args, kwargs, op, params, order, captured, read, form, run): a call with such arguments
// is one of the op from now on. `captured`: (node, source or None) of each; `read`: (array, node).
void remember(nb::handle caller, nb::tuple args, nb::dict kwargs, uint32_t op, nb::object params,
              std::vector<std::size_t> order, nb::list captured, nb::list read, nb::object form,
              nb::object run) {
    CallerObject& self = *as_caller(caller.ptr());
    nb::tuple names(kwargs.keys());
    std::vector<PyObject*> given;
    for (nb::handle each : args) given.push_back(each.ptr());
    for (nb::handle name : names) given.push_back(PyDict_GetItem(kwargs.ptr(), name.ptr()));
    CallArguments found;
    bool any = nb::len(names) > 0;
    if (!write_all(given.data(), Py_ssize_t(given.size()), any ? names.ptr() : nullptr, found)) {
        if (PyErr_Occurred()) nb::raise_python_error();
        return;
    }
    auto call = std::make_shared<Call>();
    call->words = found.words;
    call->hash = hash_of_words(found.words);
    for (PyObject* each : found.others) call->kept.push_back(nb::borrow(each));
    for (Node* node : found.nodes) call->types.push_back(node->type);
    call->op = find_op(op);
    call->kept.push_back(nb::borrow(static_cast<PyObject*>(call->op->python)));
    if (!(call->params = params_of(params.ptr()))) nb::raise_python_error();
    call->order = std::move(order);
    for (nb::handle each : captured) {
        nb::object source = nb::borrow(nb::object(each[1]));
        Captured one{nb::cast<NodeHandle&>(each[0]).node, {}};
        if (!source.is_none()) one.source = std::move(source);
        call->captured.push_back(std::move(one));
    }
    for (nb::handle each : read)
        call->read.emplace_back(nb::borrow(nb::object(each[0])),
                                nb::cast<NodeHandle&>(each[1]).node);
    call->form = std::move(form);
    call->run = std::move(run);
    auto& calls = *self.calls;
    std::erase_if(calls, [&](const auto& each) { return each->words == call->words; });
    if (calls.size() >= REMEMBERED) calls.pop_back();
    calls.insert(calls.begin(), std::move(call));
}

PyObject* get_bound(PyObject* self, PyObject* instance, PyObject*) {
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* represent(PyObject* self) {
    nb::object name = nb::steal(PyObject_GetAttrString(self, "__qualname__"));
    return name.is_valid() ? PyUnicode_FromFormat("<tn.function %U>", name.ptr()) : nullptr;
}

int visit(PyObject* object, visitproc visit, void* arg) {
    CallerObject& self = *as_caller(object);
    Py_VISIT(self.python);
    Py_VISIT(self.attributes);
    Py_VISIT(Py_TYPE(object));
    for (const auto& call : *self.calls) {
        for (const nb::object& each : call->kept) Py_VISIT(each.ptr());
        for (const Captured& each : call->captured) Py_VISIT(each.source.ptr());
        for (const auto& [array, node] : call->read) Py_VISIT(array.ptr());
        Py_VISIT(call->form.ptr());
    }
    return 0;
}

int clear(PyObject* object) {
    CallerObject& self = *as_caller(object);
    Py_CLEAR(self.python);
    Py_CLEAR(self.attributes);
    std::exchange(*self.calls, {});
    return 0;
}

void deallocate(PyObject* object) {
    PyObject_GC_UnTrack(object);
    clear(object);
    delete as_caller(object)->calls;
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

nb::object make_caller(nb::object python) {
    auto* self = as_caller(caller_type->tp_alloc(caller_type, 0));
    if (!self) nb::raise_python_error();
    self->call = call_caller;
    self->calls = new std::vector<std::shared_ptr<Call>>;
    self->python = python.release().ptr();
    self->attributes = PyDict_New();
    return nb::steal(reinterpret_cast<PyObject*>(self));
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallerObject, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CallerObject, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(get_bound)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(visit)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {0, nullptr},
};

} // namespace

void declare_calls(nb::module_& module) {
    using namespace nb::literals;
    PyType_Spec spec{"tenfold.Function", sizeof(CallerObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                         Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     slots};
    caller_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    known_fields = PyDict_New();
    if (!caller_type || !known_fields) nb::raise_python_error();
    module.def("caller", make_caller, "python"_a);
    module.def("remember_call", remember, "caller"_a, "args"_a, "kwargs"_a, "op"_a, "params"_a,
               "order"_a, "captured"_a, "read"_a, "form"_a.none(), "run"_a);
    module.def(
        "set_fields", [](nb::object function) { fields_of = function.release().ptr(); },
        "function"_a);
    declare_pushed_calls(module);
}

} // namespace tenfold::bindings
