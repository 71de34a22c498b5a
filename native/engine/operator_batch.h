// Operator batching: ready operators of one signature wait in a Batcher and run together: as one
// batch on stacked operands (exec/stacked_batch.h), or member by member.
#pragma once
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "engine/batch_rows.h"
#include "exec/batch_heap.h"
#include "exec/stacked_batch.h"
#include "memory/pooled_vector.h"

namespace tenfold {

// The common properties of a batch's members. They are addresses, which the Batcher keeps valid, or
// the number of a user's signature. The last one is the number of their options.
struct BatcherKey {
    std::array<const void*, 4> parts{};
    uint64_t options = 0;
    bool operator==(const BatcherKey&) const = default;
};
struct BatcherKeyHash {
    std::size_t operator()(const BatcherKey& signature) const;
};

// Members in the order in which they became ready. Each costs constant time, however many wait.
class MemberQueue {
  public:
    bool empty() const { return next_ == members_.size(); }
    void push(Future& future) { members_.emplace_back(&future); }
    Ref<Future> pop() {
        if (next_ + PREFETCH_DISTANCE < members_.size()) {
            const Future& upcoming = *members_[next_ + PREFETCH_DISTANCE];
            __builtin_prefetch(&upcoming.state);
            __builtin_prefetch(&upcoming.number);
        }
        Ref<Future> member = std::move(members_[next_++]);
        if (2 * next_ >= members_.size()) {
            members_.erase(members_.begin(), members_.begin() + std::ptrdiff_t(next_));
            next_ = 0;
        }
        return member;
    }
    // Moves all of them.
    void clear(PooledVector<Ref<Future>>& into) {
        into.insert(into.end(), std::make_move_iterator(members_.begin() + std::ptrdiff_t(next_)),
                    std::make_move_iterator(members_.end()));
        members_.clear();
        next_ = 0;
    }

  private:
    static constexpr std::size_t PREFETCH_DISTANCE = 8; // members on the way

    PooledVector<Ref<Future>> members_;
    std::size_t next_ = 0;
};

inline std::atomic<uint64_t> num_batchers{0}; // batchers made so far

// The engine's Lock protects it; what says how its members are computed never changes.
struct Batcher : AgendaEntry {
    bool runs_alone = true; // each of its members by itself, by its own priority
    // How a member is computed without the GIL: rows for contiguous operands, a template for any
    // layout, a plan for operands in C order. The last one may lack its plan.
    std::optional<BatchRows> rows;
    Ref<PlannedGraph> planned_graph;
    bool stacks = false;        // many members are computed together
    bool plans_numbers = false; // batches of Python scalars have plans, which read them as arrays
    uint64_t number = ++num_batchers;
    Ref<Operation> operation;
    std::vector<Ref<Type>> types;
    Ref<Type> result; // result of tenfold's operation on inputs of known Types
    // Some may have been dropped or cancelled, or have run: those that became urgent while they
    // waited are in both.
    MemberQueue members, urgent_members;
    std::size_t num_urgent = 0; // live members that are urgent

    // Once none is live.
    void clear_members(PooledVector<Ref<Future>>& into) {
        members.clear(into);
        urgent_members.clear(into);
    }
    // Whether members need no GIL.
    bool is_native() const {
        return rows || plans_numbers || (planned_graph && planned_graph->is_native());
    }
    bool interprets() const { return planned_graph && planned_graph->interprets; }
    // The dtype in which the operation reads its input at a position; null where that is unknown.
    const uint16_t* operand_dtype(std::size_t position) const;
    // Whether the operation accepts this scalar as that input; if not, Python reports the error.
    bool accepts_scalar(std::size_t position, const Scalar& scalar) const;
};

// Plans batches; Python implements it, this one does nothing.
class BatchPlanner {
  public:
    virtual ~BatchPlanner() = default;
    // For members like this one, and so many rows; never null from Python. Without a template
    // members are computed one by one.
    virtual Ref<PlannedGraph> plan(const Batcher&, const Operation&,
                                   std::span<const MemberOperands>, std::size_t) {
        return {};
    }
    // Runs Python's calls in plans, under the GIL.
    virtual ExecutionContext* python() { return nullptr; }
};

// Resources of a thread that computes members. With the GIL it makes plans and kernels.
struct BatchResources {
    BatchPlanner& planner;
    OpKernelCompiler& compiler;
    int threads = 1;               // threads of a launch, at most
    bool separate_results = false; // each in memory of its own, so that it is freed by itself
};

// Gives each member its row of each result, which are chained. `separate`: in memory of its own.
void split_rows(std::span<const Ref<Value>> results, std::span<OperatorResult> answers,
                bool separate);

// Computes members without a result: as one batch, or one by one. A result stays empty where
// Python must compute it, or where the batch has no plan and `resources` cannot make one.
void compute_members(const Batcher& batcher, Members members, std::span<OperatorResult> answers,
                     const BatchResources& resources);

} // namespace tenfold
