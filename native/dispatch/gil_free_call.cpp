#include "dispatch/gil_free_call.h"

namespace tenfold {

GilFreeRunner::GilFreeRunner(const GilFreeCall& call, bool& count_launches)
    : call_(call), count_launches_(count_launches) {
    graph_.nodes = call.graph_template->graph.nodes;
    key_.base_offsets = call.base_offsets;
}

bool GilFreeRunner::bind_input(std::size_t input, const Ref<Value>& value) {
    uint32_t position = call_.graph_template->leaves[input];
    if (position == GraphTemplate::NONE) return true;
    LinearizedNode& entry = graph_.nodes[position];
    if (!value || !value->strides.empty() || value->type != entry.node->type) return false;
    entry.value = value;
    return true;
}

Ref<Value> GilFreeRunner::run() {
    results_.assign(call_.outputs.size(), {});
    const auto succeeded = bool(replay(*call_.plan, graph_, key_, *this));
    count_launches_ = false;
    if (results_.size() == 1) return succeeded ? std::move(results_[0]) : Ref<Value>();
    Ref<Value> chain;
    while (succeeded &&
           !results_.empty()) { // each in a Value of its own: it may be an input's, or be twice
        if (!results_.back()) return {};
        chain = Value::alias_of(*results_.back(), std::move(chain));
        results_.pop_back();
    }
    return chain;
}

void GilFreeRunner::count(Counter counter) {
    if (count_launches_) count_anywhere(counter);
}

Result GilFreeRunner::launch(Work& work) {
    if (work.threads > threads()) set_threads(work.threads);
    return Launch(work).run();
}

void GilFreeRunner::publish(Node* node, Ref<Value> value) {
    for (std::size_t i = 0; i < results_.size(); ++i)
        if (graph_.nodes[call_.outputs[i]].node.get() == node) results_[i] = value;
}

void run_gil_free(const GilFreeCall& call, std::span<const Ref<Future>> members,
                  std::span<OperatorResult> answers, bool count_launches) {
    GilFreeRunner runner(call, count_launches);
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (!answers[i].empty()) continue;
        std::size_t input_index = 0;
        bool is_valid = true;
        for (Edge& edge : members[i]->inputs())
            is_valid &= runner.bind_input(input_index++, edge.input->value);
        for (const Ref<Value>& value : members[i]->operation->captured)
            is_valid &= runner.bind_input(input_index++, value);
        if (is_valid) answers[i].value = runner.run();
    }
}

} // namespace tenfold
