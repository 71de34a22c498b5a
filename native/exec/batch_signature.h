// Batch signature: partitions the nodes of a graph by operation, Types and shared large leaves,
// such as weights. Members of one part apply one operation to operands of their own. Nodes are
// added in topological order; equal signatures get the number of one part.
#pragma once
#include "ir/linearize.h"

namespace tenfold {

class SignaturePartition {
  public:
    static constexpr uint32_t NONE = ~uint32_t(0);

    // `batching`: whether any nodes are batched.
    SignaturePartition(const LinearizedGraph& graph, uint8_t device, bool batching)
        : graph_(graph), device_(device), batching_(batching), facts_(graph.nodes.size()),
          group_(graph.nodes.size(), NONE) {}

    // The next node; false where it is neither an array of the device nor a leaf of any size, or
    // where many are large.
    bool add(uint32_t position);

    bool is_pending(uint32_t position) const { return facts_[position].pending; }
    // A large leaf that several read.
    bool is_shared_leaf(uint32_t position) const { return facts_[position].shared_leaf; }
    uint32_t group(uint32_t position) const { return group_[position]; }
    std::size_t num_groups() const { return groups_.size(); }
    // An operand is shared only if all members share it, not just those of one batch. So all
    // batches of one signature have one form and one plan, whatever the order of completion. The
    // arguments of a call without products vary in all graphs: one plan serves calls that are
    // padded with one array in ever new places. A shared operand makes one product, of other bits.
    bool varies(uint32_t group, std::size_t operand) const {
        uint32_t representative = groups_[group].representative;
        if (is_shared_leaf(inputs(representative)[operand])) return false;
        return operand < node(representative).op->num_arguments ||
               groups_[group].varies >> std::min<std::size_t>(operand, 63) & 1;
    }

  private:
    // Facts of a node, cached so that its readers do not fetch the node.
    struct NodeFacts {
        const Type* type = nullptr;
        bool pending = false, shared_leaf = false, large = false;
    };
    struct Group {
        uint32_t representative; // a member
        std::size_t hash;
        uint64_t varies; // operands that are not the same for all of them, a bit for each
    };

    const Node& node(uint32_t position) const { return *graph_.nodes[position].node; }
    std::span<const uint32_t> inputs(uint32_t position) const {
        return graph_.inputs(graph_.nodes[position]);
    }
    NodeFacts facts_of(uint32_t position) const;
    bool is_batchable(uint32_t position) const;
    std::size_t hash_of(uint32_t position) const;
    bool have_equal_signature(uint32_t one, uint32_t other) const;
    uint32_t group_of(uint32_t position);
    uint32_t& slot_of(std::size_t hash, uint32_t position);

    const LinearizedGraph& graph_;
    const uint8_t device_;
    const bool batching_;
    std::vector<NodeFacts> facts_;
    std::size_t num_large_ = 0; // pending nodes that are large
    std::vector<uint32_t> group_;
    std::vector<Group> groups_;
    std::vector<uint32_t> table_; // indices of groups_, by hash, open addressing
};

} // namespace tenfold
