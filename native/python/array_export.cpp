// Array export: computed values as Python numbers, lists and read-only ndarrays that share memory.
#include "python/array_transfer.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "exec/stacking.h"
#include "python/value_bindings.h"
#include "threads/device.h"

namespace tenfold::bindings {
namespace {

PyTypeObject* memory_type = nullptr;

// The base of an exported ndarray. It lends no buffer, so NumPy cannot make the ndarray writeable.
struct ReadOnlyMemory {
    PyObject_HEAD Value* value; // owned, or null
    PyObject *keeper, *guards;  // owned, or null
};

ReadOnlyMemory* as_memory(PyObject* object) { return reinterpret_cast<ReadOnlyMemory*>(object); }

PyObject* new_memory(Ref<Value> value, PyObject* keeper, nb::object guards) {
    auto* self = PyObject_New(ReadOnlyMemory, memory_type);
    if (!self) nb::raise_python_error();
    self->value = value.detach();
    self->keeper = Py_XNewRef(keeper);
    self->guards = guards.release().ptr();
    return reinterpret_cast<PyObject*>(self);
}

void deallocate(PyObject* object) {
    ReadOnlyMemory* self = as_memory(object);
    if (self->value) release(self->value);
    Py_XDECREF(self->keeper);
    Py_XDECREF(self->guards);
    PyTypeObject* type = Py_TYPE(object);
    PyObject_Free(self);
    Py_DECREF(type);
    drain_decrefs();
}

PyObject* get_owner(PyObject* object, void*) {
    ReadOnlyMemory* self = as_memory(object);
    if (!self->value) return Py_NewRef(self->keeper);
    return to_python_error(
        [&] { return nb::cast(ValueHandle{Ref<Value>(self->value)}).release().ptr(); });
}

PyGetSetDef properties[] = {
    {"memory_owner", get_owner, nullptr, "The Value, or other object, that has the memory.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// An ndarray over memory that `base` keeps alive; null strides: C order.
PyObject* new_ndarray(std::span<const int64_t> shape, const int64_t* strides, PyObject* dtype,
                      void* data, PyObject* base) {
    static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
    const NumpyApi& numpy = NumpyApi::get();
    const int64_t none = 0;
    auto* lengths = reinterpret_cast<const Py_ssize_t*>(shape.empty() ? &none : shape.data());
    PyObject* array = numpy.new_array(numpy.array_type, Py_NewRef(dtype), int(shape.size()),
                                      lengths, reinterpret_cast<const Py_ssize_t*>(strides), data,
                                      NdArray::C_ORDER | NdArray::ALIGNED, nullptr);
    if (!array || numpy.set_base(array, base) != 0) {
        if (!array) Py_DECREF(base);
        Py_XDECREF(array);
        nb::raise_python_error();
    }
    as_ndarray(array).flags &= ~NdArray::WRITEABLE;
    return array;
}

// The same elements, read-only, over memory that `base` keeps alive.
PyObject* ndarray_like(PyObject* values, PyObject* base) {
    const NdArray& source = as_ndarray(values);
    std::vector<int64_t> shape(source.shape, source.shape + source.ndim),
        strides(source.strides, source.strides + source.ndim);
    return new_ndarray(shape, strides.data(), source.dtype, source.data, base);
}

using ToPython = PyObject* (*)(const char*);
using ToDouble = double (*)(const char*);

template <class T> T load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

double float16_to_double(const char* at) {
    auto bits = load<uint16_t>(at);
    uint64_t sign = uint64_t(bits >> 15) << 63, fraction = bits & 0x3ff;
    int exponent = bits >> 10 & 0x1f;
    if (exponent == 0x1f) return std::bit_cast<double>(sign | 0x7ffULL << 52 | fraction << 42);
    double magnitude = exponent ? std::ldexp(double(fraction + 1024), exponent - 25)
                                : std::ldexp(double(fraction), -24);
    return sign ? -magnitude : magnitude;
}

double bfloat16_to_double(const char* at) {
    return double(std::bit_cast<float>(uint32_t(load<uint16_t>(at)) << 16));
}

template <class T> double number_to_double(const char* at) { return double(load<T>(at)); }

// How an element of a dtype is read as a double; null for complex numbers.
ToDouble double_reader(uint16_t id) {
    const DType& dtype = dtype_of(id);
    if (is_integer(dtype))
        return with_integer_type(
            dtype, [](auto zero) -> ToDouble { return number_to_double<decltype(zero)>; });
    switch (dtype.kind << 8 | int(dtype.bytes)) {
    case 'b' << 8 | 1: return number_to_double<bool>;
    case 'f' << 8 | 2: return is_bfloat16(id) ? bfloat16_to_double : float16_to_double;
    case 'f' << 8 | 4: return number_to_double<float>;
    case 'f' << 8 | 8: return number_to_double<double>;
    default: return nullptr;
    }
}

PyObject* bool_to_python(const char* at) { return PyBool_FromLong(load<bool>(at)); }
template <class T> PyObject* integer_to_python(const char* at) {
    if constexpr (std::is_signed_v<T>) return PyLong_FromLongLong(load<T>(at));
    return PyLong_FromUnsignedLongLong(load<T>(at));
}
template <ToDouble Reader> PyObject* float_to_python(const char* at) {
    return PyFloat_FromDouble(Reader(at));
}
template <class T> PyObject* complex_to_python(const char* at) {
    return PyComplex_FromDoubles(double(load<T>(at)), double(load<T>(at + sizeof(T))));
}

// How an element of a dtype is read as a Python number.
ToPython python_reader(uint16_t id) {
    const DType& dtype = dtype_of(id);
    if (is_integer(dtype))
        return with_integer_type(
            dtype, [](auto zero) -> ToPython { return integer_to_python<decltype(zero)>; });
    switch (dtype.kind << 8 | int(dtype.bytes)) {
    case 'b' << 8 | 1: return bool_to_python;
    case 'f' << 8 | 2:
        return is_bfloat16(id) ? float_to_python<bfloat16_to_double>
                               : float_to_python<float16_to_double>;
    case 'f' << 8 | 4: return float_to_python<number_to_double<float>>;
    case 'f' << 8 | 8: return float_to_python<number_to_double<double>>;
    case 'c' << 8 | 8: return complex_to_python<float>;
    case 'c' << 8 | 16: return complex_to_python<double>;
    default: return nullptr;
    }
}

// Nested lists of the axes from `axis` on; null with a Python error.
PyObject* to_list(const char* at, std::size_t axis, std::span<const int64_t> shape,
                  std::span<const int64_t> strides, ToPython read) {
    if (axis == shape.size()) return read(at);
    PyObject* list = PyList_New(Py_ssize_t(shape[axis]));
    for (int64_t i = 0; list && i < shape[axis]; ++i) {
        PyObject* item = to_list(at + i * strides[axis], axis + 1, shape, strides, read);
        if (item)
            PyList_SET_ITEM(list, Py_ssize_t(i), item);
        else
            Py_CLEAR(list);
    }
    return list;
}

// x.tolist()
PyObject* array_to_list(std::span<PyObject* const> args, std::size_t positional, PyObject* names) {
    if (names || positional != 1 || !is_array(args[0])) return nullptr;
    Ref<Value> value = readable_value(args[0]);
    ToPython read = value ? python_reader(value->type->dtype) : nullptr;
    if (!read) return nullptr;
    return to_list(host_data(*value), 0, value->type->shape, strides_of(*value), read);
}

// x.item(), and x.item(i) for a position in the flattened array
PyObject* array_item(std::span<PyObject* const> args, std::size_t positional, PyObject* names) {
    if (names || positional < 1 || positional > 2 || !is_array(args[0])) return nullptr;
    int64_t size = type_of(args[0]).size(), position = 0;
    if (positional == 1 && size != 1) return nullptr;
    if (positional == 2) {
        int overflow = 0;
        if (!PyLong_CheckExact(args[1])) return nullptr;
        position = PyLong_AsLongLongAndOverflow(args[1], &overflow);
        if (position < 0) position += size;
        if (overflow || position < 0 || position >= size) return nullptr;
    }
    Ref<Value> value = readable_value(args[0]);
    ToPython read = value ? python_reader(value->type->dtype) : nullptr;
    if (!read) return nullptr;
    const std::vector<int64_t>& shape = value->type->shape;
    std::vector<int64_t> strides = strides_of(*value);
    auto* at = host_data(*value);
    for (std::size_t axis = shape.size(); axis-- > 0; position /= shape[axis])
        at += position % shape[axis] * strides[axis];
    return read(at);
}

// iter(x)
PyObject* iterate_array(std::span<PyObject* const> args, std::size_t positional, PyObject* names) {
    if (names || positional != 1 || !is_array(args[0])) return nullptr;
    Py_ssize_t length = PyObject_Size(args[0]);
    if (length < 0) return nullptr;
    nb::object get_item = nb::steal(PyObject_GetAttrString(args[0], "__getitem__"));
    nb::object positions =
        nb::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyRange_Type), "n", length));
    if (!get_item.is_valid() || !positions.is_valid()) return nullptr;
    return PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PyMap_Type), get_item.ptr(),
                                        positions.ptr(), nullptr);
}

constexpr int64_t MAX_COPIED_BYTES = 1 << 16; // NumPy copies larger ones, without the GIL

PyObject* copy_of(const Value& value) {
    const NumpyApi& numpy = NumpyApi::get();
    const std::vector<int64_t>& shape = value.type->shape;
    PyObject* copy = numpy.new_array(
        numpy.array_type, Py_NewRef(dtype_object(value.type->dtype)), int(shape.size()),
        reinterpret_cast<const Py_ssize_t*>(shape.data()), nullptr, nullptr, 0, nullptr);
    if (copy && value.type->size()) copy_elements(as_ndarray(copy).data, value);
    return copy;
}

// x.__array__(dtype, copy=): values in their own dtype
PyObject* array_to_ndarray(std::span<PyObject* const> args, std::size_t positional,
                           PyObject* names) {
    if (positional < 1 || args.size() > 3 || !is_array(args[0])) return nullptr;
    PyObject *dtype = Py_None, *copy = Py_None;
    for (std::size_t i = 1; i < args.size(); ++i) {
        PyObject* name =
            i < positional ? nullptr : PyTuple_GET_ITEM(names, Py_ssize_t(i - positional));
        if (name ? PyUnicode_CompareWithASCIIString(name, "dtype") == 0 : i == 1)
            dtype = args[i];
        else if (name ? PyUnicode_CompareWithASCIIString(name, "copy") == 0 : i == 2)
            copy = args[i];
        else
            return nullptr;
    }
    const Type& type = type_of(args[0]);
    bool copies = copy == Py_True;
    if (dtype != Py_None && dtype != dtype_object(type.dtype)) return nullptr;
    if (!copies && copy != Py_None && copy != Py_False) return nullptr;
    if (copies && int64_t(type.bytes()) > MAX_COPIED_BYTES) return nullptr;
    Ref<Value> value = readable_value(args[0]);
    if (!value) return nullptr;
    return copies ? copy_of(*value) : export_value(value, nullptr);
}

} // namespace

bool is_readable(const Value& value) {
    auto* owner = static_cast<PyObject*>(value.buffers[0].allocation->owner);
    if (value.type->storage || !device_of(value.type->device).is_host) return false;
    return !owner || (is_ndarray(owner) && !value.is_view);
}

Ref<Value> readable_value(PyObject* array) {
    Ref<Node> node(node_of(array)); // another thread may rebind the Array
    if (!node) {
        PyErr_Clear(); // Python finds it again
        return {};
    }
    Ref<Value> value = value_of(node.get());
    if (!value && node->op && !current_options().strict_sync && compute_and_wait(node))
        value = value_of(node.get());
    return value && is_readable(*value) ? value : Ref<Value>();
}

std::optional<double> real_number_of(PyObject* array) {
    ToDouble read = type_of(array).size() == 1 ? double_reader(type_of(array).dtype) : nullptr;
    Ref<Value> value = read ? readable_value(array) : Ref<Value>();
    if (!value) return {};
    return read(host_data(*value));
}

PyObject* integer_of(PyObject* array, bool truncates) {
    const Type& type = type_of(array);
    const DType& dtype = dtype_of(type.dtype);
    const bool is_index = is_integer(dtype) && type.shape.empty();
    if (type.size() != 1 || dtype.kind == 'c' || (!truncates && !is_index)) return nullptr;
    Ref<Value> value = readable_value(array);
    if (!value) return nullptr;
    auto* at = host_data(*value);
    if (is_integer(dtype)) return python_reader(type.dtype)(at);
    return PyLong_FromDouble(double_reader(type.dtype)(at));
}

PyObject* export_value(const Ref<Value>& value, PyObject* keeper) {
    const Type& type = *value->type;
    auto* owner = static_cast<PyObject*>(value->buffers[0].allocation->owner);
    bool shares_owner = owner && is_ndarray(owner) && !value->is_view;
    PyObject* base = nullptr;
    if (shares_owner) { // a view of it
        base = Py_NewRef(owner);
    } else if (keeper) {
        base = new_memory({}, keeper, {});
    } else {
        while (owner && is_ndarray(owner) && as_ndarray(owner).base) owner = as_ndarray(owner).base;
        // else chains of exports and imports would grow
        base =
            owner && is_read_only_memory(owner) ? Py_NewRef(owner) : new_memory(value, nullptr, {});
    }
    return new_ndarray(type.shape, value->strides.empty() ? nullptr : value->strides.data(),
                       dtype_object(type.dtype), host_data(*value), base);
}

PyObject* pin_ndarray(PyObject* values, nb::object guards) {
    return ndarray_like(values, new_memory({}, values, std::move(guards)));
}

bool is_read_only_memory(PyObject* object) { return Py_TYPE(object) == memory_type; }

PyObject* view_ndarray(PyObject* values) { return ndarray_like(values, Py_NewRef(values)); }

NativePath export_path(std::string_view name) {
    if (name == "iterate") return iterate_array;
    if (name == "tolist") return array_to_list;
    if (name == "item") return array_item;
    if (name == "to_ndarray") return array_to_ndarray;
    return nullptr;
}

void declare_export(nb::module_& module) {
    using namespace nb::literals;
    PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                           {Py_tp_getset, properties},
                           {0, nullptr}};
    PyType_Spec spec{"tenfold.ReadOnlyMemory", sizeof(ReadOnlyMemory), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    memory_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!memory_type || PyModule_AddObjectRef(module.ptr(), "ReadOnlyMemory",
                                              reinterpret_cast<PyObject*>(memory_type)) != 0)
        nb::raise_python_error();
    module.def(
        "export_value",
        [](const ValueHandle& value, nb::handle keeper) {
            return nb::steal(export_value(value.value, keeper.is_none() ? nullptr : keeper.ptr()));
        },
        "value"_a, "keeper"_a.none());
    module.def(
        "pin_ndarray",
        [](nb::handle values, nb::object guards) {
            if (!is_ndarray(values.ptr())) throw nb::type_error("pin_ndarray() needs an ndarray");
            return nb::steal(pin_ndarray(values.ptr(), std::move(guards)));
        },
        "values"_a, "guards"_a);
}

} // namespace tenfold::bindings
