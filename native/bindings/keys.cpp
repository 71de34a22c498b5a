// x[key] and x[key] = e for keys of ints, slices, `...` and None, without Python. What is more than
// that is the `get_item`, the `set_item` and the `assign` hook's.
#include <algorithm>
#include <limits>

#include "../part.h"
#include "python.h"

namespace tenfold::bindings {
namespace {

const Op* index_op = nullptr;
const Op* update_op = nullptr;

// What a key says, as words that tell it from other keys of the same array.
struct Terms {
    static constexpr std::size_t MOST = 8;
    enum Tag : int64_t { position, range, new_axis, rest };
    std::array<PyObject*, MOST> items;
    std::array<int64_t, 4 * MOST> words;
    std::size_t count = 0, written = 0, axes = 0, new_axes = 0;
    bool ellipsis = false, element = true;

    bool read(PyObject* key) {
        if (!PyTuple_CheckExact(key)) return add(key);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
            if (!add(PyTuple_GET_ITEM(key, i))) return false;
        return true;
    }

  private:
    bool add(PyObject* item) {
        if (count == MOST) return false;
        items[count++] = item;
        if (PyLong_CheckExact(item)) return ++axes, write(position) && number(item);
        element = false;
        if (item == Py_None) return ++new_axes, write(new_axis);
        if (item == Py_Ellipsis) return write(rest) && !std::exchange(ellipsis, true);
        if (!PySlice_Check(item)) return false;
        ++axes;
        auto* bounds = reinterpret_cast<PySliceObject*>(item);
        return write(range) && number(bounds->start) && number(bounds->stop) &&
               number(bounds->step);
    }

    bool write(int64_t word) { return words[written++] = word, true; }

    // An int that Python refuses, or has in its own way, where it is one no array is as long as.
    bool number(PyObject* object) {
        constexpr int64_t NOT_GIVEN = std::numeric_limits<int64_t>::min();
        if (object == Py_None) return write(NOT_GIVEN);
        if (!PyLong_CheckExact(object)) return false;
        int overflow = 0;
        int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
        return !overflow && value != NOT_GIVEN && write(value);
    }
};

// As ir/shape.py has it: a pick of fewer than two has step 1. Another form would only not be found.
void encode_pick(std::string& bytes, int64_t start, int64_t count, int64_t step) {
    write_tuple(bytes, 3);
    if (count < 2) start = count ? start : 0, step = 1;
    write_integer(bytes, start);
    write_integer(bytes, count);
    write_integer(bytes, step);
}

bool encode_slice(std::string& bytes, PyObject* slice, int64_t length) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    if (PySlice_Unpack(slice, &start, &stop, &step) != 0) return PyErr_Clear(), false;
    Py_ssize_t count = PySlice_AdjustIndices(Py_ssize_t(length), &start, &stop, step);
    encode_pick(bytes, start, count, step);
    return true;
}

bool encode_position(std::string& bytes, PyObject* item, int64_t length) {
    int overflow = 0;
    int64_t position = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (position < 0) position += length;
    if (overflow || position < 0 || position >= length) return false;
    write_integer(bytes, position);
    return true;
}

// The canonical bytes of (picks, positions of new axes); false for what only Python refuses well.
bool encode_key(std::string& bytes, const Terms& terms, const std::vector<int64_t>& shape) {
    std::string added;
    int64_t axis = 0, place = 0;
    auto whole = [&](std::size_t axes) {
        for (; axes > 0; --axes, ++place) encode_pick(bytes, 0, shape[std::size_t(axis++)], 1);
    };
    std::size_t left = shape.size() - terms.axes;
    write_tuple(bytes, 2);
    write_tuple(bytes, int64_t(shape.size()));
    for (std::size_t i = 0; i < terms.count; ++i) {
        PyObject* item = terms.items[i];
        if (item == Py_None) {
            write_integer(added, place++);
        } else if (item == Py_Ellipsis) {
            whole(std::exchange(left, 0));
        } else if (PySlice_Check(item)) {
            if (!encode_slice(bytes, item, shape[std::size_t(axis++)])) return false;
            ++place;
        } else if (!encode_position(bytes, item, shape[std::size_t(axis++)])) {
            return false;
        }
    }
    whole(left);
    write_tuple(bytes, int64_t(terms.new_axes));
    bytes += added;
    return true;
}

// The last keys and what they say: most loops come again and again with the same ones, or with the
// one that they have just read. Under the GIL.
class Recent {
  public:
    struct Entry {
        Ref<Type> array;
        std::vector<int64_t> words;
        BasicKey key;
    };

    Entry& at(const Type& array, const Terms& terms) {
        std::size_t hash = reinterpret_cast<std::size_t>(&array);
        for (std::size_t i = 0; i < terms.written; ++i)
            hash = (hash ^ std::size_t(terms.words[i])) * 0x9e3779b97f4a7c15ULL;
        return entries_[hash >> (64 - PLACES_LOG)];
    }

    static bool matches(const Entry& entry, const Type& array, const Terms& terms) {
        return entry.array.get() == &array &&
               std::equal(entry.words.begin(), entry.words.end(), terms.words.begin(),
                          terms.words.begin() + std::ptrdiff_t(terms.written));
    }

  private:
    static constexpr std::size_t PLACES_LOG = 8;
    std::array<Entry, 1 << PLACES_LOG> entries_;
};

Recent* const recent = new Recent; // outlives the interpreter

} // namespace

BasicKey basic_key(Type& array, PyObject* key) {
    Terms terms;
    if (!index_op || !terms.read(key) || terms.axes > array.shape.size()) return {};
    Recent::Entry& entry = recent->at(array, terms);
    if (Recent::matches(entry, array, terms)) return entry.key;
    std::string bytes;
    if (!encode_key(bytes, terms, array.shape)) return {};
    BasicKey found{intern_params(bytes), terms.element && terms.count == array.shape.size()};
    entry.array = Ref<Type>(&array);
    entry.words.assign(terms.words.begin(), terms.words.begin() + std::ptrdiff_t(terms.written));
    entry.key = found;
    return found;
}

PyObject* basic_item(PyObject* self, PyObject* key) {
    BasicKey basic = basic_key(type_of(self), key);
    if (!basic.params) return nullptr;
    Node* input = node_of(self);
    if (!input) return nullptr;
    Ref<Node> node = make_node(index_op, {&input, 1}, std::move(basic.params));
    if (!node) return nullptr;
    return basic.element ? new_array(std::move(node)) : arrays_of(std::move(node), self);
}

namespace {

// Where more have piled up one has failed; Python knows when it is tried again.
constexpr uint32_t MOST_TRIED = MOST_TOGETHER + 4;

// Starts the work of earlier assignments, as assignment/places.py says it.
bool advance(PyObject* array, PyObject* value) {
    Node* before = reinterpret_cast<ArrayObject*>(array)->node;
    uint32_t pending = before->assignments.load(std::memory_order_relaxed);
    Ref<Node> read(node_of(value)); // to the end: another thread may rebind it meanwhile
    if (!read) return false;
    if (pending <= MOST_TRIED && read->assignments.load(std::memory_order_relaxed) < MOST_READ) {
        if (pending < MOST_PENDING) return true;
        if (compute_by_plan(Ref<Node>(before))) return recount(read.get()), true;
    }
    PyObject* done = PyObject_CallFunctionObjArgs(hooks.advance, array, value, nullptr);
    Py_XDECREF(done);
    return done;
}

const Starts& pattern_of(const Params& part) {
    return starts_of(*update_op, *starts_of(*update_op, part).pattern);
}

// How far a part lies from the last one of the same form that the Array was assigned to, as a
// number that is not 0; 0 where it was another form, the same part, or somebody has looked
// meanwhile.
uint64_t march(Node& before, const Params& part) {
    if (before.op != update_op || value_of(&before)) return 0;
    const Starts &last = starts_of(*update_op, *before.params), &now = starts_of(*update_op, part);
    if (last.pattern != now.pattern || last.starts == now.starts ||
        before.read_in_part.load(std::memory_order_relaxed))
        return 0;
    uint64_t number = 1;
    for (std::size_t i = 0; i < now.starts.size(); ++i)
        number = number * 0x9e3779b97f4a7c15ULL + uint64_t(now.starts[i] - last.starts[i]);
    return number | 1;
}

// Whether the work before an assignment may wait for it: in a long row of them, to be done at once.
bool may_wait(const Node& before, const Params& part, uint64_t march) {
    return before.alike >= LONG_ROW && before.waiting < MOST_TOGETHER &&
           (before.waiting == 1 || before.march == march) &&
           !pattern_of(part).apart.load(std::memory_order_relaxed);
}

// Lets an Array, which is no view and no window, name its value with a part replaced.
bool put(ArrayObject* array, const Params& picks, PyObject* value) {
    Ref<Params> part = replaced_part(*index_op, picks, *array->node->type);
    if (!part) return false;
    uint64_t far = march(*array->node, *part);
    bool waits = far && may_wait(*array->node, *part, far);
    if (!waits && !advance(reinterpret_cast<PyObject*>(array), value)) return false;
    Node* given = node_of(value);
    if (!given) return false;
    Node* inputs[] = {array->node, given};
    Ref<Node> node = make_node(update_op, inputs, std::move(part));
    if (!node) {
        if (PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear(); // Python says it in full
        return false;
    }
    if (far) node->alike = uint16_t(std::min<uint32_t>(array->node->alike + 1u, LONG_ROW));
    node->march = far;
    node->waiting = uint16_t(waits ? array->node->waiting + 1 : 1);
    rebind(array, std::move(node));
    return true;
}

} // namespace

bool set_basic_item(PyObject* self, PyObject* key, PyObject* value) {
    auto* array = reinterpret_cast<ArrayObject*>(self);
    if (!is_array(value) || array->window) return false;
    BasicKey basic = basic_key(type_of(self), key);
    if (!basic.params) return false;
    auto* given = reinterpret_cast<ArrayObject*>(value);
    if (array->base) // all of a view
        return given->root != array->root && is_all(*basic.params, type_of(self)) &&
               replace_part(array, value);
    if (given->base == array) // `x[key] op= e` ends with an assignment of what it has written to
        return given->view_op == index_op && given->view_params == basic.params.get();
    return put(array, *basic.params, value);
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
