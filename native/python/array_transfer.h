// Array transfer: values of Arrays as Python objects (export), and Python objects as Arrays
// (import), without Python code in the usual cases.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "python/numpy_abi.h"
#include "python/python_objects.h"

namespace tenfold::bindings {

// The native path of a public function: positional arguments, then those with names. Null without
// an error where Python is to make the call.
using NativePath = PyObject* (*)(std::span<PyObject* const> args, std::size_t positional,
                                 PyObject* names);
NativePath export_path(std::string_view name); // null: there is none
NativePath import_path(std::string_view name);

// The only element of an Array in memory that native code may read, which is computed first. Empty
// where Python is to look at it, with a Python error after a signal.
std::optional<double> real_number_of(PyObject* array);
PyObject* integer_of(PyObject* array, bool truncates); // null likewise

// Whether native code may read and lend the memory: not that of a window, which may change.
bool is_readable(const Value& value);
// The Value of an Array that native code may read, computed now if it may be. Empty likewise.
Ref<Value> readable_value(PyObject* array);
// A read-only ndarray of a Value in host memory. `keeper` (or null) keeps the memory alive, in
// place of the Value.
PyObject* export_value(const Ref<Value>& value, PyObject* keeper);
// A read-only ndarray of the memory of another one, whose flags and size its owner cannot change
// any more: `guards` are weak references.
PyObject* pin_ndarray(PyObject* values, nb::object guards);
PyObject* view_ndarray(PyObject* values); // read-only
bool is_read_only_memory(PyObject* object);
// What `asarray` makes of a small ndarray, or of a number of NumPy's, on a device; empty for all
// else, and where Python is to look at it.
Ref<Node> node_from_numpy(PyObject* object, uint8_t device);
// A Value of a plain ndarray with memory of its own, which becomes read-only; else empty.
Ref<Value> adopt_ndarray(PyObject* array, uint8_t device);

int lend_buffer(PyObject* array, Py_buffer* view, int flags); // bf_getbuffer of Array
// `x.__array_interface__`: the layout of that buffer; null without an error where NumPy asks.
PyObject* array_interface(PyObject* array);

void declare_export(nb::module_& module);

} // namespace tenfold::bindings
