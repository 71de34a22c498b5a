// Op interpreter bindings: get the loops of an operation and its dtypes from Python, once each.
// Graphs that are seen for the first few times are computed node by node with them.
#include "ir/cse.h"
#include "memory/cache_registry.h"

#include <algorithm>
#include <memory>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/batch_cache.h"
#include "python/engine_bindings.h"

namespace tenfold::bindings {
namespace {

constexpr std::size_t PLACES = 4096;
constexpr uint16_t HOT_THRESHOLD = 16; // a graph that comes as often is worth a plan

PyObject* make_loop = nullptr;      // loop(op, params, inputs, operands, result, steps)
PyObject* make_fold_loop = nullptr; // fold_loop(op, source, operand, result, form...)
PyObject* make_movement = nullptr;  // movement(op, params, shape)
uint8_t device = 0;                 // whose loops they are

// How often a graph came, by a hash: two of one hash take a plan a little sooner. Of forms also how
// often Python was asked then; asked in vain so often, it plans what comes often with its shapes.
struct HotnessCount {
    uint64_t hash = 0;
    uint16_t times = 0, asked = 0;
};
constexpr uint16_t MOST_ASKED = 64; // twice for a plan
std::array<HotnessCount, PLACES> sights;

bool compute_parts(Node& node, bool always);

// Calls that were computed with a plan of their own each, of one kind: what they share among their
// inputs is another plan.
constexpr uint16_t NEW_CALLS = 4;
bool is_new_call(const Node& node) {
    HotnessCount& sight = sights[hash_of(std::array{uint64_t(node.op->id)}) % PLACES];
    if (sight.hash != node.op->id) sight = {node.op->id, 0, 0};
    return sight.times < NEW_CALLS && ++sight.times;
}

// One node is being computed by itself: no groups are looked for in it.
thread_local int alone = 0;
struct Alone {
    Alone() { ++alone; }
    ~Alone() { --alone; }
};

class PythonKernelCompiler : public OpKernelCompiler {
  public:
    // `grouped`: who is not computed here may be a group of one.
    explicit PythonKernelCompiler(bool grouped = false) : grouped_(grouped) {}

    // Null with a Python error where Python has failed.
    const Loop* make(const Node& node, std::span<const Node* const> below,
                     const std::string& steps) override {
        nb::list inputs, operands;
        for (const Node* input : below) {
            nb::object dtype = nb::borrow(dtype_object(input->type->dtype));
            inputs.append(nb::make_tuple(dtype, input->is_scalar()));
        }
        for (uint16_t dtype : node.inference->operands)
            operands.append(nb::borrow(dtype_object(dtype)));
        nb::object params = nb::steal(params_to_python(node.params.get()));
        nb::object made = nb::steal(PyObject_CallFunction(
            make_loop, "OOOOOs", node.op->python, params.ptr(), nb::tuple(inputs).ptr(),
            nb::tuple(operands).ptr(), dtype_object(node.type->dtype), steps.c_str()));
        if (!made.is_valid()) return nullptr;
        auto loop = std::make_unique<Loop>();
        if (made.is_none()) return loop.release();
        auto& entry = nb::cast<EntryPoint&>(made[0]);
        loop->kernel = entry.kernel();
        loop->code = entry.code;
        for (nb::handle size : made[1])
            loop->sizes.push_back({Loop::What(nb::cast<uint8_t>(size[0])),
                                   nb::cast<uint8_t>(size[1]), nb::cast<uint8_t>(size[2])});
        return loop.release();
    }

    // As `make`.
    const ReductionLoop* make_fold(const Node& node, uint16_t source, ReductionForm form) override {
        auto truth = [](bool fact) { return fact ? Py_True : Py_False; };
        nb::object made = nb::steal(PyObject_CallFunctionObjArgs(
            make_fold_loop, node.op->python, dtype_object(source),
            dtype_object(node.inference->operands[0]), dtype_object(node.type->dtype),
            truth(form.column), truth(form.strided), truth(form.enters), truth(form.leaves),
            nullptr));
        if (!made.is_valid()) return nullptr;
        auto loop = std::make_unique<ReductionLoop>();
        auto& entry = nb::cast<EntryPoint&>(made[0]);
        loop->kernel = entry.kernel();
        loop->code = entry.code;
        loop->made = uint16_t(dtype_id(nb::object(made[1]).ptr()));
        loop->lanes = nb::cast<uint32_t>(made[2]);
        loop->parts = nb::cast<uint32_t>(made[3]);
        return loop.release();
    }

    // As `make`.
    const ViewMap* movement(const Node& node, const Type& input) override {
        nb::object params = nb::steal(params_to_python(node.params.get()));
        nb::object shape = nb::tuple(nb::cast(input.shape));
        nb::object found = nb::steal(PyObject_CallFunctionObjArgs(
            make_movement, node.op->python, params.ptr(), shape.ptr(), nullptr));
        if (!found.is_valid()) return nullptr;
        auto made = std::make_unique<ViewMap>();
        if (found.is_none()) return made.release();
        made->kind = nb::len(found) < input.shape.size() ? ViewMap::in_order : ViewMap::affine;
        for (nb::handle step : found) {
            auto axis = step[0].is_none() ? ViewMap::NO_AXIS : nb::cast<int64_t>(step[0]);
            made->steps.push_back({axis, nb::cast<int64_t>(step[1]), nb::cast<int64_t>(step[2])});
        }
        return made.release();
    }

    bool compute(Node& node) override {
        Alone alone;
        // In a group of one products may have other last bits, and nothing may depend on what came
        // before.
        bool always = !grouped_ || node.op->weight == 1 || node.op->multiplies;
        if (node.op->weight > 1 && node.inference->results.size() > 1)
            return compute_parts(node, always);
        if (compute_by_plan(Ref<Node>(&node))) return true;
        if (!always && !is_new_call(node)) return false;
        nb::object array = nb::steal(new_array(Ref<Node>(&node)));
        nb::object done = nb::steal(
            array.is_valid() ? PyObject_CallFunctionObjArgs(hooks.evaluate, array.ptr(), nullptr)
                             : nullptr);
        if (!done.is_valid() && PyErr_ExceptionMatches(PyExc_Exception))
            PyErr_Clear(); // all is computed anew, by who says what was wrong
        return done.is_valid() && value_of(&node);
    }

  private:
    const bool grouped_;
};

// Of a call with several results, so that it is computed as what it is made of.
bool compute_parts(Node& node, bool always) {
    nb::object arrays = nb::steal(arrays_of(Ref<Node>(&node), nullptr));
    if (!arrays.is_valid()) nb::raise_python_error();
    std::vector<Node*> parts;
    for (nb::handle each : nb::tuple(arrays)) parts.push_back(node_of(each.ptr()));
    if (!compute_by_plan(parts)) {
        if (!always && !is_new_call(node)) return false;
        nb::object done =
            nb::steal(PyObject_CallFunctionObjArgs(hooks.evaluate_all, arrays.ptr(), nullptr));
        if (!done.is_valid() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
        if (!done.is_valid()) return false;
    }
    Ref<Value> first;
    for (std::size_t i = parts.size(); i-- > 0;) {
        Ref<Value> result = value_of(parts[i]);
        if (!result) return false;
        auto own = Ref<Value>::adopt(new Value);
        own->type = result->type;
        own->strides = result->strides;
        own->part = true;
        own->buffers = result->buffers;
        own->next = std::move(first);
        first = std::move(own);
    }
    publish(&node, std::move(first));
    return true;
}

HotnessCount& sight_of(std::span<const uint64_t> words) {
    uint64_t hash = hash_of(words);
    HotnessCount& sight = sights[hash % PLACES];
    if (sight.hash != hash) sight = {hash, 0, 0};
    return sight;
}

// By its form, so that a structure of ever new shapes has a template.
HotnessCount& sight_of(const KnownBy& known) {
    if (known.form) {
        HotnessCount& sight = sight_of(known.form->words);
        if (sight.asked < MOST_ASKED) return sight;
    }
    return sight_of(known.key.words);
}

} // namespace

bool may_go_singly(const LinearizedGraph& walked, std::span<const uint64_t> options) {
    // Rules of ours change no bits of operations on elements; a user's have a number.
    bool usual = make_loop && current_options().singly && !options[1] && !options[2];
    return usual && fits_singly(walked, device);
}

// By what it has of operations and dtypes, whatever the lengths: a graph that replaces a part of an
// array has no template. What came with so many lengths goes node by node from then on.
constexpr uint16_t NEW_LENGTHS = 4;
static HotnessCount& sight_of_any_lengths(const LinearizedGraph& walked) {
    std::vector<uint64_t> words;
    for (const LinearizedNode& entry : walked.nodes) {
        const Node& node = *entry.node;
        bool pending = !entry.value && node.op;
        words.push_back(pending ? 2 * node.op->id + 1 : 0);
        words.push_back(node.is_scalar() ? 0 : node.type->kind() | node.type->shape.size() << 40);
        for (uint32_t input : walked.inputs(entry)) words.push_back(input);
    }
    return sight_of(words);
}

bool is_cold(const LinearizedGraph& walked, std::span<const uint64_t> options,
             const KnownBy& known) {
    if (!may_go_singly(walked, options)) return false;
    if (!has_assignments(walked)) return is_long(walked) || sight_of(known).times < HOT_THRESHOLD;
    if (sight_of_any_lengths(walked).times < NEW_LENGTHS) return false;
    return sight_of(known).times < (is_large(walked) ? 1 : HOT_THRESHOLD);
}

// A graph of calls of traced functions, with nothing beside them that rules could look at together.
static bool goes_by_calls(const LinearizedGraph& walked) {
    auto apart = [](const LinearizedNode& entry) {
        const Op* op = entry.node->op;
        return entry.value || !op || !op->python || op->rule_free || op->weight > 1;
    };
    return walked.calls > 1 && std::ranges::all_of(walked.nodes, apart);
}

// A long graph, in groups; a short one of several calls, call by call until it has come often
// enough to be worth a plan, which has the same bits.
static bool goes_apart(const LinearizedGraph& walked, std::span<const uint64_t> options,
                       const KnownBy& known) {
    const Options& in_force = current_options();
    bool usual = DynamicBatcher::is_ready() && (in_force.singly || in_force.verify);
    if (alone || !usual || options[1] || options[2]) return false;
    return is_long(walked) || (sight_of(known).times < HOT_THRESHOLD && goes_by_calls(walked));
}

namespace {

// Notes what would be computed together, and computes nothing.
class BatchDryRun : public DynamicBatcher, public OpInterpreter {
  public:
    BatchDryRun() : DynamicBatcher({}) { tells = true; }
    std::vector<Ref<Value>> compute(const Batch& members,
                                    std::span<const StackedOperand>) override {
        nb::list positions;
        for (uint32_t position : members.positions) positions.append(position);
        told.append(nb::make_tuple(members.group, positions, members.together, members.rest));
        return {};
    }
    bool compute_one(uint32_t) override { return true; }
    Ref<Value>& value(uint32_t) override { return none; }
    void is_done(uint32_t) override {}

    nb::list told;
    Ref<Value> none;
};

// groups_of(nodes, options) -> the groups in the order in which they would be computed, each
// (number, positions in the walk, whether together, whether a limit cut it off from the one
// before); None where the graph does not go in groups.
nb::object groups_of(nb::handle nodes, const std::vector<uint64_t>& options) {
    LinearizedGraph walked = walk(nodes_from(nodes));
    BatchDryRun teller;
    merge_common_subexpressions(walked);
    bool goes = is_long(walked) && teller.limit > 1 &&
                goes_apart(walked, options, {Key{}, nullptr}) &&
                compute_in_groups(walked, device, teller, &teller);
    return goes ? nb::object(teller.told) : nb::none();
}

} // namespace

bool computed_singly(LinearizedGraph& walked, std::span<const uint64_t> options,
                     const KnownBy& known, ExecutionContext& surroundings, std::vector<Ran>* ran) {
    if (goes_apart(walked, options, known)) {
        if (is_long(walked)) merge_common_subexpressions(walked);
        DynamicBatcher grouper(options);
        bool groups = is_long(walked) && grouper.limit > 1;
        PythonKernelCompiler maker(groups);
        auto singly = one_by_one(walked, current_options().threads, maker, surroundings, ran);
        if (!is_long(walked)) ++sight_of(known).times;
        if (compute_in_groups(walked, device, *singly, groups ? &grouper : nullptr)) return true;
        if (PyErr_Occurred()) return false;
    }
    if (!is_cold(walked, options, known)) {
        if (is_long(walked)) return false;
        if (has_assignments(walked)) ++sight_of_any_lengths(walked).times;
        HotnessCount& sight = sight_of(known);
        sight.asked += sight.times >= HOT_THRESHOLD;
        return false;
    }
    if (!is_long(walked)) ++sight_of(known).times;
    PythonKernelCompiler maker;
    return interpret(walked, current_options().threads, maker, surroundings, ran);
}

namespace {

void forget_sights() { sights = {}; }

std::size_t noted_sights() {
    return std::size_t(
        std::ranges::count_if(sights, [](const HotnessCount& s) { return s.times > 0; }));
}

[[maybe_unused]] Cache& joined = join({"graphs seen seldom", PLACES, noted_sights, forget_sights});

} // namespace

void forget_sight(const Form& form) { sight_of(form.words).times = 0; }

OpKernelCompiler& python_maker() {
    static PythonKernelCompiler only;
    return only;
}

bool has_loops_on(uint8_t device_of_type) { return make_loop && device_of_type == device; }

const Loop* contiguous_loop(const Node& node, std::span<const Node* const> inputs) {
    if (node.op->shapes != Op::broadcast || !node.inference->loops) return nullptr;
    std::string steps;
    std::size_t form = 0;
    for (const Node* input : inputs) {
        if (input->is_scalar()) continue;
        steps.push_back('1');
        form = form * 3 + 1;
    }
    if (steps.empty() || steps.size() > Loops::OPERANDS) return nullptr;
    return there_or_made(node.inference->loops->loops[form],
                         [&] { return PythonKernelCompiler().make(node, inputs, steps); });
}

void declare_singly(nb::module_& module) {
    using namespace nb::literals;
    module.attr("HOT_THRESHOLD") = HOT_THRESHOLD;
    module.attr("LONG") = LONG;
    module.def(
        "set_loops",
        [](nb::object loop, nb::object fold_loop, nb::object movement, uint8_t of_device) {
            make_loop = loop.release().ptr();
            make_fold_loop = fold_loop.release().ptr();
            make_movement = movement.release().ptr();
            device = of_device;
        },
        "loop"_a, "fold_loop"_a, "movement"_a, "device"_a);
    module.def("groups_of", groups_of, "nodes"_a, "options"_a);
}

} // namespace tenfold::bindings
