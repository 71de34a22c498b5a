#include "exec/planned_graph.h"

#include <algorithm>

#include "threads/worker_pool.h"

namespace tenfold {
namespace {

// False once all runs are taken.
bool take_run(Executable& plan) {
    int64_t runs = plan.remaining_runs.load(std::memory_order_relaxed);
    while (runs > 0 &&
           !plan.remaining_runs.compare_exchange_weak(runs, runs - 1, std::memory_order_relaxed)) {}
    return runs != 0;
}

} // namespace

void PlannedGraph::open_rows(const LinearizedGraph& graph, const std::vector<char>& stacked,
                             const OptionKey& options, bool rules) {
    ShapeSignature form;
    if (rows < 2 || !form.write(graph, options, rules) || form.axes.empty()) return;
    const bool per_axis = form.axes[0] > 0;
    auto index_of = [&](const Type& type, std::size_t axis) {
        uint32_t index = 0;
        while (form.lengths[index] != type.shape[axis] ||
               (per_axis && form.axes[index] != type.shape.size() - axis))
            ++index;
        return index;
    };
    std::vector<uint32_t> found, members_lengths;
    for (uint32_t position = 0; position < graph.nodes.size(); ++position) {
        const LinearizedNode& entry = graph.nodes[position];
        if (!entry.value || entry.node->is_scalar()) continue;
        auto leaf = std::size_t(std::ranges::find(graph_template->leaves, position) -
                                graph_template->leaves.begin());
        const Type& type = *entry.value->type;
        const bool has_rows = leaf < stacked.size() && stacked[leaf];
        for (std::size_t axis = 0; axis < type.shape.size(); ++axis)
            if (type.shape[axis] > 1)
                (has_rows && axis == 0 ? found : members_lengths).push_back(index_of(type, axis));
    }
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    for (uint32_t index : found) // equal by chance
        if (std::ranges::find(members_lengths, index) != members_lengths.end()) return;
    if (found.empty() || !(symbolic = find_template(form, graph))) return;
    if (!symbolic->template_plan->donated_inputs.empty()) return void(symbolic = nullptr);
    lengths = std::move(form.lengths);
    row_lengths = std::move(found);
}

Ref<Executable> PlannedGraph::plan_for(std::size_t num_rows) const {
    if (num_rows == rows && plan && take_run(*plan)) return plan;
    if (!symbolic || num_rows < 2) return {};
    std::vector<int64_t> others = lengths;
    for (uint32_t index : row_lengths) others[index] = int64_t(num_rows);
    bool are_distinct =
        std::ranges::count(others, int64_t(num_rows)) == int64_t(row_lengths.size());
    if (!are_distinct) return {}; // equal lengths have plans of their own
    return instantiate_for(*symbolic, others);
}

Result GilFreeContext::run_on_host(Work& work) {
    if (work.threads > threads()) set_threads(work.threads);
    return DirectLauncher().run_on_host(work);
}

PlannedGraphRunner::PlannedGraphRunner(const PlannedGraph& planned, ExecutionContext* python)
    : planned_(planned), python_(python) {
    graph_.nodes = planned.graph_template->graph.nodes;
    key_.base_offsets = planned.base_offsets;
}

bool PlannedGraphRunner::bind_input(std::size_t input, const Ref<Value>& value) {
    uint32_t position = planned_.graph_template->leaves[input];
    if (position == GraphTemplate::NONE) return true;
    LinearizedNode& entry = graph_.nodes[position];
    static const std::vector<int64_t> C_ORDER;
    const auto& strides =
        input < planned_.input_strides.size() ? planned_.input_strides[input] : C_ORDER;
    bool is_expected = value && (value->type->has_form(*entry.node->type) || planned_.symbolic);
    if (!is_expected || value->strides != strides) return false;
    entry.value = value;
    return true;
}

std::vector<Ref<Value>> PlannedGraphRunner::run(const Executable& plan) {
    results_.assign(planned_.outputs.size(), {});
    if (!replay(plan, graph_, key_, *this)) return {};
    for (std::size_t i = 0; i < results_.size(); ++i) // a leaf may be a result
        if (!results_[i]) results_[i] = graph_.nodes[planned_.outputs[i]].value;
    if (!std::ranges::all_of(results_, [](const Ref<Value>& each) { return bool(each); }))
        return {};
    return std::move(results_);
}

Ref<Value> PlannedGraphRunner::run_chained() {
    std::vector<Ref<Value>> results = run(*planned_.plan);
    if (results.size() == 1) return std::move(results[0]);
    Ref<Value> chain;
    for (; !results.empty(); results.pop_back()) // each in a Value of its own: it may be an
        chain = Value::alias_of(*results.back(), std::move(chain)); // input's, or be twice
    return chain;
}

bool PlannedGraphRunner::call(const Executable::Call& call, const LinearizedGraph& graph,
                              std::vector<Ref<Value>>& slots) {
    return python_ && python_->call(call, graph, slots);
}

Result PlannedGraphRunner::run_on_host(Work& work) {
    return python_ ? python_->run_on_host(work) : GilFreeContext::run_on_host(work);
}

void PlannedGraphRunner::count(Counter counter) {
    python_ ? python_->count(counter) : GilFreeContext::count(counter);
}

bool PlannedGraphRunner::request_optimised(UseCounter& counter) {
    return !python_ || python_->request_optimised(counter);
}

void PlannedGraphRunner::publish(Node* node, Ref<Value> value) {
    for (std::size_t i = 0; i < results_.size(); ++i)
        if (graph_.nodes[planned_.outputs[i]].node.get() == node) results_[i] = value;
}

} // namespace tenfold
