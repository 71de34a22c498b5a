// Batch policy: decides which nodes of a graph and which pushed operators are batched, and how
// large a batch is. Facts of the machine stand in target_facts.h.
#pragma once
#include <span>

#include "ir/linearize.h"

namespace tenfold {

struct GraphTemplate;

// The numbers of this policy; Python reads them as `_native.BATCHES`.
struct BatchThresholds {
    // Nodes per level, and per signature, from which a graph is batched.
    std::size_t min_mean_group_size = 4;
    // Members from which a batch pays: of an operation with native loops, and of others.
    std::size_t min_members = 24, min_planned_members = 2;
    // Rows of a batch whose results are larger than a stacked operand.
    std::size_t max_large_rows = 16;
    // Of so many nodes one may have a large result, such as a stack of all members.
    std::size_t nodes_per_large = 64;
    // Below one live-out row in so many, rows are copied: they do not keep the batch alive.
    uint32_t sparse_ratio = 4;
    // Numbers of rows from one power of two to the next, each of which has a plan: of batches in
    // graphs, and of pushed operators.
    std::size_t graph_row_steps = 8, pushed_row_steps = 16;
    // A product of vectors of at most `max_short_length` has as many rows as the tallest tile.
    std::size_t min_short_rows = 16;
    int64_t max_short_length = 32;
    // Runs in vain after which Python is asked for no other expression of a batch.
    uint32_t max_failures = 16;
    // Pushed members for which an idle worker does not wait for more.
    std::size_t full_members = 256;
    // Members that one thread computes one by one at a go: at least, or so many elements.
    std::size_t min_part_members = 128, min_part_elements = 1 << 16;
};
inline constexpr BatchThresholds BATCHES;

// Whether batches may pay: a graph is not narrow, and enough nodes share a signature.
bool is_wide(const LinearizedGraph& graph);
bool are_enough(const LinearizedGraph& graph, std::size_t num_batchable, std::size_t num_groups);

// The least and the most members of a batch of nodes like this one, which reads and writes so many
// bytes alone: one live row keeps the whole batch alive.
std::size_t min_batch_members(const Node& node);
std::size_t max_batch_members(const Node& node, int64_t own_bytes);
std::size_t max_part_members(const Type* result);

// How many rows are computed for so many members: the next of `steps` numbers up to a power of two.
// Numbers that are ever new cost more than a few rows: each has a plan of its own.
std::size_t padded_rows(std::size_t members, std::size_t steps);
// The same for nodes of a graph, whose result and operands have these types; at most so many.
std::size_t padded_rows(std::size_t members, const Op& op, std::span<const Type* const> types,
                        std::size_t max_members);

// Whether many pushed members are worth stacking: their results, and at least one operand, are
// small. A template of views alone moves nothing. The last two may be null.
bool are_stackable(std::span<Type* const> types, const GraphTemplate* graph_template,
                   const Type* result);
// Whether loops over strided arrays run each operation in one launch: their arrays have the shape
// of the result, or two axes at most.
bool is_few_launches(const GraphTemplate& graph_template);

} // namespace tenfold
