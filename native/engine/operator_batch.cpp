#include "engine/operator_batch.h"

#include <algorithm>
#include <bit>

namespace tenfold {

std::size_t BatchSignatureHash::operator()(const BatchSignature& signature) const {
    std::size_t hash = signature.options;
    for (const void* part : signature.parts)
        hash = std::rotl((hash ^ reinterpret_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15ULL, 29);
    return hash;
}

const uint16_t* Batcher::operand_dtype(std::size_t position) const {
    if (!rows && !graph_template) return nullptr;
    const Inference& inference =
        rows ? *rows->inference
             : *graph_template->graph.nodes[graph_template->output].node->inference;
    return position < inference.operands.size() ? &inference.operands[position] : nullptr;
}

bool Batcher::accepts_scalar(std::size_t position, const Scalar& scalar) const {
    const uint16_t* read_as = operand_dtype(position);
    if (!read_as) return false;
    const DType& dtype = dtype_of(*read_as);
    if (dtype.kind == 'c') return scalar.form != Scalar::big_integer;
    if (scalar.form == Scalar::complex_number) return false;
    if (dtype.kind == 'f') return scalar.form != Scalar::big_integer;
    bool whole = scalar.form == Scalar::boolean || scalar.form == Scalar::integer;
    if (!whole || dtype.kind == 'b') return whole && scalar.form == Scalar::boolean;
    if (dtype.bytes == 8) return dtype.kind == 'i' || scalar.integer_bits >= 0;
    int64_t bound = int64_t(1) << (8 * dtype.bytes - (dtype.kind == 'i'));
    return scalar.integer_bits < bound && scalar.integer_bits >= (dtype.kind == 'i' ? -bound : 0);
}

namespace {

void run_template_members(const GraphTemplate& graph_template, Members members,
                          std::span<OperatorResult> answers, OpKernelCompiler& compiler) {
    std::vector<TemplateInput> inputs;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (!answers[i].empty()) continue;
        indices.push_back(i);
        for (Edge& edge : members[i]->inputs())
            inputs.push_back(
                {edge.input->value ? &edge.input->value : nullptr, edge.input->scalar.get()});
    }
    std::vector<Ref<Value>> values(indices.size());
    GilFreeContext context;
    run_template(graph_template, inputs, values, compiler, context, 1);
    for (std::size_t i = 0; i < indices.size(); ++i)
        answers[indices[i]].value = std::move(values[i]);
}

void compute_each(const Batcher& batcher, Members members, std::span<OperatorResult> answers,
                  OpKernelCompiler& compiler) {
    if (batcher.rows) run_rows(*batcher.rows, members, answers);
    if (batcher.graph_template)
        run_template_members(*batcher.graph_template, members, answers, compiler);
    if (batcher.gil_free_call && batcher.gil_free_call->plan)
        run_gil_free(*batcher.gil_free_call, members, answers);
}

// Results that are equal, in Values of their own.
void share_result(std::span<OperatorResult> answers) {
    for (OperatorResult& answer : answers.subspan(1)) {
        std::vector<const Value*> results;
        for (const Value* value = answers[0].value.get(); value; value = value->next.get())
            results.push_back(value);
        for (; !results.empty(); results.pop_back())
            answer.value = Value::alias_of(*results.back(), std::move(answer.value));
    }
}

} // namespace

void compute_members(const Batcher& batcher, Members members, std::span<OperatorResult> answers,
                     const BatchResources& resources) {
    StackedOutcome outcome = StackedOutcome::refused;
    bool is_whole = members.size() > 1 && std::ranges::all_of(answers, &OperatorResult::empty);
    if (batcher.stacked && is_whole) outcome = run_stacked(batcher, members, answers, resources);
    if (outcome == StackedOutcome::unplanned || outcome == StackedOutcome::done) return;
    bool are_equal = outcome == StackedOutcome::equal;
    if (are_equal) members = members.first(1);
    compute_each(batcher, members, answers.first(members.size()), resources.compiler);
    if (are_equal && answers[0].value) share_result(answers);
}

} // namespace tenfold
