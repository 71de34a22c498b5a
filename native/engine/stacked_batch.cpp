#include "engine/stacked_batch.h"

#include <algorithm>
#include <bit>

#include "engine/operator_batch.h"
#include "exec/batch_policy.h"
#include "exec/stacking.h"
#include "memory/target_facts.h"

namespace tenfold {
namespace {

// What one member has at a position: an input, or a captured array behind them.
struct MemberOperand {
    const Ref<Value>* value;
    const Scalar* scalar;
    const Type* type;
};

[[gnu::always_inline]] inline MemberOperand operand_of(Future& member, std::size_t position) {
    if (position < member.input_count) {
        const Future& input = *member.inputs()[position].input;
        return {&input.value, input.scalar.get(), input.type};
    }
    const Ref<Value>& value = member.operation->captured[position - member.input_count];
    return {&value, nullptr, value->type.get()};
}

class StackedBatch {
  public:
    StackedBatch(const Batcher& batcher, Members members, const BatchResources& resources)
        : batcher_(batcher), members_(members), resources_(resources) {}

    StackedOutcome run(std::span<OperatorResult> answers) {
        if (batcher_.rows && run_rows_together(*batcher_.rows, members_, answers,
                                               resources_.threads, resources_.separate_results))
            return StackedOutcome::done;
        if (!find_forms()) return StackedOutcome::refused;
        if (std::ranges::all_of(form_.operands, is_equal_for_all)) return StackedOutcome::equal;
        Ref<GilFreeCall> call = plan();
        if (!call) return StackedOutcome::unplanned;
        if (!call->graph_template) return StackedOutcome::refused;
        if (call->calls_python && !resources_.planner.python()) return StackedOutcome::unplanned;
        Ref<Value> results = stack() ? compute(*call) : Ref<Value>();
        // A kernel that is missing needs the GIL; a batch that fails is computed one by one.
        bool may_lack_kernels = !call->plan && !resources_.planner.python();
        if (!results) return may_lack_kernels ? StackedOutcome::unplanned : StackedOutcome::refused;
        return split_rows(results, answers, resources_.separate_results) ? StackedOutcome::done
                                                                         : StackedOutcome::refused;
    }

  private:
    static bool is_equal_for_all(OperandForm form) {
        return form == OperandForm::shared || form == OperandForm::number;
    }

    bool find_forms() {
        std::size_t count = members_[0]->input_count + members_[0]->operation->captured.size();
        rows_.resize(count);
        for (std::size_t position = 0; position < count; ++position)
            if (!find_form(position)) return false;
        return count > 0;
    }

    bool find_form(std::size_t position) {
        MemberOperand first = operand_of(*members_[0], position);
        if (!first.type) return false;
        types_.emplace_back(const_cast<Type*>(first.type));
        if (first.scalar) return find_scalar_form(position, *first.scalar);
        std::vector<int64_t> transposed = transposed_strides(*first.type);
        bool is_shared = true, are_transposed = !transposed.empty();
        PooledVector<StridedRef>& rows = rows_[position];
        rows.resize(members_.size());
        for (std::size_t i = 0; i < members_.size(); ++i) {
            if (position < members_[0]->input_count) prefetch_inputs(members_, i);
            MemberOperand operand = operand_of(*members_[i], position);
            if (operand.scalar || !*operand.value || operand.type != first.type) return false;
            const Value& value = **operand.value;
            is_shared = is_shared && &value == first.value->get();
            are_transposed = are_transposed && value.strides == transposed;
            rows[i] = StridedRef::of(value);
        }
        if (!is_shared && bytes_of(*first.type) > STACKED_BYTES) return false;
        form_.operands.push_back(is_shared        ? OperandForm::shared
                                 : are_transposed ? OperandForm::transposed
                                                  : OperandForm::stacked);
        return true;
    }

    bool find_scalar_form(std::size_t position, const Scalar& first) {
        bool are_equal = true;
        for (const Ref<Future>& member : members_) {
            MemberOperand operand = operand_of(*member, position);
            if (!operand.scalar) return false;
            are_equal &= operand.scalar->has_equal_bits(first);
        }
        form_.operands.push_back(are_equal ? OperandForm::number : OperandForm::numbers);
        return batcher_.operand_dtype(position);
    }

    // The plan of this batch; its number of rows may be larger than that of the members.
    Ref<GilFreeCall> plan() {
        std::size_t count = members_.size();
        bool is_padded = !can_fail();
        form_.rows = count;
        Ref<GilFreeCall> call = batcher_.stacked->find(form_, is_padded, form_.rows);
        if (call) return call;
        if (is_padded) form_.rows = padded_rows(count, BATCHES.pushed_row_steps);
        call = resources_.planner.plan(batcher_, *members_[0]->operation, types_, form_);
        if (call) batcher_.stacked->add(form_, call);
        return call;
    }

    // Whether it can refuse its operands for their values: padding could make it do so.
    bool can_fail() const {
        if (batcher_.graph_template) return false;
        const GilFreeCall* call = batcher_.gil_free_call.get();
        const Op* op = members_[0]->operation->op;
        if (!call || !call->graph_template) return !op || op->can_fail;
        return std::ranges::any_of(call->graph_template->graph.nodes, [](const auto& entry) {
            return entry.node->op && entry.node->op->can_fail;
        });
    }

    bool stack() {
        operands_.resize(form_.operands.size());
        for (std::size_t position = 0; position < operands_.size(); ++position)
            if (!stack_position(position)) return false;
        return true;
    }

    bool stack_position(std::size_t position) {
        StackedOperand& operand = operands_[position];
        MemberOperand first = operand_of(*members_[0], position);
        const OperandForm form = form_.operands[position];
        switch (form) {
        case OperandForm::number: operand.scalar = first.scalar; return true;
        case OperandForm::numbers: return stack_numbers(operand, position);
        case OperandForm::shared:
            operand.value = *first.value ? in_c_order(*first.value) : Ref<Value>();
            return bool(operand.value);
        default: break;
        }
        PooledVector<StridedRef>& rows = rows_[position];
        bool is_transposed = form == OperandForm::transposed;
        if (is_transposed) // each is contiguous
            for (StridedRef& row : rows) row.strides = nullptr;
        if (!stack_operands(operand, rows, *first.type, form_.rows, resources_.threads))
            return false;
        if (!is_transposed) return true;
        // The strides of a member, behind that of the batch axis.
        auto strides = transposed_strides(*operand.value->type);
        operand.value->strides = std::move(strides);
        operand.value->is_view = true;
        return true;
    }

    bool stack_numbers(StackedOperand& operand, std::size_t position) {
        std::vector<const Scalar*> scalars;
        for (const Ref<Future>& member : members_)
            scalars.push_back(operand_of(*member, position).scalar);
        return stack_scalars(operand, scalars, *batcher_.operand_dtype(position),
                             batcher_.result->device, form_.rows) &&
               !operand.scalar;
    }

    // The results of the batch, chained; empty where it fails.
    Ref<Value> compute(const GilFreeCall& call) {
        if (!call.plan) {
            std::vector<TemplateInput> inputs;
            for (const StackedOperand& operand : operands_)
                inputs.push_back({operand.value ? &operand.value : nullptr, operand.scalar});
            Ref<Value> result;
            GilFreeContext context;
            run_template(*call.graph_template, inputs, {&result, 1}, resources_.compiler, context,
                         resources_.threads);
            return result;
        }
        GilFreeRunner runner(call, call.calls_python ? resources_.planner.python() : nullptr);
        for (std::size_t position = 0; position < operands_.size(); ++position)
            if (!runner.bind_input(position, operands_[position].value)) return {};
        return runner.run();
    }

    const Batcher& batcher_;
    const Members members_;
    const BatchResources& resources_;
    BatchForm form_;
    std::vector<Ref<Type>> types_;               // of a member's operands
    std::vector<PooledVector<StridedRef>> rows_; // where the members' arrays stand, by position
    std::vector<StackedOperand> operands_;
};

} // namespace

std::vector<int64_t> transposed_strides(const Type& type) {
    const auto& shape = type.shape;
    std::vector<int64_t> strides(shape.size() < 2 ? 0 : shape.size());
    if (strides.empty()) return strides;
    int64_t bytes = dtype_of(type.dtype).bytes;
    std::size_t last = shape.size() - 1;
    strides[last - 1] = bytes;
    strides[last] = bytes * shape[last - 1];
    bytes *= shape[last] * shape[last - 1];
    for (std::size_t axis = last - 1; axis-- > 0; bytes *= shape[axis]) strides[axis] = bytes;
    return strides;
}

Ref<GilFreeCall> StackedPlans::find(const BatchForm& form, bool allows_more, std::size_t& rows) {
    const std::size_t wanted = form.rows, end = allows_more ? 2 * wanted : wanted + 1;
    Ref<GilFreeCall> found;
    Guard guard(lock_);
    for (const Entry& entry : entries_) {
        bool fits = entry.form.rows >= wanted && entry.form.rows < end;
        if (!fits || entry.form.operands != form.operands || (found && rows <= entry.form.rows))
            continue;
        found = entry.call;
        rows = entry.form.rows;
    }
    return found;
}

void StackedPlans::add(const BatchForm& form, Ref<GilFreeCall> call) {
    std::vector<Entry> evicted; // freed without the lock
    Guard guard(lock_);
    if (entries_.size() == MAX_PLANS) evicted.swap(entries_);
    entries_.push_back({form, std::move(call)});
}

bool split_rows(const Ref<Value>& results, std::span<OperatorResult> answers, bool separate) {
    std::vector<Ref<Value>> chain;
    for (Ref<Value> result = results; result; result = result->next) {
        chain.push_back(in_c_order(result));
        if (!chain.back()) return false;
    }
    for (; !chain.empty(); chain.pop_back()) {
        const Type& type = *chain.back()->type;
        std::vector<int64_t> shape(type.shape.begin() + 1, type.shape.end());
        Ref<Type> row_type = intern_type({shape, type.dtype, type.device, type.storage, false});
        RowViews rows(*chain.back(), row_type, answers.size(), separate);
        for (std::size_t i = 0; i < answers.size(); ++i)
            answers[i].value = rows.row_value(i, std::move(answers[i].value));
    }
    return true;
}

StackedOutcome run_stacked(const Batcher& batcher, Members members,
                           std::span<OperatorResult> answers, const BatchResources& resources) {
    return StackedBatch(batcher, members, resources).run(answers);
}

} // namespace tenfold
