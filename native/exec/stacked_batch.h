// Stacked batch: members of one signature, computed together by the plan of their batch. Operands
// that differ are stacked along a new first axis, without a copy where they are side by side
// already. Graphs and the engine feed it. Plans are cached by signature.
#pragma once
#include <span>
#include <vector>

#include "exec/batch_policy.h"
#include "exec/planned_graph.h"
#include "exec/stacking.h"
#include "memory/pooled_vector.h"

namespace tenfold {

// How the members' operands of one position come to a batch.
enum class OperandForm : uint8_t {
    shared,     // one value for all members
    stacked,    // a value for each, along a new first axis
    transposed, // the same, with the last two axes of each swapped in memory
    number,     // one Python scalar for all members
    numbers     // a scalar for each, stacked in the dtype in which the operation reads it
};

inline bool is_stacked(OperandForm form) {
    return form == OperandForm::stacked || form == OperandForm::transposed ||
           form == OperandForm::numbers;
}

// Strides of an array whose last two axes are swapped in memory; empty for fewer axes.
std::vector<int64_t> transposed_strides(const Type& type);

// The operands of one position.
struct MemberOperands {
    OperandForm form;
    Ref<Type> type; // type of a member's operand
    Ref<Value> shared;
    PooledVector<StridedRef> rows;      // rows of a stacked or transposed operand
    std::vector<const Scalar*> scalars; // one shared number, or one for each member
    uint16_t dtype = 0;                 // in which the operation reads its numbers

    // Sets `form` from `scalars`.
    void find_scalar_form();
};

// Key of the batches that one plan computes: the operation, its parameters and options, and for
// each operand its Type and form.
struct BatchSignature {
    std::vector<uint64_t> words;

    void add(const MemberOperands& operand);
    // Its plan depends on this number. False where only Python has its digits.
    bool add_number(const Scalar& scalar);
};

// Plans of one signature. The one found serves so many rows.
struct BatchPlan {
    Ref<PlannedGraph> planned; // null: Python has to make it
    Ref<Executable> plan;      // null: by native loops, or members must be computed one by one
    std::size_t rows;
};

// Thread-safe. Without a plan, `rows` is the least number.
BatchPlan find_batch_plan(const BatchSignature& signature, const RowRange& range);
void cache_batch_plan(const BatchSignature& signature, Ref<PlannedGraph> planned);
void forget_batch_plans(uint64_t operation); // drops signatures that start with this word

// Puts the operands of members side by side. False where memory is short.
bool stack_members(std::span<StackedOperand> stacked, std::span<MemberOperands> operands,
                   std::size_t rows, uint8_t device, int threads);

// The results of a batch with a row for each member, in C order; none where it fails. `python` runs
// calls of Python in its plan, and may be null.
std::vector<Ref<Value>> run_batch(const BatchPlan& batch, std::span<const StackedOperand> operands,
                                  OpKernelCompiler& compiler, ExecutionContext* python,
                                  int threads);

} // namespace tenfold
