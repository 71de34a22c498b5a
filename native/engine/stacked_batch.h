// Stacked batches: ready members of one signature are computed by the plan of their batch, which
// Python makes once for each form. Operands that differ are stacked along a new first axis, without
// a copy where they are side by side already. A member has the bits that it has alone.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/batch_rows.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {

struct Batcher;

// How the members' operands of one position come to a batch.
enum class OperandForm : uint8_t {
    shared,     // one value for all members
    stacked,    // a value for each, along a new first axis
    transposed, // the same, with the last two axes of each swapped in memory
    number,     // one Python scalar for all members
    numbers     // a scalar for each, stacked in the dtype in which the operation reads it
};

// Strides of an array whose last two axes are swapped in memory; empty for fewer axes.
std::vector<int64_t> transposed_strides(const Type& type);

struct BatchForm {
    std::size_t rows = 0;
    std::vector<OperandForm> operands;
};

// The plans of the batches of one signature. A call without a template says that there is none.
class StackedPlans {
  public:
    // That of at least so many rows, fewer than twice as many where more are allowed. Null: not
    // made.
    Ref<GilFreeCall> find(const BatchForm& form, bool allows_more, std::size_t& rows);
    void add(const BatchForm& form, Ref<GilFreeCall> call);

  private:
    static constexpr std::size_t MAX_PLANS = 64;
    struct Entry {
        BatchForm form;
        Ref<GilFreeCall> call;
    };
    Lock lock_; // protects entries_
    std::vector<Entry> entries_;
};

// Plans batches; Python implements it, this one does nothing.
class BatchPlanner {
  public:
    virtual ~BatchPlanner() = default;
    // For members like this one, with operands of such Types; never null from Python.
    virtual Ref<GilFreeCall> plan(const Batcher&, const Operation&, std::span<const Ref<Type>>,
                                  const BatchForm&) {
        return {};
    }
    // Runs Python's calls in plans, under the GIL.
    virtual ExecutionContext* python() { return nullptr; }
};

// What a thread that computes members has: with the GIL it makes plans and kernels.
struct BatchResources {
    BatchPlanner& planner;
    OpKernelCompiler& compiler;
    int threads = 1;               // of a launch, at most
    bool separate_results = false; // each in memory of its own, so that it is freed by itself
};

enum class StackedOutcome : uint8_t {
    done,      // some results may be empty: those members need another tier
    equal,     // all members have the same inputs: one of them is to be computed
    unplanned, // the batch needs a plan
    refused    // the members are to be computed one by one
};

// Computes at least two members without results as one batch.
StackedOutcome run_stacked(const Batcher& batcher, Members members,
                           std::span<OperatorResult> answers, const BatchResources& resources);

// Gives each member its row of results, which are chained; of several results each its chain.
// `separate`: in memory of its own. False, without results, where memory is short.
bool split_rows(const Ref<Value>& results, std::span<OperatorResult> answers, bool separate);

} // namespace tenfold
