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
std::vector<int64_t> unusual(const Type& type, std::vector<int64_t> strides) {
    return in_c_order(type, strides) ? std::vector<int64_t>() : std::move(strides);
}

void add_allocation(PlanHandle& self, Executable::Slot slot, nb::handle type, std::size_t bytes,
                    std::vector<int64_t> strides, bool temporary) {
    Ref<Type> made = type_from_python(type);
    strides = unusual(*made, std::move(strides));
    self.add(Executable::Allocate{slot, std::move(made), bytes, std::move(strides), temporary});
}

void add_view(PlanHandle& self, Executable::Slot slot, Executable::Slot source, nb::handle type,
              std::vector<int64_t> strides, int64_t offset) {
    Ref<Type> made = type_from_python(type);
    strides = unusual(*made, std::move(strides));
    self.add(Executable::View{slot, source, std::move(made), std::move(strides), offset});
}

// A number is 8 bytes, or (position, dtype, whether it is the imaginary part).
Executable::Number number_from(nb::handle object) {
    Executable::Number number;
    if (PyBytes_Check(object.ptr()) && PyBytes_GET_SIZE(object.ptr()) == 8) {
        std::memcpy(&number.bits, PyBytes_AS_STRING(object.ptr()), 8);
        return number;
    }
    nb::tuple given = nb::cast<nb::tuple>(object);
    int id = dtype_id(given[1].ptr());
    if (id < 0) nb::raise_python_error();
    number.position = nb::cast<uint32_t>(given[0]);
    number.dtype = uint16_t(id);
    number.imaginary = nb::cast<bool>(given[2]);
    return number;
}

// Programs: the kernel and what is to run after all units, or None, of the same code.
void add_launch(PlanHandle& self, nb::tuple programs, int64_t finished, nb::list buffers,
                std::vector<std::size_t> tables, nb::bytes sizes, nb::list numbers,
                std::size_t scratch, int64_t units, int64_t grain, int threads, bool whole,
                const std::string& label) {
    Executable::Run run{};
    const auto& kernel = nb::cast<EntryPoint&>(programs[0]);
    run.kernel = kernel.kernel();
    if (!programs[1].is_none()) run.finish = nb::cast<EntryPoint&>(programs[1]).kernel();
    self.plan->code.push_back(kernel.code);
    run.finished = finished;
    for (nb::handle place : buffers)
        run.buffers.push_back({nb::cast<Executable::Slot>(place[0]), nb::cast<int64_t>(place[1])});
    run.tables = std::move(tables);
    run.sizes.assign(sizes.c_str(), sizes.size());
    for (nb::handle number : numbers) run.numbers.push_back(number_from(number));
    run.scratch = scratch;
    run.units = units;
    run.grain = grain;
    run.threads = threads;
    run.whole = whole;
    run.label = label;
    self.add(std::move(run));
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
void add_holding(PlanHandle& self, nb::iterable libraries, int threads) {
    auto& run = self.plan->last_run();
    for (nb::handle each : libraries) run.held.push_back(nb::cast<LibraryHandle&>(each).library);
    run.held_to = threads;
}

void add_call(PlanHandle& self, nb::object function, std::vector<int64_t> inputs, Slots outputs,
              const std::string& label) {
    self.add(
        Executable::Call{function.release().ptr(), std::move(inputs), std::move(outputs), label});
}

PlanHandle make_plan(const StructureHandle& structure, Executable::Slot slots, bool scalars,
                     bool parts, int64_t runs) {
    auto plan = Ref<Executable>::adopt(new Executable(structure.owned));
    int exact = known_exact(structure) | (scalars ? Key::scalars : 0) | (parts ? Key::parts : 0);
    plan->key = structure.keys[std::size_t(exact)].words;
    plan->moved = structure.keys[std::size_t(exact)].moved;
    plan->slots = slots;
    plan->left = runs;
    return {std::move(plan)};
}

// Keeps the plan. One of an exact key is found by way of one for all scalars.
void keep(const PlanHandle& self, const StructureHandle& structure) {
    keep_plan(self.plan);
    const auto& keys = structure.keys;
    auto exact = std::find_if(keys.begin(), keys.end(),
                              [&](const Key& key) { return key.words == self.plan->key; });
    if (exact == keys.begin()) return;
    auto sign = Ref<Executable>::adopt(new Executable(structure.owned));
    sign->key = keys[Key::by_form].words;
    sign->exact = uint8_t(exact - keys.begin());
    keep_plan(std::move(sign));
}

class ContextOfPython : public ExecutionContext {
  public:
    Result launch(Work& work) override {
        if (work.threads > threads()) set_threads(work.threads);
        return launch_without_gil(work);
    }

    bool call(const Executable::Call& call, const LinearizedGraph& walked,
              std::vector<Ref<Value>>& slots) override {
        nb::object inputs = nb::steal(PyTuple_New(Py_ssize_t(call.inputs.size())));
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            int64_t from = call.inputs[i];
            nb::object input = from < 0
                                   ? nb::steal(scalar_to_python(walked.nodes[~from].node->scalar))
                                   : nb::cast(ValueHandle{slots[std::size_t(from)]});
            PyTuple_SET_ITEM(inputs.ptr(), Py_ssize_t(i), input.release().ptr());
        }
        auto* function = static_cast<PyObject*>(call.function);
        nb::object made = nb::steal(PyObject_CallObject(function, inputs.ptr()));
        if (!made.is_valid() || made.is_none()) return false;
        for (std::size_t i = 0; i < call.outputs.size(); ++i)
            slots[call.outputs[i]] = nb::cast<ValueHandle&>(made[i]).value;
        return true;
    }
};

// What a walk is known by; the next one of the thread has the memory again.
struct Words {
    Key key;
    Form form;
    bool has_form = false; // of what is known by the form of scalars, and has no plan
    bool in_use = false;

    KnownBy known() const { return {key, has_form ? &form : nullptr}; }
};

// For a caller that computes one walk repeatedly.
class Collector : public ContextOfPython {
  public:
    Collector(const LinearizedGraph& walked, std::span<Ref<Value>> made)
        : walked_(walked), made_(made) {}
    void publish(Node* node, Ref<Value> value) override {
        for (uint32_t output : walked_.outputs)
            if (walked_.nodes[output].node.get() == node) made_[output] = value;
    }

  private:
    const LinearizedGraph& walked_;
    std::span<Ref<Value>> made_;
};

// Writes the words too. What the last graph with such an end was told apart by is tried first. What
// was `made` for it is there, even if others have used up its runs.
Ref<Executable> plan_of(const LinearizedGraph& walked, std::span<const uint64_t> options,
                        bool rules, Words& words, const Ref<Executable>& made = {}) {
    Key& key = words.key;
    const Node& end = *walked.nodes.back().node;
    auto number = [](const void* object) { return reinterpret_cast<std::size_t>(object); };
    std::size_t kind = number(end.inference.get()) + 5 * number(end.type.get());
    std::atomic<uint8_t>& last = end.inference->exact;
    auto exact_in = [&](uint8_t exact) {
        Ref<Executable> found;
        if (!key.write(walked, options, exact)) return found;
        found = find_plan(key.words, kind);
        return !found && made && made->key == key.words ? made : found;
    };
    uint8_t tried = last.load(std::memory_order_relaxed);
    Ref<Executable> plan = exact_in(tried);
    if (!plan && tried != Key::by_form) plan = exact_in(tried = Key::by_form);
    if (plan && plan->exact != Key::by_form) plan = exact_in(tried = plan->exact);
    if (!plan && tried == Key::by_form &&
        (words.has_form = words.form.write(walked, options, rules)))
        plan = plan_from_template(words.form, walked, key);
    last.store(tried, std::memory_order_relaxed);
    return plan;
}

// The thread's Words; its own where what runs in a replay replays itself.
class BorrowedValues {
  public:
    BorrowedValues() : words(shared_.in_use ? own_ : shared_) {
        words.in_use = true;
        words.has_form = false;
        words.key.words.clear();
    }
    ~BorrowedValues() { words.in_use = false; }

  private:
    Words& shared_ = ThreadLocal<Words>::get();
    Words own_;

  public:
    Words& words;
};

bool replay_left(std::span<Node* const> pending, std::span<const uint64_t> options, bool planned,
                 std::vector<Ran>* ran);

// Whether all of them have their values now.
bool replay_pending(std::span<Node* const> pending, std::span<const uint64_t> options, bool planned,
                    std::vector<Ran>* ran, const Ref<Executable>& made = {}) {
    LinearizedGraph walked = walk_at_rest(pending);
    for (uint32_t output : walked.outputs)
        if (walked.nodes[output].value) // another thread has computed it meanwhile
            return replay_left(pending, options, planned, ran);
    BorrowedValues borrowed;
    Words& words = borrowed.words;
    UsualModes modes;
    ContextOfPython interpreter;
    bool done = !planned && is_long(walked) && // its key is not worth writing
                computed_singly(walked, options, words.known(), interpreter, ran);
    Ref<Executable> plan =
        done ? Ref<Executable>() : plan_of(walked, options, current_options().rules, words, made);
    if (plan)
        done = replay(*plan, walked, words.key, interpreter, ran);
    else if (!done && !planned && !is_long(walked) && !words.key.words.empty())
        done = computed_singly(walked, options, words.known(), interpreter, ran);
    if (PyErr_Occurred()) nb::raise_python_error();
    return done;
}

bool replay_left(std::span<Node* const> pending, std::span<const uint64_t> options, bool planned,
                 std::vector<Ran>* ran) {
    std::vector<Node*> left(pending.begin(), pending.end());
    std::erase_if(left, [](Node* node) { return bool(value_of(node)); });
    return left.empty() || replay_pending(left, options, planned, ran);
}

// replay(nodes, options, events, planned, made) -> whether all have their values now, by a plan
// where that is asked for.
bool replay_nodes(nb::handle nodes, const std::vector<uint64_t>& options, nb::object events,
                  bool planned, const PlanHandle* made) {
    std::vector<Node*> pending = nodes_from(nodes);
    std::erase_if(pending, [](Node* node) { return !node->op || value_of(node); });
    if (pending.empty()) return true;
    std::vector<Ran> ran;
    bool done = replay_pending(pending, options, planned, events.is_none() ? nullptr : &ran,
                               made ? made->plan : Ref<Executable>());
    for (const Ran& each : ran) {
        nb::str category(each.kernel ? "kernel" : "call");
        nb::tuple event = nb::make_tuple(*each.label, category, each.begin, each.end);
        if (done) events.attr("append")(event);
    }
    return done;
}

bool windows = false, watched = false; // written under the GIL

PyObject* computed_without_python(PyObject* array, bool waits) {
    return guarded([&]() -> PyObject* {
        if (!is_array(array)) Py_RETURN_FALSE;
        Ref<Node> node(node_of(array));
        if (!node) return nullptr;
        if (value_of(node.get())) Py_RETURN_TRUE;
        Node* pending = node.get();
        if (!waits && !are_small({&pending, 1})) Py_RETURN_FALSE;
        if (!compute_by_plan(std::move(node))) Py_RETURN_FALSE;
        if (waits) count(Counter::host_syncs);
        Py_RETURN_TRUE;
    });
}

// x.wait(): Python is asked for no more than what it alone can do.
PyObject* wait(PyObject* array, PyObject*) {
    PyObject* done = computed_without_python(array, true);
    if (!done) return nullptr;
    Py_DECREF(done);
    return done == Py_True ? Py_NewRef(array)
                           : PyObject_CallFunctionObjArgs(hooks.wait, array, nullptr);
}

// replayed(array) -> whether it has its value now; no more is tried than needs no Python, and no
// time.
PyObject* replayed(PyObject*, PyObject* array) { return computed_without_python(array, false); }

PyMethodDef functions[] = {
    {"replayed", replayed, METH_O,
     "Whether an Array has its value, or it is small and a plan known."},
    {nullptr, nullptr, 0, nullptr},
};

} // namespace

PyMethodDef array_methods[] = {
    {"wait", wait, METH_NOARGS,
     "wait($self, /)\n--\n\n"
     "Compute the values and return the array itself. Raises what the computation raises."},
    {nullptr, nullptr, 0, nullptr},
};

void watch_windows() { windows = true; }

bool compute_by_plan(Ref<Node> node) {
    Node* pending = node.get();
    return node->op && compute_by_plan({&pending, 1});
}

bool compute_by_plan(std::span<Node* const> pending) {
    Numbers options;
    if (windows || watched || current_options().verify || !numbers_in_force(options)) return false;
    return replay_pending(pending, options, false, nullptr);
}

Ref<Executable> known_plan(std::span<Node* const> pending, std::vector<int64_t>& moved) {
    Numbers options;
    if (windows || !numbers_in_force(options)) return {};
    BorrowedValues borrowed;
    const bool rules = current_options().rules;
    Ref<Executable> plan = plan_of(walk_at_rest(pending), options, rules, borrowed.words);
    moved = borrowed.words.key.moved;
    return plan;
}

bool replay_known(const LinearizedGraph& walked, std::span<const uint64_t> options, bool rules,
                  std::span<Ref<Value>> made) {
    BorrowedValues borrowed;
    Ref<Executable> plan = plan_of(walked, options, rules, borrowed.words);
    Collector collector(walked, made);
    return plan && replay(*plan, walked, borrowed.words.key, collector);
}

bool is_watched() { return watched; }

LinearizedGraph walk_at_rest(std::span<Node* const> outputs) {
    for (;;) {
        uint32_t ended = submissions_ended.load(std::memory_order_acquire);
        LinearizedGraph walked = walk(outputs);
        if (!walked.busy && !walked.submitted) return walked;
        if (walked.busy == this_thread())
            throw std::runtime_error("a signal handler asked for an array that this thread was "
                                     "assigning to; only the other arrays can be read in it");
        bool busy = walked.busy;
        walked = {};
        {
            nb::gil_scoped_release released;
            constexpr timespec SPAN{0, 20'000'000}, BUSY_SPAN{0, 50'000}; // then signals are due
            sleep_while(submissions_ended, ended, busy ? &BUSY_SPAN : &SPAN);
        }
        if (PyErr_CheckSignals() == 0) continue;
        if (!busy) submissions_stopped.fetch_add(1); // who waited will not
        nb::raise_python_error();
    }
}

// What is known to be told apart already is so from now on.
uint8_t known_exact(const StructureHandle& structure) {
    return tenfold::known_exact(structure.keys[Key::by_form].words);
}

nb::object structure_of(const LinearizedGraph& walked, std::span<const uint64_t> options) {
    StructureHandle structure{{}, Owned(walked), {}, {}, false, false, false};
    structure.has_form = structure.form.write(walked, options, current_options().rules);
    for (std::size_t exact = 0; exact < structure.keys.size(); ++exact)
        if (!structure.keys[exact].write(walked, options, uint8_t(exact))) return nb::none();
    for (const LinearizedNode& entry : walked.nodes)
        structure.computed.push_back(bool(entry.value));
    structure.singly =
        is_cold(walked, options,
                {structure.keys[Key::by_form], structure.has_form ? &structure.form : nullptr});
    structure.often = !structure.singly && !is_long(walked) && may_go_singly(walked, options);
    return nb::cast(std::move(structure));
}

void declare_plans(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<StructureHandle> structure(module, "Structure");
    structure.def("computed", [](const StructureHandle& self, std::size_t position) {
        return self.computed.at(position);
    });
    structure.def_prop_ro("op_by_op", [](const StructureHandle& self) { return self.singly; });
    structure.def_prop_ro("hot", [](const StructureHandle& self) { return self.often; });
    nb::class_<PlanHandle> plan(module, "Executable");
    declare_templates(module, structure, plan);
    plan.attr("NOWHERE") = Executable::Place::NOWHERE;
    plan.def_static("of", make_plan, "structure"_a, "slots"_a, "scalars"_a, "parts"_a, "runs"_a)
        .def("load",
             [](PlanHandle& self, Executable::Slot slot, uint32_t position, uint32_t index) {
                 self.add(Executable::Load{slot, position, index});
             })
        .def("allocate", add_allocation)
        .def("share",
             [](PlanHandle& self, Executable::Slot slot, Executable::Slot source) {
                 self.add(Executable::Share{slot, source});
             })
        .def("view", add_view)
        .def("launch", add_launch)
        .def("product",
             [](PlanHandle& self, int64_t multiply_adds) {
                 self.plan->last_run().multiply_adds = multiply_adds;
             })
        .def("scale", add_scale)
        .def("holding", add_holding)
        .def("more",
             [](PlanHandle& self, Executable::Slot slot, int64_t first, int64_t apart,
                int64_t numbers, int64_t multiply_adds) {
                 self.plan->last_run().more = {slot, first, apart, numbers, multiply_adds};
             })
        .def("call", add_call)
        .def("count_copy", [](PlanHandle& self) { self.add(Executable::Raise{Counter::copies}); })
        .def("claim", [](PlanHandle& self,
                         uint32_t position) { self.plan->donated_inputs.push_back(position); })
        .def("drop", [](PlanHandle& self, Slots slots) { self.add(Executable::Drop{slots}); })
        .def("publish",
             [](PlanHandle& self, uint32_t position, Slots slots) {
                 self.add(Executable::Publish{position, slots});
             })
        .def("mark",
             [](PlanHandle& self, uint32_t position) { self.add(Executable::Mark{position}); })
        .def("keep", keep, "structure"_a);
    module.def("replay", replay_nodes, "nodes"_a, "options"_a, "events"_a = nb::none(),
               "planned"_a = false, "made"_a = nb::none());
    module.def(
        "set_watched", [](bool now) { watched = now; }, "now"_a);
    if (PyModule_AddFunctions(module.ptr(), functions) != 0) nb::raise_python_error();
    module.def(
        "keep_apart", [](const NodeHandle& node) { keep_apart(*node.node); }, "node"_a);
    module.def("kept_plans", kept_plans);
    module.def("forget_plans", forget_plans);
    module.def("is_notable", [](nb::handle number) {
        return is_notable(Operand(number.ptr(), nullptr).get()->scalar);
    });
}

} // namespace tenfold::bindings
