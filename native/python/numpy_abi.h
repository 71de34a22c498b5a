// NumPy's C API without its headers: the layout of an ndarray and three entries of its table of
// functions. Both are stable, since extensions built for NumPy 1 and 2 rely on them (pybind11 reads
// them in the same way).
#pragma once
#include <Python.h>
#include <nanobind/nanobind.h>

namespace tenfold::bindings {

struct NdArray {
    PyObject_HEAD char* data;
    int ndim;
    Py_ssize_t *shape, *strides; // strides in bytes
    PyObject *base, *dtype;
    int flags;
    PyObject* weak_references;

    enum Flag : int { C_ORDER = 0x1, OWNS_DATA = 0x4, ALIGNED = 0x100, WRITEABLE = 0x400 };
    bool has(Flag flag) const { return flags & flag; }
};

struct NumpyApi {
    PyTypeObject *array_type, *number_type; // ndarray, generic
    // Takes over the reference to the dtype. Null data: memory of its own.
    PyObject* (*new_array)(PyTypeObject*, PyObject* dtype, int ndim, const Py_ssize_t* shape,
                           const Py_ssize_t* strides, void* data, int flags, PyObject* object);
    int (*set_base)(PyObject* array, PyObject* base); // takes over the reference to the base
    // A number of NumPy's as an ndarray without axes, which has memory of its own.
    PyObject* (*array_from_number)(PyObject* number, PyObject* dtype);

    static const NumpyApi& get() {
        static const NumpyApi api; // under the GIL
        return api;
    }

  private:
    NumpyApi() {
        auto module = nanobind::module_::import_("numpy._core._multiarray_umath");
        nanobind::object capsule = module.attr("_ARRAY_API");
        auto** table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
        if (!table) nanobind::raise_python_error();
        array_type = static_cast<PyTypeObject*>(table[2]);
        number_type = static_cast<PyTypeObject*>(table[10]);
        array_from_number = reinterpret_cast<decltype(array_from_number)>(table[61]);
        new_array = reinterpret_cast<decltype(new_array)>(table[94]);
        set_base = reinterpret_cast<decltype(set_base)>(table[282]);
    }
};

inline bool is_ndarray(PyObject* object) {
    return PyObject_TypeCheck(object, NumpyApi::get().array_type);
}
inline bool is_plain_ndarray(PyObject* object) {
    return Py_TYPE(object) == NumpyApi::get().array_type;
}
inline bool is_numpy_number(PyObject* object) {
    return PyObject_TypeCheck(object, NumpyApi::get().number_type);
}
inline NdArray& as_ndarray(PyObject* object) { return *reinterpret_cast<NdArray*>(object); }

} // namespace tenfold::bindings
