// Executable bindings: the Python classes by which a plan and its structure are written.
#pragma once
#include "python/value_bindings.h"

namespace tenfold::bindings {

struct StructureHandle {
    std::array<Key, 4> keys; // by what they are exact in
    KeyOwners owned;
    std::vector<bool> had_value; // of each graph node, whether it had a value
    Form form;
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

// Of pending nodes, if one is known, or a template for it; and the bytes by which the memory of
// what it is made of counts as moved.
Ref<Executable> find_or_instantiate_plan(std::span<Node* const> pending,
                                         std::vector<int64_t>& base_offsets);
// Computes a walk by a plan that is known, or a template for it, and puts what its outputs are
// where they stand in `made`: its nodes are used again. False with or without a Python error.
bool replay_if_planned(const LinearizedGraph& graph, std::span<const uint64_t> options, bool rules,
                       std::span<Ref<Value>> results);
bool is_timeline_recording(); // whether a timeline is recorded
// What plans of a structure are known to be told apart by.
uint8_t exactness_of_key(const StructureHandle& structure);

void declare_templates(nb::module_& module, nb::class_<StructureHandle>& structure,
                       nb::class_<PlanHandle>& plan);

} // namespace tenfold::bindings
