#include "python/op_recipe.h"

#include <unordered_map>

#include "ir/index_map.h"

namespace tenfold::bindings {

namespace {

struct Recorder {
    OpRecipe& recipe;
    std::size_t num_given;
    bool constants;
    const Params* slice;
    std::unordered_map<Node*, std::size_t> positions{};

    // Appends the steps that make a node, and sets its position; false where that is not possible.
    bool append(Node* node, std::size_t& position) {
        if (auto known = positions.find(node); known != positions.end()) {
            position = known->second;
            return true;
        }
        if (!node->op || value_of(node)) return false; // what is computed has dropped its inputs
        OpRecipe::Step step{node->op, node->params, false, {}};
        if (slice && node->op->part != Op::none) {
            step.follows = true;
            if (starts_of(*node->params).starts != starts_of(*slice).starts) return false;
            step.params = Ref<Params>(const_cast<Params*>(starts_of(*node->params).pattern));
        }
        for (const Ref<Node>& input : inputs_of(node)) {
            std::size_t from = 0;
            if (input->is_scalar() || (constants && value_of(input.get())))
                step.inputs.emplace_back(0, input);
            else if (append(input.get(), from))
                step.inputs.emplace_back(from, Ref<Node>());
            else
                return false;
        }
        if (node->op->python && !node->op->is_permanent)
            recipe.owners.push_back(nb::borrow(static_cast<PyObject*>(node->op->python)));
        recipe.steps.push_back(std::move(step));
        position = positions[node] = num_given + recipe.steps.size() - 1;
        return true;
    }
};

} // namespace

bool OpRecipe::replay(std::span<Node* const> given, std::vector<Ref<Node>>& made,
                      const Params* slice, const Ref<Origin>* line) const {
    std::vector<Ref<Node>> nodes;
    nodes.reserve(steps.size());
    std::vector<Node*> inputs;
    auto node_at = [&](std::size_t at) {
        return at < given.size() ? given[at] : nodes[at - given.size()].get();
    };
    for (const Step& step : steps) {
        inputs.clear();
        for (const auto& [at, constant] : step.inputs)
            inputs.push_back(constant ? constant.get() : node_at(at));
        Ref<Node> node;
        if (!step.op->python) // one of several results
            node = result_node(step.op, step.params, Ref<Node>(inputs[0]),
                               std::size_t(step.params->axes[0]));
        else if (step.follows)
            node = make_node(step.op, inputs,
                             params_with_starts(*step.params, starts_of(*slice).starts), line);
        else
            node = make_node(step.op, inputs, step.params, line);
        if (!node) return false;
        nodes.push_back(std::move(node));
    }
    for (std::size_t at : results)
        made.push_back(at == NOTHING ? Ref<Node>() : Ref<Node>(node_at(at)));
    return true;
}

bool record_recipe(OpRecipe& recipe, std::span<Node* const> placeholders,
                   std::span<Node* const> results, bool constants, const Params* slice) {
    Recorder recorder{recipe, placeholders.size(), constants, slice};
    for (Node* placeholder : placeholders)
        recorder.positions.emplace(placeholder, recorder.positions.size());
    if (recorder.positions.size() < placeholders.size()) return false;
    for (Node* result : results) {
        std::size_t position = OpRecipe::NOTHING;
        if (result && !recorder.append(result, position)) return false;
        recipe.results.push_back(position);
    }
    return true;
}

} // namespace tenfold::bindings
