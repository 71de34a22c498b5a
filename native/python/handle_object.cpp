// Handle object: the Python object of a pushed operator's future value.
#include "python/engine_bindings.h"

#include <chrono>
#include <cmath>

#include <structmember.h>

#include "threads/counters.h"

namespace tenfold::bindings {

PyTypeObject* handle_type = nullptr;
EngineHooks engine_hooks{};

namespace {

constexpr int64_t LOOK = 50'000'000; // nanoseconds between two looks for a signal

HandleObject* as_handle(PyObject* object) { return reinterpret_cast<HandleObject*>(object); }

// The seconds of a `timeout` argument, -1 for None or none; false with a Python error.
bool take_timeout(PyObject* const* args, Py_ssize_t count, PyObject* names, double& seconds,
                  const char* what) {
    PyObject* timeout = nullptr;
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    if (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "timeout") == 0)
        timeout = args[count];
    if (count + named > 1 || (named == 1 && !timeout)) {
        PyErr_Format(PyExc_TypeError, "%s: it takes one argument, timeout=None, in seconds", what);
        return false;
    }
    if (count == 1) timeout = args[0];
    seconds = -1;
    if (!timeout || timeout == Py_None) return true;
    seconds = PyFloat_AsDouble(timeout);
    bool number = !PyErr_Occurred();
    if (number && seconds >= 0) return true;
    PyErr_Format(number ? PyExc_ValueError : PyExc_TypeError,
                 "%s: timeout is %R\n  remedy: give seconds, at least 0, or None", what, timeout);
    return false;
}

Future* future_of(PyObject* self) {
    Future* future = as_handle(self)->future;
    if (!future) PyErr_SetString(PyExc_RuntimeError, "this handle is being collected");
    return future;
}

void timed_out(const Future& future, double seconds) {
    PyObject* shown = PyFloat_FromDouble(seconds);
    PyErr_Format(PyExc_TimeoutError, "%s: no value after %R seconds; the engine goes on",
                 future.operation ? future.operation->name.c_str() : "put", shown);
    Py_XDECREF(shown);
}

// The Future once it is settled; null with a Python error.
Future* settled(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names,
                const char* what) {
    double seconds;
    Future* future = future_of(self);
    if (!future || !take_timeout(args, count, names, seconds, what)) return nullptr;
    int state = wait_for_future(*future, seconds, what);
    if (state == 0) timed_out(*future, seconds);
    return state == 1 ? future : nullptr;
}

PyObject* get(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    return to_python_error([&]() -> PyObject* {
        Future* future = settled(self, args, count, names, "get");
        return future ? value_to_python(*future) : nullptr;
    });
}

// The same by the name of concurrent.futures.
PyObject* result(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    return to_python_error([&]() -> PyObject* {
        Future* future = settled(self, args, count, names, "result");
        return future ? value_to_python(*future) : nullptr;
    });
}

PyObject* exception(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    return to_python_error([&]() -> PyObject* {
        Future* future = settled(self, args, count, names, "exception");
        if (!future) return nullptr;
        if (!future->failure) Py_RETURN_NONE;
        if (!future->failure->error) return value_to_python(*future); // raises
        return error_to_python(*future);
    });
}

PyObject* done(PyObject* self, PyObject*) {
    Future* future = future_of(self);
    if (!future) return nullptr;
    if (!future->is_settled()) future->engine->force_sum(*future);
    return PyBool_FromLong(future->is_settled());
}

PyObject* cancel(PyObject* self, PyObject*) {
    return to_python_error([&]() -> PyObject* {
        Future* future = future_of(self);
        if (!future) return nullptr;
        if (future->is_settled() && !future->failure) Py_RETURN_FALSE;
        return PyBool_FromLong(!future->engine->is_from_parent_process() &&
                               future->engine->cancel(*future));
    });
}

// call(function): once it is settled, by a worker; False when it is settled by now, and all that
// were to be called before have been.
PyObject* call_when_settled(PyObject* self, PyObject* function) {
    return to_python_error([&]() -> PyObject* {
        Future* future = future_of(self);
        if (!future) return nullptr;
        const bool others_wait = has_callbacks(*future); // a worker takes all
        if (future->is_settled() && !others_wait) Py_RETURN_FALSE;
        if (future->engine->is_from_parent_process()) {
            if (future->is_settled()) Py_RETURN_FALSE;
            return wait_for_future(*future, 0, "await"), nullptr;
        }
        add_callback(*future, function);
        if (others_wait || future->engine->notify_when_settled(*future)) Py_RETURN_TRUE;
        drop_callbacks(*future);
        Py_RETURN_FALSE;
    });
}

// add_done_callback(function): function(handle) by a worker, or here where it is settled by now.
PyObject* add_done_callback(PyObject* self, PyObject* function) {
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError,
                     "add_done_callback: %R is not callable\n  remedy: give a function of a handle",
                     function);
        return nullptr;
    }
    return to_python_error([&]() -> PyObject* {
        nb::object call = nb::module_::import_("functools")
                              .attr("partial")(nb::handle(function), nb::handle(self));
        PyObject* waits = call_when_settled(self, call.ptr());
        if (!waits) return nullptr;
        bool is_settled = waits == Py_False;
        Py_DECREF(waits);
        if (!is_settled) Py_RETURN_NONE;
        PyObject* returned = PyObject_CallNoArgs(call.ptr());
        if (!returned) PyErr_WriteUnraisable(function); // as on a worker
        Py_XDECREF(returned);
        Py_RETURN_NONE;
    });
}

PyObject* refuse_array(PyObject*, PyObject*, PyObject*) {
    PyErr_SetString(PyExc_TypeError,
                    "a handle is a future value, not an array\n  remedy: write handle.get()");
    return nullptr;
}

PyObject* await(PyObject* self) {
    return PyObject_CallFunctionObjArgs(engine_hooks.wait, self, nullptr);
}

PyObject* represent(PyObject* self) {
    Future* future = as_handle(self)->future;
    if (!future) return PyUnicode_FromString("<handle>");
    const char* state = !future->is_settled()    ? "pending"
                        : !future->failure       ? "done"
                        : future->failure->error ? "failed"
                                                 : "cancelled";
    return PyUnicode_FromFormat("<handle of %s, %s>",
                                future->operation ? future->operation->name.c_str() : "put", state);
}

// Only an object without other references can be part of a cycle through this handle.
int visit(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Future* future = as_handle(self)->future;
    bool is_sole_owner = future && future->is_settled() && future->references.load() == 1;
    if (is_sole_owner && future->object) Py_VISIT(static_cast<PyObject*>(future->object));
    return 0;
}

int clear(PyObject* self) {
    Future* future = std::exchange(as_handle(self)->future, nullptr);
    if (!future) return 0;
    future->engine->release_handle(*future);
    release(future);
    return 0;
}

void deallocate(PyObject* self) {
    PyObject_GC_UnTrack(self); // if it is tracked
    if (as_handle(self)->weak_references) PyObject_ClearWeakRefs(self);
    clear(self);
    PyTypeObject* type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
    drain_decrefs();
    log_unobserved();
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(HandleObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class F> PyCFunction method(F function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef methods[] = {
    {"get", method(get), METH_FASTCALL | METH_KEYWORDS,
     "get($self, /, timeout=None)\n--\n\n"
     "Wait for the value and return it: an Array, or the user's object.\n\n"
     "Raises what the operator raised, CancelledError when it was cancelled, and TimeoutError "
     "after `timeout` seconds."},
    {"result", method(result), METH_FASTCALL | METH_KEYWORDS,
     "result($self, /, timeout=None)\n--\n\n"
     "The same as `get`, by the name of `concurrent.futures`."},
    {"exception", method(exception), METH_FASTCALL | METH_KEYWORDS,
     "exception($self, /, timeout=None)\n--\n\n"
     "Wait as `get` does and return what it would raise, or None."},
    {"done", done, METH_NOARGS,
     "done($self, /)\n--\n\nWhether the value is there, or an error; never waits."},
    {"cancel", cancel, METH_NOARGS,
     "cancel($self, /)\n--\n\n"
     "Cancel the operator and all that depends on it; False once it has started."},
    {"add_done_callback", add_done_callback, METH_O,
     "add_done_callback($self, function, /)\n--\n\n"
     "Call `function(handle)` on a worker once the value or an error is there, or at once."},
    {"__array__", reinterpret_cast<PyCFunction>(refuse_array), METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"_call_when_settled", call_when_settled, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(visit)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_am_await, reinterpret_cast<void*>(await)},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>("The future value of a pushed operator; see Engine.push.")},
    {0, nullptr},
};

} // namespace

double seconds_now() {
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
}

int wait_for_future(Future& future, double seconds, const char* what) {
    if (future.is_settled()) return 1;
    Engine& engine = *future.engine;
    if (engine.is_from_parent_process()) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s: this value is computed in the process that this one was forked from\n"
                     "  remedy: get it before the fork, or make an Engine in the child",
                     what);
        return -1;
    }
    if (is_inside_operator()) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s: an operator waits for another, which could wait for ever\n"
                     "  remedy: make that handle an input of the operator",
                     what);
        return -1;
    }
    Ref<Future> keep_alive(&future); // another thread may clear the handle meanwhile
    count(Counter::host_syncs);
    engine.prioritize(future);
    double until = seconds_now() + seconds;
    for (;;) {
        int64_t longest = LOOK;
        if (seconds >= 0)
            longest = int64_t(std::max(0.0, std::min(until - seconds_now(), 0.05)) * 1e9);
        gil_free_threads.fetch_add(1); // it helps
        PyThreadState* state = PyEval_SaveThread();
        bool done = engine.wait(future, longest);
        PyEval_RestoreThread(state);
        gil_free_threads.fetch_sub(1);
        if (done) return drain_decrefs(), 1;
        if (PyErr_CheckSignals() != 0) return -1;
        if (seconds >= 0 && seconds_now() >= until) return 0;
    }
}

PyObject* new_handle(Ref<Future> future) {
    auto* self = PyObject_GC_New(HandleObject, handle_type);
    if (!self) {
        future->engine->release_handle(*future);
        return nullptr;
    }
    self->weak_references = nullptr;
    // A result that tenfold computes refers to no handle: the garbage collector need not track it.
    const Operation* operation = future->operation.get();
    bool cyclic = operation ? operation->kind >= Operation::user : future->object != nullptr;
    self->future = future.detach();
    if (cyclic) PyObject_GC_Track(reinterpret_cast<PyObject*>(self));
    return reinterpret_cast<PyObject*>(self);
}

bool make_handle_type(PyObject* module) {
    PyType_Spec spec{"tenfold.Handle", sizeof(HandleObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     slots};
    handle_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return handle_type &&
           PyModule_AddObjectRef(module, "Handle", reinterpret_cast<PyObject*>(handle_type)) == 0;
}

} // namespace tenfold::bindings
