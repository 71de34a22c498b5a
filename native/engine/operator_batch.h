// Operator batching: ready operators of one signature wait in a Batcher and run as one launch.
// Elementwise operations run as rows of one kernel.
#pragma once
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "exec/batched_products.h"

namespace tenfold {

// An operation on elements of arrays of equal shape, in C's order, and of numbers.
struct BatchRows {
    Ref<Inference> inference; // owns the loop
    Ref<Type> type;           // of the result
    const Loop* loop = nullptr;
};

// The common properties of a batch's members. They are addresses, which the Batcher keeps valid, or
// the number of a user's signature. The last one is the number of their options.
struct Signature {
    std::array<const void*, 4> parts{};
    uint64_t options = 0;
    bool operator==(const Signature&) const = default;
};
struct SignatureHash {
    std::size_t operator()(const Signature& signature) const;
};

// Members in the order in which they became ready. Each costs constant time, however many wait.
class MemberQueue {
  public:
    bool empty() const { return next_ == members_.size(); }
    void push(Future& future) { members_.emplace_back(&future); }
    Ref<Future> pop() {
        Ref<Future> member = std::move(members_[next_++]);
        if (2 * next_ >= members_.size()) {
            members_.erase(members_.begin(), members_.begin() + std::ptrdiff_t(next_));
            next_ = 0;
        }
        return member;
    }
    // Moves all of them.
    void clear(std::vector<Ref<Future>>& into) {
        into.insert(into.end(), std::make_move_iterator(members_.begin() + std::ptrdiff_t(next_)),
                    std::make_move_iterator(members_.end()));
        members_.clear();
        next_ = 0;
    }

  private:
    std::vector<Ref<Future>> members_;
    std::size_t next_ = 0;
};

// The engine's Lock protects it.
struct Batcher {
    static constexpr std::size_t NOWHERE = ~std::size_t(0);
    Operation::Kind kind = Operation::general; // general: such members run alone
    // Batches that need no GIL: rows for contiguous operands, a template for any layout.
    std::optional<BatchRows> rows;
    std::unique_ptr<GraphTemplate> graph_template;
    std::unique_ptr<Products> products;
    Ref<GilFreeCall> gil_free_call; // of general ones, which run alone, but without the GIL as well
    Ref<Operation> operation;
    std::vector<Ref<Type>> types;
    // Some may have been dropped or cancelled, or have run: those that became urgent while they
    // waited are in both.
    MemberQueue members, urgent_members;
    std::size_t num_live = 0, num_urgent = 0; // of the members
    uint64_t sum_depths = 0;
    uint64_t listing = 0;                                     // when it got its first live member
    std::array<std::size_t, 2> heap_places{NOWHERE, NOWHERE}; // of the engine's heaps
    bool has_calls = false; // of a traced function, whose operations have a plan

    // Once none is live.
    void clear_members(std::vector<Ref<Future>>& into) {
        members.clear(into);
        urgent_members.clear(into);
    }
    bool is_native() const { return rows || graph_template || products || has_calls; }
    const Ref<Type>& type() const {
        return rows ? rows->type : graph_template ? graph_template->type() : products->type;
    }
    // Whether the operation accepts this scalar as that input; if not, Python reports the error.
    bool accepts_scalar(std::size_t position, const Scalar& scalar) const;
};

// The steps of a run of increments, pairwise: the left part has the greatest power of two below the
// length.
std::size_t left_part_length(std::size_t length);

// Computes the results of one Batcher's members; an Answer stays empty where another tier must
// compute it. `count_launches`: launches are counted once per batch.
void run_rows(const BatchRows& rows, std::span<const Ref<Future>> members,
              std::vector<OperatorResult>& answers, bool count_launches);

// Computes the members without an Answer, at least one. With a kernel compiler the GIL is held.
void run_template_batch(const GraphTemplate& graph_template, std::span<const Ref<Future>> members,
                        std::vector<OperatorResult>& answers, bool count_launches,
                        OpKernelCompiler* compiler);

// base + (blocks + leaves), all of one Type. An Answer stays empty if these rows cannot compute it.
OperatorResult run_fold(const BatchRows& add, const Type& type, Future& fold);

} // namespace tenfold
