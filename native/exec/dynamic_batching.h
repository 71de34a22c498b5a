// Dynamic batching: equal nodes of a long graph are computed together, on stacked operands.
// Operands are stacked along a new first axis, and results stay so. Only nodes with ready inputs
// are batched. The batch of the lowest mean depth goes first (Neubig, Goldberg and Dyer, 2017).
#pragma once
#include "exec/op_interpreter.h"
#include "exec/stacked_batch.h"

namespace tenfold {

// Nodes of equal signature.
struct Batch {
    const LinearizedGraph& graph;
    std::span<const uint32_t> positions;
    std::size_t group;        // its signature's number, in order of discovery
    bool is_continuation;     // a size limit cut it off from the previous batch
    bool worth_batching;      // whether it is large enough
    bool recurs;              // at least as many nodes of this signature are not ready yet
    std::size_t num_rows = 0; // rows of the computation: members, padded with the last one

    std::size_t size() const { return positions.size(); }
    const Ref<Node>& node(std::size_t row) const { return graph.nodes[positions[row]].node; }
};

// Compiles batches, and computes those without a plan; Python implements it.
class BatchCompiler {
  public:
    virtual ~BatchCompiler() = default;
    // Their results, side by side in row-major order; none where they are to be computed one by
    // one. The plan is cached by the signature, unless that is null.
    virtual std::vector<Ref<Value>> compute(const Batch& members,
                                            std::span<const StackedOperand> inputs,
                                            const BatchSignature* signature) = 0;
    // Runs calls of Python in plans.
    virtual ExecutionContext* python() { return nullptr; }
    // After a run that failed: whether Python is to compute the batch. Members computed one by one
    // report an error better.
    virtual bool may_compute_again() { return true; }
    std::size_t max_members = SIZE_MAX;
    std::vector<uint64_t> options; // options in the signatures
    int threads = 1;               // for stacking rows, at most
    bool dry_run = false;          // only partitions; computes nothing
    bool pads_rows = false;        // a batch may have more rows than members
    bool caches = false;           // plans are cached and reused
    bool goes_on = false;          // also where it does not pay: nodes have been computed for it
};

// Computes a linearized graph in batches or, without a compiler, node by node. False where batching
// does not pay (a narrow graph, or large arrays), or where a node fails. Live-out nodes that are
// computed by then have their values.
bool run_in_batches(const LinearizedGraph& graph, uint8_t device, OpInterpreter& interpreter,
                    BatchCompiler* compiler);

} // namespace tenfold
