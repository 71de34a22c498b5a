// Executable bindings: write executables from Python, and replay them, from an Array to its values.
#include "engine/submission.h"
#include "exec/float_env.h"
#include "exec/op_interpreter.h"
#include "threads/counters.h"
#include "threads/thread_local.h"

#include <algorithm>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

using Slots = std::vector<Executable::Slot>;

// The strides, or none where they are those of C order.
std::vector<int64_t> normalize_strides(const Type& type, std::vector<int64_t> strides) {
    return is_c_order(type, strides) ? std::vector<int64_t>() : std::move(strides);
}

void add_allocation(PlanHandle& self, Executable::Slot slot, nb::handle type, std::size_t bytes,
                    std::vector<int64_t> strides, bool temporary) {
    Ref<Type> result_type = type_from_python(type);
    strides = normalize_strides(*result_type, std::move(strides));
    self.append(
        Executable::Allocate{slot, std::move(result_type), bytes, std::move(strides), temporary});
}

void add_view(PlanHandle& self, Executable::Slot slot, Executable::Slot source, nb::handle type,
              std::vector<int64_t> strides, int64_t offset) {
    Ref<Type> result_type = type_from_python(type);
    strides = normalize_strides(*result_type, std::move(strides));
    self.append(Executable::View{slot, source, std::move(result_type), std::move(strides), offset});
}

// A number is 8 bytes, or (position, dtype, whether it is the imaginary part).
Executable::Number number_from(nb::handle object) {
    Executable::Number number;
    if (PyBytes_Check(object.ptr()) && PyBytes_GET_SIZE(object.ptr()) == 8) {
        std::memcpy(&number.bits, PyBytes_AS_STRING(object.ptr()), 8);
        return number;
    }
    nb::tuple fields = nb::cast<nb::tuple>(object);
    int id = dtype_id(fields[1].ptr());
    if (id < 0) nb::raise_python_error();
    number.position = nb::cast<uint32_t>(fields[0]);
    number.dtype = uint16_t(id);
    number.imaginary = nb::cast<bool>(fields[2]);
    return number;
}

// Programs: the kernel, and the code to run after all units, or None, of the same code object.
void add_launch(PlanHandle& self, nb::tuple programs, int64_t finished, nb::list buffers,
                std::vector<std::size_t> tables, nb::bytes sizes, nb::list numbers,
                std::size_t scratch, int64_t units, int64_t grain, int threads, bool whole,
                const std::string& label) {
    Executable::Run run{};
    const auto& kernel = nb::cast<EntryPoint&>(programs[0]);
    run.kernel = kernel.kernel;
    if (!programs[1].is_none()) run.finish = nb::cast<EntryPoint&>(programs[1]).kernel;
    if (kernel.code) self.plan->code.push_back(kernel.code);
    run.finish_units = finished;
    for (nb::handle place : buffers)
        run.buffers.push_back({nb::cast<Executable::Slot>(place[0]), nb::cast<int64_t>(place[1])});
    run.scratch_tables = std::move(tables);
    run.sizes.assign(sizes.c_str(), sizes.size());
    for (nb::handle number : numbers) run.numbers.push_back(number_from(number));
    run.scratch = scratch;
    run.units = units;
    run.grain = grain;
    run.threads = threads;
    run.uninterruptible = whole;
    run.label = label;
    self.append(std::move(run));
}

// Of the last launch, a product.
void add_scale(PlanHandle& self, nb::bytes element, nb::handle dtype, bool negative,
               std::vector<int64_t> factors) {
    Executable::Scale scale{{}, 0, negative, std::move(factors)};
    std::memcpy(scale.element.data(), element.c_str(),
                std::min(element.size(), sizeof scale.element));
    int id = dtype_id(dtype.ptr());
    if (id < 0) nb::raise_python_error();
    scale.dtype = uint16_t(id);
    self.plan->last_run().scales.push_back(std::move(scale));
}

// Of the last launch.
void add_blas_limit(PlanHandle& self, nb::iterable libraries, int threads) {
    auto& run = self.plan->last_run();
    for (nb::handle library : libraries)
        run.blas_libraries.push_back(nb::cast<LibraryHandle&>(library).library);
    run.blas_threads = threads;
}

void add_call(PlanHandle& self, nb::object function, std::vector<int64_t> inputs, Slots outputs,
              const std::string& label) {
    self.append(
        Executable::Call{function.release().ptr(), std::move(inputs), std::move(outputs), label});
}

PlanHandle make_plan(const StructureHandle& structure, Executable::Slot slots, bool scalars,
                     bool parts, int64_t runs) {
    auto plan = Ref<Executable>::adopt(new Executable(structure.owned));
    int exact =
        exactness_of_key(structure) | (scalars ? Key::scalars : 0) | (parts ? Key::parts : 0);
    plan->key = structure.keys[std::size_t(exact)].words;
    plan->base_offsets = structure.keys[std::size_t(exact)].base_offsets;
    plan->slots = slots;
    plan->remaining_runs = runs;
    return {std::move(plan)};
}

// Keeps the plan. One of an exact key is found by way of one for all scalars.
void cache_plan_of(const PlanHandle& self, const StructureHandle& structure) {
    cache_plan(self.plan);
    const auto& keys = structure.keys;
    auto exact_key = std::find_if(keys.begin(), keys.end(),
                                  [&](const Key& key) { return key.words == self.plan->key; });
    if (exact_key == keys.begin()) return;
    auto redirect = Ref<Executable>::adopt(new Executable(structure.owned));
    redirect->key = keys[Key::by_form].words;
    redirect->exact = uint8_t(exact_key - keys.begin());
    cache_plan(std::move(redirect));
}

class PythonContext : public ExecutionContext {
  public:
    Result launch(Work& work) override {
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
        if (!outputs.is_valid() || outputs.is_none()) return false;
        for (std::size_t i = 0; i < call.outputs.size(); ++i)
            slots[call.outputs[i]] = nb::cast<ValueHandle&>(outputs[i]).value;
        return true;
    }
};

// The keys of a linearized graph; the thread's next graph reuses the memory.
struct GraphKeys {
    Key key;
    Form form;
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
Ref<Executable> plan_of(const LinearizedGraph& graph, std::span<const uint64_t> options, bool rules,
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

bool replay_remaining(std::span<Node* const> pending, std::span<const uint64_t> options,
                      bool plan_only, std::vector<StepTiming>* timings);

// Whether all of them have their values now.
bool replay_pending(std::span<Node* const> pending, std::span<const uint64_t> options,
                    bool plan_only, std::vector<StepTiming>* timings,
                    const Ref<Executable>& fallback = {}) {
    LinearizedGraph graph = linearize_when_unclaimed(pending);
    for (uint32_t output : graph.outputs)
        if (graph.nodes[output].value) // another thread has computed it meanwhile
            return replay_remaining(pending, options, plan_only, timings);
    BorrowedKeys borrowed;
    GraphKeys& keys = borrowed.keys;
    DefaultFloatMode modes;
    PythonContext interpreter;
    bool succeeded = !plan_only && is_long(graph) && // its key is not worth writing
                     try_interpret(graph, options, keys.identity(), interpreter, timings);
    Ref<Executable> plan = succeeded
                               ? Ref<Executable>()
                               : plan_of(graph, options, current_options().rules, keys, fallback);
    if (plan)
        succeeded = replay(*plan, graph, keys.key, interpreter, timings);
    else if (!succeeded && !plan_only && !is_long(graph) && !keys.key.words.empty())
        succeeded = try_interpret(graph, options, keys.identity(), interpreter, timings);
    if (PyErr_Occurred()) nb::raise_python_error();
    return succeeded;
}

bool replay_remaining(std::span<Node* const> pending, std::span<const uint64_t> options,
                      bool plan_only, std::vector<StepTiming>* timings) {
    std::vector<Node*> remaining(pending.begin(), pending.end());
    std::erase_if(remaining, [](Node* node) { return bool(value_of(node)); });
    return remaining.empty() || replay_pending(remaining, options, plan_only, timings);
}

// replay(nodes, options, events, planned, made) -> whether all have their values now, by a plan
// where that is asked for.
bool replay_nodes(nb::handle nodes, const std::vector<uint64_t>& options, nb::object events,
                  bool plan_only, const PlanHandle* fallback) {
    std::vector<Node*> pending = nodes_from(nodes);
    std::erase_if(pending, [](Node* node) { return !node->op || value_of(node); });
    if (pending.empty()) return true;
    std::vector<StepTiming> timings;
    bool succeeded =
        replay_pending(pending, options, plan_only, events.is_none() ? nullptr : &timings,
                       fallback ? fallback->plan : Ref<Executable>());
    for (const StepTiming& timing : timings) {
        nb::str category(timing.kernel ? "kernel" : "call");
        nb::tuple event = nb::make_tuple(*timing.label, category, timing.begin, timing.end);
        if (succeeded) events.attr("append")(event);
    }
    return succeeded;
}

bool has_external_buffers = false, timeline_recording = false; // written under the GIL

PyObject* compute_natively(PyObject* array, bool blocking) {
    return to_python_error([&]() -> PyObject* {
        if (!is_array(array)) Py_RETURN_FALSE;
        Ref<Node> node(node_of(array));
        if (!node) return nullptr;
        if (value_of(node.get())) Py_RETURN_TRUE;
        Node* pending = node.get();
        if (!blocking && !are_all_small({&pending, 1})) Py_RETURN_FALSE;
        if (!compute_by_plan(std::move(node))) Py_RETURN_FALSE;
        if (blocking) count(Counter::host_syncs);
        Py_RETURN_TRUE;
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

PyMethodDef functions[] = {
    {"try_compute", try_compute, METH_O,
     "Whether an Array has its value, or it is small and a plan known."},
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

bool compute_by_plan(Ref<Node> node) {
    Node* pending = node.get();
    return node->op && compute_by_plan({&pending, 1});
}

bool compute_by_plan(std::span<Node* const> pending) {
    OptionKey options;
    if (has_external_buffers || timeline_recording || current_options().verify ||
        !current_option_key(options))
        return false;
    return replay_pending(pending, options, false, nullptr);
}

Ref<Executable> find_or_instantiate_plan(std::span<Node* const> pending,
                                         std::vector<int64_t>& base_offsets) {
    OptionKey options;
    if (has_external_buffers || !current_option_key(options)) return {};
    BorrowedKeys borrowed;
    const bool rules = current_options().rules;
    Ref<Executable> plan =
        plan_of(linearize_when_unclaimed(pending), options, rules, borrowed.keys);
    base_offsets = borrowed.keys.key.base_offsets;
    return plan;
}

bool replay_if_planned(const LinearizedGraph& graph, std::span<const uint64_t> options, bool rules,
                       std::span<Ref<Value>> results) {
    BorrowedKeys borrowed;
    Ref<Executable> plan = plan_of(graph, options, rules, borrowed.keys);
    Collector collector(graph, results);
    return plan && replay(*plan, graph, borrowed.keys.key, collector);
}

bool is_timeline_recording() { return timeline_recording; }

LinearizedGraph linearize_when_unclaimed(std::span<Node* const> outputs) {
    for (;;) {
        uint32_t num_ended = submissions_ended.load(std::memory_order_acquire);
        LinearizedGraph graph = linearize(outputs);
        if (!graph.claimed_by && !graph.has_submitted) return graph;
        if (graph.claimed_by == this_thread())
            throw std::runtime_error("a signal handler asked for an array that this thread was "
                                     "assigning to; only the other arrays can be read in it");
        bool busy = graph.claimed_by;
        graph = {};
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

// The new structure starts with the known exactness of its key.
uint8_t exactness_of_key(const StructureHandle& structure) {
    return tenfold::exactness_of_key(structure.keys[Key::by_form].words);
}

nb::object make_structure(const LinearizedGraph& graph, std::span<const uint64_t> options) {
    StructureHandle structure{{}, KeyOwners(graph), {}, {}, false, false, false};
    structure.has_form = structure.form.write(graph, options, current_options().rules);
    for (std::size_t exact = 0; exact < structure.keys.size(); ++exact)
        if (!structure.keys[exact].write(graph, options, uint8_t(exact))) return nb::none();
    for (const LinearizedNode& entry : graph.nodes)
        structure.had_value.push_back(bool(entry.value));
    structure.is_cold =
        is_cold(graph, options,
                {structure.keys[Key::by_form], structure.has_form ? &structure.form : nullptr});
    structure.is_hot = !structure.is_cold && !is_long(graph) && may_interpret(graph, options);
    return nb::cast(std::move(structure));
}

void declare_executables(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<StructureHandle> structure(module, "Structure");
    structure.def("is_computed", [](const StructureHandle& self, std::size_t position) {
        return self.had_value.at(position);
    });
    structure.def_prop_ro("is_cold", [](const StructureHandle& self) { return self.is_cold; });
    structure.def_prop_ro("is_hot", [](const StructureHandle& self) { return self.is_hot; });
    nb::class_<PlanHandle> plan(module, "Executable");
    declare_templates(module, structure, plan);
    plan.attr("ADDRESS") = Executable::BufferRef::ADDRESS;
    plan.def_static("create", make_plan, "structure"_a, "slots"_a, "scalars"_a, "parts"_a, "runs"_a)
        .def("load",
             [](PlanHandle& self, Executable::Slot slot, uint32_t position, uint32_t index) {
                 self.append(Executable::Load{slot, position, index});
             })
        .def("allocate", add_allocation)
        .def("share",
             [](PlanHandle& self, Executable::Slot slot, Executable::Slot source) {
                 self.append(Executable::Share{slot, source});
             })
        .def("view", add_view)
        .def("launch", add_launch)
        .def("set_multiply_adds",
             [](PlanHandle& self, int64_t multiply_adds) {
                 self.plan->last_run().multiply_adds = multiply_adds;
             })
        .def("add_scale", add_scale)
        .def("add_blas_limit", add_blas_limit)
        .def("set_extra_work",
             [](PlanHandle& self, Executable::Slot slot, int64_t first, int64_t apart,
                int64_t numbers, int64_t multiply_adds) {
                 self.plan->last_run().extra_work = {slot, first, apart, numbers, multiply_adds};
             })
        .def("call", add_call)
        .def("count_copy",
             [](PlanHandle& self) { self.append(Executable::Raise{Counter::copies}); })
        .def("donate", [](PlanHandle& self,
                          uint32_t position) { self.plan->donated_inputs.push_back(position); })
        .def("drop", [](PlanHandle& self, Slots slots) { self.append(Executable::Drop{slots}); })
        .def("publish",
             [](PlanHandle& self, uint32_t position, Slots slots) {
                 self.append(Executable::Publish{position, slots});
             })
        .def("mark_partial_read",
             [](PlanHandle& self, uint32_t position) { self.append(Executable::Mark{position}); })
        .def("cache", cache_plan_of, "structure"_a);
    module.def("replay", replay_nodes, "nodes"_a, "options"_a, "events"_a = nb::none(),
               "planned"_a = false, "made"_a = nb::none());
    module.def(
        "set_timeline_recording", [](bool now) { timeline_recording = now; }, "now"_a);
    if (PyModule_AddFunctions(module.ptr(), functions) != 0) nb::raise_python_error();
    module.def(
        "disable_deferral", [](const NodeHandle& node) { disable_deferral(*node.node); }, "node"_a);
    module.def("num_cached_plans", num_cached_plans);
    module.def("clear_plan_cache", clear_plan_cache);
    module.def("is_special_value", [](nb::handle number) {
        return is_special_value(Operand(number.ptr(), nullptr).get()->scalar);
    });
}

} // namespace tenfold::bindings
