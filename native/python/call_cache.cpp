// Call cache: a call of a traced function that equals an earlier one makes its node without Python
// code. Equal calls have arrays of equal Types, and equal other arguments.
#include <nanobind/stl/vector.h>

#include "ir/intern.h"
#include "memory/cache_registry.h"
#include "python/call_cache.h"
#include "threads/thread_local.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include <structmember.h>

namespace tenfold::bindings {
namespace {

constexpr std::size_t MAX_CACHED_CALLS = 64; // calls of one function
constexpr int DEEPEST = 100;

// Fields of a type: their names, () for a tuple, None for a leaf.
PythonFunction fields_of{"tenfold.transforms.function", "fields_of"};
PyObject* known_fields = nullptr;
constexpr Py_ssize_t MAX_TYPES = 1024;

uint64_t number(const void* object) { return reinterpret_cast<uint64_t>(object); }

// Field names of an object whose parts are arguments too; None for a leaf. Null on a type's first
// request: the next call knows it.
nb::object fields(PyTypeObject* type) {
    auto* key = reinterpret_cast<PyObject*>(type);
    if (PyObject* known = PyDict_GetItemWithError(known_fields, key)) return nb::borrow(known);
    nb::object found =
        nb::steal(PyErr_Occurred() ? nullptr : PyObject_CallOneArg(fields_of.get().ptr(), key));
    if (PyDict_GET_SIZE(known_fields) >= MAX_TYPES) PyDict_Clear(known_fields);
    if (!found.is_valid() || PyDict_SetItem(known_fields, key, found.ptr()) != 0)
        nb::raise_python_error();
    return {};
}

[[maybe_unused]] Cache& fields_registered =
    register_cache({"fields of arguments", "reading a dataclass takes microseconds", MAX_TYPES,
                    [] { return std::size_t(known_fields ? PyDict_GET_SIZE(known_fields) : 0); },
                    [] {
                        if (known_fields) PyDict_Clear(known_fields);
                    }});

// False for an argument that only Python can classify.
bool write(PyObject* object, CallArguments& to, int depth = 0);

bool write_parts(PyObject* object, CallArguments& to, int depth) {
    to.words.push_back(number(Py_TYPE(object)));
    to.identity_objects.push_back(reinterpret_cast<PyObject*>(Py_TYPE(object)));
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
        to.identity_objects.push_back(key);
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
    if (!type || type->storage) return false;
    to.words.push_back(number(type));
    to.nodes.push_back(node);
    to.arrays.push_back(object);
    return true;
}

// A node of a storage kind: its components.
bool write_components(Node* node, CallArguments& to) {
    to.has_components = true;
    to.words.push_back(number(node->type.get()));
    for (Node* component : node->inputs())
        write_array(nullptr, to, component, component->type.get());
    return true;
}

bool write(PyObject* object, CallArguments& to, int depth) {
    if (is_array(object)) {
        Node* node = is_immediate(object) ? node_of(object) : nullptr;
        if (node && node->type->storage) return write_components(node, to);
        return write_array(object, to, node, node ? node->type.get() : nullptr);
    }
    if (is_handle(object)) { // a handle of an Array, perhaps pending, or of a number
        const Future* future = reinterpret_cast<HandleObject*>(object)->future;
        Type* type = future ? future->known_type() : nullptr;
        return type && future->scalar ? write(static_cast<PyObject*>(future->object), to, depth)
                                      : write_array(object, to, nullptr, type);
    }
    if (depth > DEEPEST) return false;
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object))
        return write_parts(object, to, depth + 1);
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object)) return write_number(object, to);
    nb::object names = fields(Py_TYPE(object));
    if (!names.is_valid()) return false;
    if (!names.is_none() && PyTuple_Check(object)) return write_parts(object, to, depth + 1);
    to.words.push_back(number(Py_TYPE(object)));
    to.identity_objects.push_back(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (names.is_none()) {
        to.words.push_back(number(object));
        to.identity_objects.push_back(object);
        return true;
    }
    for (nb::handle name : nb::borrow<nb::tuple>(names)) {
        nb::object part = nb::steal(PyObject_GetAttr(object, name.ptr()));
        if (!part.is_valid()) nb::raise_python_error();
        // it must outlive the call, and does where the object keeps it; a property need not
        if (Py_REFCNT(part.ptr()) < 2 || !write(part.ptr(), to, depth + 1)) return false;
    }
    return true;
}

} // namespace

bool write_call_key(PyObject* const* args, Py_ssize_t count, PyObject* names,
                    CallArguments& call_args) {
    const Options& options = current_options();
    call_args.words.push_back(uint64_t(options.strict) | uint64_t(options.device) << 8);
    call_args.words.push_back(uint64_t(count));
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
        call_args.words.push_back(number(PyTuple_GET_ITEM(names, i)));
        call_args.identity_objects.push_back(PyTuple_GET_ITEM(names, i));
    }
    for (Py_ssize_t i = 0; i < count; ++i)
        if (!write(args[i], call_args)) return false;
    return true;
}

namespace {

std::size_t hash_of_words(std::span<const uint64_t> words) {
    std::size_t hash = words.size();
    for (uint64_t word : words) hash = mix(hash, word);
    return hash;
}

// The calls of all traced functions. Under the GIL.
std::vector<std::vector<std::shared_ptr<CachedCall>>*>& all_calls =
    *new std::vector<std::vector<std::shared_ptr<CachedCall>>*>; // outlives the interpreter

std::size_t num_cached_calls() {
    std::size_t count = 0;
    for (const auto* calls : all_calls) count += calls->size();
    return count;
}

void clear_cached_calls() {
    std::vector<std::shared_ptr<CachedCall>>
        dropped; // their ends may run Python, and free functions
    for (auto* calls : all_calls) {
        std::ranges::move(*calls, std::back_inserter(dropped));
        calls->clear();
    }
}

Cache& traced_calls = register_cache({"calls of traced functions",
                                      "looking up a trace in Python takes 10 microseconds", 0,
                                      num_cached_calls, clear_cached_calls});

} // namespace

PyTypeObject* caller_type = nullptr;

std::shared_ptr<CachedCall> find(const CallerObject& self, const CallArguments& args) {
    auto& calls = *self.calls;
    std::size_t hash = hash_of_words(args.words);
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (calls[i]->hash != hash || calls[i]->words != args.words) continue;
        if (i > 0) std::swap(calls[i], calls[i / 2]); // the usual ones come to stand first
        return calls[i / 2];
    }
    return nullptr;
}

BorrowedArguments::BorrowedArguments()
    : shared_(ThreadLocal<CallArguments>::get()), args(shared_.in_use ? local_ : shared_) {
    args.in_use = true;
    args.clear();
}

namespace {

// An Array of a storage kind: the keys are its constructor and that one's parameters.
PyObject* build_kind(PyObject* keys, PyObject* children, PyObject* arrays, Py_ssize_t& next_array) {
    nb::object id = nb::steal(PyObject_GetAttrString(PyTuple_GET_ITEM(keys, 0), "id"));
    nb::object values = nb::steal(PyTuple_GetSlice(keys, 1, PyTuple_GET_SIZE(keys)));
    if (!id.is_valid() || !values.is_valid()) nb::raise_python_error();
    const Op& constructor = *find_op(nb::cast<uint32_t>(id));
    Ref<Params> params = params_of(constructor, values.ptr());
    if (PyErr_Occurred()) nb::raise_python_error();
    std::vector<Node*> components;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); ++i)
        components.push_back(node_of(PyTuple_GET_ITEM(arrays, next_array++)));
    Ref<Node> node = make_node(&constructor, components, std::move(params));
    if (!node) nb::raise_python_error();
    return new_array(std::move(node));
}

} // namespace

PyObject* build_tree(PyObject* spec, PyObject* arrays, Py_ssize_t& next_array) {
    if (spec == Py_None) return Py_NewRef(PyTuple_GET_ITEM(arrays, next_array++));
    PyObject *type = PyTuple_GET_ITEM(spec, 0), *keys = PyTuple_GET_ITEM(spec, 1),
             *children = PyTuple_GET_ITEM(spec, 2);
    Py_ssize_t count = PyTuple_GET_SIZE(children);
    auto is = [&](PyTypeObject& known) { return type == reinterpret_cast<PyObject*>(&known); };
    if (type == Py_None) return Py_NewRef(Py_None);
    if (is(*array_type)) return build_kind(keys, children, arrays, next_array);
    auto* made_of = reinterpret_cast<PyTypeObject*>(type);
    bool in_row = PyType_IsSubtype(made_of, &PyTuple_Type);
    nb::object result = nb::steal(
        in_row            ? PyTuple_New(count)
        : is(PyList_Type) ? PyList_New(count)
        : is(PyDict_Type) ? PyDict_New()
                          : PyBaseObject_Type.tp_new(made_of, nb::tuple().ptr(), nullptr));
    if (!result.is_valid()) nb::raise_python_error();
    for (Py_ssize_t i = 0; i < count; ++i) {
        nb::object part = nb::steal(build_tree(PyTuple_GET_ITEM(children, i), arrays, next_array));
        int failed = 0;
        if (in_row)
            PyTuple_SET_ITEM(result.ptr(), i, part.release().ptr());
        else if (is(PyList_Type))
            PyList_SET_ITEM(result.ptr(), i, part.release().ptr());
        else if (is(PyDict_Type))
            failed = PyDict_SetItem(result.ptr(), PyTuple_GET_ITEM(keys, i), part.ptr());
        else
            failed = PyObject_GenericSetAttr(result.ptr(), PyTuple_GET_ITEM(keys, i), part.ptr());
        if (failed) nb::raise_python_error();
    }
    if (in_row && !is(PyTuple_Type)) return PyObject_CallObject(type, result.ptr()); // a named one
    return result.release().ptr();
}

namespace {

// Null without an error where something that the function read has changed.
PyObject* made_by(const CachedCall& call, const CallArguments& args) {
    for (const auto& [array, node] : call.read_arrays)
        if (reinterpret_cast<ArrayObject*>(array.ptr())->node != node.get()) return nullptr;
    if (num_active_traces)
        for (const auto& [array, node] : call.read_arrays) trace_read(array.ptr(), node.get());
    std::vector<Node*> inputs;
    inputs.reserve(call.input_order.size() + call.captured.size());
    for (std::size_t at : call.input_order) inputs.push_back(args.nodes[at]);
    for (const CapturedArray& captured_array : call.captured) {
        Node* node = captured_array.original.get();
        if (captured_array.source.is_valid()) {
            if (!is_immediate(captured_array.source.ptr())) return nullptr;
            node = node_of(captured_array.source.ptr());
        }
        if (!node || node->type.get() != captured_array.original->type.get()) return nullptr;
        inputs.push_back(node);
    }
    Ref<Node> node = make_node(call.op, inputs, call.params);
    if (!node) return nullptr;
    bool one = node->inference->results.size() == 1;
    nb::object arrays = nb::steal(wrap_node(std::move(node), nullptr));
    if (call.result_tree.is_none()) return arrays.release().ptr();
    if (!arrays.is_valid()) return nullptr;
    if (one) arrays = nb::make_tuple(arrays);
    Py_ssize_t next = 0;
    return build_tree(call.result_tree.ptr(), arrays.ptr(), next);
}

PyObject* call_caller(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
    return to_python_error([&]() -> PyObject* {
        CallerObject& self = *as_caller(object);
        Py_ssize_t positional = PyVectorcall_NARGS(flags);
        Py_ssize_t count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
        BorrowedArguments borrowed;
        if (write_call_key(arguments, count, names, borrowed.args)) {
            if (auto call = find(self, borrowed.args)) {
                PyObject* result = made_by(*call, borrowed.args);
                if (result || PyErr_Occurred()) return result;
            }
        } else if (PyErr_Occurred()) {
            return nullptr;
        }
        return PyObject_Vectorcall(self.python, arguments, std::size_t(positional), names);
    });
}

// cache_call(caller, args, kwargs, op, params, order, captured, read, form, run). A call with
// such arguments is one of the op from now on. `captured`: (node, source or None) of each; `read`:
// (array, node).
void cache_call(nb::handle caller, nb::tuple args, nb::dict kwargs, uint32_t op, nb::object params,
                std::vector<std::size_t> order, nb::list captured, nb::list read, nb::object form,
                nb::object run) {
    CallerObject& self = *as_caller(caller.ptr());
    nb::tuple names(kwargs.keys());
    std::vector<PyObject*> all_args;
    for (nb::handle item : args) all_args.push_back(item.ptr());
    for (nb::handle name : names) all_args.push_back(PyDict_GetItem(kwargs.ptr(), name.ptr()));
    CallArguments call_args;
    bool any = nb::len(names) > 0;
    if (!write_call_key(all_args.data(), Py_ssize_t(all_args.size()), any ? names.ptr() : nullptr,
                        call_args)) {
        if (PyErr_Occurred()) nb::raise_python_error();
        return;
    }
    auto call = std::make_shared<CachedCall>();
    call->words = call_args.words;
    call->hash = hash_of_words(call_args.words);
    for (PyObject* item : call_args.identity_objects)
        call->owned_objects.push_back(nb::borrow(item));
    for (Node* node : call_args.nodes) call->types.push_back(node->type);
    call->op = find_op(op);
    call->owned_objects.push_back(nb::borrow(static_cast<PyObject*>(call->op->python)));
    if (!(call->params = params_of(*call->op, params.ptr()))) nb::raise_python_error();
    call->input_order = std::move(order);
    for (nb::handle item : captured) {
        nb::object source = nb::borrow(nb::object(item[1]));
        CapturedArray one{nb::cast<NodeHandle&>(item[0]).node, {}};
        if (!source.is_none()) one.source = std::move(source);
        call->captured.push_back(std::move(one));
    }
    for (nb::handle item : read)
        call->read_arrays.emplace_back(nb::borrow(nb::object(item[0])),
                                       nb::cast<NodeHandle&>(item[1]).node);
    call->result_tree = std::move(form);
    call->runner = std::move(run);
    auto& calls = *self.calls;
    std::erase_if(calls, [&](const auto& each) { return each->words == call->words; });
    if (calls.size() >= MAX_CACHED_CALLS) calls.pop_back();
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
        for (const nb::object& item : call->owned_objects) Py_VISIT(item.ptr());
        for (const CapturedArray& captured_array : call->captured)
            Py_VISIT(captured_array.source.ptr());
        for (const auto& [array, node] : call->read_arrays) Py_VISIT(array.ptr());
        Py_VISIT(call->result_tree.ptr());
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
    if (as_caller(object)->weak_references) PyObject_ClearWeakRefs(object);
    clear(object);
    std::erase(all_calls, as_caller(object)->calls);
    delete as_caller(object)->calls;
    traced_calls.capacity -= MAX_CACHED_CALLS;
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
    drain_decrefs();
}

nb::object make_caller(nb::object python) {
    auto* self = as_caller(caller_type->tp_alloc(caller_type, 0));
    if (!self) nb::raise_python_error();
    self->call = call_caller;
    self->calls = all_calls.emplace_back(new std::vector<std::shared_ptr<CachedCall>>);
    traced_calls.capacity += MAX_CACHED_CALLS;
    self->python = python.release().ptr();
    self->attributes = PyDict_New();
    return nb::steal(reinterpret_cast<PyObject*>(self));
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallerObject, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CallerObject, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CallerObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyObject* get_save(PyObject* self, void*) {
    return PyObject_GetAttrString(as_caller(self)->python, "save");
}

PyGetSetDef properties[] = {
    {"save", get_save, nullptr, "Write it to a file.", nullptr},
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

void declare_call_cache(nb::module_& module) {
    using namespace nb::literals;
    PyType_Spec spec{"tenfold.Function", sizeof(CallerObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                         Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     slots};
    caller_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    known_fields = PyDict_New();
    if (!caller_type || !known_fields) nb::raise_python_error();
    module.def("make_caller", make_caller, "python"_a);
    module.def("cache_call", cache_call, "caller"_a, "args"_a, "kwargs"_a, "op"_a, "params"_a,
               "order"_a, "captured"_a, "read"_a, "form"_a.none(), "run"_a);
    declare_pushed_calls(module);
}

} // namespace tenfold::bindings
