#include "exec/batch_signature.h"

#include <algorithm>

namespace tenfold {

constexpr int64_t SHARED_ELEMENTS = 1 << 10; // of a leaf worth a group of its own

bool SignaturePartition::enter(uint32_t position) {
    const LinearizedNode& own = walked_.nodes[position];
    const Type& type = *own.node->type;
    facts_[position] = facts_of(position);
    if (own.node->is_scalar()) return true;
    bool fits = own.value || (own.node->op && type.size() <= MOST_ELEMENTS);
    if (!fits || type.device != device_ || type.storage != 0) return false;
    if (!is_pending(position) || !may_be_grouped(position)) return true;
    group_[position] = group_of(position);
    Group& group = groups_[group_[position]];
    auto read = inputs(position), others = inputs(group.like);
    for (std::size_t k = 0; k < read.size(); ++k)
        group.varies |= uint64_t(read[k] != others[k]) << std::min<std::size_t>(k, 63);
    return true;
}

SignaturePartition::Facts SignaturePartition::facts_of(uint32_t position) const {
    const LinearizedNode& own = walked_.nodes[position];
    Facts found{own.node->type.get()};
    if (own.node->is_scalar() || walked_.is_merged(position)) return found;
    int64_t elements = own.node->type->size();
    found.pending = !own.value;
    found.common = own.value && own.uses > 1 && elements >= SHARED_ELEMENTS;
    found.large = elements > MOST_ELEMENTS;
    return found;
}

// What would have to be copied to lie beside others is small.
bool SignaturePartition::may_be_grouped(uint32_t position) const {
    const Op& op = *node(position).op;
    auto fits = [&](uint32_t input) { return !facts_[input].large || is_common(input); };
    return grouped_ && op.python && op.pure && !op.view && op.part == Op::none && !op.assigns &&
           std::ranges::all_of(inputs(position), fits);
}

std::size_t SignaturePartition::hash_of(uint32_t position) const {
    const Node& own = node(position);
    std::size_t hash = mix(hash_of_operation(own), reinterpret_cast<std::size_t>(own.type.get()));
    for (uint32_t input : inputs(position))
        if (is_common(input)) hash = mix(hash, input);
    return hash;
}

bool SignaturePartition::are_alike(uint32_t one, uint32_t other) const {
    auto read = inputs(one), others = inputs(other);
    const Node &first = node(one), &second = node(other);
    bool same = first.inference == second.inference || first.params == second.params;
    if (first.op != second.op || !same || first.type != second.type || read.size() != others.size())
        return false;
    for (std::size_t k = 0; k < read.size(); ++k) {
        if (facts_[read[k]].type != facts_[others[k]].type) return false;
        if (read[k] != others[k] && (is_common(read[k]) || is_common(others[k]))) return false;
    }
    return true;
}

uint32_t SignaturePartition::group_of(uint32_t position) {
    std::size_t hash = hash_of(position);
    if (table_.size() <= 2 * groups_.size()) {
        table_.assign(std::max<std::size_t>(64, 2 * table_.size()), NONE);
        for (uint32_t g = 0; g < groups_.size(); ++g) slot_of(groups_[g].hash, groups_[g].like) = g;
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
           !(groups_[table_[at]].hash == hash && are_alike(groups_[table_[at]].like, position)))
        at = (at + 1) & mask;
    return table_[at];
}

} // namespace tenfold
