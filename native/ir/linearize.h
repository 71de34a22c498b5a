// Linearization: lists every node below some outputs in topological order, inputs before users. The
// order depends only on the shape of the graph. The walk is iterative, linear, and leaves no marks
// in the nodes.
#pragma once
#include <span>
#include <vector>

#include "ir/intern.h"
#include "ir/node.h"

namespace tenfold {

struct LinearizedNode {
    Ref<Node> node;
    Ref<Value> value; // of a leaf, and of a node that was computed when the walk came by
    uint32_t first = 0, width = 0; // its inputs: a range of LinearizedGraph::edges
    uint32_t uses = 0;             // how often nodes of the walk read it
    bool held = false;             // live-out: it has references outside of the walk
    // Of a value: dead after its last read. Neither it nor its memory, which is the pool's, has
    // outside references, so an op may then reuse the memory in place.
    bool dying = false;
};

struct LinearizedGraph {
    std::vector<LinearizedNode> nodes;
    std::vector<uint32_t> edges; // positions of inputs, those of a node in a row
    std::vector<uint32_t> outputs;
    // For each node the earlier one that it equals, if any (ir/cse.h). Such a node is not computed,
    // and has no readers. Empty where CSE has not run.
    std::vector<uint32_t> same;
    uint32_t busy = 0; // the thread that is writing over a value in it; then walk again
    std::size_t weight = 0, calls = 0; // operations, with those of calls; calls, which are pending
    std::size_t deepest = 1;           // pending operations on the longest way down
    bool submitted = false;            // something in it is to be computed by a submission; so then

    static constexpr uint32_t NONE = ~uint32_t(0);
    LinearizedGraph() = default;
    LinearizedGraph(LinearizedGraph&&) = default;
    LinearizedGraph& operator=(LinearizedGraph&&) = default;
    ~LinearizedGraph(); // the next walk of the thread has the memory again

    // Who goes through all nodes is at this one.
    void fetch_ahead(std::size_t position) const {
        constexpr std::size_t SOON = 12;
        if (position + SOON >= nodes.size()) return;
        const LinearizedNode& soon = nodes[position + SOON];
        fetch(soon.node.get());
        if (soon.value) fetch_to_write(soon.value.get());
    }

    bool is_merged(std::size_t position) const { return !same.empty() && same[position] != NONE; }
    std::span<const uint32_t> inputs(const LinearizedNode& of) const {
        return {edges.data() + of.first, of.width};
    }
};

LinearizedGraph walk(std::span<Node* const> outputs);

// What was inferred stands for the parameters, but of parts of an array, and of calls, which have
// none: one of many inputs is inferred anew each time.
inline std::size_t hash_of_operation(const Node& node) {
    const void* inferred = node.op->weight > 1 ? nullptr : node.inference.get();
    if (node.op->part != Op::none) inferred = node.params.get();
    return mix(reinterpret_cast<std::size_t>(node.op), reinterpret_cast<std::size_t>(inferred));
}

} // namespace tenfold
