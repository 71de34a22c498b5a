// Array operators: Python's operators on Arrays make nodes, without Python code when already
// inferred.
#include "python/array_transfer.h"

#include <cstring>
#include <optional>

namespace tenfold::bindings {
namespace {

// One entry per operator symbol; Python says which Op answers for it.
struct Symbol {
    const char* text;
    const Op* op;
};

enum OperatorIndex {
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    FLOOR_DIVIDE,
    REMAINDER,
    POWER,
    MATRIX_MULTIPLY,
    AND,
    OR,
    XOR,
    LEFT,
    RIGHT,
    NEGATE,
    PLUS,
    ABSOLUTE,
    INVERT,
    LESS,
    LESS_EQUAL,
    EQUAL,
    NOT_EQUAL,
    GREATER,
    GREATER_EQUAL,
    POSITIONS
};

Symbol symbols[POSITIONS] = {
    {"+", nullptr},   {"-", nullptr},  {"*", nullptr},  {"/", nullptr},   {"//", nullptr},
    {"%", nullptr},   {"**", nullptr}, {"@", nullptr},  {"&", nullptr},   {"|", nullptr},
    {"^", nullptr},   {"<<", nullptr}, {">>", nullptr}, {"neg", nullptr}, {"pos", nullptr},
    {"abs", nullptr}, {"~", nullptr},  {"<", nullptr},  {"<=", nullptr},  {"==", nullptr},
    {"!=", nullptr},  {">", nullptr},  {">=", nullptr},
};

// No limit is below it, so most nodes need not look the option up.
constexpr uint32_t SHALLOW_DEPTH = 64;

// Past the limit the graph below is computed, so that a loop that never reads values keeps a flat
// graph. A later read of the value raises a failure. The depth then restarts, so that not every
// step tries it again.
bool limit_depth(PyObject* array, Ref<Node> node) {
    if (node->depth.load(std::memory_order_relaxed) <= current_options().pending_depth) return true;
    PyObject* result = PyObject_CallFunctionObjArgs(hooks.evaluate, array, nullptr);
    Py_XDECREF(result);
    if (!result) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return false; // an interrupt goes up at once
        PyErr_Clear();
        node->depth.store(0, std::memory_order_relaxed);
    }
    return true;
}

} // namespace

PyObject* wrap_node(Ref<Node> node, PyObject* base) {
    if (!node) return nullptr;
    if (base && is_array(base) && type_of(base).storage) base = nullptr; // it has no views
    bool is_deep = node->depth.load(std::memory_order_relaxed) > SHALLOW_DEPTH;
    bool is_simple = !is_deep && node->op && !node->op->view && !node->op->shows_part &&
                     node->inference->results.size() == 1;
    if (is_simple) return new_array(std::move(node));
    Ref<Node> owned =
        is_deep ? node : Ref<Node>(); // two locked instructions that most nodes can do without
    PyObject* array = wrap_results(std::move(node), base);
    if (array && is_deep && is_array(array) && !limit_depth(array, std::move(owned)))
        Py_CLEAR(array);
    return array;
}

namespace {

// Python's sequences become arrays beside an Array with axes. Beside one without axes they are
// refused by name: left to themselves they would repeat, or compare as False.
bool is_sequence(PyObject* object) {
    return PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

// An operand of another library, which may know NumPy's arrays alone: neither array nor number.
PyObject* foreign_binary(OperatorIndex position, PyObject* left, PyObject* right) {
    static PythonFunction apply{"tenfold.interop.foreign_operands", "apply_operator"};
    return PyObject_CallFunction(apply.get().ptr(), "sOO", symbols[position].text, left, right);
}

PyObject* binary(OperatorIndex position, PyObject* left, PyObject* right) {
    return to_python_error([&]() -> PyObject* {
        if (symbols[position].op && (is_sequence(left) || is_sequence(right))) {
            if (!type_of(is_array(left) ? left : right).shape.empty())
                return foreign_binary(position, left, right);
            return PyObject_CallFunction(hooks.refuse_operand, "s(OO)",
                                         symbols[position].op->name.c_str(), left, right);
        }
        Operand a(left, right);
        if (!a.get() && PyErr_Occurred()) return nullptr;
        if (!a.get()) return foreign_binary(position, left, right);
        if (!is_immediate(right)) a.retain();
        Operand b(right, left);
        if (!b.get() && PyErr_Occurred()) return nullptr;
        if (!b.get()) return foreign_binary(position, left, right);
        Node* inputs[] = {a.get(), b.get()};
        return wrap_node(make_node(symbols[position].op, inputs, {}), nullptr);
    });
}

PyObject* unary(OperatorIndex position, PyObject* self) {
    return to_python_error([&]() -> PyObject* {
        Node* input = node_of(self);
        if (!input) return nullptr;
        return wrap_node(make_node(symbols[position].op, {&input, 1}, {}), nullptr);
    });
}

// `x op= e`: rebinds a whole Array, not one on external memory, when the result has its Type. The
// `assign` hook does everything else.
PyObject* in_place(OperatorIndex position, PyObject* self, PyObject* other) {
    return to_python_error([&]() -> PyObject* {
        auto* array = reinterpret_cast<ArrayObject*>(self);
        PyObject* result = binary(position, self, other);
        if (!result || result == Py_NotImplemented) return result;
        if (is_array(result) && update_view(array, result)) {
            Py_DECREF(result);
        } else if (PyErr_Occurred()) {
            Py_DECREF(result);
            return nullptr;
        } else if (array->base || array->external || !is_array(result) ||
                   &type_of(result) != &type_of(self)) {
            PyObject* done =
                PyObject_CallFunction(hooks.assign, "OOs", self, result, symbols[position].text);
            Py_DECREF(result);
            Py_XDECREF(done);
            if (!done) return nullptr;
        } else {
            rebind(array, Ref<Node>(node_of(result)));
            Py_DECREF(result);
        }
        return Py_NewRef(self);
    });
}

template <OperatorIndex P> PyObject* binary_slot(PyObject* left, PyObject* right) {
    return binary(P, left, right);
}
template <OperatorIndex P> PyObject* unary_slot(PyObject* self) { return unary(P, self); }
template <OperatorIndex P> PyObject* in_place_slot(PyObject* self, PyObject* other) {
    return in_place(P, self, other);
}

PyObject* power_slot(PyObject* left, PyObject* right, PyObject* modulus) {
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return binary(POWER, left, right);
}
PyObject* in_place_power_slot(PyObject* self, PyObject* other, PyObject*) {
    return in_place(POWER, self, other);
}

PyObject* divide_with_remainder(PyObject* left, PyObject* right) {
    PyObject* quotient = binary(FLOOR_DIVIDE, left, right);
    if (!quotient || quotient == Py_NotImplemented) return quotient;
    PyObject* remainder = binary(REMAINDER, left, right);
    if (!remainder) {
        Py_DECREF(quotient);
        return nullptr;
    }
    return Py_BuildValue("(NN)", quotient, remainder);
}

// Equality answers for every object, each element by itself, as in NumPy.
PyObject* compare(PyObject* self, PyObject* other, int operation) {
    static constexpr OperatorIndex positions[] = {LESS,      LESS_EQUAL, EQUAL,
                                                  NOT_EQUAL, GREATER,    GREATER_EQUAL};
    static PythonFunction compare_object{"tenfold.array.array", "compare_object"};
    const bool is_equality = operation == Py_EQ || operation == Py_NE;
    const bool is_text = PyUnicode_Check(other) || PyBytes_Check(other); // NumPy's scalars, too
    if (!is_equality || !is_text) {
        PyObject* result = binary(positions[operation], self, other);
        if (result != Py_NotImplemented || !is_equality) return result;
        Py_DECREF(result);
    }
    PyObject* differs = operation == Py_NE ? Py_True : Py_False;
    return to_python_error([&] {
        return PyObject_CallFunctionObjArgs(compare_object.get().ptr(), self, other, differs,
                                            nullptr);
    });
}

constexpr char INTEGER[] = "int", FLOAT[] = "float", INDEX[] = "index", BOOL[] = "bool";

template <const char* Form> PyObject* to_python(PyObject* self) {
    return PyObject_CallFunction(hooks.scalar_of, "Os", self, Form);
}

PyObject* to_float(PyObject* self) {
    return to_python_error([&] {
        std::optional<double> number = real_number_of(self);
        if (number || PyErr_Occurred()) return number ? PyFloat_FromDouble(*number) : nullptr;
        return to_python<FLOAT>(self);
    });
}

PyObject* to_integer(PyObject* self) {
    return to_python_error([&] {
        PyObject* number = integer_of(self, true);
        return number || PyErr_Occurred() ? number : to_python<INTEGER>(self);
    });
}

PyObject* to_index(PyObject* self) {
    return to_python_error([&] {
        PyObject* number = integer_of(self, false);
        return number || PyErr_Occurred() ? number : to_python<INDEX>(self);
    });
}

int truth(PyObject* self) {
    PyObject* value = to_python_error([&]() -> PyObject* {
        std::optional<double> number = real_number_of(self);
        if (number || PyErr_Occurred()) return number ? PyBool_FromLong(*number != 0) : nullptr;
        return to_python<BOOL>(self);
    });
    if (!value) return -1;
    int result = PyObject_IsTrue(value);
    Py_DECREF(value);
    return result;
}

#define SLOT(name, function)                                                                       \
    { Py_nb_##name, reinterpret_cast<void*>(function) }
} // namespace

extern PyType_Slot number_slots[];
PyType_Slot number_slots[] = {
    SLOT(add, binary_slot<ADD>),
    SLOT(subtract, binary_slot<SUBTRACT>),
    SLOT(multiply, binary_slot<MULTIPLY>),
    SLOT(true_divide, binary_slot<DIVIDE>),
    SLOT(floor_divide, binary_slot<FLOOR_DIVIDE>),
    SLOT(remainder, binary_slot<REMAINDER>),
    SLOT(power, power_slot),
    SLOT(matrix_multiply, binary_slot<MATRIX_MULTIPLY>),
    SLOT(and, binary_slot<AND>),
    SLOT(or, binary_slot<OR>),
    SLOT(xor, binary_slot<XOR>),
    SLOT(lshift, binary_slot<LEFT>),
    SLOT(rshift, binary_slot<RIGHT>),
    SLOT(divmod, divide_with_remainder),
    SLOT(negative, unary_slot<NEGATE>),
    SLOT(positive, unary_slot<PLUS>),
    SLOT(absolute, unary_slot<ABSOLUTE>),
    SLOT(invert, unary_slot<INVERT>),
    SLOT(inplace_add, in_place_slot<ADD>),
    SLOT(inplace_subtract, in_place_slot<SUBTRACT>),
    SLOT(inplace_multiply, in_place_slot<MULTIPLY>),
    SLOT(inplace_true_divide, in_place_slot<DIVIDE>),
    SLOT(inplace_floor_divide, in_place_slot<FLOOR_DIVIDE>),
    SLOT(inplace_remainder, in_place_slot<REMAINDER>),
    SLOT(inplace_power, in_place_power_slot),
    SLOT(inplace_matrix_multiply, in_place_slot<MATRIX_MULTIPLY>),
    SLOT(inplace_and, in_place_slot<AND>),
    SLOT(inplace_or, in_place_slot<OR>),
    SLOT(inplace_xor, in_place_slot<XOR>),
    SLOT(inplace_lshift, in_place_slot<LEFT>),
    SLOT(inplace_rshift, in_place_slot<RIGHT>),
    SLOT(bool, truth),
    SLOT(int, to_integer),
    SLOT(float, to_float),
    SLOT(index, to_index),
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {0, nullptr},
};
#undef SLOT

bool bind_symbol(const char* text, const Op* op) {
    for (Symbol& symbol : symbols) {
        if (std::strcmp(symbol.text, text) != 0) continue;
        symbol.op = op;
        return true;
    }
    return false;
}

// A name's call: any number of inputs and parameters.
PyObject* apply(const Op* op, PyObject* inputs, PyObject* params) {
    return to_python_error([&]() -> PyObject* {
        Ref<Params> owned_params =
            params_of(*op, params); // first: looking at a parameter may run its __hash__
        if (PyErr_Occurred()) return nullptr;
        std::vector<Operand> operands;
        std::vector<Node*> nodes;
        std::vector<nb::object> owned;
        Py_ssize_t length = PyTuple_GET_SIZE(inputs);
        bool any_array = false, runs_python = false;
        for (Py_ssize_t i = 0; i < length; ++i) {
            any_array |= is_array(PyTuple_GET_ITEM(inputs, i));
            runs_python |= !is_immediate(PyTuple_GET_ITEM(inputs, i));
        }
        for (Py_ssize_t i = 0; i < length; ++i) {
            // The first of nothing but scalars becomes an array, unless the op creates one: a
            // result needs a dtype and a device.
            PyObject* peer = i == 0 && !any_array && !op->creates ? Py_None : inputs;
            PyObject* object = PyTuple_GET_ITEM(inputs, i);
            PyObject* result =
                peer == Py_None ? PyObject_CallFunctionObjArgs(hooks.convert, object, peer, nullptr)
                                : Py_NewRef(object);
            if (!result) return nullptr;
            owned.push_back(nb::steal(result));
            operands.emplace_back(result, peer);
            nodes.push_back(operands.back().get());
            if (nodes.back() && runs_python) operands.back().retain();
            if (nodes.back()) continue;
            if (PyErr_Occurred()) return nullptr;
            return PyObject_CallFunction(hooks.refuse_operand, "sO", op->name.c_str(), inputs);
        }
        PyObject* base = length > 0 ? PyTuple_GET_ITEM(inputs, 0) : nullptr;
        return wrap_node(make_node(op, nodes, std::move(owned_params)), base);
    });
}

} // namespace tenfold::bindings
