// Python callbacks: the engine's workers run operators, compute signatures and wake waiters in
// Python. Each takes the GIL once.
#include <unistd.h>
#include <unordered_map>

#include "python/engine_bindings.h"
#include "threads/counters.h"

namespace tenfold::bindings {
namespace {

thread_local int operators_running = 0;
thread_local PyThreadState* own_state = nullptr; // of a worker, from its first time to its end
thread_local PyGILState_STATE own_before;

// Where the interpreter is gone Python ends a thread that comes for the GIL, and unwinds its stack:
// what stands on it must not touch Python. So the thread goes no further.
template <class F> auto python(F&& call) {
    try {
        return call();
    } catch (...) {
        for (;;) ::pause();
    }
}

class Gil {
  public:
    Gil() {
        python([&] {
            if (!own_state && !PyGILState_GetThisThreadState()) {
                own_before = PyGILState_Ensure();
                own_state = PyEval_SaveThread();
            }
            before_ = PyGILState_Ensure();
        });
    }
    ~Gil() { PyGILState_Release(before_); }

  private:
    PyGILState_STATE before_;
};

// A worker that holds the GIL, and is the only one of its engine, is not a GIL-free thread
// meanwhile: it counts references as any Python thread does. A thread that waits for the engine
// counts itself.
class NoGilFreeThread {
  public:
    explicit NoGilFreeThread(const Engine& engine) : counts_(engine.limits().threads == 1 ? 1 : 0) {
        outsiders.fetch_sub(counts_);
    }
    ~NoGilFreeThread() { outsiders.fetch_add(counts_); }
    NoGilFreeThread(const NoGilFreeThread&) = delete;
    NoGilFreeThread& operator=(const NoGilFreeThread&) = delete;

  private:
    const uint32_t counts_;
};

class Inside {
  public:
    Inside() { ++operators_running; }
    ~Inside() { --operators_running; }
};

// While it lives this thread has the options that an operator was pushed under.
class Under {
  public:
    explicit Under(const Operation& operation) {
        const Submitted* options = operation.options.get();
        if (!options || options->number == current_options().number) return;
        open_block();
        context_ = PyContext_Copy(static_cast<PyObject*>(options->context));
        if (!context_ || PyContext_Enter(context_) != 0) nb::raise_python_error();
    }
    ~Under() {
        if (context_ && PyContext_Exit(context_) != 0) PyErr_WriteUnraisable(context_);
        Py_XDECREF(context_);
    }

  private:
    PyObject* context_ = nullptr;
};

// What is to be called when a Future is settled; under the GIL.
std::unordered_multimap<Future*, PyObject*>& calls() {
    static auto* all = new std::unordered_multimap<Future*, PyObject*>;
    return *all;
}

struct Lost {
    void* error;
    std::string operation;
    Ref<PushSite> site;
};
struct AllLost {
    Lock lock; // protects lost
    std::vector<Lost> lost;
    std::atomic<bool> any{false}; // relaxed: who misses a change logs at the next call
};
AllLost* const all_lost = new AllLost;

void lose(void* error, const std::string& operation, Ref<PushSite> site) {
    Guard guard(all_lost->lock);
    all_lost->lost.push_back({error, operation, std::move(site)});
    all_lost->any.store(true, std::memory_order_relaxed);
}

nb::tuple place_of(const Ref<PushSite>& site) {
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
    failure->site = future.site;
    return failure;
}

// An input as an operator is given it; a new reference.
PyObject* input_to_python(const Future& input) {
    if (input.value) return value_to_python(input.operation.get(), input.value);
    return Py_NewRef(static_cast<PyObject*>(input.object));
}

// The first input of an in-place operator: the object itself if that has no other references.
PyObject* own_to_python(Engine& engine, Future& input) {
    Answer taken = engine.take(input);
    if (taken.value) return value_to_python(input.operation.get(), std::move(taken.value));
    if (taken.object) {
        auto* object = static_cast<PyObject*>(taken.object);
        if (Py_REFCNT(object) == 1) return object;
        PyObject* copy = PyObject_CallFunctionObjArgs(engine_hooks.copy, object, nullptr);
        Py_DECREF(object);
        return copy;
    }
    if (input.value) return value_to_python(input.operation.get(), input.value);
    return PyObject_CallFunctionObjArgs(engine_hooks.copy, input.object, nullptr);
}

nb::object inputs_of(Engine& engine, Future& future) {
    bool owns = future.operation->kind == Operation::in_place;
    std::span<Edge> edges = future.inputs();
    auto* constants = static_cast<PyObject*>(future.operation->constants);
    Py_ssize_t more = constants ? PyTuple_GET_SIZE(constants) : 0, count = Py_ssize_t(edges.size());
    nb::object inputs = nb::steal(PyTuple_New(count + more));
    if (!inputs.is_valid()) return {};
    for (Py_ssize_t i = 0; i < more; ++i)
        PyTuple_SET_ITEM(inputs.ptr(), count + i, Py_NewRef(PyTuple_GET_ITEM(constants, i)));
    for (std::size_t i = 0; i < edges.size(); ++i) {
        Future& input = *edges[i].input;
        PyObject* object = owns && i == 0 ? own_to_python(engine, input) : input_to_python(input);
        if (!object) return {};
        PyTuple_SET_ITEM(inputs.ptr(), Py_ssize_t(i), object);
    }
    return inputs;
}

// What `run` of Python gave for one member: a value, or an exception in a tuple of its own.
Answer answer_from(PyObject* given, const Future& future) {
    Answer answer;
    if (PyTuple_CheckExact(given) && PyTuple_GET_SIZE(given) == 1) {
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(PyTuple_GET_ITEM(given, 0))),
                        PyTuple_GET_ITEM(given, 0));
        answer.failure = failure_of(future);
        return answer;
    }
    answer = answer_of(PyTuple_CheckExact(given) ? PyTuple_GET_ITEM(given, 1) : given);
    if (answer.empty()) answer.failure = failure_of(future);
    return answer;
}

void run_python(Engine& engine, Job& job) {
    Future& first = *job.members[0];
    const Operation& operation = *first.operation;
    nb::list members, operators;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        if (!job.answers[i].empty()) continue;
        nb::object inputs = inputs_of(engine, *job.members[i]);
        if (inputs.is_valid()) {
            members.append(inputs);
            operators.append(nb::handle(static_cast<PyObject*>(job.members[i]->operation->python)));
            places.push_back(i);
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
    nb::object made;
    if (!places.empty()) {
        Inside inside;
        made = nb::steal(python([&] {
            return PyObject_CallFunction(engine_hooks.run, "iOOOn", int(operation.kind), run.ptr(),
                                         params.ptr(), members.ptr(), Py_ssize_t(leaves));
        }));
        members = nb::list();
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        Answer& answer = job.answers[places[i]];
        const Future& future = *job.members[places[i]];
        if (made.is_valid())
            answer = answer_from(PyList_GET_ITEM(made.ptr(), Py_ssize_t(i)), future);
        else if (i == 0)
            answer.failure = failure_of(future);
        else
            answer.failure = job.answers[places[0]].failure;
    }
}

class PythonCallbacks : public Host {
  public:
    void run(Engine& engine, Job& job) override {
        Gil gil;
        NoGilFreeThread counted(engine);
        Operation::Kind kind = job.members[0]->operation->kind;
        {
            Under under(*job.members[0]->operation);
            bool done = kind == Operation::fold && run_sum(engine, job);
            if (job.batcher && job.batcher->products) // panels may be missing
                run_products(*job.batcher->products, job.members, job.answers, job.first,
                             panel_maker());
            if (job.batcher && job.batcher->pattern) { // loops may be missing
                run_pattern(*job.batcher->pattern, job.members, job.answers, job.first,
                            &python_maker());
                PyErr_Clear(); // each alone says what was wrong
            }
            if (!done) run_python(engine, job);
        }
        drain();
        log_lost();
    }

    void classify(Engine& engine, Job& job) override {
        Gil gil;
        job.answers.resize(job.members.size());
        job.signatures.resize(job.members.size());
        for (std::size_t i = 0; i < job.members.size(); ++i) classify(engine, job, i);
        drain();
    }

    void call(Engine&, Job& job) override {
        Gil gil;
        for (Ref<Future>& future : job.members) {
            std::vector<PyObject*> functions;
            auto [begin, end] = calls().equal_range(future.get());
            for (auto each = begin; each != end; ++each) functions.push_back(each->second);
            calls().erase(begin, end);
            for (PyObject* function : functions) {
                PyObject* result = python([&] { return PyObject_CallNoArgs(function); });
                if (!result) PyErr_WriteUnraisable(function);
                Py_XDECREF(result);
                Py_DECREF(function);
            }
        }
        drain();
    }

    bool untidy() override {
        return anything_released() || all_lost->any.load(std::memory_order_relaxed);
    }

    void tidy() override {
        Gil gil;
        drain();
        log_lost();
    }

    void leave() override {
        if (untidy()) tidy();
        if (!own_state) return;
        python([] { PyEval_RestoreThread(own_state); });
        own_state = nullptr;
        PyGILState_Release(own_before);
    }

  private:
    void classify(Engine& engine, Job& job, std::size_t i) {
        Future& future = *job.members[i];
        Under under(*future.operation);
        if (future.operation->is_ours()) {
            std::vector<Type*> types;
            for (Edge& edge : future.inputs())
                if (edge.input->type) types.push_back(edge.input->type);
            if (types.size() == future.inputs().size()) prepare(engine, *future.operation, types);
            return;
        }
        Inside inside;
        nb::object inputs = inputs_of(engine, future);
        nb::object number =
            inputs.is_valid()
                ? nb::steal(PyObject_CallFunctionObjArgs(
                      engine_hooks.signature, static_cast<PyObject*>(future.operation->python),
                      future.operation->params ? static_cast<PyObject*>(future.operation->params)
                                               : Py_None,
                      inputs.ptr(), nullptr))
                : nb::object();
        if (!number.is_valid()) {
            job.answers[i].failure = failure_of(future);
            return;
        }
        auto address = nb::cast<std::size_t>(number);
        job.signatures[i].parts = {reinterpret_cast<const void*>(address), &job_of_user, nullptr,
                                   nullptr};
        job.signatures[i].options = future.operation->options_number();
        Batcher made;
        made.kind = future.operation->kind;
        engine.add_batcher(job.signatures[i], std::move(made));
    }

    static inline char job_of_user = 0; // tells their signatures from those of operations

    // A sum of increments of one Type, for the first time.
    static bool run_sum(Engine& engine, Job& job) {
        Future& fold = *job.members[0];
        Type* type = fold.inputs().back().input->type;
        if (!fold.operation->plain_add || !type || type->weak) return false;
        std::span<PyObject* const> none;
        Ref<Operation> add =
            operation_under(fold.operation->options, engine_hooks.add, nullptr, none);
        if (!add || add->kind != Operation::elements) return false;
        uint64_t options = add->options_number();
        if (!engine.rows_for_sums(*type, options)) prepare(engine, *add, std::array{type, type});
        if (const BatchRows* rows = engine.rows_for_sums(*type, options))
            job.answers[0] = run_fold(*rows, *type, fold);
        return !job.answers[0].empty();
    }
};

} // namespace

Host& host() {
    static auto* only = new PythonCallbacks;
    Failure::lost = lose;
    return *only;
}

bool inside_operator() { return operators_running > 0; }

void remember_call(Future& future, PyObject* function) {
    calls().emplace(&future, Py_NewRef(function));
}

void forget_calls(Future& future) {
    auto [begin, end] = calls().equal_range(&future);
    for (auto each = begin; each != end; ++each) Py_DECREF(each->second);
    calls().erase(begin, end);
}

namespace {

void log_error(PyObject* error, const std::string& operation, const Ref<PushSite>& site) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    nb::tuple place = place_of(site);
    PyObject* done = PyObject_CallFunction(engine_hooks.log, "OsOO", error, operation.c_str(),
                                           nb::object(place[0]).ptr(), nb::object(place[1]).ptr());
    if (!done) PyErr_WriteUnraisable(error);
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

} // namespace

void log_lost() {
    if (!all_lost->any.load(std::memory_order_relaxed)) return;
    std::vector<Lost> lost;
    {
        Guard guard(all_lost->lock);
        lost.swap(all_lost->lost);
        all_lost->any.store(false, std::memory_order_relaxed);
    }
    for (Lost& each : lost) {
        nb::object error = nb::steal(static_cast<PyObject*>(each.error));
        log_error(error.ptr(), each.operation, each.site);
    }
}

void log_failure(const Failure& failure) {
    if (failure.error)
        log_error(static_cast<PyObject*>(failure.error),
                  failure.operation ? failure.operation->name : std::string(), failure.site);
}

Answer answer_of(PyObject* object) {
    Answer answer;
    if (is_array(object)) {
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
    } else if (int sized = PyObject_IsInstance(object, engine_hooks.object)) {
        if (sized < 0) return answer;
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
    nb::tuple place = place_of(failure.site);
    return PyObject_CallFunction(engine_hooks.error, "OsOO",
                                 failure.error ? static_cast<PyObject*>(failure.error) : Py_None,
                                 failure.operation  ? failure.operation->name.c_str()
                                 : future.operation ? future.operation->name.c_str()
                                                    : "put",
                                 nb::object(place[0]).ptr(), nb::object(place[1]).ptr());
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
