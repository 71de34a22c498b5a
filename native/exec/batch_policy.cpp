#include "exec/batch_policy.h"

#include <algorithm>
#include <bit>

#include "exec/planned_graph.h"
#include "exec/stacking.h"
#include "memory/target_facts.h"

namespace tenfold {
namespace {

// Pending operations on the longest way down.
std::size_t pending_depth(const LinearizedGraph& graph) {
    std::vector<uint32_t> depths(graph.nodes.size());
    uint32_t deepest = 0;
    for (std::size_t i = 0; i < depths.size(); ++i) {
        graph.prefetch(i);
        if (graph.nodes[i].value || !graph.nodes[i].node->op) continue;
        for (uint32_t input : graph.inputs(graph.nodes[i]))
            depths[i] = std::max(depths[i], depths[input]);
        deepest = std::max(deepest, ++depths[i]);
    }
    return deepest;
}

// Whether members are vectors of few elements, to be multiplied.
bool multiplies_short_rows(const Op& op, std::span<const Type* const> types) {
    auto is_short = [](const Type* type) {
        return std::ranges::all_of(type->shape,
                                   [](int64_t n) { return n <= BATCHES.max_short_length; });
    };
    return op.multiplies && !types.empty() && types[0]->shape.size() <= 1 &&
           std::ranges::all_of(types, is_short);
}

} // namespace

bool is_wide(const LinearizedGraph& graph) {
    if (graph.num_calls > 0) return true;
    std::size_t max_depth = graph.nodes.size() / BATCHES.min_mean_group_size;
    // Nodes know their depth when they were made: inputs may have got their values since.
    return graph.depth <= max_depth || pending_depth(graph) <= max_depth;
}

bool are_enough(const LinearizedGraph& graph, std::size_t num_batchable, std::size_t num_groups) {
    bool is_enough =
        graph.num_calls > 0 || num_batchable >= BATCHES.min_mean_group_size * num_groups;
    return num_batchable > 0 && is_enough;
}

std::size_t min_batch_members(const Node& node, int64_t own_bytes) {
    if (!has_native_kernel(node)) return BATCHES.min_planned_members;
    return own_bytes <= STACKED_BYTES ? BATCHES.min_members : BATCHES.min_large_members;
}

std::size_t max_batch_members(const Node& node, int64_t own_bytes) {
    if (bytes_of(*node.type) >= STACKED_BYTES) return BATCHES.max_large_rows;
    return std::max<std::size_t>(1, MAX_BATCH_BYTES / std::size_t(own_bytes + 1));
}

std::size_t max_part_members(const Type* result) {
    std::size_t size = result ? std::max<std::size_t>(1, std::size_t(result->size())) : 1;
    return std::max(BATCHES.min_part_members, BATCHES.min_part_elements / size);
}

// One member becomes two: axes of length 1 have plans of their own.
RowRange row_range(std::size_t members, const Op* op, std::span<const Type* const> types,
                   std::size_t max_rows) {
    if (max_rows <= members) return {members, members, members};
    std::size_t least = op && multiplies_short_rows(*op, types) ? BATCHES.min_short_rows : 2;
    return {members, std::clamp(least, members, max_rows), max_rows};
}

std::size_t padded_rows(const RowRange& range, std::span<const Type* const> types) {
    if (range.max_rows == range.members) return range.members;
    std::size_t step = std::max<std::size_t>(1, std::bit_floor(range.min_rows) / BATCHES.row_steps);
    std::size_t rows = (range.min_rows + step - 1) / step * step;
    auto has_length = [&](const Type* type) {
        return std::ranges::count(type->shape, int64_t(rows)) > 0;
    };
    while (std::ranges::any_of(types, has_length)) ++rows;
    return std::min(rows, range.max_rows);
}

bool are_stackable(std::span<Type* const> types, const PlannedGraph* planned, const Type* result) {
    if (planned && planned->graph_template && planned->graph_template->has_only_views())
        return false;
    auto is_small = [](const Type* type) { return bytes_of(*type) <= STACKED_BYTES; };
    return (!result || is_small(result)) && std::ranges::any_of(types, is_small);
}

bool is_few_launches(const GraphTemplate& graph_template) {
    const LinearizedGraph& graph = graph_template.graph;
    return std::ranges::all_of(graph.nodes, [&](const LinearizedNode& entry) {
        const Node& node = *entry.node;
        if (node.is_scalar() || !node.op || node.op->view || node.op->folding != Op::nothing)
            return true;
        return node.type->shape.size() <= 2 ||
               std::ranges::all_of(graph.inputs(entry), [&](uint32_t input) {
                   const Node& operand = *graph.nodes[input].node;
                   return operand.is_scalar() || operand.type->shape == node.type->shape;
               });
    });
}

} // namespace tenfold
