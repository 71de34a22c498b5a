// Linearization: lists every node below some outputs in topological order, inputs before users. The
// order depends only on the shape of the graph. The traversal is iterative, takes linear time, and
// leaves no marks in the nodes.
#pragma once
#include <span>
#include <vector>

#include "ir/intern.h"
#include "ir/node.h"

namespace tenfold {

struct LinearizedNode {
    Ref<Node> node;
    Ref<Value> value; // value of a leaf, or of a node that was already computed
    uint32_t first_edge = 0, num_inputs = 0; // its inputs: a range of LinearizedGraph::edges
    uint32_t num_uses = 0;                   // number of reads by nodes of the graph
    bool live_out = false;                   // live-out: it has references outside of the graph
    // Whether a value is dead after its last read: it has no outside references, nor has its
    // memory, which is the pool's. So an op may then reuse the memory in place.
    bool dead_after_read = false;

    // The Type of the value, with the structure that is known of the node.
    const Ref<Type>& leaf_type() const {
        return node->type->structure && node->type->has_form(*value->type) ? node->type
                                                                           : value->type;
    }
};

struct LinearizedGraph {
    std::vector<LinearizedNode> nodes;
    std::vector<uint32_t> edges; // positions of inputs, those of a node in a row
    std::vector<uint32_t> outputs;
    // For each node the earlier one that it equals, if any (ir/cse.h). Such a node is not computed,
    // and has no readers. Empty where CSE has not run.
    std::vector<uint32_t> merged_into;
    uint32_t claimed_by = 0; // a thread that writes in place to a value; then retry
    std::size_t num_ops = 0,
                num_calls = 0;  // operations, with those of calls; calls, which are pending
    std::size_t depth = 1;      // pending operations on the longest way down
    bool has_submitted = false; // something in it is to be computed by a submission; so then

    static constexpr uint32_t NONE = ~uint32_t(0);
    LinearizedGraph() = default;
    LinearizedGraph(LinearizedGraph&&) = default;
    LinearizedGraph& operator=(LinearizedGraph&&) = default;
    ~LinearizedGraph(); // the thread's next linearization reuses the memory

    // Who goes through all nodes is at this one.
    void prefetch(std::size_t position) const {
        constexpr std::size_t PREFETCH_DISTANCE = 12;
        if (position + PREFETCH_DISTANCE >= nodes.size()) return;
        const LinearizedNode& upcoming = nodes[position + PREFETCH_DISTANCE];
        prefetch_node(upcoming.node.get());
        if (upcoming.value) prefetch_for_write(upcoming.value.get());
    }

    bool is_merged(std::size_t position) const {
        return !merged_into.empty() && merged_into[position] != NONE;
    }
    std::span<const uint32_t> inputs(const LinearizedNode& entry) const {
        return {edges.data() + entry.first_edge, entry.num_inputs};
    }
};

LinearizedGraph linearize(std::span<Node* const> outputs);

// The inference stands for the parameters, except of slices and of calls. Calls have none: with
// many inputs one is inferred anew each time.
inline std::size_t hash_of_operation(const Node& node) {
    const void* inferred = node.op->weight > 1 ? nullptr : node.inference.get();
    if (node.op->part != Op::none) inferred = node.params.get();
    return mix(reinterpret_cast<std::size_t>(node.op), reinterpret_cast<std::size_t>(inferred));
}

} // namespace tenfold
