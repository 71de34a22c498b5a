// Function objects: public functions whose calls make nodes without Python code when seen before.
// For an elementwise operation a call matches by its arrays and numbers alone. For others it
// matches by Types and equal further arguments, whose parameters are cached.
#include "memory/cache_registry.h"
#include "python/python_objects.h"
#include "threads/thread_local.h"

#include <algorithm>
#include <optional>

#include <structmember.h>

namespace tenfold::bindings {
namespace {

constexpr Py_ssize_t MOST_ARGUMENTS = 8, MOST_OPERANDS = 3;
constexpr std::size_t REMEMBERED = 32, LONGEST = 256; // calls, and the bytes of one

// A call whose arguments have been bound: what they were, and what came of them.
struct Bound {
    std::string call;
    std::vector<Ref<Type>> types; // keeps the addresses in `call` from being taken over
    Ref<Params> params;
    std::vector<uint8_t> inputs; // which arguments
};

struct Remembered {
    std::array<Bound, REMEMBERED> calls;
    std::size_t next = 0;
};

// Of all functions, which live as long as the module. Under the GIL.
std::vector<Remembered*>& of_functions = *new std::vector<Remembered*>; // outlives the interpreter

std::size_t remembered_calls() {
    std::size_t count = 0;
    for (const Remembered* each : of_functions) count += std::min(each->next, REMEMBERED);
    return count;
}

void forget_calls() {
    for (Remembered* each : of_functions) *each = {};
}

Cache& calls = join({"calls of functions", 0, remembered_calls, forget_calls});

struct FunctionObject {
    PyObject_HEAD vectorcallfunc call;
    PyObject *python, *attributes; // owned; what is called where nothing is remembered
    const Op* op;
    Remembered* remembered; // owned
    uint8_t elements;       // of an operation on elements: how many it takes
    bool no_views;          // whether what comes of a view may depend on its base
    bool options;           // whether it depends on options; then it may have no arrays
    bool ranks;             // whether it depends on no more of Types than dtypes and ranks
};

FunctionObject* as_function(PyObject* object) { return reinterpret_cast<FunctionObject*>(object); }

using Arguments = std::span<PyObject* const>;

// An operation on elements: its arguments are its operands. Null without an error where Python is
// to look at them.
PyObject* applied(const FunctionObject& self, Arguments given) {
    bool any_array = false;
    for (PyObject* each : given) {
        if (!is_immediate(each)) return nullptr;
        any_array |= is_array(each);
    }
    if (!any_array) return nullptr;
    std::array<std::optional<Operand>, MOST_OPERANDS> operands;
    std::array<Node*, MOST_OPERANDS> nodes{};
    for (std::size_t i = 0; i < given.size(); ++i) {
        operands[i].emplace(given[i], given[0]);
        if (!(nodes[i] = operands[i]->get())) return nullptr;
    }
    return finish(make_node(self.op, {nodes.data(), given.size()}, {}), given[0]);
}

template <class T> void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void write_type(const FunctionObject& self, const Type& type, std::string& bytes) {
    if (!self.ranks) {
        bytes.push_back('A');
        return append(bytes, &type);
    }
    bytes.push_back('R');
    append(bytes, type.dtype);
    append(bytes, type.device);
    append(bytes, type.storage);
    append(bytes, type.shape.size());
}

// Writes what a call depends on: false where that is more than Types and plain values.
bool write_call(const FunctionObject& self, Arguments given, PyObject* names, std::string& bytes) {
    bytes.clear();
    bool any_array = self.options;
    Numbers numbers{};
    if (self.options && !numbers_in_force(numbers)) return false;
    if (self.options) bytes.append(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
    for (PyObject* each : given) {
        if (!is_array(each)) {
            if (!plain_bytes(bytes, each)) return false;
            continue;
        }
        if (self.no_views && reinterpret_cast<ArrayObject*>(each)->base) return false;
        write_type(self, type_of(each), bytes);
        any_array = true;
    }
    if (names) bytes.push_back('='); // no argument's tag: a tuple of texts may be one
    if (names && !plain_bytes(bytes, names)) return false;
    return any_array && bytes.size() <= LONGEST;
}

// Null without an error where no such call is remembered.
PyObject* recalled(const FunctionObject& self, Arguments given, const std::string& call) {
    auto& calls = self.remembered->calls;
    for (std::size_t place = 0; place < calls.size(); ++place) {
        if (calls[place].call != call) continue;
        if (place > 0)
            std::swap(calls[place - 1], calls[place]); // the usual ones come to stand first
        const Bound& bound = calls[place ? place - 1 : 0];
        std::array<Node*, MOST_ARGUMENTS> nodes{};
        for (std::size_t i = 0; i < bound.inputs.size(); ++i)
            if (!(nodes[i] = node_of(given[bound.inputs[i]]))) return nullptr;
        PyObject* base = bound.inputs.empty() ? nullptr : given[bound.inputs[0]];
        return finish(make_node(self.op, {nodes.data(), bound.inputs.size()}, bound.params), base);
    }
    return nullptr;
}

// Remembers a call if its result is a node of the operation whose inputs are all its arrays.
void remember(const FunctionObject& self, Arguments given, const std::string& call,
              PyObject* result) {
    if (!is_array(result)) return;
    Node* node = reinterpret_cast<ArrayObject*>(result)->node;
    if (!node || node->op != self.op || value_of(node)) return;
    Bound bound{call, {}, node->params, {}};
    std::size_t arrays = 0;
    for (PyObject* each : given) arrays += is_array(each);
    for (const Ref<Node>& input : inputs_of(node)) {
        auto is_it = [&](PyObject* each) {
            return is_array(each) && reinterpret_cast<ArrayObject*>(each)->node == input.get();
        };
        auto found = std::find_if(given.begin(), given.end(), is_it);
        if (found == given.end() || std::find_if(found + 1, given.end(), is_it) != given.end())
            return; // made of an argument; or of one that was given twice
        bound.inputs.push_back(uint8_t(found - given.begin()));
        bound.types.emplace_back(&type_of(*found));
    }
    if (bound.inputs.size() != arrays) return;
    Remembered& remembered = *self.remembered;
    std::swap(remembered.calls[remembered.next++ % REMEMBERED], bound);
}

// Whether Python is to make the call: it says errors anew, and better, but for an interrupt.
bool to_python() {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return false;
    PyErr_Clear();
    return true;
}

PyObject* call_function(PyObject* object, PyObject* const* arguments, size_t flags,
                        PyObject* names) {
    return guarded([&]() -> PyObject* {
        const FunctionObject& self = *as_function(object);
        auto positional = PyVectorcall_NARGS(flags);
        auto count = positional + (names ? PyTuple_GET_SIZE(names) : 0);
        Arguments given{arguments, std::size_t(count)};
        auto python = [&] {
            return PyObject_Vectorcall(self.python, arguments, std::size_t(positional), names);
        };
        if (count == 0 || count > MOST_ARGUMENTS) return python();
        if (self.elements) {
            bool usual = !names && count == self.elements;
            PyObject* made = usual ? applied(self, given) : nullptr;
            return made || !to_python() ? made : python();
        }
        std::string call = std::exchange(ThreadLocal<std::string>::get(), {}); // with its memory
        PyObject* made = nullptr;
        if (!write_call(self, given, names, call)) {
            made = python();
        } else if (!(made = recalled(self, given, call)) && to_python()) {
            made = python();
            if (made) remember(self, given, call, made);
        }
        ThreadLocal<std::string>::get() = std::move(call);
        return made;
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
    std::erase(of_functions, as_function(object)->remembered);
    delete as_function(object)->remembered;
    calls.capacity -= REMEMBERED;
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyTypeObject* function_type = nullptr;

PyObject* make_function(PyObject* python, const Op* op, uint8_t elements,
                        std::string_view bind_depends_on) {
    auto* self = as_function(function_type->tp_alloc(function_type, 0));
    if (!self) return nullptr;
    self->call = call_function;
    self->python = Py_NewRef(python);
    self->attributes = PyDict_New();
    self->op = op;
    self->remembered = of_functions.emplace_back(new Remembered);
    calls.capacity += REMEMBERED;
    self->elements = elements;
    self->no_views = bind_depends_on == "types of wholes";
    self->options = bind_depends_on == "options";
    self->ranks = bind_depends_on == "ranks";
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
            if (!found || elements > MOST_OPERANDS) throw nb::value_error("no such operation");
            PyObject* made = make_function(python.ptr(), found, elements, bind_depends_on);
            if (!made) nb::raise_python_error();
            return nb::steal(made);
        },
        "python"_a, "op"_a, "elements"_a, "bind_depends_on"_a);
}

} // namespace tenfold::bindings
