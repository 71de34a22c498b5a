#include "engine/gil_free_call.h"

#include "threads/worker_pool.h"

namespace tenfold {

Result GilFreeContext::run_on_host(Work& work) {
    if (work.threads > threads()) set_threads(work.threads);
    return DirectLauncher().run_on_host(work);
}

GilFreeRunner::GilFreeRunner(const GilFreeCall& call, ExecutionContext* python)
    : call_(call), python_(python) {
    graph_.nodes = call.graph_template->graph.nodes;
    key_.base_offsets = call.base_offsets;
}

bool GilFreeRunner::bind_input(std::size_t input, const Ref<Value>& value) {
    uint32_t position = call_.graph_template->leaves[input];
    if (position == GraphTemplate::NONE) return true;
    LinearizedNode& entry = graph_.nodes[position];
    static const std::vector<int64_t> C_ORDER;
    const auto& strides = input < call_.input_strides.size() ? call_.input_strides[input] : C_ORDER;
    if (!value || value->strides != strides || value->type != entry.node->type) return false;
    entry.value = value;
    return true;
}

Ref<Value> GilFreeRunner::run() {
    results_.assign(call_.outputs.size(), {});
    const auto succeeded = bool(replay(*call_.plan, graph_, key_, *this));
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

bool GilFreeRunner::call(const Executable::Call& call, const LinearizedGraph& graph,
                         std::vector<Ref<Value>>& slots) {
    return python_ && python_->call(call, graph, slots);
}

Result GilFreeRunner::run_on_host(Work& work) {
    return python_ ? python_->run_on_host(work) : GilFreeContext::run_on_host(work);
}

void GilFreeRunner::publish(Node* node, Ref<Value> value) {
    for (std::size_t i = 0; i < results_.size(); ++i)
        if (graph_.nodes[call_.outputs[i]].node.get() == node) results_[i] = value;
}

void run_gil_free(const GilFreeCall& call, std::span<const Ref<Future>> members,
                  std::span<OperatorResult> answers) {
    GilFreeRunner runner(call);
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
