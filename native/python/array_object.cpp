// Array object: its lifetime, its attributes, and its rebinding. It is written against the C API,
// since every operation makes one.
#include "python/python_objects.h"

#include <structmember.h>

#include "python/array_transfer.h"
#include "threads/counters.h"

namespace tenfold::bindings {

PyTypeObject* array_type = nullptr;
Hooks hooks{};
extern PyType_Slot number_slots[];

namespace {

ArrayObject* as_array(PyObject* object) { return reinterpret_cast<ArrayObject*>(object); }
PyObject* as_object(ArrayObject* array) { return reinterpret_cast<PyObject*>(array); }

// Arrays are made and dropped all the time: a short list of free ones saves the allocator.
constexpr int MAX_FREE = 256;
ArrayObject* free_arrays[MAX_FREE];
int free_count = 0;

ArrayObject* allocate() {
    ArrayObject* self;
    if (free_count > 0) {
        self = free_arrays[--free_count];
        PyObject_Init(as_object(self), array_type);
    } else {
        self = PyObject_New(ArrayObject, array_type);
        if (!self) return nullptr;
    }
    self->node = nullptr;
    self->base = nullptr;
    self->root = self;
    self->view_op = nullptr;
    self->view_params = nullptr;
    self->view_type = nullptr;
    self->version = 0;
    self->views = self->next = self->prev = nullptr;
    self->external = nullptr;
    self->borrows_base = false;
    self->weak_references = nullptr;
    return self;
}

void list_insert(ArrayObject* view) {
    view->next = view->root->views;
    if (view->next) view->next->prev = view;
    view->root->views = view;
}

void list_remove(ArrayObject* view) {
    if (!view->base) return;
    if (view->next) view->next->prev = view->prev;
    (view->prev ? view->prev->next : view->root->views) = view->next;
}

// Takes the base from a view: owned, or null where the view borrows it.
ArrayObject* detach_base(ArrayObject* view) {
    list_remove(view);
    ArrayObject* base = std::exchange(view->base, nullptr);
    return std::exchange(view->borrows_base, false) ? nullptr : base;
}

// Lets the one view that borrows a root outlive it; the other views are views of that one.
void survive_root(ArrayObject* root) {
    ArrayObject* part = root->views;
    while (part && !part->borrows_base) part = part->next;
    if (!part) return;
    detach_base(part);
    if (Params* params = std::exchange(part->view_params, nullptr)) release(params);
    release(std::exchange(part->view_type, nullptr));
    part->view_op = nullptr;
    part->views = std::exchange(root->views, nullptr);
    for (ArrayObject* view = part->views; view; view = view->next) view->root = part;
    part->root = part; // its version is the root's, which was never rebound since: it has its node
}

void deallocate(PyObject* object) {
    ArrayObject* self = as_array(object);
    if (self->weak_references) PyObject_ClearWeakRefs(object);
    if (self->views) survive_root(self);
    ExternalBuffer* window = self->external;
    ArrayObject* base = detach_base(self);
    if (self->node) release(self->node);
    if (self->view_params) release(self->view_params);
    if (self->view_type) release(self->view_type);
    PyTypeObject* type = Py_TYPE(object);
    if (free_count < MAX_FREE)
        free_arrays[free_count++] = self;
    else
        PyObject_Free(self);
    Py_DECREF(type);
    // A chain of views is unlinked iteratively, since each would free the next by recursion.
    while (base && Py_REFCNT(as_object(base)) == 1) {
        ArrayObject* next = detach_base(base);
        Py_DECREF(as_object(base));
        base = next;
    }
    Py_XDECREF(as_object(base));
    if (window) {
        close_window(window->record);
        delete window;
    }
    drain_decrefs();
}

// Whether a view has a value that is none of its window's memory: its user may have written there.
bool has_copy(ArrayObject* view) {
    if (!view->node) return false;
    Ref<Value> value = value_of(view->node);
    if (!value) return false;
    Ref<Value> root_value = value_of(view->root->node);
    return !root_value || value->buffers[0].allocation != root_value->buffers[0].allocation;
}

// Makes the nodes of stale views, base first.
bool refresh(ArrayObject* view) {
    uint64_t version = view->root->version;
    bool is_external = view->root->external;
    std::vector<ArrayObject*> stale;
    std::size_t num_stale = 0;
    for (ArrayObject* array = view; array->base && (is_external || array->version != version);
         array = array->base) {
        stale.push_back(array);
        if (array->version != version || has_copy(array)) num_stale = stale.size();
    }
    stale.resize(num_stale);
    for (auto array = stale.rbegin(); array != stale.rend(); ++array) {
        Node* input = (*array)->base->node;
        Ref<Node> node =
            make_node((*array)->view_op, {&input, 1}, Ref<Params>((*array)->view_params));
        if (!node) return false;
        Node* old = std::exchange((*array)->node, node.detach());
        if (old) release(old);
        (*array)->version = version;
    }
    return true;
}

PyObject* get_shape(PyObject* self, void*) { return shape_tuple(type_of(self)); }
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(dtype_object(type_of(self).dtype)); }
PyObject* get_device(PyObject* self, void*) { return Py_NewRef(device_name(type_of(self).device)); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromSize_t(type_of(self).shape.size()); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(type_of(self).size()); }

PyObject* get_base(PyObject* self, void*) {
    ArrayObject* base = as_array(self)->base;
    return base ? Py_NewRef(as_object(base)) : Py_NewRef(Py_None);
}

PythonFunction reshape_in_place{"tenfold.array.ndarray_methods", "set_shape"};

int set_shape(PyObject* self, PyObject* shape, void*) {
    if (!shape) {
        PyErr_SetString(PyExc_AttributeError, "the shape of an array cannot be deleted");
        return -1;
    }
    PyObject* done = to_python_error([&] {
        return PyObject_CallFunctionObjArgs(reshape_in_place.get().ptr(), self, shape, nullptr);
    });
    Py_XDECREF(done);
    return done ? 0 : -1;
}

Py_ssize_t length(PyObject* self) {
    const Type& type = type_of(self);
    if (!type.shape.empty()) return Py_ssize_t(type.shape[0]);
    PyErr_SetString(PyExc_TypeError, "len: an array without axes has no length\n"
                                     "  remedy: use x.size or x.item()");
    return -1;
}

PyObject* get_item(PyObject* self, PyObject* key) {
    PyObject* item = to_python_error([&] { return get_basic_item(self, key); });
    if (item || PyErr_Occurred()) return item;
    return PyObject_CallFunctionObjArgs(hooks.get_item, self, key, nullptr);
}

// Its slot makes an Array a sequence to C: reversed, bisect and pandas ask for that. Python has
// added the length to a negative position; one that is negative still must not count from the end.
PyObject* get_sequence_item(PyObject* self, Py_ssize_t position) {
    if (position < 0) position -= length(self);
    nb::object key = nb::steal(PyLong_FromSsize_t(position));
    return key.is_valid() ? get_item(self, key.ptr()) : nullptr;
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "delitem: elements of an array cannot be deleted\n"
                                         "  remedy: take the ones to keep, as in x[x > 0]");
        return -1;
    }
    PyObject* handled = to_python_error(
        [&] { return set_basic_item(self, key, value) ? Py_NewRef(Py_None) : nullptr; });
    Py_XDECREF(handled);
    if (handled || PyErr_Occurred()) return handled ? 0 : -1;
    PyObject* result = PyObject_CallFunctionObjArgs(hooks.set_item, self, key, value, nullptr);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

// The text of the error for a private name, borrowed. It is cached, as each export asks for two
// names.
PyObject* private_name_text(PyObject* name) {
    constexpr Py_ssize_t MAX_TEXTS = 64;
    static PyObject* const texts = PyDict_New(); // under the GIL
    if (PyObject* text = PyDict_GetItemWithError(texts, name)) return text;
    if (PyDict_GET_SIZE(texts) == MAX_TEXTS) PyDict_Clear(texts);
    PyObject* text = PyUnicode_FromFormat("'tenfold.Array' object has no attribute %R", name);
    if (!text || PyDict_SetItem(texts, name, text) != 0) return nullptr;
    Py_DECREF(text); // the dict has it
    return text;
}

// NumPy asks each operand for protocols by private names; Python says what to write for others.
PyObject* get_attribute(PyObject* self, PyObject* name) {
    if (_PyType_Lookup(Py_TYPE(self), name)) {
        PyObject* attribute = PyObject_GenericGetAttr(self, name);
        if (attribute || !PyErr_ExceptionMatches(PyExc_AttributeError)) return attribute;
        PyErr_Clear(); // a property may refuse
    }
    bool is_private = PyUnicode_GET_LENGTH(name) && PyUnicode_READ_CHAR(name, 0) == '_';
    static PyObject* const interface_name = PyUnicode_InternFromString("__array_interface__");
    if (name == interface_name) { // attribute names are interned
        PyObject* interface = array_interface(self);
        if (interface || PyErr_Occurred()) return interface;
    }
    if (!is_private && hooks.missing_attribute)
        return PyObject_CallFunctionObjArgs(hooks.missing_attribute, self, name, nullptr);
    if (PyObject* text = private_name_text(name)) // PyObject_GetAttr adds the name to the error
        PyErr_SetObject(PyExc_AttributeError, text);
    return nullptr;
}

PyObject* represent(PyObject* self) {
    return PyObject_CallFunction(hooks.format, "Os", self, "repr");
}

PyObject* stringify(PyObject* self) {
    return PyObject_CallFunction(hooks.format, "Os", self, "str");
}

PyGetSetDef properties[] = {
    {"shape", get_shape, set_shape, "The lengths of the axes, a tuple of ints.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type, a NumPy dtype.", nullptr},
    {"device", get_device, nullptr, "The name of the device that computes it.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of axes.", nullptr},
    {"size", get_size, nullptr, "The number of elements.", nullptr},
    {"base", get_base, nullptr, "The Array that this one is a view of, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

} // namespace

PyObject* new_array(Ref<Node> node) {
    ArrayObject* self = allocate();
    if (!self) return nullptr;
    self->node = node.detach();
    if (num_active_traces) trace_created(as_object(self));
    return as_object(self);
}

PyObject* new_view(Ref<Node> node, PyObject* base) {
    Ref<Params> params = node->params;
    const Op* op = node->op;
    PyObject* object = new_array(std::move(node));
    if (!object) return nullptr;
    ArrayObject* self = as_array(object);
    self->base = as_array(base);
    self->root = self->base->root;
    self->borrows_base =
        op->shows_part && self->base == self->root && !self->root->views && !self->root->external;
    if (!self->borrows_base) Py_INCREF(base);
    self->view_op = op;
    self->view_params = params.detach();
    self->view_type = Ref<Type>(self->node->type).detach();
    self->version = self->root->version;
    list_insert(self);
    return object;
}

void take_place_of_view(ArrayObject* array, ArrayObject* view) {
    ArrayObject* root = array->root;
    const bool was_root = root == array;
    if (was_root) {
        list_remove(view);
        std::swap(array->views, view->views);
        view->next = view->prev = nullptr;
        root = view;
    }
    std::swap(array->node, view->node);
    std::swap(array->base, view->base);
    std::swap(array->view_op, view->view_op);
    std::swap(array->view_params, view->view_params);
    std::swap(array->view_type, view->view_type);
    std::swap(array->version, view->version);
    std::swap(array->borrows_base, view->borrows_base);
    for (ArrayObject* other = root->views; other; other = other->next) {
        other->root = root;
        if (other->base != array || other == array) continue;
        other->base = view;
        if (other->borrows_base) continue;
        Py_INCREF(as_object(view));
        Py_DECREF(as_object(array));
    }
    view->root = root;
    array->root = root;
    array->base = view; // in place of the view's reference to the array
    Py_INCREF(as_object(view));
    if (was_root) list_insert(array);
    Py_DECREF(as_object(array));
}

std::vector<Ref<Node>> results_of(const Ref<Node>& node) {
    static const Op* part = &declare_op("part");
    static auto* indices = new std::vector<Ref<Params>>; // under the GIL
    std::vector<Ref<Node>> parts;
    for (std::size_t i = 0; i < node->inference->results.size(); ++i) {
        if (i == indices->size()) {
            nb::tuple index = nb::make_tuple(i);
            indices->push_back(params_of(*part, index.ptr()));
            indices->back()->axes = {int64_t(i)};
        }
        parts.push_back(result_node(part, (*indices)[i], node, i));
    }
    return parts;
}

PyObject* wrap_results(Ref<Node> node, PyObject* base) {
    if (node->op && (node->op->view || node->op->shows_part) && base && is_array(base))
        return new_view(std::move(node), base);
    std::size_t results = node->inference ? node->inference->results.size() : 1;
    if (results == 1) return new_array(std::move(node));
    PyObject* tuple = PyTuple_New(Py_ssize_t(results));
    std::vector<Ref<Node>> parts = results_of(node);
    for (std::size_t i = 0; tuple && i < results; ++i) {
        if (PyObject* array = new_array(std::move(parts[i])))
            PyTuple_SET_ITEM(tuple, Py_ssize_t(i), array);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

Node* checked_node_of(PyObject* object) {
    ArrayObject* self = as_array(object);
    bool is_current =
        !self->base || (self->version == self->root->version && !self->root->external);
    if (!is_current && !refresh(self)) return nullptr;
    if (num_active_traces) trace_read(object, self->node);
    return self->node;
}

Type& type_of(PyObject* object) {
    ArrayObject* self = as_array(object);
    return self->view_type ? *self->view_type : *self->node->type;
}

void invalidate_views(ArrayObject* root) {
    for (ArrayObject* view = root->views; view; view = view->next) {
        view->version = ~uint64_t(0);
        if (Node* node = std::exchange(view->node, nullptr)) release(node);
        if (std::exchange(view->borrows_base, false)) Py_INCREF(as_object(root)); // to read it anew
    }
}

void rebind(ArrayObject* array, Ref<Node> node) {
    if (num_active_traces) trace_rebind(array);
    release(std::exchange(array->node, node.detach()));
    ++array->version;
    invalidate_views(array); // they would keep the value before from being written over
}

namespace {

PythonFunction array_factory{"tenfold.numpy.creation", "array_of_shape"};

// Array(shape, dtype), as NumPy's scripts make an array of any values by its type. Data is refused:
// a function imports it.
PyObject* new_of_shape(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    nb::handle shape = PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0)
                       : kwargs               ? PyDict_GetItemString(kwargs, "shape")
                                              : nullptr;
    if (!shape.is_valid() || !(PyTuple_Check(shape.ptr()) || PyLong_Check(shape.ptr())))
        return PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
    return to_python_error([&] { return PyObject_Call(array_factory.get().ptr(), args, kwargs); });
}

Py_hash_t refuse_hash(PyObject*) {
    PyErr_SetString(PyExc_TypeError, "unhashable type: 'tenfold.Array'\n  remedy: take the number "
                                     "of a 0-d Array, x.item(), as a key, or id(x)");
    return -1;
}

} // namespace

bool make_array_type(PyObject* module) {
    std::vector<PyType_Slot> slots = {
        {Py_tp_new, reinterpret_cast<void*>(new_of_shape)},
        {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
        {Py_tp_getset, properties},
        {Py_tp_members, members},
        {Py_tp_methods, array_methods},
        {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
        {Py_tp_repr, reinterpret_cast<void*>(represent)},
        {Py_tp_str, reinterpret_cast<void*>(stringify)},
        {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
        {Py_mp_length, reinterpret_cast<void*>(length)},
        {Py_mp_subscript, reinterpret_cast<void*>(get_item)},
        {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
        {Py_sq_length, reinterpret_cast<void*>(length)},
        {Py_sq_item, reinterpret_cast<void*>(get_sequence_item)},
        {Py_bf_getbuffer, reinterpret_cast<void*>(lend_buffer)},
        {Py_tp_doc, const_cast<char*>("A lazy array: an expression, computed or not.")},
    };
    for (PyType_Slot* slot = number_slots; slot->slot; ++slot) slots.push_back(*slot);
    slots.push_back({0, nullptr});
    PyType_Spec spec{"tenfold.Array", sizeof(ArrayObject), 0, Py_TPFLAGS_DEFAULT, slots.data()};
    array_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (array_type) array_type->tp_hash = refuse_hash; // `__hash__` is None, as of what has none
    return array_type &&
           PyModule_AddObjectRef(module, "Array", reinterpret_cast<PyObject*>(array_type)) == 0;
}

} // namespace tenfold::bindings
