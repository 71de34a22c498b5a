// Dynamic batching: equal nodes of a long graph are computed together, on stacked operands.
// Operands are stacked along a new first axis, and results stay so. Only nodes with ready inputs
// are batched; of several batches the one of the lowest mean depth goes first (Neubig, Goldberg and
// Dyer, 2017).
#pragma once
#include "exec/op_interpreter.h"
#include "exec/stacking.h"

namespace tenfold {

// Nodes of equal signature.
struct Batch {
    const LinearizedGraph& graph;
    std::span<const uint32_t> positions;
    std::size_t group;    // its number, in the order in which groups were found
    bool is_continuation; // a limit has cut them off from those before
    bool worth_batching;  // whether they are enough
    std::size_t num_rows; // of what is computed: members', and the last one's again and again

    std::size_t size() const { return positions.size(); }
    const Ref<Node>& node(std::size_t row) const { return graph.nodes[positions[row]].node; }
};

// Compiles and runs batches; Python implements it.
class BatchCompiler {
  public:
    virtual ~BatchCompiler() = default;
    // How many rows are computed for so many members. Numbers that are ever new are more costly
    // than a few rows: each has a plan of its own.
    virtual std::size_t padded_size(std::size_t members) const { return members; }
    // Their results, side by side in row-major order; none where they are to be computed one by
    // one.
    virtual std::vector<Ref<Value>> compute(const Batch& members,
                                            std::span<const StackedOperand> inputs) = 0;
    std::size_t max_members = SIZE_MAX; // of members
    int threads = 1;                    // on which rows are put side by side, at most
    bool dry_run = false;               // what would be computed, and nothing is
};

// Computes a linearized graph in batches or, without a maker, node by node. False where batching
// does not pay (a narrow graph, or large arrays), or where a node fails: live-out nodes that were
// computed by then have their values.
bool run_in_batches(const LinearizedGraph& graph, uint8_t device, OpInterpreter& interpreter,
                    BatchCompiler* compiler);

} // namespace tenfold
