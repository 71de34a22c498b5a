// Executable bindings: the Python classes by which a plan and its structure are written.
#pragma once
#include "python/value_bindings.h"

namespace tenfold::bindings {

struct StructureHandle {
    std::array<Key, 4> keys; // one for each exactness
    KeyOwners owned;
    std::vector<bool> had_value; // whether each graph node had a value
    ShapeSignature form;
    std::vector<uint64_t> words_ignoring_lengths;
    bool has_form;
    bool is_cold = false; // whether it is computed node by node while it has no plan
    bool is_hot = false;  // whether it was, until it had come often
};

struct PlanHandle {
    Ref<Executable> plan;

    void append(Executable::Instruction instruction) {
        plan->instructions.push_back(std::move(instruction));
    }
};

// A run of an Executable that failed: the instruction by its operations and the node that it
// computes, and why.
struct FailureHandle {
    std::string operation; // as written: a kernel's are joined by "+"
    Ref<Node> node;        // null where the graph as written lacks it
    RunResult result;
    nb::object error; // the exception that Python raised, else None
};

// The plan of a graph: a cached one, or instantiated from a template. Writes the base offsets of
// the graph.
Ref<Executable> find_or_instantiate_plan(const LinearizedGraph& graph, const OptionKey& options,
                                         bool rules, std::vector<int64_t>& base_offsets);
// Runs launches without the GIL, and the calls of Python under it, for a caller that holds it.
ExecutionContext& python_context();
bool is_timeline_recording(); // whether a timeline is recorded
// The known exactness of a structure's plans.
uint8_t exactness_of_key(const StructureHandle& structure);

void declare_replay(nb::module_& module);
void declare_templates(nb::module_& module, nb::class_<StructureHandle>& structure,
                       nb::class_<PlanHandle>& plan);

} // namespace tenfold::bindings
