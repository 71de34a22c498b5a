// Replay bindings: from an Array to its values by a known Executable, and reports of failures.
#include "engine/timeline.h"
#include "exec/float_env.h"
#include "exec/op_interpreter.h"
#include "ir/loop_rerolling.h"
#include "ir/submission.h"
#include "threads/counters.h"
#include "threads/thread_local.h"
#include "threads/worker_pool.h"

#include <algorithm>
#include <optional>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/engine_bindings.h"
#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

class PythonContext : public ExecutionContext {
  public:
    Result run_on_host(Work& work) override {
        if (work.threads > threads()) set_threads(work.threads);
        return launch_without_gil(work);
    }

    bool call(const Executable::Call& call, const LinearizedGraph& graph,
              std::vector<Ref<Value>>& slots) override {
        nb::object inputs = nb::steal(PyTuple_New(Py_ssize_t(call.inputs.size())));
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            int64_t source = call.inputs[i];
            nb::object input = source < 0
                                   ? nb::steal(scalar_to_python(graph.nodes[~source].node->scalar))
                                   : nb::cast(ValueHandle{slots[std::size_t(source)]});
            PyTuple_SET_ITEM(inputs.ptr(), Py_ssize_t(i), input.release().ptr());
        }
        auto* function = static_cast<PyObject*>(call.function);
        nb::object outputs = nb::steal(PyObject_CallObject(function, inputs.ptr()));
        if (!outputs.is_valid()) return false;
        for (std::size_t i = 0; i < call.outputs.size(); ++i)
            slots[call.outputs[i]] = nb::cast<ValueHandle&>(outputs[i]).value;
        return true;
    }

    bool request_optimised(UseCounter& counter) override {
        auto* function = static_cast<PyObject*>(counter.request);
        nb::object requested = nb::steal(PyObject_CallNoArgs(function));
        int64_t uses = counter.uses.load(std::memory_order_relaxed);
        counter.next_request.store(requested.is(nb::bool_(true)) ? INT64_MAX
                                                                 : TIERS.request_growth * uses,
                                   std::memory_order_relaxed);
        return requested.is_valid();
    }
};

// The Python error as an object; none where it is no Exception, as a KeyboardInterrupt.
nb::object fetch_exception() {
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_Exception)) return {};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return nb::steal(value);
}

FailureHandle failure_of(const RunResult& result, const Executable& plan,
                         const LinearizedGraph& graph) {
    FailureHandle failure{{}, {}, result, nb::none()};
    const auto& instruction = plan.instructions[result.instruction];
    uint32_t source = Executable::NONE;
    if (const auto* run = std::get_if<Indirect<Executable::Launch>>(&instruction)) {
        failure.operation = (**run).label;
        source = (**run).source;
    } else if (const auto* call = std::get_if<Indirect<Executable::Call>>(&instruction)) {
        failure.operation = (**call).label;
        source = (**call).source;
    }
    if (source != Executable::NONE) failure.node = graph.nodes[source].node;
    if (nb::object error = fetch_exception(); error.is_valid()) failure.error = std::move(error);
    return failure;
}

// The keys of a linearized graph; the thread's next graph reuses the memory.
struct GraphKeys {
    Key key;
    ShapeSignature form;
    bool has_form = false; // `form` is written: scalars count by form, and no plan is cached
    bool in_use = false;

    GraphIdentity identity() const { return {key, has_form ? &form : nullptr}; }
};

// For a caller that computes one linearized graph repeatedly.
class Collector : public PythonContext {
  public:
    Collector(const LinearizedGraph& graph, std::span<Ref<Value>> results)
        : graph_(graph), results_(results) {}
    void publish(Node* node, Ref<Value> value) override {
        for (uint32_t output : graph_.outputs)
            if (graph_.nodes[output].node.get() == node) results_[output] = value;
    }

  private:
    const LinearizedGraph& graph_;
    std::span<Ref<Value>> results_;
};

// Finds or instantiates a plan, and writes the keys. The exactness of the last graph with such an
// end is tried first. `fallback`, compiled for this graph, counts even if other threads have used
// up its runs.
Ref<Executable> plan_of(const LinearizedGraph& graph, const OptionKey& options, bool rules,
                        GraphKeys& keys, const Ref<Executable>& fallback = {}) {
    Key& key = keys.key;
    const Node& last_node = *graph.nodes.back().node;
    auto address = [](const void* object) { return reinterpret_cast<std::size_t>(object); };
    std::size_t kind = address(last_node.inference.get()) + 5 * address(last_node.type.get());
    std::atomic<uint8_t>& last_exactness = last_node.inference->last_exactness;
    auto find_exact = [&](uint8_t exact) {
        Ref<Executable> found;
        if (!key.write(graph, options, exact)) return found;
        found = find_plan(key.words, kind);
        return !found && fallback && fallback->key == key.words ? fallback : found;
    };
    uint8_t exactness = last_exactness.load(std::memory_order_relaxed);
    Ref<Executable> plan = find_exact(exactness);
    if (!plan && exactness != Key::by_form) plan = find_exact(exactness = Key::by_form);
    if (plan && plan->exact != Key::by_form) plan = find_exact(exactness = plan->exact);
    if (!plan && exactness == Key::by_form &&
        (keys.has_form = keys.form.write(graph, options, rules)))
        plan = instantiate_plan(keys.form, graph, key);
    last_exactness.store(exactness, std::memory_order_relaxed);
    return plan;
}

// The thread's GraphKeys; own ones in a nested replay.
class BorrowedKeys {
  public:
    BorrowedKeys() : keys(shared_.in_use ? local_ : shared_) {
        keys.in_use = true;
        keys.has_form = false;
        keys.key.words.clear();
    }
    ~BorrowedKeys() { keys.in_use = false; }

  private:
    GraphKeys& shared_ = ThreadLocal<GraphKeys>::get();
    GraphKeys local_;

  public:
    GraphKeys& keys;
};

struct ReplayOptions {
    OptionKey options;
    bool plan_only = false; // never node by node
    std::vector<StepTiming>* timings = nullptr;
    Ref<Executable> fallback;
    // Where a failure is reported; null: the caller asks Python, which computes again and reports.
    std::optional<FailureHandle>* failure = nullptr;
    // Where parts of a divided graph are left, the first of which was tried, and not computed.
    std::vector<std::vector<Ref<Node>>>* remaining = nullptr;
    bool divides = true; // a long graph is computed in parts
};

bool replay_remaining(std::span<Node* const> pending, const ReplayOptions& how);
bool replay_pending(std::span<Node* const> pending, const ReplayOptions& how);

// Runs a plan; functions of the user only for a caller who hears of failures.
bool run_plan(const Executable& plan, const LinearizedGraph& graph, const Key& key,
              ExecutionContext& context, const ReplayOptions& how) {
    if (plan.calls_user && !how.failure) return false;
    RunResult result = replay(plan, graph, key, context, how.timings);
    if (!result && how.failure)
        how.failure->emplace(failure_of(result, plan, graph));
    else if (!result)
        fetch_exception();
    return bool(result);
}

std::vector<Node*> pointers_to(std::span<const Ref<Node>> nodes) {
    std::vector<Node*> pointers;
    for (const Ref<Node>& node : nodes) pointers.push_back(node.get());
    return pointers;
}

// Computes the outputs of each part; whether all of them have their values now.
bool replay_parts(std::vector<std::vector<Ref<Node>>> parts, const ReplayOptions& how) {
    ReplayOptions whole = how;
    whole.divides = false;
    std::size_t done = 0;
    for (; done < parts.size(); ++done) {
        std::vector<Node*> pending = pointers_to(parts[done]);
        std::erase_if(pending, [](Node* node) { return bool(value_of(node)); });
        const std::size_t num_timings = how.timings ? how.timings->size() : 0;
        if (!pending.empty() && !replay_pending(pending, whole)) {
            if (how.timings) how.timings->resize(num_timings);
            break;
        }
        parts[done].clear();
        if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    }
    if (how.remaining && done < parts.size())
        how.remaining->assign(std::make_move_iterator(parts.begin() + std::ptrdiff_t(done)),
                              std::make_move_iterator(parts.end()));
    return done == parts.size();
}

// Whether all of them have their values now.
bool replay_pending(std::span<Node* const> pending, const ReplayOptions& how) {
    LinearizedGraph graph = linearize_when_unclaimed(pending);
    for (uint32_t output : graph.outputs)
        if (graph.nodes[output].value) // another thread has computed it meanwhile
            return replay_remaining(pending, how);
    if (how.divides && has_loops_on(graph.nodes.back().node->type->device)) {
        LoopSteps steps = steps_of(graph);
        if (!steps.outputs.empty()) {
            graph = {}; // frees nodes that later steps do not read
            return replay_parts(std::move(steps.outputs), how);
        }
    }
    BorrowedKeys borrowed;
    GraphKeys& keys = borrowed.keys;
    DefaultFloatMode modes;
    PythonContext context;
    auto interpret = [&] {
        return try_interpret(graph, how.options, keys.identity(), context, how.timings);
    };
    // The key of a long graph of small arrays is not worth writing.
    bool succeeded = !how.plan_only && is_long(graph) && interpret();
    Ref<Executable> plan;
    if (!succeeded) plan = plan_of(graph, how.options, current_options().rules, keys, how.fallback);
    if (plan)
        succeeded = run_plan(*plan, graph, keys.key, context, how);
    else if (!succeeded && !how.plan_only && !keys.key.words.empty())
        succeeded = interpret();
    if (PyErr_Occurred()) nb::raise_python_error();
    return succeeded;
}

bool replay_remaining(std::span<Node* const> pending, const ReplayOptions& how) {
    std::vector<Node*> remaining(pending.begin(), pending.end());
    std::erase_if(remaining, [](Node* node) { return bool(value_of(node)); });
    return remaining.empty() || replay_pending(remaining, how);
}

// replay(parts, options, events, planned, made, divides) -> True if all have their values now, by a
// plan where that is asked for. Else why the first part that is left in the list was not computed:
// the Failure of its plan, or False.
nb::object replay_nodes(nb::list parts, nb::handle option_numbers, nb::object events,
                        bool plan_only, const PlanHandle* fallback, bool divides) {
    std::vector<std::vector<Ref<Node>>> steps;
    std::vector<StepTiming> timings;
    std::optional<FailureHandle> failure;
    const OptionKey options = option_key_from(option_numbers);
    ReplayOptions how{options,
                      plan_only,
                      events.is_none() ? nullptr : &timings,
                      fallback ? fallback->plan : Ref<Executable>(),
                      &failure,
                      &steps,
                      divides};
    Py_ssize_t done = 0, count = Py_ssize_t(parts.size());
    for (bool succeeded = true; done < count; ++done) {
        std::vector<Ref<Node>> nodes;
        for (Node* node : nodes_from(parts[std::size_t(done)]))
            if (node->op && !value_of(node)) nodes.emplace_back(node);
        parts[std::size_t(done)] = nb::none(); // values are freed after their last reader
        const std::size_t num_timings = timings.size();
        succeeded = nodes.empty() || replay_pending(pointers_to(nodes), how);
        if (!succeeded && steps.empty()) {
            timings.resize(num_timings); // it is computed again
            steps.push_back(std::move(nodes));
        }
        if (!succeeded) break;
        if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    }
    for (const StepTiming& timing : timings) {
        nb::str category(timing.kernel ? "kernel" : "call");
        events.attr("append")(nb::make_tuple(timing.label, category, timing.begin, timing.end));
    }
    if (done == count) return nb::bool_(true);
    nb::list remaining;
    for (std::vector<Ref<Node>>& part : steps) {
        nb::list nodes;
        for (Ref<Node>& node : part) nodes.append(NodeHandle{std::move(node)});
        remaining.append(nodes);
    }
    if (PyList_SetSlice(parts.ptr(), 0, done + 1, remaining.ptr()) != 0) nb::raise_python_error();
    return failure ? nb::cast(std::move(*failure)) : nb::object(nb::bool_(false));
}

// steps_of(nodes) -> for each part in which a long graph is computed (its results, the number of
// steps in it, a number of their structure); empty for another graph.
nb::list steps_to_python(nb::handle nodes) {
    LoopSteps steps = steps_of(linearize_when_unclaimed(nodes_from(nodes)));
    nb::list parts;
    for (std::size_t i = 0; i < steps.outputs.size(); ++i) {
        nb::list outputs;
        for (Ref<Node>& node : steps.outputs[i]) outputs.append(NodeHandle{std::move(node)});
        parts.append(nb::make_tuple(outputs, steps.counts[i], steps.kinds[i]));
    }
    return parts;
}

// run_apart(executable, nodes) -> the values of each node, which stays pending; None on failure.
nb::object run_apart(const PlanHandle& self, nb::handle nodes) {
    LinearizedGraph graph = linearize(nodes_from(nodes));
    std::vector<Ref<Value>> results(graph.nodes.size());
    Key key;
    key.base_offsets = self.plan->base_offsets;
    DefaultFloatMode modes;
    Collector collector(graph, results);
    bool succeeded = bool(replay(*self.plan, graph, key, collector));
    fetch_exception();
    if (PyErr_Occurred()) nb::raise_python_error();
    if (!succeeded) return nb::none();
    nb::list found;
    for (uint32_t output : graph.outputs) {
        nb::list values;
        for (Ref<Value> value = results[output]; value; value = value->next)
            values.append(ValueHandle{value});
        found.append(nb::tuple(values));
    }
    return found;
}

// find_plan(arrays) -> the cached or instantiated Executable of pending arrays under the present
// options, if it reads them where they are; else None.
nb::object find_plan_of(nb::handle arrays) {
    std::vector<Node*> pending;
    for (nb::handle array : arrays) pending.push_back(node_of(array.ptr()));
    std::vector<int64_t> base_offsets;
    OptionKey options;
    if (!current_option_key(options)) return nb::none();
    Ref<Executable> plan = find_or_instantiate_plan(linearize_when_unclaimed(pending), options,
                                                    current_options().rules, base_offsets);
    if (!plan || plan->base_offsets != base_offsets) return nb::none();
    return nb::cast(PlanHandle{std::move(plan)});
}

bool has_external_buffers = false; // written under the GIL
int num_recorders = 0;             // open timelines; under the GIL

PyObject* compute_natively(PyObject* array, bool blocking) {
    return to_python_error([&]() -> PyObject* {
        if (!is_array(array)) Py_RETURN_FALSE;
        Ref<Node> node(node_of(array));
        if (!node) return nullptr;
        if (value_of(node.get())) Py_RETURN_TRUE;
        Node* pending = node.get();
        if (!blocking && !are_all_small({&pending, 1})) Py_RETURN_FALSE;
        bool computed =
            blocking ? compute_and_wait(std::move(node)) : compute_by_plan(std::move(node));
        return PyBool_FromLong(computed);
    });
}

// x.wait(): calls Python only for work that native code cannot do.
PyObject* wait_array(PyObject* array, PyObject*) {
    PyObject* computed = compute_natively(array, true);
    if (!computed) return nullptr;
    Py_DECREF(computed);
    return computed == Py_True ? Py_NewRef(array)
                               : PyObject_CallFunctionObjArgs(hooks.wait, array, nullptr);
}

// try_compute(array) -> whether it has its value now; no more is tried than needs no Python, and no
// time.
PyObject* try_compute(PyObject*, PyObject* array) { return compute_natively(array, false); }

// compute_at_call(result, *operands) -> whether the result is one of an operation that may fail,
// and all have their values now, without Python. In a trace, and where waits are refused, false.
PyObject* compute_at_call(PyObject*, PyObject* const* arrays, Py_ssize_t length) {
    return to_python_error([&]() -> PyObject* {
        if (num_active_traces || current_options().strict_sync) Py_RETURN_FALSE;
        std::vector<Ref<Node>> held; // the Arrays may be rebound meanwhile
        std::vector<Node*> pending;
        for (Py_ssize_t i = 0; i < length; ++i) {
            if (!is_array(arrays[i])) Py_RETURN_FALSE;
            Node* node = node_of(arrays[i]);
            if (!node) return nullptr;
            if (i == 0 && !(node->op && node->op->can_fail)) Py_RETURN_FALSE;
            if (value_of(node)) continue;
            if (!node->op) Py_RETURN_FALSE;
            pending.push_back(held.emplace_back(node).get());
        }
        if (!pending.empty() && !compute_by_plan(pending)) Py_RETURN_FALSE;
        count(Counter::host_syncs);
        Py_RETURN_TRUE;
    });
}

PyMethodDef functions[] = {
    {"try_compute", try_compute, METH_O,
     "Whether an Array has its value, or it is small and a plan known."},
    {"compute_at_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(compute_at_call)),
     METH_FASTCALL,
     "Whether a result that may fail and its operands have their values, by a plan."},
    {nullptr, nullptr, 0, nullptr},
};

} // namespace

PyMethodDef array_methods[] = {
    {"wait", wait_array, METH_NOARGS,
     "wait($self, /)\n--\n\n"
     "Compute the values and return the array itself. Raises what the computation raises."},
    {nullptr, nullptr, 0, nullptr},
};

void enable_external_buffers() { has_external_buffers = true; }
bool may_have_external_buffers() { return has_external_buffers; }

bool compute_by_plan(Ref<Node> node) {
    Node* pending = node.get();
    return node->op && compute_by_plan({&pending, 1});
}

bool compute_and_wait(Ref<Node> node) {
    bool computed = compute_by_plan(std::move(node));
    if (computed) count(Counter::host_syncs);
    return computed;
}

// Bytes of a result from which Python asks whether there is memory for it
// (runtime/result_memory.py).
constexpr std::size_t CHECKED_BYTES = std::size_t(1) << 30;

bool compute_by_plan(std::span<Node* const> pending) {
    if (std::ranges::any_of(pending,
                            [](Node* node) { return node->type->bytes() >= CHECKED_BYTES; }))
        return false;
    if (std::ranges::any_of(pending, [](Node* node) { return node->type->storage != 0; }))
        return false;
    OptionKey options;
    if (has_external_buffers || num_recorders || current_options().verify ||
        !current_option_key(options))
        return false;
    return replay_pending(pending, {.options = options});
}

Ref<Executable> find_or_instantiate_plan(const LinearizedGraph& graph, const OptionKey& options,
                                         bool rules, std::vector<int64_t>& base_offsets) {
    BorrowedKeys borrowed;
    Ref<Executable> plan = plan_of(graph, options, rules, borrowed.keys);
    base_offsets = borrowed.keys.key.base_offsets;
    return plan;
}

ExecutionContext& python_context() {
    static PythonContext only; // it has no state
    return only;
}

bool is_timeline_recording() { return num_recorders > 0; }

// Whether one of them is to be computed by a submission: its graph need not be read to know that.
static bool are_submitted(std::span<Node* const> nodes) {
    return std::ranges::any_of(nodes,
                               [](Node* node) { return is_submitted(*node) && !value_of(node); });
}

// A node that a submission computes, which others hold as well: it tells when to look again.
static Ref<Node> submitted_node(const LinearizedGraph& graph) {
    for (const LinearizedNode& entry : graph.nodes)
        if (!entry.value && entry.live_out && is_submitted(*entry.node)) return entry.node;
    return {};
}

LinearizedGraph linearize_when_unclaimed(std::span<Node* const> outputs) {
    Ref<Node> awaited;
    for (;;) {
        uint32_t num_ended = submissions_ended.load(std::memory_order_acquire);
        bool busy = false;
        Node* const other = awaited.get();
        if (!are_submitted(outputs) && !(other && are_submitted({&other, 1}))) {
            LinearizedGraph graph = linearize(outputs);
            if (!graph.claimed_by && !graph.has_submitted) return graph;
            if (graph.claimed_by == this_thread())
                throw std::runtime_error("a signal handler asked for an array that this thread was "
                                         "assigning to; only the other arrays can be read in it");
            awaited = submitted_node(graph);
            busy = graph.claimed_by && !awaited;
        }
        {
            nb::gil_scoped_release released;
            constexpr timespec SPAN{0, 20'000'000}, BUSY_SPAN{0, 50'000}; // then signals are due
            sleep_while(submissions_ended, num_ended, busy ? &BUSY_SPAN : &SPAN);
        }
        if (PyErr_CheckSignals() == 0) continue;
        if (!busy) submissions_stopped.fetch_add(1); // the waiting thread will not
        nb::raise_python_error();
    }
}

void declare_replay(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<FailureHandle>(module, "Failure")
        .def_prop_ro("operation", [](const FailureHandle& self) { return self.operation; })
        .def_prop_ro("node",
                     [](const FailureHandle& self) {
                         return self.node ? nb::cast(NodeHandle{self.node}) : nb::none();
                     })
        .def_prop_ro(
            "cause",
            [](const FailureHandle& self) {
                static constexpr std::array CAUSES{"", "input", "memory", "values", "exception"};
                return CAUSES[self.result.cause];
            })
        .def_prop_ro("nbytes", [](const FailureHandle& self) { return self.result.bytes; })
        .def_prop_ro("error", [](const FailureHandle& self) { return self.error; });
    module.def("find_plan", find_plan_of, "arrays"_a);
    module.def("steps_of", steps_to_python, "nodes"_a);
    module.def("run_apart", run_apart, "executable"_a, "nodes"_a);
    module.def("replay", replay_nodes, "parts"_a, "options"_a, "events"_a = nb::none(),
               "planned"_a = false, "made"_a = nb::none(), "divides"_a = false);
    module.def(
        "count_recorders",
        [](int by) {
            num_recorders += by;
            tracing.store(num_recorders > 0);
        },
        "by"_a);
    if (PyModule_AddFunctions(module.ptr(), functions) != 0) nb::raise_python_error();
}

} // namespace tenfold::bindings
