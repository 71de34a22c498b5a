// Function objects: public functions whose calls make nodes without Python code when seen before.
// For an elementwise operation a call matches by its arrays and numbers alone. For others it
// matches by Types and equal further arguments, whose parameters are cached. A function with a
// native path, such as `tolist`, makes no node.
#include "memory/cache_registry.h"
#include "python/array_transfer.h"
#include "threads/thread_local.h"

#include <algorithm>
#include <optional>

#include <structmember.h>

namespace tenfold::bindings {
namespace {

constexpr Py_ssize_t MAX_ARGUMENTS = 8, MAX_OPERANDS = 3;
constexpr std::size_t MAX_CACHED_CALLS = 32, MAX_CALL_BYTES = 256; // calls, and the bytes of one

// A bound call: its arguments, and the parameters and inputs derived from them.
struct BoundCall {
    struct Input {
        std::size_t argument;
        Ref<Node> number; // in place of an argument
    };
    std::string call;
    std::vector<Ref<Type>> types; // keep the addresses in `call` from reuse
    Ref<Params> params;
    std::vector<Input> inputs;
};

struct FunctionCache {
    std::array<BoundCall, MAX_CACHED_CALLS> calls;
    std::size_t next = 0;
};

// Caches of all functions, which live as long as the module. Under the GIL.
std::vector<FunctionCache*>& function_caches =
    *new std::vector<FunctionCache*>; // outlives the interpreter

std::size_t num_cached_calls() {
    std::size_t count = 0;
    for (const FunctionCache* cache : function_caches)
        count += std::min(cache->next, MAX_CACHED_CALLS);
    return count;
}

void clear_call_caches() {
    for (FunctionCache* cache : function_caches) *cache = {};
}

Cache& call_cache = register_cache({"calls of operations", "binding arguments takes microseconds",
                                    0, num_cached_calls, clear_call_caches});

struct FunctionObject {
    PyObject_HEAD vectorcallfunc call;
    PyObject *python, *attributes; // owned; `python` is called on a cache miss
    NativePath path; // for a function that makes no node, which has neither op nor cache
    const Op* op;
    FunctionCache* cache;    // owned
    uint8_t num_elementwise; // operands of an operation on elements
    bool no_views;           // whether results on a view may depend on its base
    bool depends_on_options; // whether it depends on options; then it may have no arrays
    bool ranks_only;         // whether it depends on no more of Types than dtypes and ranks
};

FunctionObject* as_function(PyObject* object) { return reinterpret_cast<FunctionObject*>(object); }

using Arguments = std::span<PyObject* const>;

// An operation on elements: its arguments are its operands. Null without an error where Python is
// to look at them.
PyObject* apply_elementwise(const FunctionObject& self, Arguments args) {
    PyObject* first_array = nullptr;
    for (PyObject* arg : args) {
        if (!is_immediate(arg) && !is_plain_ndarray(arg) && !is_numpy_number(arg)) return nullptr;
        if (!first_array && is_array(arg)) first_array = arg;
    }
    if (!first_array) return nullptr;
    std::array<std::optional<Operand>, MAX_OPERANDS> operands;
    std::array<Node*, MAX_OPERANDS> nodes{};
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (!is_immediate(args[i])) // Python may look at it
            for (std::size_t before = 0; before < i; ++before) operands[before]->retain();
        operands[i].emplace(args[i], first_array);
        if (!(nodes[i] = operands[i]->get())) return nullptr;
    }
    return wrap_node(make_node(self.op, {nodes.data(), args.size()}, {}), args[0]);
}

template <class T> void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void write_type(const FunctionObject& self, const Type& type, std::string& bytes) {
    if (!self.ranks_only) {
        bytes.push_back('A');
        return append(bytes, &type);
    }
    bytes.push_back('R');
    append(bytes, type.dtype);
    append(bytes, type.device);
    append(bytes, type.storage);
    append(bytes, type.shape.size());
}

// Writes the key of a call. False if it depends on more than Types and plain values.
bool write_call(const FunctionObject& self, Arguments args, PyObject* names, std::string& bytes) {
    bytes.clear();
    bool any_array = self.depends_on_options;
    OptionKey numbers;
    if (self.depends_on_options && !current_option_key(numbers)) return false;
    if (self.depends_on_options)
        bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers);
    for (PyObject* arg : args) {
        if (!is_array(arg)) {
            if (!append_plain_bytes(bytes, arg)) return false;
            continue;
        }
        if (self.no_views && reinterpret_cast<ArrayObject*>(arg)->base) return false;
        write_type(self, type_of(arg), bytes);
        any_array = true;
    }
    if (names) bytes.push_back('='); // no argument's tag: a tuple of texts may be one
    if (names && !append_plain_bytes(bytes, names)) return false;
    return any_array && bytes.size() <= MAX_CALL_BYTES;
}

// Null without an error where no such call is remembered.
PyObject* apply_cached(const FunctionObject& self, Arguments args, const std::string& call) {
    auto& calls = self.cache->calls;
    for (std::size_t slot = 0; slot < calls.size(); ++slot) {
        if (calls[slot].call != call) continue;
        if (slot > 0) std::swap(calls[slot - 1], calls[slot]); // the usual ones come to stand first
        const BoundCall& bound = calls[slot ? slot - 1 : 0];
        std::array<Node*, MAX_ARGUMENTS> nodes{};
        for (std::size_t i = 0; i < bound.inputs.size(); ++i)
            if (bound.inputs[i].number)
                nodes[i] = bound.inputs[i].number.get();
            else if (!(nodes[i] = node_of(args[bound.inputs[i].argument])))
                return nullptr;
        const bool has_base = !bound.inputs.empty() && !bound.inputs[0].number;
        PyObject* base = has_base ? args[bound.inputs[0].argument] : nullptr;
        return wrap_node(make_node(self.op, {nodes.data(), bound.inputs.size()}, bound.params),
                         base);
    }
    return nullptr;
}

// Remembers a call if its result is a node of the operation whose inputs are all its arrays, and
// numbers that follow from the others.
void cache_call(const FunctionObject& self, Arguments args, const std::string& call,
                PyObject* result) {
    if (!is_array(result)) return;
    Node* node = reinterpret_cast<ArrayObject*>(result)->node;
    if (!node || node->op != self.op || value_of(node)) return;
    BoundCall bound{call, {}, node->params, {}};
    std::size_t arrays = 0;
    for (PyObject* arg : args) arrays += is_array(arg);
    for (const Ref<Node>& input : inputs_of(node)) {
        if (input->is_scalar()) {
            bound.inputs.push_back({0, input});
            continue;
        }
        auto is_this_input = [&](PyObject* arg) {
            return is_array(arg) && reinterpret_cast<ArrayObject*>(arg)->node == input.get();
        };
        auto it = std::find_if(args.begin(), args.end(), is_this_input);
        if (it == args.end() || std::find_if(it + 1, args.end(), is_this_input) != args.end())
            return; // derived from an argument, or passed twice
        bound.inputs.push_back({std::size_t(it - args.begin()), {}});
        bound.types.emplace_back(&type_of(*it));
    }
    if (bound.types.size() != arrays) return;
    FunctionCache& remembered = *self.cache;
    std::swap(remembered.calls[remembered.next++ % MAX_CACHED_CALLS], bound);
}

// Whether Python is to make the call: it says errors anew, and better, but for an interrupt.
bool falls_back_to_python() {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return false;
    PyErr_Clear();
    return true;
}

// A call of a function that makes no node.
PyObject* call_path(PyObject* object, PyObject* const* arguments, size_t flags, PyObject* names) {
    return to_python_error([&]() -> PyObject* {
        const FunctionObject& self = *as_function(object);
        auto positional = std::size_t(PyVectorcall_NARGS(flags));
        std::size_t count = positional + std::size_t(names ? PyTuple_GET_SIZE(names) : 0);
        if (count > 0 && count <= MAX_ARGUMENTS) {
            PyObject* result = self.path({arguments, count}, positional, names);
            if (result || !falls_back_to_python()) return result;
        }
        return PyObject_Vectorcall(self.python, arguments, positional, names);
    });
}

PyObject* call_function(PyObject* object, PyObject* const* arguments, size_t flags,
                        PyObject* names) {
    return to_python_error([&]() -> PyObject* {
        const FunctionObject& self = *as_function(object);
        auto positional = PyVectorcall_NARGS(flags);
        auto count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
        Arguments args{arguments, std::size_t(count)};
        auto call_python = [&] {
            return PyObject_Vectorcall(self.python, arguments, std::size_t(positional), names);
        };
        if (count == 0 || count > MAX_ARGUMENTS) return call_python();
        if (self.num_elementwise) {
            bool usual = !names && count == self.num_elementwise;
            PyObject* result = usual ? apply_elementwise(self, args) : nullptr;
            return result || !falls_back_to_python() ? result : call_python();
        }
        std::string call = std::exchange(ThreadLocal<std::string>::get(), {}); // with its memory
        PyObject* result = nullptr;
        if (!write_call(self, args, names, call)) {
            result = call_python();
        } else if (!(result = apply_cached(self, args, call)) && falls_back_to_python()) {
            result = call_python();
            if (result) cache_call(self, args, call, result);
        }
        ThreadLocal<std::string>::get() = std::move(call);
        return result;
    });
}

PyObject* get_bound(PyObject* self, PyObject* instance, PyObject*) {
    return instance ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* reduce(PyObject* self, PyObject*) {
    return PyObject_GetAttrString(self, "__qualname__"); // pickle looks for it in __module__
}

PyObject* represent(PyObject* self) {
    PyObject* name = PyObject_GetAttrString(self, "__qualname__");
    PyObject* text = name ? PyUnicode_FromFormat("<function %U>", name) : nullptr;
    Py_XDECREF(name);
    return text;
}

int visit(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(as_function(object)->python);
    Py_VISIT(as_function(object)->attributes);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

int clear(PyObject* object) {
    Py_CLEAR(as_function(object)->python);
    Py_CLEAR(as_function(object)->attributes);
    return 0;
}

void deallocate(PyObject* object) {
    PyObject_GC_UnTrack(object);
    clear(object);
    if (FunctionCache* cache = as_function(object)->cache) {
        std::erase(function_caches, cache);
        delete cache;
        call_cache.capacity -= MAX_CACHED_CALLS;
    }
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyTypeObject* function_type = nullptr;

// Null with a Python error. All other fields are 0.
FunctionObject* make_function(PyObject* python, vectorcallfunc call) {
    auto* self = as_function(function_type->tp_alloc(function_type, 0));
    if (!self) return nullptr;
    self->call = call;
    self->python = Py_NewRef(python);
    self->attributes = PyDict_New();
    return self;
}

PyObject* make_op_function(PyObject* python, const Op* op, uint8_t elements,
                           std::string_view bind_depends_on) {
    FunctionObject* self = make_function(python, call_function);
    if (!self) return nullptr;
    self->op = op;
    self->cache = function_caches.emplace_back(new FunctionCache);
    call_cache.capacity += MAX_CACHED_CALLS;
    self->num_elementwise = elements;
    self->no_views = bind_depends_on == "types of wholes";
    self->depends_on_options = bind_depends_on == "options";
    self->ranks_only = bind_depends_on == "ranks";
    return reinterpret_cast<PyObject*>(self);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(FunctionObject, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(FunctionObject, attributes), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(get_bound)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(visit)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, nullptr},
};

} // namespace

void declare_functions(nb::module_& module) {
    using namespace nb::literals;
    PyType_Spec spec{"tenfold.function", sizeof(FunctionObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                         Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     slots};
    function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!function_type) nb::raise_python_error();
    module.def(
        "function",
        [](nb::object python, uint32_t op, uint8_t elements, const char* bind_depends_on) {
            const Op* found = find_op(op);
            if (!found || elements > MAX_OPERANDS) throw nb::value_error("no such operation");
            PyObject* result = make_op_function(python.ptr(), found, elements, bind_depends_on);
            if (!result) nb::raise_python_error();
            return nb::steal(result);
        },
        "python"_a, "op"_a, "elements"_a, "bind_depends_on"_a);
    module.def(
        "function_with_path",
        [](nb::object python, const char* name) {
            NativePath path = export_path(name);
            if (!path && !(path = import_path(name))) throw nb::value_error("no such native path");
            FunctionObject* self = make_function(python.ptr(), call_path);
            if (!self) nb::raise_python_error();
            self->path = path;
            return nb::steal(reinterpret_cast<PyObject*>(self));
        },
        "python"_a, "name"_a);
}

} // namespace tenfold::bindings
