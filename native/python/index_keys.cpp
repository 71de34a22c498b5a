// Index keys: x[key] and x[key] = e for ints, slices, `...` and None, without Python code. So are
// x[key] for one array of integers, and integers in Arrays without axes whose elements are in
// memory. Other keys go to the `get_item`, the `set_item` and the `assign` hook.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "exec/update_deferral.h"
#include "ir/index_map.h"
#include "memory/cache_registry.h"
#include "memory/direct_mapped.h"
#include "python/array_transfer.h"
#include "python/engine_bindings.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {
namespace {

const Op* index_op = nullptr;
const Op* update_op = nullptr;
const Op* gather_op = nullptr;
Ref<Params>* gather_rows = nullptr; // the Params for one array of integers

int64_t read_integer(const void* address, const DType& dtype) {
    return with_integer_type(dtype, [&](auto number) {
        std::memcpy(&number, address, sizeof number);
        return int64_t(number);
    });
}

// The integer of an Array without axes that is computed, or an element of a computed one.
std::optional<int64_t> known_integer(PyObject* array) {
    const Type& type = type_of(array);
    const DType& dtype = dtype_of(type.dtype);
    if (!type.shape.empty() || !is_integer(dtype) || !has_loops_on(type.device) ||
        !device_of(type.device).is_host)
        return {};
    if (num_active_traces || may_have_external_buffers()) return {};
    Ref<Node> node(node_of(array));
    if (!node) return PyErr_Clear(), std::nullopt;
    std::vector<Ref<Node>> slices;
    Ref<Value> value;
    while (!(value = value_of(node.get()))) {
        if (!node->op || node->op->part != Op::slice) return {};
        std::vector<Ref<Node>> inputs = inputs_of(node.get());
        if (inputs.empty()) continue; // another thread has computed it meanwhile
        slices.push_back(std::exchange(node, std::move(inputs[0])));
    }
    for (std::size_t i = slices.size(); i-- > 0;)
        value = make_slice(*slices[i]->params, *value, slices[i]->type);
    int64_t number = read_integer(host_data(*value), dtype);
    if (dtype.kind == 'u' && dtype.bytes == 8 && number < 0) return {};
    return number;
}

// A basic index of ints, slices, `...` and None. As in core/shape_rules.py, a slice with fewer than
// two elements has step 1. Another form would only miss the cache.
class BasicIndex {
  public:
    bool element = true;     // every axis has an int: then the result is not a view
    bool has_arrays = false; // an int is an Array: then it is not, either

    // False for any other key, and for one that does not fit: Python refuses it well.
    bool parse(PyObject* key, const std::vector<int64_t>& shape) {
        if (shape.size() > MAX_AXES) return false;
        bool tuple = PyTuple_CheckExact(key);
        PyObject** terms = tuple ? &PyTuple_GET_ITEM(key, 0) : &key;
        Py_ssize_t count = tuple ? PyTuple_GET_SIZE(key) : 1;
        std::size_t axes = 0;
        for (Py_ssize_t i = 0; i < count; ++i)
            axes += PyLong_CheckExact(terms[i]) || PySlice_Check(terms[i]) || is_array(terms[i]) ||
                    is_numpy_number(terms[i]);
        if (axes > shape.size()) return false;
        std::size_t num_implicit = shape.size() - axes;
        bool ellipsis = false;
        element = num_implicit == 0;
        for (Py_ssize_t i = 0; i < count; ++i) {
            if (terms[i] == Py_Ellipsis) {
                if (std::exchange(ellipsis, true)) return false;
                element = false;
                for (; num_implicit > 0; --num_implicit) add_dim(0, shape[axes_], 1);
            } else if (!add_term(terms[i], shape)) {
                return false;
            }
        }
        for (; num_implicit > 0; --num_implicit) add_dim(0, shape[axes_], 1);
        return true;
    }

    AxisVector starts() const { return AxisVector({starts_.data(), axes_}); }

    // All but the starts.
    std::span<const int64_t> shape_key() const { return {key_.data(), key_size_}; }

    // The slice that begins at 0.
    IndexMap pattern() const {
        IndexMap map{IndexMap::affine, {}, {}};
        for (std::size_t i = 0; i < key_size_; i += 2) {
            int64_t count = key_[i], step = key_[i + 1];
            if (count == POSITION)
                map.steps.push_back({IndexMap::NO_AXIS, 0, 0});
            else if (count != NEW_AXIS)
                map.steps.push_back({int64_t(map.shape.size()), step, 0});
            if (count != POSITION) map.shape.push_back(count == NEW_AXIS ? 1 : count);
        }
        return map;
    }

  private:
    static constexpr std::size_t MAX_AXES = 8;
    static constexpr int64_t POSITION = -1, NEW_AXIS = -2;

    bool add_term(PyObject* term, const std::vector<int64_t>& shape) {
        if (PyLong_CheckExact(term)) return add_integer(term, shape[axes_]);
        if (is_array(term)) {
            std::optional<int64_t> number = known_integer(term);
            has_arrays = true;
            return number && add_position(*number, shape[axes_]);
        }
        if (is_numpy_number(term)) {
            nb::object integer = nb::steal(PyNumber_Index(term));
            if (!integer.is_valid()) return PyErr_Clear(), false; // a bool, for one
            return add_integer(integer.ptr(), shape[axes_]);
        }
        element = false;
        if (PySlice_Check(term)) return add_slice(term, shape[axes_]);
        return term == Py_None && key_size_ < key_.size() - 2 * MAX_AXES &&
               shape_key(NEW_AXIS, num_result_axes_++);
    }

    bool add_integer(PyObject* term, int64_t length) {
        int overflow = 0;
        int64_t number = PyLong_AsLongLongAndOverflow(term, &overflow);
        return !overflow && add_position(number, length);
    }

    bool add_position(int64_t number, int64_t length) {
        if (number < 0) number += length;
        if (number < 0 || number >= length) return false;
        starts_[axes_++] = number;
        return shape_key(POSITION, 1);
    }

    bool add_slice(PyObject* term, int64_t length) {
        auto* bounds = reinterpret_cast<PySliceObject*>(term);
        for (PyObject* end : {bounds->start, bounds->stop, bounds->step})
            if (end != Py_None && !PyLong_CheckExact(end)) return add_converted(*bounds, length);
        if (bounds->step == Py_None) return add_unit_slice(*bounds, length);
        Py_ssize_t start = 0, stop = 0, step = 0;
        if (PySlice_Unpack(term, &start, &stop, &step) != 0) return PyErr_Clear(), false;
        Py_ssize_t count = PySlice_AdjustIndices(Py_ssize_t(length), &start, &stop, step);
        return add_dim(count ? start : 0, count, count < 2 ? 1 : step);
    }

    // A slice of objects with an __index__, as integers of NumPy and Arrays without axes have.
    bool add_converted(const PySliceObject& bounds, int64_t length) {
        std::array<nb::object, 3> ends;
        std::array<PyObject*, 3> originals{bounds.start, bounds.stop, bounds.step};
        for (std::size_t i = 0; i < ends.size(); ++i) {
            PyObject* end = originals[i];
            if (end != Py_None && !PyIndex_Check(end)) return false;
            ends[i] = nb::steal(end == Py_None ? Py_NewRef(end) : index_of(end));
            if (!ends[i].is_valid()) return PyErr_Clear(), false; // Python says it in full
        }
        nb::object converted = nb::steal(PySlice_New(ends[0].ptr(), ends[1].ptr(), ends[2].ptr()));
        return converted.is_valid() && add_slice(converted.ptr(), length);
    }

    static PyObject* index_of(PyObject* number) {
        std::optional<int64_t> known =
            is_array(number) ? known_integer(number) : std::optional<int64_t>();
        nb::object index = nb::steal(known ? PyLong_FromLongLong(*known) : PyNumber_Index(number));
        // A bool is an int, too.
        return index.is_valid() ? PyNumber_Long(index.ptr()) : nullptr;
    }

    // Fast path: most slices have no step.
    bool add_unit_slice(const PySliceObject& bounds, int64_t length) {
        int64_t start = bound_of(bounds.start, 0, length),
                stop = bound_of(bounds.stop, length, length);
        int64_t count = std::max<int64_t>(stop - start, 0);
        return add_dim(count ? start : 0, count, 1);
    }

    static int64_t bound_of(PyObject* bound, int64_t missing, int64_t length) {
        if (bound == Py_None) return missing;
        int overflow = 0; // then the number is far outside, to be clipped like any other
        int64_t number = PyLong_AsLongLongAndOverflow(bound, &overflow);
        if (overflow) return overflow < 0 ? 0 : length;
        return std::clamp<int64_t>(number < 0 ? number + length : number, 0, length);
    }

    bool add_dim(int64_t start, int64_t count, int64_t step) {
        starts_[axes_++] = start;
        ++num_result_axes_;
        return shape_key(count, step);
    }

    bool shape_key(int64_t first, int64_t second) {
        key_[key_size_++] = first;
        key_[key_size_++] = second;
        return true;
    }

    std::array<int64_t, MAX_AXES> starts_;
    std::array<int64_t, 4 * MAX_AXES> key_;
    std::size_t axes_ = 0, key_size_ = 0;
    int64_t num_result_axes_ = 0; // axes of the result
};

// The patterns of the forms that keys had last. Under the GIL.
class PatternCache {
  public:
    const Ref<Params>& find_or_intern(const BasicIndex& index) {
        auto form = index.shape_key();
        std::size_t hash = form.size();
        for (int64_t word : form) hash = (hash ^ std::size_t(word)) * 0x9e3779b97f4a7c15ULL;
        Entry& entry = entries.slot(hash);
        if (!entry.pattern || !std::ranges::equal(entry.key, form)) {
            entry.pattern = slice_params(index.pattern());
            entry.key.assign(form.begin(), form.end());
        }
        return entry.pattern;
    }

  private:
    struct Entry {
        std::vector<int64_t> key;
        Ref<Params> pattern;
        explicit operator bool() const { return bool(pattern); }
    };

  public:
    DirectMapped<Entry, 8> entries;
};

PatternCache* const pattern_cache = new PatternCache; // outlives the interpreter

[[maybe_unused]] Cache& pattern_cache_registered = register_cache(
    {"index patterns", "interning the pattern of x[key] takes as long as the rest",
     decltype(PatternCache::entries)::NUM_SLOTS, [] { return pattern_cache->entries.size(); },
     [] { pattern_cache->entries.clear(); }});

// The Params of recent slices: loops repeat them. Under the GIL.
class SliceParamsCache {
  public:
    const Ref<Params>& find_or_create(const Params& pattern, const BasicIndex& index) {
        AxisVector starts = index.starts();
        auto hash = reinterpret_cast<std::size_t>(&pattern);
        for (int64_t start : starts.span()) hash = hash * FACTOR ^ std::size_t(start);
        Ref<Params>& entry = entries.slot(hash * FACTOR);
        if (!entry || !matches(*entry, pattern, starts))
            entry = params_with_starts(pattern, starts);
        return entry;
    }
    DirectMapped<Ref<Params>, 8> entries;

  private:
    static bool matches(const Params& params, const Params& pattern, const AxisVector& starts) {
        const Starts& starts_data = starts_of(params);
        return starts_data.pattern == &pattern && starts_data.starts == starts;
    }

    static constexpr std::size_t FACTOR = 0x9e3779b97f4a7c15ULL;
};

SliceParamsCache* const slice_params_cache = new SliceParamsCache; // outlives the interpreter

[[maybe_unused]] Cache& slice_params_cache_registered =
    register_cache({"slice parameters", "equal slices share their parameters, and so their keys",
                    decltype(SliceParamsCache::entries)::NUM_SLOTS,
                    [] { return slice_params_cache->entries.size(); },
                    [] { slice_params_cache->entries.clear(); }});

} // namespace

namespace {

// Whether Python is to look at indices: their values are known, and one may be out of bounds.
bool may_be_out_of_bounds(Node* indices, int64_t length) {
    Ref<Value> value = value_of(indices);
    if (!value || value->type->size() == 0) return false;
    if (may_have_external_buffers() && value->buffers[0].allocation->owner) return true;
    auto range = range_of_integers(*value);
    return !range || (*range)[0] < -length || (*range)[1] >= length;
}

// Whether an Array or an ndarray with axes holds integers; a mask is not imported to be looked at.
bool has_integers(PyObject* key) {
    const bool is_ours = is_array(key);
    if (!is_ours && (!is_ndarray(key) || !as_ndarray(key).ndim)) return false;
    const int dtype = is_ours ? type_of(key).dtype : declared_dtype(as_ndarray(key).dtype);
    return dtype >= 0 && is_integer(dtype_of(uint16_t(dtype))) &&
           !(is_ours && type_of(key).shape.empty());
}

// x[key] for one array of integers; null for any other key.
PyObject* gather_item(PyObject* self, PyObject* key) {
    if (!gather_rows || type_of(self).shape.empty() || !has_integers(key)) return nullptr;
    Ref<Node> indices =
        is_array(key) ? Ref<Node>(node_of(key)) : node_from_numpy(key, type_of(self).device);
    Ref<Node> source(indices ? node_of(self) : nullptr);
    Node* inputs[] = {source.get(), source ? indices.get() : nullptr};
    if (source && may_be_out_of_bounds(inputs[1], type_of(self).shape[0])) return nullptr;
    Ref<Node> node = source ? make_node(gather_op, inputs, *gather_rows) : Ref<Node>();
    if (node) return new_array(std::move(node));
    if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); // Python says it in full
    return nullptr;
}

} // namespace

PyObject* get_basic_item(PyObject* self, PyObject* key) {
    BasicIndex index;
    if (!index_op) return nullptr;
    if (type_of(self).storage) return nullptr;
    if (!index.parse(key, type_of(self).shape)) return gather_item(self, key);
    Node* input = node_of(self);
    if (!input) return nullptr;
    Ref<Params> params =
        slice_params_cache->find_or_create(*pattern_cache->find_or_intern(index), index);
    Ref<Node> node = make_node(index_op, {&input, 1}, std::move(params));
    if (!node) return nullptr;
    bool is_copy = index.element || index.has_arrays;
    return is_copy ? new_array(std::move(node)) : wrap_results(std::move(node), self);
}

namespace {

// The node of a right-hand side: that of an Array or of what is NumPy's, or that of a number
// converted to float. Null if Python must convert it.
Ref<Node> rhs_node(PyObject* value, PyObject* array) {
    if (is_array(value)) return Ref<Node>(node_of(value));
    const Type& type = type_of(array);
    if (Ref<Node> imported = node_from_numpy(value, type.device)) {
        const bool must_fit = is_numpy_number(value) && is_integer(dtype_of(type.dtype));
        return must_fit && imported->type->dtype != type.dtype ? Ref<Node>() : imported;
    }
    bool number = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
    if (!number || dtype_of(type.dtype).kind != 'f') return {};
    nb::object real = nb::steal(PyNumber_Float(value));
    if (!real.is_valid()) return PyErr_Clear(), Ref<Node>(); // Python says it in full
    return Ref<Node>(Operand(real.ptr(), array).get());
}

// Starts the work of earlier assignments, as mutation/view_writethrough.py says it.
bool run_earlier_updates(PyObject* array, PyObject* value, Node* read) {
    Node* target = reinterpret_cast<ArrayObject*>(array)->node;
    auto pending = [](const Node* node) {
        return node->assignments.load(std::memory_order_relaxed);
    };
    if (may_compute_natively(pending(target), pending(read))) {
        if (pending(target) < DEFERRAL.max_pending) return true;
        if (compute_by_plan(Ref<Node>(target))) {
            if (pending(read) >= DEFERRAL.max_stale) recompute_depth(read);
            return true;
        }
    }
    PyObject* advanced = PyObject_CallFunctionObjArgs(hooks.advance, array, value, nullptr);
    Py_XDECREF(advanced);
    return advanced;
}

// Lets an Array, which is neither a view nor a window, name its value with a part replaced.
bool assign_slice(ArrayObject* array, const Params& part, PyObject* value) {
    if (!changes_part(part, *array->node->type)) return false;
    Ref<Params> slice = update_params(part);
    PyObject* target = reinterpret_cast<PyObject*>(array);
    Ref<Node> rhs = rhs_node(value, target); // another thread may rebind the value
    if (!rhs) return false;
    const UpdateRun run = next_in_run(*array->node, *slice, rhs.get());
    if (!run.is_deferred() && !run_earlier_updates(target, value, rhs.get())) return false;
    Node* inputs[] = {array->node, rhs.get()};
    Ref<Node> node = make_node(update_op, inputs, std::move(slice));
    if (!node) {
        if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); // Python says it in full
        return false;
    }
    node->run = run;
    rebind(array, std::move(node));
    return true;
}

} // namespace

bool set_basic_item(PyObject* self, PyObject* key, PyObject* value) {
    auto* array = reinterpret_cast<ArrayObject*>(self);
    BasicIndex index;
    if (array->external || !index_op || type_of(self).storage) return false;
    if (!index.parse(key, type_of(self).shape)) return false;
    const Ref<Params>& pattern = pattern_cache->find_or_intern(index);
    if (!is_array(value)) {
        if (array->base) return false;
        Ref<Params> picks = slice_params_cache->find_or_create(*pattern, index);
        return assign_slice(array, *picks, value);
    }
    auto* source = reinterpret_cast<ArrayObject*>(value);
    if (array->base) // all of a view
        return source->root != array->root && is_full_slice(*pattern, type_of(self)) &&
               update_view(array, value);
    if (source->base == array) { // `x[key] op= e` ends by assigning the updated view to itself
        if (source->view_op != index_op) return false;
        const Starts& part = starts_of(*source->view_params);
        return part.pattern == pattern.get() && part.starts == index.starts();
    }
    Ref<Params> picks = slice_params_cache->find_or_create(*pattern, index);
    return assign_slice(array, *picks, value);
}

bool update_view(ArrayObject* part, PyObject* value) {
    ArrayObject* array = part->base;
    if (!array || array->base || array->external || part->view_op != index_op) return false;
    if (&type_of(value) != part->view_type) return false;
    Ref<Params> picks(part->view_params);
    return assign_slice(array, *picks, value);
}

void set_slice_ops(Op& index, Op& update, Op& gather) {
    index.part = Op::slice;
    update.part = Op::slice_update;
    index_op = &index;
    update_op = &update;
    gather_op = &gather;
    nb::tuple rows = nb::make_tuple(nb::make_tuple(0), 0);
    if (!gather_rows) gather_rows = new Ref<Params>(params_of(gather, rows.ptr()));
}

} // namespace tenfold::bindings
