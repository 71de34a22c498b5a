// Batch policy: decides which nodes of a graph and which pushed operators are batched, and how
// large a batch is. Facts of the machine stand in target_facts.h.
#pragma once
#include <span>

#include "ir/linearize.h"

namespace tenfold {

struct GraphTemplate;
struct PlannedGraph;

// The numbers of this policy; Python reads them as `_native.BATCHES`.
struct BatchThresholds {
    // Nodes per level, and per signature, from which a graph is batched.
    std::size_t min_mean_group_size = 4;
    // Members from which a batch pays: of an operation with native loops, of one whose arrays are
    // larger than a stacked operand, so that copies cost more than launches, and of others.
    std::size_t min_members = 12, min_large_members = 24, min_planned_members = 2;
    // Rows of a batch whose results are larger than a stacked operand.
    std::size_t max_large_rows = 16;
    // Nodes of a graph for each large result that it may have, such as a stack of all members.
    std::size_t nodes_per_large = 64;
    // Below one live-out row in so many, rows are copied: they do not keep the batch alive.
    uint32_t sparse_ratio = 4;
    // Numbers of rows from one power of two to the next, of batches that need plans for each.
    std::size_t row_steps = 16;
    // A product of vectors of at most `max_short_length` has as many rows as the tallest tile.
    std::size_t min_short_rows = 16;
    int64_t max_short_length = 32;
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
std::size_t min_batch_members(const Node& node, int64_t own_bytes);
std::size_t max_batch_members(const Node& node, int64_t own_bytes);
std::size_t max_part_members(const Type* result);

// The number of a batch's rows: its members, and repetitions of the last one.
struct RowRange {
    std::size_t members, min_rows, max_rows;
};

// The least and the most rows that are computed for so many members of an operation, whose result
// and operands have these Types, if there may be more than members.
RowRange row_range(std::size_t members, const Op* op, std::span<const Type* const> types,
                   std::size_t max_rows);
// For how many rows a batch is planned: the next of `row_steps` numbers up to a power of two, which
// no member's axis has as length.
std::size_t padded_rows(const RowRange& range, std::span<const Type* const> types);

// Whether many pushed members are worth stacking: their results, and at least one operand, are
// small. A graph of views alone moves nothing. The last two may be null.
bool are_stackable(std::span<Type* const> types, const PlannedGraph* planned, const Type* result);
// Whether loops over strided arrays run each operation in one launch: their arrays have the shape
// of the result, or two axes at most.
bool is_few_launches(const GraphTemplate& graph_template);

} // namespace tenfold
