#include "exec/batch_signature.h"
#include "exec/batch_policy.h"
#include "memory/target_facts.h"

#include <algorithm>

namespace tenfold {

bool SignaturePartition::add(uint32_t position) {
    const LinearizedNode& entry = graph_.nodes[position];
    const Type& type = *entry.node->type;
    facts_[position] = facts_of(position);
    if (entry.node->is_scalar()) return true;
    num_large_ += !entry.value && facts_[position].large;
    bool fits = entry.value ||
                (entry.node->op && num_large_ * BATCHES.nodes_per_large <= graph_.nodes.size());
    if (!fits || type.device != device_ || type.storage != 0) return false;
    if (!is_pending(position) || !is_batchable(position)) return true;
    group_[position] = group_of(position);
    Group& group = groups_[group_[position]];
    auto operands = inputs(position), representative_operands = inputs(group.representative);
    for (std::size_t k = 0; k < operands.size(); ++k)
        group.varies |= uint64_t(operands[k] != representative_operands[k])
                        << std::min<std::size_t>(k, 63);
    return true;
}

SignaturePartition::NodeFacts SignaturePartition::facts_of(uint32_t position) const {
    const LinearizedNode& entry = graph_.nodes[position];
    NodeFacts facts{entry.node->type.get()};
    if (entry.node->is_scalar() || graph_.is_merged(position)) return facts;
    int64_t elements = entry.node->type->size();
    facts.pending = !entry.value;
    facts.shared_leaf = entry.value && entry.num_uses > 1 && elements >= SHARED_ELEMENTS;
    facts.large = elements > STACKED_ELEMENTS;
    return facts;
}

// Whether an op can be batched, with operands that are shared or small enough to be copied.
bool SignaturePartition::is_batchable(uint32_t position) const {
    const Op& op = *node(position).op;
    auto fits = [&](uint32_t input) { return !facts_[input].large || is_shared_leaf(input); };
    return batching_ && !facts_[position].large && op.python && op.pure && !op.view &&
           op.part == Op::none && !op.updates && std::ranges::all_of(inputs(position), fits);
}

std::size_t SignaturePartition::hash_of(uint32_t position) const {
    const Node& current = node(position);
    std::size_t hash =
        mix(hash_of_operation(current), reinterpret_cast<std::size_t>(current.type.get()));
    for (uint32_t input : inputs(position))
        if (is_shared_leaf(input)) hash = mix(hash, input);
    return hash;
}

bool SignaturePartition::have_equal_signature(uint32_t one, uint32_t other) const {
    auto operands = inputs(one), other_operands = inputs(other);
    const Node &first = node(one), &second = node(other);
    bool same_inference = first.inference == second.inference || first.params == second.params;
    if (first.op != second.op || !same_inference || first.type != second.type ||
        operands.size() != other_operands.size())
        return false;
    for (std::size_t k = 0; k < operands.size(); ++k) {
        if (facts_[operands[k]].type != facts_[other_operands[k]].type) return false;
        if (operands[k] != other_operands[k] &&
            (is_shared_leaf(operands[k]) || is_shared_leaf(other_operands[k])))
            return false;
    }
    return true;
}

uint32_t SignaturePartition::group_of(uint32_t position) {
    std::size_t hash = hash_of(position);
    if (table_.size() <= 2 * groups_.size()) {
        table_.assign(std::max<std::size_t>(64, 2 * table_.size()), NONE);
        for (uint32_t g = 0; g < groups_.size(); ++g)
            slot_of(groups_[g].hash, groups_[g].representative) = g;
    }
    uint32_t& slot = slot_of(hash, position);
    if (slot == NONE) {
        slot = uint32_t(groups_.size());
        groups_.push_back({position, hash, 0});
    }
    return slot;
}

uint32_t& SignaturePartition::slot_of(std::size_t hash, uint32_t position) {
    std::size_t mask = table_.size() - 1, at = hash & mask;
    while (table_[at] != NONE &&
           !(groups_[table_[at]].hash == hash &&
             have_equal_signature(groups_[table_[at]].representative, position)))
        at = (at + 1) & mask;
    return table_[at];
}

} // namespace tenfold
