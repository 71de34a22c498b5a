// Array import: small ndarrays, nested lists and numbers as Arrays. What is neither usual nor
// small, and what must be refused, is left to Python (src/tenfold/interop/asarray.py).
#include "python/array_transfer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "exec/stacking.h"
#include "python/value_bindings.h"
#include "threads/counters.h"
#include "threads/device.h"

namespace tenfold::bindings {
namespace {

constexpr int NO_DTYPE = -1;
constexpr std::size_t MAX_LEVELS = 8;
constexpr int64_t MAX_COPIED_BYTES = 1 << 16; // NumPy copies larger ones, without the GIL

Ref<Type> dense_type(std::span<const int64_t> shape, int dtype, uint8_t device) {
    return intern_type({shape, uint16_t(dtype), device, 0, false});
}

// Whether all owners of an ndarray's memory that are ndarrays forbid writing, and the last one has
// the memory itself or has lent memory of ours.
bool is_plainly_read_only(const NdArray& array) {
    const NdArray* owner = &array;
    while (!owner->has(NdArray::WRITEABLE)) {
        if (!owner->base) return owner->has(NdArray::OWNS_DATA);
        if (is_read_only_memory(owner->base)) return true;
        if (!is_ndarray(owner->base)) return false;
        owner = &as_ndarray(owner->base);
    }
    return false;
}

// Weak references to an ndarray and its owners: NumPy resizes none that has one.
nb::object resize_guards(PyObject* array) {
    nb::list guards;
    for (PyObject* owner = array; owner && is_ndarray(owner); owner = as_ndarray(owner).base) {
        nb::object guard = nb::steal(PyWeakref_NewRef(owner, nullptr));
        if (!guard.is_valid()) nb::raise_python_error();
        guards.append(guard);
    }
    return guards;
}

// A Value of the memory of `owner`, an ndarray or a part of one.
Ref<Value> foreign_value(PyObject* owner, int dtype, uint8_t device) {
    const NdArray& array = as_ndarray(owner);
    std::span<const int64_t> shape(array.shape, std::size_t(array.ndim));
    auto value = Ref<Value>::adopt(new Value);
    value->type = intern_type({shape, uint16_t(dtype), device, 0, false});
    if (!array.has(NdArray::C_ORDER))
        value->strides.assign(array.strides, array.strides + array.ndim);
    value->buffers[0].allocation =
        Allocation::foreign(array.data, value->type->bytes(), Py_NewRef(owner));
    return value;
}

PyObject* root_of(PyObject* array) {
    while (as_ndarray(array).base && is_ndarray(as_ndarray(array).base))
        array = as_ndarray(array).base;
    return array;
}

// Python objects keep it alive: it cannot be written any more.
Ref<Value> shared_value(PyObject* array, int dtype, uint8_t device) {
    nb::object owner;
    if (as_ndarray(root_of(array)).has(NdArray::OWNS_DATA))
        owner = nb::steal(pin_ndarray(array, resize_guards(array)));
    else // a view, since the user may assign the shape of an ndarray
        owner = nb::steal(view_ndarray(array));
    return foreign_value(owner.ptr(), dtype, device);
}

Ref<Value> copied_value(PyObject* array, int dtype, uint8_t device) {
    const NdArray& source = as_ndarray(array);
    Ref<Type> type = dense_type({source.shape, std::size_t(source.ndim)}, dtype, device);
    if (int64_t(type->bytes()) > MAX_COPIED_BYTES) return {};
    Ref<Value> value = Value::uninitialized(type);
    if (!value) return {};
    auto* to = host_data(*value);
    if (source.has(NdArray::C_ORDER))
        std::memcpy(to, source.data, type->bytes());
    else
        copy_elements(to, *foreign_value(array, dtype, type->device));
    return value;
}

// An ndarray in a dtype of ours, in native byte order, and not of a subclass; else empty.
Ref<Value> import_ndarray(PyObject* object, int target, bool copies, uint8_t device) {
    const NdArray& array = as_ndarray(object);
    int dtype = declared_dtype(array.dtype);
    if (dtype < 0 || (target != NO_DTYPE && target != dtype) || !array.has(NdArray::ALIGNED))
        return {};
    if (copies || array.has(NdArray::WRITEABLE)) {
        Ref<Value> value = copied_value(object, dtype, device);
        if (value) count(Counter::copies);
        return value;
    }
    return is_plainly_read_only(array) ? shared_value(object, dtype, device) : Ref<Value>();
}

// A number of NumPy's in a dtype of ours; else empty.
Ref<Value> import_number(PyObject* object, int target, uint8_t device) {
    nb::object array = nb::steal(NumpyApi::get().array_from_number(object, nullptr));
    if (!array.is_valid()) return PyErr_Clear(), Ref<Value>(); // Python says it in full
    int dtype = declared_dtype(as_ndarray(array.ptr()).dtype);
    bool is_ours = dtype >= 0 && (target == NO_DTYPE || target == dtype);
    return is_ours ? copied_value(array.ptr(), dtype, device) : Ref<Value>();
}

// What is NumPy's: empty for all else, and where Python is to look at it.
Ref<Value> import_numpy(PyObject* object, int target, bool copies, uint8_t device) {
    if (!device_of(device).is_host) return {};
    if (is_plain_ndarray(object)) return import_ndarray(object, target, copies, device);
    return is_numpy_number(object) ? import_number(object, target, device) : Ref<Value>();
}

// Nested lists of Python's bools, ints that fit int64, and floats, which are weak among Arrays
// without axes; or lists of Arrays of one shape. Nothing here runs Python code, so the lists stay
// as they are, but in `compute`.
class NestedNumbers {
  public:
    // False for lists of unequal lengths and of anything else, which Python looks at.
    bool parse(PyObject* object) {
        PyObject* first = object;
        for (; is_list(first); first = items_of(first)[0]) {
            if (shape_.size() == MAX_LEVELS || length_of(first) == 0) return false;
            shape_.push_back(length_of(first));
        }
        levels_ = shape_.size();
        if (levels_ > 0 && is_array(first))
            shape_.insert(shape_.end(), type_of(first).shape.begin(), type_of(first).shape.end());
        return check(object, 0);
    }

    std::span<const int64_t> shape() const { return shape_; }
    // The dtype that NumPy gives them.
    int dtype() const {
        return has_arrays() ? array_dtype_ : dtype_of_numbers(has_floats_ ? 2 : int(has_integers_));
    }
    bool has_arrays() const { return !nodes_.empty(); }
    // Computes the Arrays together. Other threads may run, and change the lists.
    bool compute() {
        std::vector<Node*> pending;
        for (const Ref<Node>& node : nodes_)
            if (!value_of(node.get())) pending.push_back(node.get());
        auto is_placeholder = [](Node* node) { return !node->op; };
        if (pending.empty()) return true;
        if (num_active_traces || current_options().strict_sync ||
            std::ranges::any_of(pending, is_placeholder) || !compute_by_plan(pending))
            return false;
        count(Counter::host_syncs);
        return true;
    }
    bool are_readable() const {
        return std::ranges::all_of(nodes_, [](const Ref<Node>& node) {
            Ref<Value> value = value_of(node.get());
            return value && is_readable(*value);
        });
    }

    // Writes the elements in C order; false if `dtype` cannot hold one of them, or Python converts.
    bool write(PyObject* object, char* to, uint16_t dtype) const {
        const DType& target = dtype_of(dtype);
        if (is_integer(target))
            return with_integer_type(
                target, [&](auto zero) { return write_integers<decltype(zero)>(object, to); });
        switch (target.kind << 8 | int(target.bytes)) {
        case 'b' << 8 | 1: return !has_floats_ && !has_integers_ && fill<bool>(object, to);
        case 'f' << 8 | 4: return fill<float>(object, to);
        case 'f' << 8 | 8: return fill<double>(object, to);
        default: return false;
        }
    }

  private:
    static bool is_list(PyObject* object) {
        return PyList_CheckExact(object) || PyTuple_CheckExact(object);
    }
    static Py_ssize_t length_of(PyObject* list) { return Py_SIZE(list); }
    static PyObject** items_of(PyObject* list) {
        return PyList_CheckExact(list) ? reinterpret_cast<PyListObject*>(list)->ob_item
                                       : reinterpret_cast<PyTupleObject*>(list)->ob_item;
    }

    bool check(PyObject* object, std::size_t level) {
        if (level == levels_) return is_array(object) ? check_array(object) : check_number(object);
        if (!is_list(object) || length_of(object) != shape_[level]) return false;
        PyObject** items = items_of(object);
        for (int64_t i = 0; i < shape_[level]; ++i)
            if (!check(items[i], level + 1)) return false;
        return true;
    }

    bool check_array(PyObject* object) {
        const Type& type = type_of(object);
        const int dtype = type.dtype;
        if (!levels_ || !is_immediate(object) || (has_arrays() && dtype != array_dtype_) ||
            !std::ranges::equal(type.shape, std::span(shape_).subspan(levels_)))
            return false;
        const Node& node = *node_of(object);
        if (node.has(WATCHED) || node.has(KEEPS_HISTORY))
            return false; // its values would be a constant
        array_dtype_ = dtype;
        has_floats_ |= dtype_of(uint16_t(dtype)).kind == 'f';
        has_integers_ |= dtype_of(uint16_t(dtype)).kind != 'b';
        nodes_.emplace_back(node_of(object));
        return true;
    }

    bool check_number(PyObject* object) {
        if (levels_ < shape_.size()) return false;
        if (PyFloat_CheckExact(object)) return has_floats_ = true;
        if (PyBool_Check(object)) return true;
        if (!PyLong_CheckExact(object)) return false;
        int overflow = 0;
        int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
        smallest_ = std::min(smallest_, number);
        largest_ = std::max(largest_, number);
        has_integers_ = true;
        return !overflow;
    }

    // As NumPy converts them: mixed ones by way of a double, ints at once.
    template <class T> T number(PyObject* object) const {
        if (PyFloat_CheckExact(object)) return T(PyFloat_AS_DOUBLE(object));
        int64_t integer = PyBool_Check(object) ? object == Py_True : PyLong_AsLongLong(object);
        return has_floats_ ? T(double(integer)) : T(integer);
    }

    template <class T> bool write_integers(PyObject* object, char* to) const {
        if (has_floats_ || !has_integers_ || std::is_same_v<T, uint64_t>) return false;
        if (smallest_ < int64_t(std::numeric_limits<T>::min())) return false;
        if (largest_ > int64_t(std::numeric_limits<T>::max())) return false;
        return fill<T>(object, to);
    }

    template <class T> bool fill(PyObject* object, char* to) const {
        fill(object, 0, reinterpret_cast<T*>(to));
        return true;
    }

    template <class T> T* fill(PyObject* object, std::size_t level, T* to) const {
        if (level == levels_ && is_array(object)) {
            Ref<Value> value = value_of(node_of(object));
            copy_elements(reinterpret_cast<char*>(to), *value);
            return to + value->type->size();
        }
        if (level == levels_) {
            *to = number<T>(object);
            return to + 1;
        }
        PyObject** items = items_of(object);
        for (int64_t i = 0; i < shape_[level]; ++i) to = fill(items[i], level + 1, to);
        return to;
    }

    std::vector<int64_t> shape_;
    std::size_t levels_ = 0;
    std::vector<Ref<Node>> nodes_;
    int array_dtype_ = NO_DTYPE;
    bool has_floats_ = false, has_integers_ = false;
    int64_t smallest_ = 0, largest_ = 0;
};

// Lists and numbers; empty for others.
Ref<Value> import_numbers(PyObject* object, int target, uint8_t device) {
    NestedNumbers numbers;
    if (!numbers.parse(object)) return {};
    if (numbers.has_arrays()) {
        if (!numbers.compute()) return {};
        numbers = {};
        if (!numbers.parse(object) || !numbers.are_readable()) return {};
    }
    int dtype = target == NO_DTYPE ? numbers.dtype() : target;
    if (numbers.has_arrays() && dtype != numbers.dtype()) return {};
    Ref<Type> type = dense_type(numbers.shape(), dtype, device);
    if (numbers.has_arrays() && int64_t(type->bytes()) > MAX_COPIED_BYTES) return {};
    Ref<Value> value = Value::uninitialized(type);
    if (!value) return {};
    auto* to = host_data(*value);
    return numbers.write(object, to, uint16_t(dtype)) ? value : Ref<Value>();
}

// A dtype of ours, or Python's bool, int or float; else -1.
int dtype_named(PyObject* object) {
    const std::array<PyTypeObject*, 3> numbers{&PyBool_Type, &PyLong_Type, &PyFloat_Type};
    for (std::size_t form = 0; form < numbers.size(); ++form)
        if (object == reinterpret_cast<PyObject*>(numbers[form]))
            return dtype_of_numbers(int(form));
    return declared_dtype(object);
}

// tn.asarray(obj, dtype=..., device=..., copy=...)
PyObject* import_array(std::span<PyObject* const> args, std::size_t positional, PyObject* names) {
    if (positional != 1) return nullptr;
    int target = NO_DTYPE;
    bool copies = false;
    uint8_t device = current_options().device;
    for (std::size_t i = 1; i < args.size(); ++i) {
        PyObject* name = PyTuple_GET_ITEM(names, Py_ssize_t(i - 1));
        const bool is_dtype = PyUnicode_CompareWithASCIIString(name, "dtype") == 0;
        const bool is_copy = PyUnicode_CompareWithASCIIString(name, "copy") == 0;
        const bool is_device = PyUnicode_CompareWithASCIIString(name, "device") == 0;
        if (!is_dtype && !is_copy && !is_device) return nullptr; // Python knows it, or refuses it
        if (args[i] == Py_None) continue;
        if (is_device && args[i] != device_name(device)) return nullptr;
        if (is_dtype && (target = dtype_named(args[i])) < 0) return nullptr;
        if (is_copy && !(copies = args[i] == Py_True)) return nullptr;
    }
    PyObject* object = args[0];
    if (is_array(object)) return target == NO_DTYPE && !copies ? Py_NewRef(object) : nullptr;
    if (!device_of(device).is_host) return nullptr;
    Ref<Value> value = import_numpy(object, target, copies, device);
    if (!value) value = import_numbers(object, target, device);
    return value ? new_array(value_node(std::move(value))) : nullptr;
}

} // namespace

Ref<Node> node_from_numpy(PyObject* object, uint8_t device) {
    Ref<Value> value = import_numpy(object, NO_DTYPE, false, device);
    return value ? value_node(std::move(value)) : Ref<Node>();
}

Ref<Value> adopt_ndarray(PyObject* array, uint8_t device) {
    const PyTypeObject* plain = NumpyApi::get().array_type;
    if (Py_TYPE(array) != plain || !device_of(device).is_host) return {};
    const int dtype = declared_dtype(as_ndarray(array).dtype);
    PyObject* root = root_of(array);
    const bool has_memory = !as_ndarray(root).base && as_ndarray(root).has(NdArray::OWNS_DATA);
    if (dtype < 0 || Py_TYPE(root) != plain || !has_memory) return {};
    for (PyObject* owner : {array, root}) as_ndarray(owner).flags &= ~NdArray::WRITEABLE;
    nb::object view = nb::steal(view_ndarray(array));
    if (!view.is_valid()) nb::raise_python_error();
    return foreign_value(view.ptr(), dtype, device);
}

NativePath import_path(std::string_view name) { return name == "asarray" ? import_array : nullptr; }

} // namespace tenfold::bindings
