// Index keys: x[key] and x[key] = e for ints, slices, `...` and None, without Python code. Other
// keys go to the `get_item`, the `set_item` and the `assign` hook.
#include <algorithm>
#include <limits>

#include "ir/slice_params.h"
#include "memory/cache_registry.h"
#include "python/python_objects.h"

namespace tenfold::bindings {
namespace {

const Op* index_op = nullptr;
const Op* update_op = nullptr;

// What a key of ints, slices, `...` and None takes of an array. As core/shape_rules.py has it: a
// pick of fewer than two has step 1. Another form would only not be found.
class Picked {
  public:
    bool element = true; // every axis has an int: then the result is not a view

    // False for any other key, and for one that does not fit: Python refuses it well.
    bool read(PyObject* key, const std::vector<int64_t>& shape) {
        if (shape.size() > MOST) return false;
        bool tuple = PyTuple_CheckExact(key);
        PyObject** terms = tuple ? &PyTuple_GET_ITEM(key, 0) : &key;
        Py_ssize_t count = tuple ? PyTuple_GET_SIZE(key) : 1;
        std::size_t axes = 0;
        for (Py_ssize_t i = 0; i < count; ++i)
            axes += PyLong_CheckExact(terms[i]) || PySlice_Check(terms[i]);
        if (axes > shape.size()) return false;
        std::size_t left = shape.size() - axes;
        bool ellipsis = false;
        element = left == 0;
        for (Py_ssize_t i = 0; i < count; ++i) {
            if (terms[i] == Py_Ellipsis) {
                if (std::exchange(ellipsis, true)) return false;
                element = false;
                for (; left > 0; --left) pick(0, shape[axes_], 1);
            } else if (!take(terms[i], shape)) {
                return false;
            }
        }
        for (; left > 0; --left) pick(0, shape[axes_], 1);
        return true;
    }

    PerAxis starts() const { return PerAxis({starts_.data(), axes_}); }

    // All but the starts.
    std::span<const int64_t> form() const { return {form_.data(), formed_}; }

    // The canonical bytes of (picks, positions of new axes), the picks from 0 on.
    std::string bytes() const {
        std::string bytes;
        int64_t added = 0;
        write_tuple(bytes, 2);
        write_tuple(bytes, int64_t(axes_));
        for (std::size_t i = 0; i < formed_; i += 2) {
            int64_t count = form_[i], step = form_[i + 1];
            added += count == NEW_AXIS;
            if (count == NEW_AXIS) continue;
            if (count != POSITION) write_tuple(bytes, 3);
            write_integer(bytes, 0);
            if (count != POSITION) write_integer(bytes, count), write_integer(bytes, step);
        }
        write_tuple(bytes, added);
        for (std::size_t i = 0; i < formed_; i += 2)
            if (form_[i] == NEW_AXIS) write_integer(bytes, form_[i + 1]);
        return bytes;
    }

  private:
    static constexpr std::size_t MOST = 8;
    static constexpr int64_t POSITION = -1, NEW_AXIS = -2;

    bool take(PyObject* term, const std::vector<int64_t>& shape) {
        if (PyLong_CheckExact(term)) return position(term, shape[axes_]);
        element = false;
        if (PySlice_Check(term)) return slice(term, shape[axes_]);
        return term == Py_None && formed_ < form_.size() - 2 * MOST && form(NEW_AXIS, left_++);
    }

    bool position(PyObject* term, int64_t length) {
        int overflow = 0;
        int64_t number = PyLong_AsLongLongAndOverflow(term, &overflow);
        if (number < 0) number += length;
        if (overflow || number < 0 || number >= length) return false;
        starts_[axes_++] = number;
        return form(POSITION, 1);
    }

    bool slice(PyObject* term, int64_t length) {
        auto* bounds = reinterpret_cast<PySliceObject*>(term);
        for (PyObject* end : {bounds->start, bounds->stop, bounds->step})
            if (end != Py_None && !PyLong_CheckExact(end)) return false;
        if (bounds->step == Py_None) return stretch(*bounds, length);
        Py_ssize_t start = 0, stop = 0, step = 0;
        if (PySlice_Unpack(term, &start, &stop, &step) != 0) return PyErr_Clear(), false;
        Py_ssize_t count = PySlice_AdjustIndices(Py_ssize_t(length), &start, &stop, step);
        return pick(count ? start : 0, count, count < 2 ? 1 : step);
    }

    // Without a step, which is what most slices are.
    bool stretch(const PySliceObject& bounds, int64_t length) {
        int64_t start = end_of(bounds.start, 0, length), stop = end_of(bounds.stop, length, length);
        int64_t count = std::max<int64_t>(stop - start, 0);
        return pick(count ? start : 0, count, 1);
    }

    static int64_t end_of(PyObject* end, int64_t missing, int64_t length) {
        if (end == Py_None) return missing;
        int overflow = 0; // then the number is far outside, to be clipped like any other
        int64_t number = PyLong_AsLongLongAndOverflow(end, &overflow);
        if (overflow) return overflow < 0 ? 0 : length;
        return std::clamp<int64_t>(number < 0 ? number + length : number, 0, length);
    }

    bool pick(int64_t start, int64_t count, int64_t step) {
        starts_[axes_++] = start;
        ++left_;
        return form(count, step);
    }

    bool form(int64_t one, int64_t other) {
        form_[formed_++] = one;
        form_[formed_++] = other;
        return true;
    }

    std::array<int64_t, MOST> starts_;
    std::array<int64_t, 4 * MOST> form_;
    std::size_t axes_ = 0, formed_ = 0;
    int64_t left_ = 0; // axes of the result
};

// The patterns of the forms that keys had last. Under the GIL.
class Patterns {
  public:
    const Ref<Params>& of(const Picked& picked) {
        auto form = picked.form();
        std::size_t hash = form.size();
        for (int64_t word : form) hash = (hash ^ std::size_t(word)) * 0x9e3779b97f4a7c15ULL;
        Entry& entry = entries_[hash >> (64 - PLACES_LOG)];
        if (!entry.pattern || !std::ranges::equal(entry.form, form)) {
            entry.pattern = intern_params(picked.bytes());
            entry.form.assign(form.begin(), form.end());
        }
        return entry.pattern;
    }
    static constexpr std::size_t PLACES_LOG = 8; // no more than tests cut hashes to
    std::size_t count() const {
        return std::size_t(std::ranges::count_if(
            entries_, [](const Entry& entry) { return bool(entry.pattern); }));
    }
    void forget() { entries_ = {}; }

  private:
    struct Entry {
        std::vector<int64_t> form;
        Ref<Params> pattern;
    };
    std::array<Entry, 1 << PLACES_LOG> entries_;
};

Patterns* const patterns = new Patterns; // outlives the interpreter

[[maybe_unused]] Cache& patterns_joined =
    join({"forms of keys", 1 << Patterns::PLACES_LOG, [] { return patterns->count(); },
          [] { patterns->forget(); }});

// The Params of the parts that were taken last: loops take the same ones again. Under the GIL.
class Parts {
  public:
    const Ref<Params>& of(const Params& pattern, const Picked& picked) {
        PerAxis starts = picked.starts();
        auto hash = reinterpret_cast<std::size_t>(&pattern);
        for (int64_t start : starts.span()) hash = hash * FACTOR ^ std::size_t(start);
        Ref<Params>& entry = entries_[hash * FACTOR >> (64 - PLACES_LOG)];
        if (!entry || !is(*entry, pattern, starts)) entry = moved(*index_op, pattern, starts);
        return entry;
    }
    static constexpr std::size_t PLACES_LOG = 8;
    std::size_t count() const {
        return std::size_t(
            std::ranges::count_if(entries_, [](const auto& entry) { return bool(entry); }));
    }
    void forget() { entries_ = {}; }

  private:
    static bool is(const Params& params, const Params& pattern, const PerAxis& starts) {
        const Starts& known = starts_of(*index_op, params);
        return known.pattern == &pattern && known.starts == starts;
    }

    static constexpr std::size_t FACTOR = 0x9e3779b97f4a7c15ULL;
    std::array<Ref<Params>, 1 << PLACES_LOG> entries_;
};

Parts* const parts = new Parts; // outlives the interpreter

[[maybe_unused]] Cache& parts_joined =
    join({"parts taken last", 1 << Parts::PLACES_LOG, [] { return parts->count(); },
          [] { parts->forget(); }});

} // namespace

PyObject* basic_item(PyObject* self, PyObject* key) {
    Picked picked;
    if (!index_op || !picked.read(key, type_of(self).shape)) return nullptr;
    Node* input = node_of(self);
    if (!input) return nullptr;
    Ref<Params> params = parts->of(*patterns->of(picked), picked);
    Ref<Node> node = make_node(index_op, {&input, 1}, std::move(params));
    if (!node) return nullptr;
    return picked.element ? new_array(std::move(node)) : arrays_of(std::move(node), self);
}

namespace {

// Where more have piled up one has failed; Python knows when it is tried again.
constexpr uint32_t MOST_TRIED = MOST_TOGETHER + 4;
// What is counted below a node has been computed in part when it counts so many.
constexpr uint32_t MOST_STALE = 4;

// What is assigned to elements of a Type: an Array's node, or that of the float that a number
// becomes. Nothing where Python is to be asked.
Ref<Node> node_to_assign(PyObject* value, PyObject* array) {
    if (is_array(value)) return Ref<Node>(node_of(value));
    bool number = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
    if (!number || dtype_of(type_of(array).dtype).kind != 'f') return {};
    nb::object real = nb::steal(PyNumber_Float(value));
    if (!real.is_valid()) return PyErr_Clear(), Ref<Node>(); // Python says it in full
    return Ref<Node>(Operand(real.ptr(), array).get());
}

// Starts the work of earlier assignments, as array/view_writethrough.py says it.
bool advance(PyObject* array, PyObject* value, Node* read) {
    Node* before = reinterpret_cast<ArrayObject*>(array)->node;
    uint32_t pending = before->assignments.load(std::memory_order_relaxed);
    if (pending <= MOST_TRIED && read->assignments.load(std::memory_order_relaxed) < MOST_READ) {
        if (pending < MOST_PENDING) return true;
        if (compute_by_plan(Ref<Node>(before))) {
            if (read->assignments.load(std::memory_order_relaxed) >= MOST_STALE) recount(read);
            return true;
        }
    }
    PyObject* done = PyObject_CallFunctionObjArgs(hooks.advance, array, value, nullptr);
    Py_XDECREF(done);
    return done;
}

const Starts& pattern_of(const Params& part) {
    return starts_of(*update_op, *starts_of(*update_op, part).pattern);
}

// The distance of a part from the last assigned part of the same form, as a number that is not 0; 0
// for another form, for the same part, or where the value has been read meanwhile.
uint16_t march(Node& before, const Params& part) {
    if (before.op != update_op || value_of(&before)) return 0;
    const Starts &last = starts_of(*update_op, *before.params), &now = starts_of(*update_op, part);
    if (last.pattern != now.pattern || last.starts == now.starts ||
        before.read_in_part.load(std::memory_order_relaxed))
        return 0;
    uint64_t number = 1;
    for (std::size_t i = 0; i < now.starts.size(); ++i)
        number = number * 0x9e3779b97f4a7c15ULL + uint64_t(now.starts[i] - last.starts[i]);
    return uint16_t(number >> 48 | 1); // another that is alike waits for nothing: it is right, too
}

// Whether the work before an assignment may wait for it: in a long row of them, to be done at once.
bool may_wait(const Node& before, const Params& part, uint16_t march) {
    return before.alike >= LONG_ROW && before.waiting < MOST_TOGETHER &&
           (before.waiting == 1 || before.march == march) &&
           !pattern_of(part).apart.load(std::memory_order_relaxed);
}

// Lets an Array, which is neither a view nor a window, name its value with a part replaced.
bool put(ArrayObject* array, const Params& picks, PyObject* value) {
    Ref<Params> part = replaced_part(*index_op, *update_op, picks, *array->node->type);
    if (!part) return false;
    uint16_t far = march(*array->node, *part);
    bool waits = far && may_wait(*array->node, *part, far);
    PyObject* target = reinterpret_cast<PyObject*>(array);
    Ref<Node> given = node_to_assign(value, target); // another thread may rebind the value
    if (!given || (!waits && !advance(target, value, given.get()))) return false;
    Node* inputs[] = {array->node, given.get()};
    Ref<Node> node = make_node(update_op, inputs, std::move(part));
    if (!node) {
        if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); // Python says it in full
        return false;
    }
    if (far) node->alike = uint8_t(std::min<uint32_t>(array->node->alike + 1u, LONG_ROW));
    node->march = far;
    node->waiting = uint8_t(waits ? array->node->waiting + 1 : 1);
    rebind(array, std::move(node));
    return true;
}

} // namespace

bool set_basic_item(PyObject* self, PyObject* key, PyObject* value) {
    auto* array = reinterpret_cast<ArrayObject*>(self);
    Picked picked;
    if (array->window || !index_op) return false;
    if (!picked.read(key, type_of(self).shape)) return false;
    const Ref<Params>& pattern = patterns->of(picked);
    if (!is_array(value)) {
        if (array->base) return false;
        Ref<Params> picks = parts->of(*pattern, picked);
        return put(array, *picks, value);
    }
    auto* given = reinterpret_cast<ArrayObject*>(value);
    if (array->base) // all of a view
        return given->root != array->root && is_all(*pattern, type_of(self)) &&
               replace_part(array, value);
    if (given->base == array) { // `x[key] op= e` ends with an assignment of what it has written to
        if (given->view_op != index_op) return false;
        const Starts& part = starts_of(*index_op, *given->view_params);
        return part.pattern == pattern.get() && part.starts == picked.starts();
    }
    Ref<Params> picks = parts->of(*pattern, picked);
    return put(array, *picks, value);
}

bool replace_part(ArrayObject* part, PyObject* value) {
    ArrayObject* array = part->base;
    if (!array || array->base || array->window || part->view_op != index_op) return false;
    if (&type_of(value) != part->view_type) return false;
    Ref<Params> picks(part->view_params);
    return put(array, *picks, value);
}

void keep_apart(const Node& node) {
    if (node.op == update_op) pattern_of(*node.params).apart = true;
}

void set_part_ops(Op& index, Op& update) {
    index.part = Op::taken;
    update.part = Op::replaced;
    index_op = &index;
    update_op = &update;
}

} // namespace tenfold::bindings
