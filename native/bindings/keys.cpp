// x[key] for keys of ints, slices, `...` and None whose parameters are known: without Python. Any
// other key, and a new one, is the `get_item` hook's.
#include "python.h"

namespace tenfold::bindings {
namespace {

const Op* index_op = nullptr;

struct Terms {
    static constexpr std::size_t MOST = 16;
    std::array<PyObject*, MOST> items;
    std::size_t count = 0, axes = 0, new_axes = 0;
    bool ellipsis = false;

    bool add(PyObject* item) {
        if (count == MOST) return false;
        items[count++] = item;
        if (PyLong_CheckExact(item) || PySlice_Check(item)) return ++axes, true;
        if (item == Py_None) return ++new_axes, true;
        return item == Py_Ellipsis && !std::exchange(ellipsis, true);
    }

    bool read(PyObject* key) {
        if (!PyTuple_CheckExact(key)) return add(key);
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
            if (!add(PyTuple_GET_ITEM(key, i))) return false;
        return true;
    }
};

// As ir/shape.py has it: a pick of fewer than two has step 1. Another form would only not be found.
void encode_pick(std::string& bytes, int64_t start, int64_t count, int64_t step) {
    encode_tuple(bytes, 3);
    if (count < 2) start = count ? start : 0, step = 1;
    encode_integer(bytes, start);
    encode_integer(bytes, count);
    encode_integer(bytes, step);
}

bool encode_slice(std::string& bytes, PyObject* slice, int64_t length) {
    auto* bounds = reinterpret_cast<PySliceObject*>(slice);
    for (PyObject* end : {bounds->start, bounds->stop, bounds->step})
        if (end != Py_None && !PyLong_CheckExact(end)) return false;
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
    encode_integer(bytes, position);
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
    encode_tuple(bytes, 2);
    encode_tuple(bytes, int64_t(shape.size()));
    for (std::size_t i = 0; i < terms.count; ++i) {
        PyObject* item = terms.items[i];
        if (item == Py_None) {
            encode_integer(added, place++);
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
    encode_tuple(bytes, int64_t(terms.new_axes));
    bytes += added;
    return true;
}

} // namespace

PyObject* basic_item(PyObject* self, PyObject* key) {
    Terms terms;
    const auto& shape = reinterpret_cast<ArrayObject*>(self)->node->type->shape;
    if (!index_op || !terms.read(key) || terms.axes > shape.size()) return nullptr;
    bool element = terms.count == shape.size(); // if every term is an int: then it is no view
    for (std::size_t i = 0; element && i < terms.count; ++i)
        element = PyLong_CheckExact(terms.items[i]);
    std::string bytes;
    if (!encode_key(bytes, terms, shape)) return nullptr;
    Ref<Params> params = intern_params(bytes);
    if (!params->python) return nullptr;
    Node* input = node_of(self);
    if (!input) return nullptr;
    Ref<Node> node = make_node(index_op, {&input, 1}, std::move(params));
    if (!node) return nullptr;
    return element ? new_array(std::move(node)) : arrays_of(std::move(node), self);
}

void set_index_op(const Op* op) { index_op = op; }

} // namespace tenfold::bindings
