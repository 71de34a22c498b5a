#include "engine/operator_batch.h"

#include <algorithm>
#include <bit>

#include "memory/target_facts.h"

namespace tenfold {

std::size_t BatcherKeyHash::operator()(const BatcherKey& signature) const {
    std::size_t hash = signature.options;
    for (const void* part : signature.parts)
        hash = std::rotl((hash ^ reinterpret_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15ULL, 29);
    return hash;
}

const uint16_t* Batcher::operand_dtype(std::size_t position) const {
    if (!rows && !interprets() && !plans_numbers) return nullptr;
    const Inference& inference =
        rows ? *rows->inference : *planned_graph->graph_template->output_node().inference;
    return position < inference.operands.size() ? &inference.operands[position] : nullptr;
}

bool Batcher::accepts_scalar(std::size_t position, const Scalar& scalar) const {
    const uint16_t* read_as = operand_dtype(position);
    if (!read_as) return false;
    const DType& dtype = dtype_of(*read_as);
    if (scalar.form == Scalar::boolean || dtype.kind == 'b') return scalar.form == Scalar::boolean;
    if (scalar.form == Scalar::integer) return is_in_range(scalar, dtype);
    if (scalar.form == Scalar::complex_number) return dtype.kind == 'c';
    return (dtype.kind == 'f' || dtype.kind == 'c') && scalar.form != Scalar::big_integer;
}

namespace {

// A member's operand at a position: an input, or a captured array behind the inputs.
struct MemberOperand {
    const Ref<Value>* value;
    const Scalar* scalar;
    const Type* type;
};

std::size_t num_operands(Future& member) {
    return member.input_count + member.operation->captured.size();
}

[[gnu::always_inline]] inline MemberOperand operand_of(Future& member, std::size_t position) {
    if (position < member.input_count) {
        const Future& input = *member.inputs()[position].input;
        return {&input.value, input.scalar.get(), input.type};
    }
    const Ref<Value>& value = member.operation->captured[position - member.input_count];
    return {&value, nullptr, value->type.get()};
}

// By native loops, or by the plan.
void run_each(const PlannedGraph& planned, std::span<const TemplateInput> inputs,
              std::span<Ref<Value>> results, OpKernelCompiler& compiler) {
    GilFreeContext context;
    if (planned.interprets)
        return run_template(*planned.graph_template, inputs, results, compiler, context, 1);
    PlannedGraphRunner runner(planned);
    const std::size_t count = inputs.size() / results.size();
    for (Ref<Value>& result : results) {
        bool is_valid = true;
        for (std::size_t k = 0; k < count; ++k) {
            Ref<Value> value = *inputs[k].value;
            if (!device_of(value->type->device).is_host) value = in_c_order(value);
            is_valid &= value && runner.bind_input(k, value);
        }
        if (is_valid) result = runner.run_chained();
        inputs = inputs.subspan(count);
    }
}

void compute_each(const Batcher& batcher, Members members, std::span<OperatorResult> answers,
                  OpKernelCompiler& compiler) {
    const PlannedGraph* planned = batcher.planned_graph.get();
    std::vector<TemplateInput> inputs;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < members.size(); ++i) {
        auto member = members.subspan(i, 1);
        if (!answers[i].empty() ||
            (batcher.rows && run_rows(*batcher.rows, member, answers.subspan(i, 1), 1, false)))
            continue;
        indices.push_back(i);
        for (std::size_t k = 0; k < num_operands(*members[i]); ++k) {
            MemberOperand operand = operand_of(*members[i], k);
            inputs.push_back({operand.value, operand.scalar});
        }
    }
    if (indices.empty() || !planned || !planned->is_native()) return;
    std::vector<Ref<Value>> results(indices.size());
    run_each(*planned, inputs, results, compiler);
    for (std::size_t i = 0; i < indices.size(); ++i)
        answers[indices[i]].value = std::move(results[i]);
}

// Results that are equal, in Values of their own.
Ref<Value> alias_of_chain(const Value* value) {
    return value ? Value::alias_of(*value, alias_of_chain(value->next.get())) : Ref<Value>();
}

enum class StackedOutcome : uint8_t {
    done,      // some results may be empty: those members need another tier
    equal,     // all members have the same inputs: one of them is to be computed
    unplanned, // the batch needs a plan
    refused    // the members are to be computed one by one
};

// All members' numbers at a position. False where one has none, or they are read in an unknown
// dtype.
bool read_scalars(MemberOperands& operands, const Batcher& batcher, Members members,
                  std::size_t position) {
    const uint16_t* dtype = batcher.operand_dtype(position);
    if (!dtype) return false;
    operands.dtype = *dtype;
    for (const Ref<Future>& member : members) {
        operands.scalars.push_back(operand_of(*member, position).scalar);
        if (!operands.scalars.back()) return false;
    }
    return operands.find_scalar_form(), true;
}

// The operands of all members at a position. False where members are computed one by one.
bool read_operands(MemberOperands& operands, const Batcher& batcher, Members members,
                   std::size_t position) {
    const MemberOperand first = operand_of(*members[0], position);
    if (!first.type) return false;
    operands.type = Ref<Type>(const_cast<Type*>(first.type));
    if (first.scalar) return read_scalars(operands, batcher, members, position);
    const std::vector<int64_t> transposed = transposed_strides(*first.type);
    bool is_shared = true, are_transposed = !transposed.empty();
    operands.rows.resize(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (position < members[0]->input_count) prefetch_inputs(members, i);
        MemberOperand operand = operand_of(*members[i], position);
        if (operand.scalar || !*operand.value || operand.type != first.type) return false;
        const Value& value = **operand.value;
        is_shared = is_shared && &value == first.value->get();
        are_transposed = are_transposed && value.strides == transposed;
        operands.rows[i] = StridedRef::of(value);
    }
    if (!is_shared && bytes_of(*first.type) > STACKED_BYTES) return false;
    operands.form = is_shared        ? OperandForm::shared
                    : are_transposed ? OperandForm::transposed
                                     : OperandForm::stacked;
    if (is_shared) operands.shared = in_c_order(*first.value);
    return !is_shared || operands.shared;
}

// Whether a member can refuse its operands for their values: padding could make it do so.
bool can_fail(const Batcher& batcher, const Operation& operation) {
    if (batcher.interprets()) return false;
    const PlannedGraph* planned = batcher.planned_graph.get();
    if (!planned || !planned->graph_template) return !operation.op || operation.op->can_fail;
    return std::ranges::any_of(planned->graph_template->graph.nodes, [](const auto& entry) {
        return entry.node->op && entry.node->op->can_fail;
    });
}

// Computes at least two members without results as one batch.
StackedOutcome run_stacked(const Batcher& batcher, Members members,
                           std::span<OperatorResult> answers, const BatchResources& resources) {
    constexpr uint64_t PUSHED = uint64_t(1) << 63; // no operation of a graph has such a number
    if (batcher.rows &&
        run_rows(*batcher.rows, members, answers, resources.threads, resources.separate_results))
        return StackedOutcome::done;
    const Operation& operation = *members[0]->operation;
    std::vector<MemberOperands> operands(num_operands(*members[0]));
    BatchSignature signature{{PUSHED | batcher.number}};
    std::vector<const Type*> types;
    bool are_equal = true;
    for (std::size_t position = 0; position < operands.size(); ++position) {
        MemberOperands& operand = operands[position];
        if (!read_operands(operand, batcher, members, position)) return StackedOutcome::refused;
        are_equal &= operand.form == OperandForm::shared || operand.form == OperandForm::number;
        if (operand.form == OperandForm::number && batcher.plans_numbers)
            operand.form = OperandForm::numbers; // its plan serves other numbers, too
        signature.add(operand);
        types.push_back(operand.type.get());
    }
    if (are_equal && !batcher.plans_numbers) return StackedOutcome::equal;
    const RowRange range = row_range(members.size(), nullptr, types,
                                     can_fail(batcher, operation) ? members.size() : SIZE_MAX);
    BatchPlan batch = find_batch_plan(signature, range);
    if (!batch.planned) {
        batch.rows = padded_rows(range, types);
        batch.planned = resources.planner.plan(batcher, operation, operands, batch.rows);
        if (!batch.planned) return StackedOutcome::unplanned;
        batch.plan = batch.planned->plan;
        cache_batch_plan(signature, batch.planned);
    }
    const PlannedGraph& planned = *batch.planned;
    ExecutionContext* python = resources.planner.python();
    if (!planned.graph_template) return StackedOutcome::refused;
    if (planned.calls_python && !python) return StackedOutcome::unplanned;
    const uint8_t device = batcher.result ? batcher.result->device : 0; // device of stacked numbers
    std::vector<StackedOperand> stacked(operands.size());
    std::vector<Ref<Value>> results;
    if (stack_members(stacked, operands, batch.rows, device, resources.threads))
        results = run_batch(batch, stacked, resources.compiler,
                            planned.calls_python ? python : nullptr, resources.threads);
    // A kernel that is missing needs the GIL; a batch that fails is computed one by one.
    // Another device stacks by kernels.
    bool may_lack_kernels = (!batch.plan || !device_of(device).is_host) && !python;
    if (results.empty())
        return may_lack_kernels ? StackedOutcome::unplanned : StackedOutcome::refused;
    split_rows(results, answers, resources.separate_results);
    return StackedOutcome::done;
}

} // namespace

void split_rows(std::span<const Ref<Value>> results, std::span<OperatorResult> answers,
                bool separate) {
    for (; !results.empty(); results = results.first(results.size() - 1)) {
        const Value& result = *results.back();
        const Type& type = *result.type;
        std::vector<int64_t> shape(type.shape.begin() + 1, type.shape.end());
        Ref<Type> row_type = intern_type({shape, type.dtype, type.device, type.storage, false});
        RowViews rows(result, row_type, answers.size(), separate);
        for (std::size_t i = 0; i < answers.size(); ++i)
            answers[i].value = rows.row_value(i, std::move(answers[i].value));
    }
}

void compute_members(const Batcher& batcher, Members members, std::span<OperatorResult> answers,
                     const BatchResources& resources) {
    StackedOutcome outcome = StackedOutcome::refused;
    bool is_whole = members.size() > 1 && std::ranges::all_of(answers, &OperatorResult::empty);
    if (batcher.stacks && is_whole) outcome = run_stacked(batcher, members, answers, resources);
    if (outcome == StackedOutcome::unplanned || outcome == StackedOutcome::done) return;
    bool are_equal = outcome == StackedOutcome::equal;
    if (are_equal) members = members.first(1);
    compute_each(batcher, members, answers.first(members.size()), resources.compiler);
    for (std::size_t i = 1; are_equal && i < answers.size(); ++i)
        answers[i].value = alias_of_chain(answers[0].value.get());
}

} // namespace tenfold
