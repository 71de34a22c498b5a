// Engine bindings: push operations of tenfold on handles and numbers without Python code.
#include "python/engine_bindings.h"

#include "engine/timeline.h"

#include <unordered_set>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <structmember.h>

namespace tenfold::bindings {
namespace {

struct EngineObject {
    PyObject_HEAD Engine* engine;                             // counted
    std::unordered_set<BatcherKey, BatcherKeyHash>* prepared; // owned
    BatcherKey last_signature;                                // one of them
    PyObject *attributes, *weak_references;
    bool is_draining; // it is about to be closed: only operators push
};

EngineObject* as_engine(PyObject* object) { return reinterpret_cast<EngineObject*>(object); }

Engine* engine_of(PyObject* self) {
    Engine* engine = as_engine(self)->engine;
    if (!engine) PyErr_SetString(PyExc_RuntimeError, "Engine: __init__ was not called");
    return engine;
}

bool check_usable(PyObject* self, const char* method) {
    Engine& engine = *as_engine(self)->engine;
    bool closed = engine.closed() || (as_engine(self)->is_draining && !is_inside_operator());
    const char* reason = closed ? "this engine has been shut down"
                         : engine.is_from_parent_process()
                             ? "this engine is the process's that this one was "
                               "forked from"
                             : nullptr;
    if (reason)
        PyErr_Format(PyExc_RuntimeError, "%s: %s\n  remedy: make another Engine", method, reason);
    return !reason;
}

// Sites that were pushed from lately; under the GIL.
Ref<PushSite> current_push_site() {
    constexpr std::size_t NUM_SLOTS = 256;
    static auto* sites = new std::array<Ref<PushSite>, NUM_SLOTS>;
    PyFrameObject* frame = PyEval_GetFrame();
    if (!frame) return {};
    PyCodeObject* code = PyFrame_GetCode(frame);
    int offset = PyFrame_GetLasti(frame);
    std::size_t slot = (reinterpret_cast<std::size_t>(code) >> 4) * 31 + std::size_t(offset) / 2;
    Ref<PushSite>& site = (*sites)[slot % NUM_SLOTS];
    if (site && site->code == code && site->offset == offset) {
        Py_DECREF(code);
        return site;
    }
    auto created = Ref<PushSite>::adopt(new PushSite);
    created->code = code;
    created->offset = offset;
    site = created;
    return created;
}

// Waits until so many bytes fit; false with a Python error if they never will.
bool wait_for_memory(Engine& engine, std::size_t bytes, const Operation* operation,
                     const char* method) {
    constexpr int64_t POLL_INTERVAL_NS = 1'000'000; // nanoseconds
    for (;;) {
        Engine::Room room = engine.memory_room(bytes, operation);
        if (room == Engine::room || (room == Engine::likely && is_inside_operator())) return true;
        if (room == Engine::none || is_inside_operator()) {
            EngineStatistics statistics = engine.statistics();
            const char* reason = is_inside_operator()
                                     ? "an operator cannot wait for some to be freed"
                                 : engine.is_held() ? "under hold nothing runs that could free any"
                                                    : "nothing that runs can free any";
            PyErr_Format(PyExc_MemoryError,
                         "%s: %zu bytes more exceed the engine's memory_limit of %zu: values take "
                         "%lld, and %s\n"
                         "  remedy: drop handles, or give the engine a higher limit",
                         method, bytes, engine.limits().max_bytes, (long long)statistics.live_bytes,
                         reason);
            return false;
        }
        drain_decrefs();
        PyThreadState* state = PyEval_SaveThread();
        timespec span{0, POLL_INTERVAL_NS};
        nanosleep(&span, nullptr);
        PyEval_RestoreThread(state);
        if (PyErr_CheckSignals() != 0) return false;
    }
}

std::size_t bytes_of(const OperatorResult& answer) {
    return answer.value ? answer.value->buffers[0].allocation->bytes : answer.bytes;
}

// An input that is not a handle; empty with a Python error.
Ref<Future> put(Engine& engine, PyObject* object, const char* method) {
    bool number = PyFloat_CheckExact(object) || PyLong_CheckExact(object);
    nb::object imported =
        number ? nb::borrow(object)
               : nb::steal(PyObject_CallFunctionObjArgs(engine_hooks.import, object, nullptr));
    if (!imported.is_valid()) return {};
    OperatorResult answer = answer_from_object(imported.ptr());
    if (answer.empty()) return {};
    if (engine.limits().max_bytes && !wait_for_memory(engine, bytes_of(answer), nullptr, method)) {
        Py_XDECREF(static_cast<PyObject*>(answer.object));
        return {};
    }
    return engine.put(std::move(answer));
}

bool check_arity(const Operation& operation, std::size_t count) {
    if (count >= operation.min_inputs && count <= operation.max_inputs) return true;
    const int min_inputs = operation.min_inputs, max_inputs = operation.max_inputs,
              given_inputs = int(count);
    const char* qualifier = min_inputs == max_inputs    ? ""
                            : given_inputs < min_inputs ? "at least "
                                                        : "at most ";
    const char* text = "push: %s takes %s%d inputs, not %d\n"
                       "  remedy: push(operator, *inputs, **params)%s";
    PyErr_Format(PyExc_TypeError, text, operation.name.c_str(), qualifier,
                 given_inputs < min_inputs ? min_inputs : max_inputs, given_inputs,
                 operation.planned_graph ? ", many inputs in a list" : "");
    return false;
}

void prepare_if_typed(EngineObject& self, Operation& operation, std::span<Future* const> inputs) {
    std::array<Type*, Future::INLINE_INPUTS> types{};
    std::size_t count = operation.planned_graph ? 0 : inputs.size();
    for (std::size_t i = 0; i < count; ++i)
        if (i == types.size() || !(types[i] = inputs[i]->known_type())) return;
    std::span<Type* const> input_types{types.data(), count};
    BatcherKey signature = Engine::signature_of(operation, input_types);
    if (signature == self.last_signature) return;
    if (self.prepared->size() >= MAX_IDLE_BATCHERS) self.prepared->clear();
    if (self.prepared->insert(signature).second)
        prepare_batcher(*self.engine, operation, input_types);
    self.last_signature = signature;
}

// Futures made for inputs that are not handles; those `gathered` by operators count as a handle.
struct InputFutures {
    std::vector<Ref<Future>> put, gathered;
    ~InputFutures() {
        for (Ref<Future>& future : gathered) future->engine->release_handle(*future);
    }
};

Ref<Future> push_inputs(EngineObject& self, Ref<Operation> operation,
                        std::span<PyObject* const> args);

// A list that holds handles is put together by an operator of its own, once they are there.
Future* put_or_gather(EngineObject& self, const Operation& operation, PyObject* object,
                      InputFutures& input_futures) {
    nb::object gather_spec;
    if (PyList_Check(object) || PyTuple_Check(object)) {
        PyObject* is_builtin = operation.kind <= Operation::general ? Py_True : Py_False;
        gather_spec = nb::steal(
            PyObject_CallFunctionObjArgs(engine_hooks.parts, object, is_builtin, nullptr));
        if (!gather_spec.is_valid()) return nullptr;
    }
    if (!gather_spec.is_valid() || gather_spec.is_none()) {
        input_futures.put.push_back(put(*self.engine, object, "push"));
        return input_futures.put.back().get();
    }
    nb::object items = gather_spec[1]; // a tuple
    std::span<PyObject* const> items_span{&PyTuple_GET_ITEM(items.ptr(), 0),
                                          std::size_t(PyTuple_GET_SIZE(items.ptr()))};
    Ref<Operation> gather_operation =
        make_operation(nb::object(gather_spec[0]).ptr(), nullptr, items_span);
    if (!gather_operation || Py_EnterRecursiveCall(" while a list is pushed") != 0) return nullptr;
    Ref<Future> future = push_inputs(self, std::move(gather_operation), items_span);
    Py_LeaveRecursiveCall();
    if (!future) return nullptr;
    input_futures.gathered.push_back(std::move(future));
    return input_futures.gathered.back().get();
}

Ref<Future> push_inputs(EngineObject& self, Ref<Operation> operation,
                        std::span<PyObject* const> args) {
    constexpr std::size_t FEW = 8;
    std::array<Future*, FEW> inline_futures;
    std::vector<Future*> heap_futures(args.size() > FEW ? args.size() : 0);
    InputFutures input_futures;
    Future** futures = heap_futures.empty() ? inline_futures.data() : heap_futures.data();
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (is_handle(args[i])) {
            futures[i] = reinterpret_cast<HandleObject*>(args[i])->future;
            if (futures[i] && futures[i]->engine == self.engine) continue;
            PyErr_Format(PyExc_ValueError,
                         "push: input %zu of %s is a handle of another engine\n"
                         "  remedy: give this engine its value, engine.put(handle.get())",
                         i + 1, operation->name.c_str());
            return {};
        }
        futures[i] = put_or_gather(self, *operation, args[i], input_futures);
        if (!futures[i]) return {};
    }
    std::span<Future* const> inputs{futures, args.size()};
    if (operation->memoized) prepare_if_typed(self, *operation, inputs);
    std::size_t bytes = 0;
    if (self.engine->limits().max_bytes) {
        bytes = expected_bytes(*self.engine, *operation, args, inputs);
        const Operation* guessed = bytes ? nullptr : operation.get();
        if (!wait_for_memory(*self.engine, bytes, guessed, "push")) return {};
    }
    Ref<Future> future = self.engine->push(std::move(operation), current_push_site(), inputs,
                                           is_inside_operator(), bytes);
    if (!future) check_usable(reinterpret_cast<PyObject*>(&self), "push");
    return future;
}

// The operation of an operator that is no traced function.
Ref<Operation> operation_of_push(PyObject* operator_, std::span<PyObject* const>& inputs,
                                 PyObject* names, PyObject* params, PushedCall& call) {
    std::span<PyObject* const> args = inputs;
    Ref<Operation> operation = make_repeated_call(operator_, inputs, names, false, call);
    if (!operation) operation = make_operation(operator_, params, inputs);
    if (!operation || !operation->has_several_results) return operation;
    Ref<Operation> repeated_call = make_repeated_call(operator_, args, names, true, call);
    if (!repeated_call) return operation;
    inputs = args;
    return repeated_call;
}

PyObject* push(PyObject* object, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    return to_python_error([&]() -> PyObject* {
        Engine* engine = engine_of(object);
        if (!engine || !check_usable(object, "push")) return nullptr;
        if (count == 0) {
            PyErr_SetString(PyExc_TypeError, "push: no operator\n"
                                             "  remedy: push(operator, *inputs, **params)");
            return nullptr;
        }
        nb::object params;
        if (names && PyTuple_GET_SIZE(names) > 0) {
            params = nb::steal(PyDict_New());
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
                if (PyDict_SetItem(params.ptr(), PyTuple_GET_ITEM(names, i), args[count + i]) != 0)
                    return nullptr;
        }
        std::span<PyObject* const> inputs{args + 1, std::size_t(count - 1)};
        PushedCall call;
        Ref<Operation> operation =
            is_caller(args[0]) ? make_call_operation(args[0], inputs, names, params.ptr(), call)
                               : operation_of_push(args[0], inputs, names, params.ptr(), call);
        if (!operation || !check_arity(*operation, std::size_t(count - 1))) return nullptr;
        Ref<Future> future = push_inputs(*as_engine(object), std::move(operation), inputs);
        if (!future) return nullptr;
        PyObject* handle = new_handle(std::move(future));
        drain_decrefs();
        return handle;
    });
}

PyObject* put_object(PyObject* self, PyObject* object) {
    return to_python_error([&]() -> PyObject* {
        Engine* engine = engine_of(self);
        if (!engine || !check_usable(self, "put")) return nullptr;
        if (is_handle(object)) {
            PyErr_SetString(PyExc_TypeError, "put: a handle is in an engine already\n"
                                             "  remedy: push operators on it");
            return nullptr;
        }
        Ref<Future> future = put(*engine, object, "put");
        if (!future) return nullptr;
        engine->retain_handle(*future);
        return new_handle(std::move(future));
    });
}

// flush(handle=None)
PyObject* flush(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    return to_python_error([&]() -> PyObject* {
        Engine* engine = engine_of(self);
        if (!engine || !check_usable(self, "flush")) return nullptr;
        if (is_inside_operator()) {
            PyErr_SetString(PyExc_RuntimeError,
                            "flush: an operator waits for others, which could wait for ever\n"
                            "  remedy: make what it needs its inputs");
            return nullptr;
        }
        if (count > 0 && args[0] != Py_None) {
            Future* one =
                is_handle(args[0]) ? reinterpret_cast<HandleObject*>(args[0])->future : nullptr;
            if (!one || count > 1) {
                PyErr_SetString(PyExc_TypeError, "flush: it takes one handle, or nothing\n"
                                                 "  remedy: engine.flush(handle)");
                return nullptr;
            }
            if (one->engine != engine) {
                PyErr_SetString(PyExc_ValueError, "flush: a handle of another engine\n"
                                                  "  remedy: flush it there, or call its get()");
                return nullptr;
            }
            if (wait_for_future(*one, -1, "flush") < 0) return nullptr;
        } else {
            if (!flush_all(*engine)) return nullptr;
        }
        finish_frees(*engine);
        Py_RETURN_NONE;
    });
}

PyObject* begin_hold(PyObject* self, PyObject*) {
    Engine* engine = engine_of(self);
    if (!engine || !check_usable(self, "hold")) return nullptr;
    engine->hold();
    Py_RETURN_NONE;
}

PyObject* end_hold(PyObject* self, PyObject*) {
    if (Engine* engine = engine_of(self)) engine->release_hold();
    Py_RETURN_NONE;
}

// Runs all pending operators, and those that they push meanwhile; then nothing can be pushed any
// more.
PyObject* finish(PyObject* self, PyObject*) {
    return to_python_error([&]() -> PyObject* {
        Engine* engine = engine_of(self);
        if (!engine) return nullptr;
        as_engine(self)->is_draining = true;
        do {
            if (flush_all(*engine)) continue;
            as_engine(self)->is_draining = false;
            return nullptr;
        } while (!engine->close_if_done());
        Py_RETURN_NONE;
    });
}

// _close(cancel, seconds) -> whether all workers have ended
PyObject* close(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    return to_python_error([&]() -> PyObject* {
        Engine* engine = engine_of(self);
        if (!engine || count != 2) return nullptr;
        bool cancel = PyObject_IsTrue(args[0]) == 1;
        return PyBool_FromLong(shut_down_engine(*engine, cancel, PyFloat_AsDouble(args[1])));
    });
}

PyObject* statistics(PyObject* self, PyObject*) {
    return to_python_error([&]() -> PyObject* {
        Engine* engine = engine_of(self);
        if (!engine) return nullptr;
        engine->wait_for_frees();
        drain_decrefs();
        EngineStatistics found = engine->statistics();
        nb::dict all, sizes;
        all["pushed"] = found.pushed;
        all["pending"] = found.pending;
        all["ready"] = found.ready;
        all["running"] = found.running;
        all["done"] = found.done;
        all["failed"] = found.failed;
        all["cancelled"] = found.cancelled;
        all["dropped"] = found.dropped;
        all["batches"] = found.batches;
        for (auto [size, times] : found.sizes) sizes[nb::int_(size)] = times;
        all["batch_sizes"] = sizes;
        all["live_objects"] = found.live_objects;
        all["live_bytes"] = found.live_bytes;
        all["peak_bytes"] = found.peak_bytes;
        return all.release().ptr();
    });
}

// The pending Futures: (number, name, state, numbers of its pending inputs), by number.
PyObject* pending(PyObject* self, PyObject*) {
    return to_python_error([&]() -> PyObject* {
        Engine* engine = engine_of(self);
        if (!engine) return nullptr;
        nb::list all;
        for (const Engine::PendingInfo& each : engine->pending())
            all.append(nb::make_tuple(each.number, each.name, each.state,
                                      nb::tuple(nb::cast(each.inputs))));
        return all.release().ptr();
    });
}

PyObject* closed(PyObject* self, void*) {
    Engine* engine = engine_of(self);
    return engine ? PyBool_FromLong(engine->closed() || engine->is_from_parent_process()) : nullptr;
}

// Before the first operation: at the end of the interpreter a module may have gone.
void import_engine_hooks() {
    if (engine_hooks.describe) return;
    auto take = [](const char* module, const char* name) {
        return PythonFunction(module, name).get().release().ptr();
    };
    engine_hooks = {take("tenfold.engine.operator_spec", "describe"),
                    take("tenfold.engine.operands", "import_operand"),
                    take("tenfold.engine.python_operators", "run"),
                    take("tenfold.engine.operator_spec", "signature"),
                    take("tenfold.engine.operators", "copy_for_update"),
                    take("tenfold.engine.python_operators", "error_for_waiter"),
                    take("tenfold.engine.python_operators", "log_unretrieved"),
                    take("tenfold.engine.engine", "awaitable"),
                    take("tenfold.engine.operators", "EngineObject"),
                    take("tenfold.ops.arithmetic", "add"),
                    take("tenfold.settings", "submission_options"),
                    take("tenfold.engine.operators", "as_gather"),
                    take("tenfold.pipeline", "plan_of"),
                    take("tenfold.engine.python_operators", "run_stacked")};
}

// __init__(threads, batch_limit, batch_wait in nanoseconds, memory_limit); 0: none.
int init(PyObject* object, PyObject* args, PyObject*) {
    long long threads, batch, wait, memory;
    if (!PyArg_ParseTuple(args, "LLLL", &threads, &batch, &wait, &memory)) return -1;
    EngineObject* self = as_engine(object);
    if (self->engine) {
        PyErr_SetString(PyExc_RuntimeError, "Engine: __init__ was called twice");
        return -1;
    }
    PyObject* made = to_python_error([&] {
        import_engine_hooks();
        self->engine =
            new Engine({int(threads), std::size_t(batch), wait, std::size_t(memory)}, host());
        self->prepared = new std::unordered_set<BatcherKey, BatcherKeyHash>;
        std::span<PyObject* const> none;
        Ref<Operation> add = make_operation(engine_hooks.add, nullptr, none);
        if (add) self->engine->set_add(std::move(add));
        return PyErr_Occurred() ? nullptr : Py_None;
    });
    return made ? 0 : -1;
}

int visit(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_engine(self)->attributes);
    return 0;
}

int clear(PyObject* self) {
    Py_CLEAR(as_engine(self)->attributes);
    return 0;
}

// Pending operators continue: their handles may be alive.
void deallocate(PyObject* object) {
    EngineObject* self = as_engine(object);
    PyObject_GC_UnTrack(object);
    if (self->weak_references) PyObject_ClearWeakRefs(object);
    clear(object);
    if (self->engine) {
        self->engine->close();
        release(self->engine);
    }
    delete self->prepared;
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
    drain_decrefs();
}

template <class F> PyCFunction method(F function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef methods[] = {
    {"push", method(push), METH_FASTCALL | METH_KEYWORDS,
     "push($self, operator, /, *inputs, **params)\n--\n\n"
     "Have an operator run once its inputs are there, and return the Handle of its result at "
     "once."},
    {"put", put_object, METH_O,
     "put($self, value, /)\n--\n\nReturn the Handle of a value that is there."},
    {"flush", method(flush), METH_FASTCALL,
     "flush($self, handle=None, /)\n--\n\n"
     "Have what a handle needs run, or everything, and wait until it has."},
    {"_begin_hold", begin_hold, METH_NOARGS, nullptr},
    {"_end_hold", end_hold, METH_NOARGS, nullptr},
    {"_finish", finish, METH_NOARGS, nullptr},
    {"_close", method(close), METH_FASTCALL, nullptr},
    {"_statistics", statistics, METH_NOARGS, nullptr},
    {"_pending", pending, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"closed", closed, nullptr, "Whether nothing can be pushed any more.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(EngineObject, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(EngineObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_init, reinterpret_cast<void*>(init)},
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_traverse, reinterpret_cast<void*>(visit)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {0, nullptr},
};

nb::list events_to_python(const std::vector<TraceEvent>& trace_events) {
    nb::list events;
    for (const TraceEvent& event : trace_events)
        events.append(nb::make_tuple(event.name, event.category, event.begin, event.end,
                                     event.thread, nb::tuple(nb::cast(event.operators)),
                                     nb::tuple(nb::cast(event.inputs)), event.depth));
    return events;
}

// take_engine_trace() -> (events, running, levels). Events are (name, category, begin, end, thread,
// operators, inputs, depth), `running` the same for unfinished ones. Levels are (time, live bytes,
// live objects, pending). Times are in nanoseconds.
nb::tuple take_engine_trace() {
    nb::list counters;
    Traces traces = take_traces();
    for (const TraceCounter& counter : traces.counters)
        counters.append(
            nb::make_tuple(counter.time, counter.bytes, counter.objects, counter.pending));
    return nb::make_tuple(events_to_python(traces.events), events_to_python(traces.running),
                          counters);
}

} // namespace

void declare_engine(nb::module_& module) {
    using namespace nb::literals;
    PyType_Spec spec{"tenfold._native.Engine", sizeof(EngineObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, slots};
    PyObject* type = PyType_FromSpec(&spec);
    if (!type || PyModule_AddObjectRef(module.ptr(), "Engine", type) != 0 ||
        !make_handle_type(module.ptr()))
        nb::raise_python_error();
    module.def("shut_down_engines", shut_down_engines, "seconds"_a);
    module.def("inside_operator", is_inside_operator);
    module.def("take_engine_trace", take_engine_trace);
}

} // namespace tenfold::bindings
