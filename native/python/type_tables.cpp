// Type tables: convert Python dtypes, devices, storage kinds and parameters to the core's numbers
// and bytes.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "ir/index_map.h"
#include "ir/intern.h"
#include "memory/cache_registry.h"
#include "python/array_transfer.h"
#include "python/python_objects.h"
#include "threads/device.h"
#include "threads/emulated_device.h"
#include "threads/stream_order.h"
#include "threads/thread_local.h"

namespace tenfold::bindings {
namespace {

struct Names {
    std::vector<PyObject*> objects; // owned for the life of the process
    PyObject* ids = PyDict_New();

    int declare(PyObject* object) {
        if (int known = find(object); known >= 0) return known;
        PyErr_Clear();
        Py_INCREF(object);
        objects.push_back(object);
        nb::object id = nb::int_(objects.size() - 1);
        if (PyDict_SetItem(ids, object, id.ptr()) != 0) nb::raise_python_error();
        return int(objects.size() - 1);
    }

    int find(PyObject* object) {
        PyObject* id = PyDict_GetItemWithError(ids, object);
        if (id) return int(PyLong_AsLong(id));
        if (!PyErr_Occurred()) PyErr_Format(PyExc_LookupError, "%R is not declared", object);
        return -1;
    }
};

// Made at import, under the GIL; they only grow.
Names& dtypes() {
    static auto* names = new Names;
    return *names;
}
Names& devices() {
    static auto* names = new Names;
    return *names;
}
Names& storages() {
    static auto* names = new Names;
    return *names;
}

template <class T> void append(std::string& bytes, char tag, T value) {
    bytes.push_back(tag);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool encode(std::string& bytes, PyObject* object, int depth);

bool encode_items(std::string& bytes, PyObject* tuple, int depth) {
    Py_ssize_t length = PyTuple_GET_SIZE(tuple);
    append(bytes, '(', int64_t(length));
    for (Py_ssize_t i = 0; i < length; ++i)
        if (!encode(bytes, PyTuple_GET_ITEM(tuple, i), depth + 1)) return false;
    return true;
}

bool encode_integer(std::string& bytes, PyObject* object) {
    int overflow = 0;
    long long whole = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
        append(bytes, 'i', int64_t(whole));
        return true;
    }
    PyObject* text = PyNumber_ToBase(object, 16); // decimal digits are limited, and slow
    if (!text) return false;
    Py_ssize_t length = 0;
    const char* digits = PyUnicode_AsUTF8AndSize(text, &length);
    append(bytes, 'I', int64_t(length));
    bytes.append(digits, std::size_t(length));
    Py_DECREF(text);
    return true;
}

bool encode_text(std::string& bytes, PyObject* object) {
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &length);
    if (!text) return false;
    append(bytes, 's', int64_t(length));
    bytes.append(text, std::size_t(length));
    return true;
}

// The canonical bytes of a parameter. An object without value semantics (a function, an Op) counts
// by identity. The Params keep it alive, so its address is not reused.
bool encode(std::string& bytes, PyObject* object, int depth) {
    if (depth > 100) {
        PyErr_SetString(PyExc_ValueError, "parameters are nested deeper than 100 levels");
        return false;
    }
    if (object == Py_None) return bytes.push_back('N'), true;
    if (object == Py_True) return bytes.push_back('T'), true;
    if (object == Py_False) return bytes.push_back('F'), true;
    if (PyLong_CheckExact(object)) return encode_integer(bytes, object);
    if (PyFloat_CheckExact(object)) return append(bytes, 'd', PyFloat_AS_DOUBLE(object)), true;
    if (PyComplex_CheckExact(object)) return append(bytes, 'c', PyComplex_AsCComplex(object)), true;
    if (PyUnicode_CheckExact(object)) return encode_text(bytes, object);
    if (PyTuple_CheckExact(object)) return encode_items(bytes, object, depth);
    if (PyObject* id = PyDict_GetItemWithError(dtypes().ids, object)) {
        return append(bytes, 'D', int64_t(PyLong_AsLong(id))), true;
    }
    PyErr_Clear(); // unhashable: by identity
    return append(bytes, 'O', object), true;
}

int bfloat16_id = -1; // its dtype has the kind and the size of float16's

std::array<Ref<Type>, 4>& weak_types() {
    static auto* types = new std::array<Ref<Type>, 4>;
    return *types;
}

std::optional<Scalar> integer_scalar(PyObject* object) {
    Scalar scalar;
    scalar.form = Scalar::integer;
    int overflow = 0;
    scalar.integer_bits = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return scalar;
    unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
    bool fits = overflow > 0 && !(large == ~0ULL && PyErr_Occurred());
    PyErr_Clear();
    scalar.form = fits ? Scalar::uint64_integer : Scalar::big_integer;
    scalar.integer_bits = int64_t(large);
    scalar.real = PyLong_AsDouble(object);
    if (scalar.real == -1.0 && PyErr_Occurred()) { // beyond a double: infinite, as float("1e400")
        PyErr_Clear();
        scalar.real = overflow * std::numeric_limits<double>::infinity();
    }
    return scalar;
}

std::optional<Scalar> scalar_from(PyObject* object, int& weak) {
    if (PyBool_Check(object)) return weak = 0, Scalar{Scalar::boolean, object == Py_True, 0, 0};
    if (PyLong_Check(object)) return weak = 1, integer_scalar(object);
    if (PyFloat_CheckExact(object))
        return weak = 2, Scalar{Scalar::real_number, 0, PyFloat_AS_DOUBLE(object), 0};
    if (!PyComplex_CheckExact(object)) return std::nullopt;
    Py_complex number = PyComplex_AsCComplex(object);
    return weak = 3, Scalar{Scalar::complex_number, 0, number.real, number.imag};
}

} // namespace

bool append_plain_bytes(std::string& bytes, PyObject* object) {
    if (PyTuple_CheckExact(object)) {
        Py_ssize_t length = PyTuple_GET_SIZE(object);
        append(bytes, '(', int64_t(length));
        for (Py_ssize_t i = 0; i < length; ++i)
            if (!append_plain_bytes(bytes, PyTuple_GET_ITEM(object, i))) return false;
        return true;
    }
    const auto& known = dtypes().objects;
    auto is_for_ever = [](PyObject* type) { // as float, and NumPy's scalar types
        return PyType_Check(type) &&
               !PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE);
    };
    bool plain = object == Py_None || is_for_ever(object) || PyBool_Check(object) ||
                 PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
                 PyComplex_CheckExact(object) || PyUnicode_CheckExact(object) ||
                 std::find(known.begin(), known.end(), object) != known.end();
    if (!plain || encode(bytes, object, 0)) return plain;
    PyErr_Clear();
    return false;
}

std::vector<IndexMap::Step> index_steps(nb::handle tuple) {
    std::vector<IndexMap::Step> steps;
    for (nb::handle step : tuple) {
        auto axis = step[0].is_none() ? IndexMap::NO_AXIS : nb::cast<int64_t>(step[0]);
        steps.push_back({axis, nb::cast<int64_t>(step[1]), nb::cast<int64_t>(step[2])});
    }
    return steps;
}

namespace {

// The slice ((step for each axis), shape), as core/index_map.py has it.
Ref<Params> slice_params_of(nb::handle tuple) {
    IndexMap map{IndexMap::affine, index_steps(tuple[0]), {}};
    for (nb::handle length : nb::tuple(tuple[1])) map.shape.push_back(nb::cast<int64_t>(length));
    return slice_params(std::move(map));
}

// The axes in the first parameter of a reduction or permutation; whether a reduction keeps them.
void set_axes(Params& params, PyObject* tuple) {
    if (params.has_axes || !PyTuple_CheckExact(PyTuple_GET_ITEM(tuple, 0))) return;
    for (nb::handle axis : nb::borrow<nb::tuple>(PyTuple_GET_ITEM(tuple, 0)))
        params.axes.push_back(nb::cast<int64_t>(axis));
    params.keepdims = PyTuple_GET_SIZE(tuple) > 1 && PyTuple_GET_ITEM(tuple, 1) == Py_True;
    params.has_axes = true;
}

// Whether the parameters of a gather are its first axes, with those of the indices in their place.
bool gathers_first_axes(PyObject* tuple) {
    nb::tuple params = nb::borrow<nb::tuple>(tuple), axes(params[0]);
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (nb::cast<std::size_t>(axes[i]) != i) return false;
    return nb::cast<int64_t>(params[1]) == 0;
}

} // namespace

Ref<Params> params_of(const Op& op, PyObject* tuple) {
    if (tuple == Py_None || PyTuple_GET_SIZE(tuple) == 0) return {};
    Ref<Params> params;
    if (op.part != Op::none) {
        params = slice_params_of(tuple);
    } else {
        std::string bytes;
        if (!encode(bytes, tuple, 0)) return {};
        params = intern_params(bytes);
        bool has_axes = op.shapes == Op::reduced || op.shapes == Op::permuted;
        if (op.joins && !params->has_axes) {
            params->axes.push_back(nb::cast<int64_t>(nb::handle(PyTuple_GET_ITEM(tuple, 0))));
            params->has_axes = true;
        }
        if (has_axes || ((op.gathers || op.scatters) && gathers_first_axes(tuple)))
            set_axes(*params, tuple);
    }
    if (!params->python) {
        Py_INCREF(tuple);
        params->python = tuple;
    }
    return params;
}

namespace {

// The parameters of a slice that native code has made. A new reference.
PyObject* slice_to_python(const Params& params) {
    const Starts& starts = starts_of(params);
    const IndexMap& map = pattern_of(params).map;
    nb::list steps;
    for (std::size_t axis = 0; axis < map.steps.size(); ++axis) {
        const IndexMap::Step& step = map.steps[axis];
        nb::object slice_axis = step.axis == IndexMap::NO_AXIS ? nb::none() : nb::cast(step.axis);
        steps.append(nb::make_tuple(slice_axis, step.coefficient, starts.starts[axis]));
    }
    return nb::make_tuple(nb::tuple(steps), nb::tuple(nb::cast(map.shape))).release().ptr();
}

} // namespace

PyObject* params_to_python(const Params* params) {
    if (!params) return PyTuple_New(0);
    if (!params->python) { params->python = slice_to_python(*params); }
    return Py_NewRef(static_cast<PyObject*>(params->python));
}

namespace {

// Scalar nodes that a thread used last: `x + 1` in a loop makes one node of 1. Linearized graphs do
// not record whether two scalars are one node.
class Scalars {
  public:
    static constexpr bool INHERITED = true;

    Ref<Node> node(const Scalar& scalar, int weak) {
        if (scalar.form > Scalar::integer && scalar.form != Scalar::real_number)
            return scalar_node(scalar, weak_types()[weak]);
        auto bits = std::bit_cast<uint64_t>(scalar.real);
        Ref<Node>& cached = nodes_[mix(uint64_t(scalar.integer_bits) + scalar.form, bits) % PLACES];
        if (!cached || !cached->scalar.has_equal_bits(scalar))
            cached = scalar_node(scalar, weak_types()[weak]);
        return cached;
    }

  private:
    static constexpr std::size_t PLACES = 64;
    std::array<Ref<Node>, PLACES> nodes_;
};

PyObject* queues_variable = nullptr;

// The queues are the first item of what the variable of `runtime/stream.py` has.
void read_queues(QueueNumbers& queues) {
    PyObject* blocks = nullptr;
    if (!PyGILState_Check() || PyContextVar_Get(queues_variable, nullptr, &blocks) != 0) return;
    if (blocks && PyTuple_Check(blocks))
        std::memcpy(queues.data(), PyBytes_AS_STRING(PyTuple_GET_ITEM(blocks, 0)), queues.size());
    else
        queues = {};
    Py_XDECREF(blocks);
}

} // namespace

void Operand::convert(PyObject* object, PyObject* peer) {
    int weak = 0;
    if (auto scalar = scalar_from(object, weak)) {
        owned_ = ThreadLocal<Scalars>::get().node(*scalar, weak);
        node_ = owned_.get();
    } else if (is_array(peer) && (owned_ = node_from_numpy(object, type_of(peer).device))) {
        node_ = owned_.get();
    } else if (PyObject* converted =
                   PyObject_CallFunctionObjArgs(hooks.convert, object, peer, nullptr)) {
        if (is_array(converted)) owned_ = Ref<Node>(node_of(converted));
        node_ = owned_.get();
        Py_DECREF(converted);
    }
}

PyObject* scalar_to_python(const Scalar& scalar) {
    switch (scalar.form) {
    case Scalar::boolean: return PyBool_FromLong(scalar.integer_bits != 0);
    case Scalar::integer: return PyLong_FromLongLong(scalar.integer_bits);
    case Scalar::uint64_integer: return PyLong_FromUnsignedLongLong(uint64_t(scalar.integer_bits));
    case Scalar::complex_number: return PyComplex_FromDoubles(scalar.real, scalar.imaginary);
    default: return PyFloat_FromDouble(scalar.real);
    }
}

int declared_dtype(PyObject* dtype) {
    const std::vector<PyObject*>& known = dtypes().objects;
    auto found = std::find(known.begin(), known.end(), dtype);
    return found == known.end() ? -1 : int(found - known.begin());
}

uint16_t dtype_of_numbers(int form) { return weak_types()[std::size_t(form)]->dtype; }

bool is_bfloat16(uint16_t id) { return id == bfloat16_id; }

int dtype_id(PyObject* dtype) { return dtypes().find(dtype); }
PyObject* dtype_object(uint16_t id) { return dtypes().objects[id]; }
PyObject* device_name(uint8_t id) { return devices().objects[id]; }

uint8_t device_id(nb::handle name) {
    int id = devices().find(name.ptr());
    if (id < 0) nb::raise_python_error();
    return uint8_t(id);
}

PyObject* shape_tuple(const Type& type) {
    PyObject* tuple = PyTuple_New(Py_ssize_t(type.shape.size()));
    if (!tuple) return nullptr;
    for (std::size_t i = 0; i < type.shape.size(); ++i) {
        PyObject* length = PyLong_FromLongLong(type.shape[i]);
        if (!length) {
            Py_DECREF(tuple);
            return nullptr;
        }
        PyTuple_SET_ITEM(tuple, Py_ssize_t(i), length);
    }
    return tuple;
}

namespace {

// Python's handle of an interned Type.
struct TypeHandle {
    Ref<Type> type;
};

int known(Names& names, nb::handle object) {
    int id = names.find(object.ptr());
    if (id < 0) nb::raise_python_error();
    return id;
}

TypeHandle make_type(const std::vector<int64_t>& shape, nb::handle dtype, nb::handle device,
                     nb::handle storage, bool weak, uint16_t structure) {
    TypeKey key{shape,
                uint16_t(known(dtypes(), dtype)),
                uint8_t(known(devices(), device)),
                uint8_t(known(storages(), storage)),
                weak,
                structure};
    return {intern_type(key)};
}

} // namespace

nb::object type_to_python(Ref<Type> type) { return nb::cast(TypeHandle{std::move(type)}); }
Ref<Type> type_from_python(nb::handle handle) { return nb::cast<TypeHandle&>(handle).type; }

void declare_type_tables(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<TypeHandle>(module, "Type")
        .def(
            "__init__",
            [](TypeHandle* self, const std::vector<int64_t>& shape, nb::handle dtype,
               nb::handle device, nb::handle storage, bool weak, uint16_t structure) {
                new (self) TypeHandle(make_type(shape, dtype, device, storage, weak, structure));
            },
            "shape"_a, "dtype"_a, "device"_a, "storage"_a = "dense", "weak"_a = false,
            "structure"_a = 0)
        .def_prop_ro(
            "shape",
            [](const TypeHandle& self) { return nb::steal<nb::tuple>(shape_tuple(*self.type)); })
        .def_prop_ro(
            "dtype",
            [](const TypeHandle& self) { return nb::borrow(dtype_object(self.type->dtype)); })
        .def_prop_ro(
            "device",
            [](const TypeHandle& self) { return nb::borrow(device_name(self.type->device)); })
        .def_prop_ro("storage",
                     [](const TypeHandle& self) {
                         return nb::borrow(storages().objects[self.type->storage]);
                     })
        .def_prop_ro("structure", [](const TypeHandle& self) { return self.type->structure; })
        .def("with_structure",
             [](const TypeHandle& self, uint16_t structure) {
                 const Type& type = *self.type;
                 return structure == type.structure
                            ? self
                            : TypeHandle{intern_type({type.shape, type.dtype, type.device,
                                                      type.storage, type.weak, structure})};
             })
        .def_prop_ro("weak", [](const TypeHandle& self) { return self.type->weak; })
        .def_prop_ro("ndim", [](const TypeHandle& self) { return self.type->shape.size(); })
        .def_prop_ro("size", [](const TypeHandle& self) { return self.type->size(); })
        .def("__eq__",
             [](const TypeHandle& self, nb::handle other) {
                 return nb::isinstance<TypeHandle>(other) &&
                        nb::cast<TypeHandle&>(other).type == self.type;
             })
        .def("__hash__", [](const TypeHandle& self) { return truncate_hash(self.type->hash); });

    module.def("declare_dtype", [](nb::handle dtype, const std::string& kind, uint32_t bytes) {
        int id = dtypes().declare(dtype.ptr());
        tenfold::declare_dtype(uint16_t(id), {kind.at(0), bytes});
        if (nb::cast<std::string>(dtype.attr("name")) == "bfloat16") bfloat16_id = id;
        return id;
    });
    module.def("declare_device", [](nb::handle name) {
        auto id = devices().declare(name.ptr());
        tenfold::declare_device(uint8_t(id), nb::cast<std::string>(name));
        return id;
    });
    module.def(
        "is_host_device", [](nb::handle name) { return device_of(device_id(name)).is_host; },
        "name"_a);
    module.def(
        "device_failure", [](nb::handle name) { return device_of(device_id(name)).failure(); },
        "name"_a);
    module.attr("MAX_QUEUES") = MAX_QUEUES;
    module.attr("MAX_DEVICES") = MAX_DEVICES;
    module.def("set_queues_variable", [](nb::handle variable) {
        queues_variable = variable.inc_ref().ptr();
        set_queue_reader(read_queues);
    });
    module.def(
        "device_number", [](nb::handle name) { return device_of(device_id(name)).number; },
        "name"_a);
    module.def(
        "current_queue",
        [](nb::handle name) { return current_queue(device_of(device_id(name)).number); }, "name"_a);
    module.def("seed_emulated_queues", seed_emulated_queues, "seed"_a);
    module.def("emulated_traffic", [] {
        EmulatedTraffic traffic = emulated_traffic();
        return nb::make_tuple(traffic.launches, traffic.copies, traffic.waits);
    });
    module.def("declare_storage", [](nb::handle name) { return storages().declare(name.ptr()); });
    module.def("declare_weak_types", [](const std::vector<nb::object>& four) {
        for (std::size_t i = 0; i < 4; ++i)
            weak_types()[i] = intern_type({{}, uint16_t(known(dtypes(), four.at(i))), 0, 0, true});
    });
}

} // namespace tenfold::bindings
