// Python callbacks: the engine's workers run operators, compute signatures and wake waiters in
// Python. Each takes the GIL once.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "exec/stacking.h"
#include "python/engine_bindings.h"
#include "python/thread_end.h"
#include "threads/counters.h"

namespace tenfold::bindings {
namespace {

thread_local int operators_running = 0;
thread_local PyThreadState* worker_state = nullptr; // from a worker's first time to its end
thread_local PyGILState_STATE worker_gil_state;

class GilGuard {
  public:
    GilGuard() {
        if (is_python_ending()) park(); // a state for this thread could no longer be made
        if (!worker_state && !PyGILState_GetThisThreadState()) {
            worker_gil_state = PyGILState_Ensure();
            worker_state = PyEval_SaveThread();
        }
        saved_state_ = PyGILState_Ensure();
    }
    ~GilGuard() { PyGILState_Release(saved_state_); }

  private:
    PyGILState_STATE saved_state_;
};

// A worker that holds the GIL, and is the only one of its engine, is not a GIL-free thread
// meanwhile. It counts references like any Python thread. A thread that waits for the engine counts
// itself.
class NoGilFreeThread {
  public:
    explicit NoGilFreeThread(const Engine& engine)
        : count_(engine.limits().num_threads == 1 ? 1 : 0) {
        gil_free_threads.fetch_sub(count_);
    }
    ~NoGilFreeThread() { gil_free_threads.fetch_add(count_); }
    NoGilFreeThread(const NoGilFreeThread&) = delete;
    NoGilFreeThread& operator=(const NoGilFreeThread&) = delete;

  private:
    const uint32_t count_;
};

class OperatorScope {
  public:
    OperatorScope() { ++operators_running; }
    ~OperatorScope() { --operators_running; }
};

// Runs a callback that the engine calls: there no caller catches what it throws. False with a
// Python error where it has thrown.
template <class F> bool completes(F&& callback) {
    return to_python_error([&] {
        callback();
        return Py_None;
    });
}

// While it lives this thread has the options that an operator was pushed under.
class OptionScope {
  public:
    explicit OptionScope(const Operation& operation) {
        const OptionSet* options = operation.options.get();
        if (!options || options->number == current_options().fingerprint) return;
        enable_option_blocks();
        context_ = nb::steal(PyContext_Copy(static_cast<PyObject*>(options->context)));
        if (!context_.is_valid() || PyContext_Enter(context_.ptr()) != 0) nb::raise_python_error();
    }
    ~OptionScope() {
        if (context_.is_valid() && PyContext_Exit(context_.ptr()) != 0)
            PyErr_WriteUnraisable(context_.ptr());
    }

  private:
    nb::object context_;
};

// The callbacks of Futures in the order of their adding, run when they are settled; under the GIL.
std::unordered_map<Future*, std::deque<PyObject*>>& callbacks() {
    static auto* all = new std::unordered_map<Future*, std::deque<PyObject*>>;
    return *all;
}

struct UnobservedFailure {
    void* error;
    std::string operation;
    Ref<PushSite> site;
};
struct UnobservedFailures {
    Lock lock; // protects lost
    std::vector<UnobservedFailure> failures;
    std::atomic<bool> any{false}; // relaxed: a thread that misses a change logs at the next call
};
UnobservedFailures* const unobserved_failures = new UnobservedFailures;

void report_unraised(void* error, const std::string& operation, Ref<PushSite> site) {
    Guard guard(unobserved_failures->lock);
    unobserved_failures->failures.push_back({error, operation, std::move(site)});
    unobserved_failures->any.store(true, std::memory_order_relaxed);
}

nb::tuple location_of(const Ref<PushSite>& site) {
    if (!site) return nb::make_tuple("", 0);
    auto* code = static_cast<PyCodeObject*>(site->code);
    return nb::make_tuple(nb::borrow(code->co_filename), PyCode_Addr2Line(code, site->offset));
}

// The Python error that is set, as a Failure.
Ref<Failure> failure_of(const Future& future) {
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (error && traceback) PyException_SetTraceback(error, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    auto failure = Ref<Failure>::adopt(new Failure);
    failure->error = error;
    failure->operation = future.operation;
    failure->site = future.push_site;
    return failure;
}

// An input in the form that an operator gets; a new reference.
PyObject* input_to_python(const Future& input) {
    if (input.value) return value_to_python(input.operation.get(), input.value);
    return Py_NewRef(static_cast<PyObject*>(input.object));
}

// The first input of an in-place operator: the object itself if that has no other references.
PyObject* owned_input_to_python(Engine& engine, Future& input) {
    OperatorResult answer = engine.take_if_unique(input);
    if (answer.value) return value_to_python(input.operation.get(), std::move(answer.value));
    if (answer.object) {
        auto* object = static_cast<PyObject*>(answer.object);
        if (Py_REFCNT(object) == 1) return object;
        PyObject* copy = PyObject_CallFunctionObjArgs(engine_hooks.copy, object, nullptr);
        Py_DECREF(object);
        return copy;
    }
    if (input.value) return value_to_python(input.operation.get(), input.value);
    return PyObject_CallFunctionObjArgs(engine_hooks.copy, input.object, nullptr);
}

nb::object inputs_of(Engine& engine, Future& future) {
    bool owns_first = future.operation->kind == Operation::in_place;
    std::span<Edge> edges = future.inputs();
    auto* constants = static_cast<PyObject*>(future.operation->constants);
    Py_ssize_t num_constants = constants ? PyTuple_GET_SIZE(constants) : 0,
               count = Py_ssize_t(edges.size());
    nb::object inputs = nb::steal(PyTuple_New(count + num_constants));
    if (!inputs.is_valid()) return {};
    for (Py_ssize_t i = 0; i < num_constants; ++i)
        PyTuple_SET_ITEM(inputs.ptr(), count + i, Py_NewRef(PyTuple_GET_ITEM(constants, i)));
    for (std::size_t i = 0; i < edges.size(); ++i) {
        Future& input = *edges[i].input;
        PyObject* object =
            owns_first && i == 0 ? owned_input_to_python(engine, input) : input_to_python(input);
        if (!object) return {};
        PyTuple_SET_ITEM(inputs.ptr(), Py_ssize_t(i), object);
    }
    return inputs;
}

// The result of Python's `run` for one member: a value, or an exception in a 1-tuple.
OperatorResult answer_from(PyObject* result, const Future& future) {
    OperatorResult answer;
    if (PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 1) {
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(result, 0))),
                        PyTuple_GET_ITEM(result, 0));
        answer.failure = failure_of(future);
        return answer;
    }
    answer = answer_from_object(PyTuple_CheckExact(result) ? PyTuple_GET_ITEM(result, 1) : result);
    if (answer.empty()) answer.failure = failure_of(future);
    return answer;
}

void run_python(Engine& engine, Job& job) {
    Future& first = *job.members[0];
    const Operation& operation = *first.operation;
    nb::list members, operators;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        if (!job.answers[i].empty()) continue;
        nb::object inputs = inputs_of(engine, *job.members[i]);
        if (inputs.is_valid()) {
            members.append(inputs);
            operators.append(nb::handle(static_cast<PyObject*>(job.members[i]->operation->python)));
            indices.push_back(i);
        } else {
            job.answers[i].failure = failure_of(*job.members[i]);
        }
    }
    std::size_t leaves = first.increments ? first.increments->count : first.inputs().size();
    nb::object params = operation.params ? nb::borrow(static_cast<PyObject*>(operation.params))
                                         : nb::object(nb::dict());
    nb::object run = operation.kind == Operation::cumulative
                         ? nb::object(operators)
                         : nb::borrow(static_cast<PyObject*>(operation.python));
    nb::object results;
    if (!indices.empty()) {
        OperatorScope operator_scope;
        results = nb::steal(PyObject_CallFunction(engine_hooks.run, "iOOOn", int(operation.kind),
                                                  run.ptr(), params.ptr(), members.ptr(),
                                                  Py_ssize_t(leaves)));
        members = nb::list();
        if (!results.is_valid()) nb::raise_python_error();
    }
    for (std::size_t i = 0; i < indices.size(); ++i)
        job.answers[indices[i]] =
            answer_from(PyList_GET_ITEM(results.ptr(), Py_ssize_t(i)), *job.members[indices[i]]);
}

// The stacked inputs of members, as a tuple of Arrays; none where one is no array in all members.
nb::object stacked_inputs(const Job& job, int threads) {
    nb::list arrays;
    for (std::size_t position = 0; position < job.members[0]->input_count; ++position) {
        PooledVector<StridedRef> rows;
        const Type* type = job.members[0]->inputs()[position].input->type;
        for (const Ref<Future>& member : job.members) {
            const Future& input = *member->inputs()[position].input;
            if (!input.value || input.type != type) return {};
            rows.push_back(StridedRef::of(*input.value));
        }
        StackedOperand operand;
        if (!stack_operands(operand, rows, *type, rows.size(), threads)) return {};
        arrays.append(nb::steal(new_array(value_node(std::move(operand.value)))));
    }
    return nb::tuple(arrays);
}

// Runs `run_batch` of a user's operator on stacked inputs. Results stay empty where Python is to
// run the members by itself, or to report an error of a pure operator for each.
void run_stacked_operator(Engine& engine, Job& job) {
    const Operation& operation = *job.members[0]->operation;
    nb::object inputs = stacked_inputs(job, engine.limits().num_threads);
    if (!inputs.is_valid()) return;
    nb::object result;
    {
        OperatorScope operator_scope;
        result = nb::steal(PyObject_CallFunction(engine_hooks.run_stacked, "OOn",
                                                 static_cast<PyObject*>(operation.python),
                                                 inputs.ptr(), Py_ssize_t(job.members.size())));
    }
    if (!result.is_valid() && operation.pure && job.members.size() > 1) return PyErr_Clear();
    if (!result.is_valid()) nb::raise_python_error();
    std::vector<Ref<Value>> results;
    for (Ref<Value> value = value_of(node_of(result.ptr())); value; value = value->next) {
        results.push_back(in_c_order(value));
        if (!results.back()) return;
    }
    split_rows(results, job.answers, engine.limits().max_bytes > 0);
}

class PythonCallbacks : public Host {
  public:
    void run(Engine& engine, Job& job) override {
        GilGuard gil;
        NoGilFreeThread not_counted(engine);
        if (!completes([&] { run_members(engine, job); })) fail_remaining(job);
        run_deferred_callbacks();
    }

    void classify(Engine& engine, Job& job) override {
        GilGuard gil;
        job.answers.resize(job.members.size());
        job.signatures.resize(job.members.size());
        for (std::size_t i = 0; i < job.members.size(); ++i)
            if (!completes([&] { classify(engine, job, i); }))
                job.answers[i].failure = failure_of(*job.members[i]);
        run_deferred_callbacks();
    }

    void run_callbacks(Engine&, Job& job) override {
        GilGuard gil;
        for (Ref<Future>& future : job.members) {
            auto found = callbacks().find(future.get());
            if (found == callbacks().end()) continue;
            for (auto& added = found->second; !added.empty();) { // which may grow meanwhile
                PyObject* function = added.front();
                added.pop_front();
                PyObject* result = PyObject_CallNoArgs(function);
                if (!result) PyErr_WriteUnraisable(function);
                Py_XDECREF(result);
                Py_DECREF(function);
            }
            callbacks().erase(future.get());
        }
        run_deferred_callbacks();
    }

    bool has_deferred() override {
        return has_deferred_decrefs() || unobserved_failures->any.load(std::memory_order_relaxed);
    }

    void run_deferred() override {
        GilGuard gil;
        run_deferred_callbacks();
    }

    void detach_thread() override {
        if (has_deferred()) run_deferred();
        if (!worker_state) return;
        PyEval_RestoreThread(worker_state);
        worker_state = nullptr;
        PyGILState_Release(worker_gil_state);
    }

  private:
    static void run_deferred_callbacks() {
        drain_decrefs();
        log_unobserved();
    }

    static void run_members(Engine& engine, Job& job) {
        const Operation& operation = *job.members[0]->operation;
        OptionScope option_scope(operation);
        bool computed = operation.kind == Operation::fold && run_sum(engine, job);
        const Batcher* batcher = job.members[0]->batcher;
        if (batcher && operation.is_builtin()) // plans or loops may be missing
            compute_members(*batcher, job.members, job.answers,
                            engine.resources(python_batch_planner(), *make_kernel_compiler()));
        PyErr_Clear(); // each member, computed alone, reports its own error
        if (operation.stacked_number) run_stacked_operator(engine, job);
        bool is_done = computed || std::ranges::none_of(job.answers, &OperatorResult::empty);
        if (!is_done) run_python(engine, job);
    }

    // The Python error that is set is that of each member without a result.
    static void fail_remaining(Job& job) {
        Ref<Failure> failure;
        for (std::size_t i = 0; i < job.members.size(); ++i) {
            if (!job.answers[i].empty()) continue;
            if (!failure) failure = failure_of(*job.members[i]);
            job.answers[i].failure = failure;
        }
        if (PyErr_Occurred()) PyErr_WriteUnraisable(nullptr);
    }

    void classify(Engine& engine, Job& job, std::size_t i) {
        Future& future = *job.members[i];
        OptionScope option_scope(*future.operation);
        if (future.operation->is_builtin()) {
            std::vector<Type*> types;
            for (Edge& edge : future.inputs())
                if (edge.input->type) types.push_back(edge.input->type);
            if (types.size() == future.inputs().size())
                prepare_batcher(engine, *future.operation, types);
            return;
        }
        OperatorScope operator_scope;
        nb::object inputs = inputs_of(engine, future);
        if (!inputs.is_valid()) nb::raise_python_error();
        auto* params = static_cast<PyObject*>(future.operation->params);
        nb::object number = nb::steal(PyObject_CallFunctionObjArgs(
            engine_hooks.signature, static_cast<PyObject*>(future.operation->python),
            params ? params : Py_None, inputs.ptr(), nullptr));
        if (!number.is_valid()) nb::raise_python_error();
        auto address = nb::cast<std::size_t>(number);
        job.signatures[i].parts = {reinterpret_cast<const void*>(address), &job_of_user, nullptr,
                                   nullptr};
        job.signatures[i].options = future.operation->options_number();
        Batcher batcher;
        batcher.runs_alone = false;
        engine.add_batcher(job.signatures[i], std::move(batcher));
    }

    static inline char job_of_user = 0; // tells their signatures from those of operations

    // A sum of increments of one Type, for the first time.
    static bool run_sum(Engine& engine, Job& job) {
        Future& fold = *job.members[0];
        Type* type = fold.inputs().back().input->type;
        if (!fold.operation->elementwise_add || !type || type->weak) return false;
        std::span<PyObject* const> none;
        Ref<Operation> add =
            make_operation_with_options(fold.operation->options, engine_hooks.add, nullptr, none);
        if (!add || add->kind != Operation::elementwise) return false;
        uint64_t options = add->options_number();
        if (!engine.sum_rows(*type, options)) prepare_batcher(engine, *add, std::array{type, type});
        job.answers[0] =
            run_fold(engine.sum_rows(*type, options), *type, fold, engine.limits().num_threads);
        return !job.answers[0].empty();
    }
};

} // namespace

Host& host() {
    static auto* instance = new PythonCallbacks;
    Failure::on_unobserved = report_unraised;
    return *instance;
}

bool is_inside_operator() { return operators_running > 0; }

void add_callback(Future& future, PyObject* function) {
    callbacks()[&future].push_back(Py_NewRef(function));
}

bool has_callbacks(Future& future) { return callbacks().contains(&future); }

void drop_callbacks(Future& future) {
    auto added = callbacks().extract(&future);
    if (!added) return;
    for (PyObject* function : added.mapped()) Py_DECREF(function);
}

namespace {

void log_error(PyObject* error, const std::string& operation, const Ref<PushSite>& site) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool is_logged = completes([&] {
        nb::tuple location = location_of(site);
        nb::object logged = nb::steal(
            PyObject_CallFunction(engine_hooks.log, "OsOO", error, operation.c_str(),
                                  nb::object(location[0]).ptr(), nb::object(location[1]).ptr()));
        if (!logged.is_valid()) nb::raise_python_error();
    });
    if (!is_logged) PyErr_WriteUnraisable(error);
    PyErr_Restore(type, value, traceback);
}

} // namespace

void log_unobserved() {
    if (!unobserved_failures->any.load(std::memory_order_relaxed)) return;
    std::vector<UnobservedFailure> failures;
    {
        Guard guard(unobserved_failures->lock);
        failures.swap(unobserved_failures->failures);
        unobserved_failures->any.store(false, std::memory_order_relaxed);
    }
    for (UnobservedFailure& each : failures) {
        nb::object error = nb::steal(static_cast<PyObject*>(each.error));
        log_error(error.ptr(), each.operation, each.site);
    }
}

void log_failure(const Failure& failure) {
    if (failure.error)
        log_error(static_cast<PyObject*>(failure.error),
                  failure.operation ? failure.operation->name : std::string(), failure.site);
}

OperatorResult answer_from_object(PyObject* object) {
    OperatorResult answer;
    bool has_kind = is_array(object) && type_of(object).storage; // kept as the object that it is
    if (is_array(object) && !has_kind) {
        Node* node = node_of(object);
        if (node) answer.value = value_of(node);
        if (node && !answer.value)
            PyErr_SetString(PyExc_RuntimeError, "an array without a value came to the engine");
        return answer;
    }
    if (PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
        PyComplex_CheckExact(object)) {
        Operand operand(object, object);
        if (!operand.get()) return answer;
        answer.scalar = std::make_unique<Scalar>(operand.get()->scalar);
        answer.type = Ref<Type>(operand.get()->type);
        answer.bytes = sizeof(Scalar);
    } else if (int is_engine_object = PyObject_IsInstance(object, engine_hooks.object)) {
        if (is_engine_object < 0) return answer;
        nb::object bytes = nb::steal(PyObject_GetAttrString(object, "nbytes"));
        if (!bytes.is_valid()) return answer;
        answer.bytes = PyLong_AsSize_t(bytes.ptr());
        if (PyErr_Occurred()) return answer;
    }
    answer.object = Py_NewRef(object);
    return answer;
}

PyObject* error_to_python(const Future& future) {
    Failure& failure = *future.failure;
    failure.observed.store(true, std::memory_order_relaxed);
    nb::tuple location = location_of(failure.site);
    return PyObject_CallFunction(engine_hooks.error, "OsOO",
                                 failure.error ? static_cast<PyObject*>(failure.error) : Py_None,
                                 failure.operation  ? failure.operation->name.c_str()
                                 : future.operation ? future.operation->name.c_str()
                                                    : "put",
                                 nb::object(location[0]).ptr(), nb::object(location[1]).ptr());
}

PyObject* value_to_python(const Future& future) {
    if (future.value) return value_to_python(future.operation.get(), future.value);
    if (future.object) return Py_NewRef(static_cast<PyObject*>(future.object));
    PyObject* error = error_to_python(future);
    if (!error) return nullptr;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
    Py_DECREF(error);
    return nullptr;
}

} // namespace tenfold::bindings
