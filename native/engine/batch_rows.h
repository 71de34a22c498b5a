// Batch rows: elementwise operations on contiguous arrays of one shape, by the loop of their
// dtypes. Many members are one launch: its kernel reads their arrays through a table of pointers,
// and gathers those of a block, unless they are side by side. A run of increments is one launch,
// too.
#pragma once
#include <span>

#include "engine/future.h"
#include "exec/planned_graph.h"

namespace tenfold {

// An operation on elements of arrays of equal shape, in C's order, and of numbers.
struct BatchRows {
    Ref<Inference> inference; // owns the loop
    Ref<Type> type;           // type of the result
    const Loop* loop = nullptr;
};

using Members = std::span<const Ref<Future>>;

// Prefetches what the i-th member and later ones need to read their inputs, level by level: their
// edges, then the inputs, then the Values.
inline void prefetch_inputs(Members members, std::size_t i) {
    constexpr std::size_t DISTANCE = 8; // members on the way, from one level to the next
    if (i + 3 * DISTANCE < members.size()) {
        const Future& upcoming = *members[i + 3 * DISTANCE];
        __builtin_prefetch(&upcoming.input_count);
        __builtin_prefetch(&upcoming.heap_edges);
    }
    if (i + 2 * DISTANCE < members.size())
        for (Edge& edge : members[i + 2 * DISTANCE]->inputs()) __builtin_prefetch(edge.input);
    if (i + DISTANCE < members.size())
        for (Edge& edge : members[i + DISTANCE]->inputs())
            __builtin_prefetch(edge.input->value.get());
}

// Computes members in one launch. False, without results, where operands are not in C order, where
// numbers differ, or where memory is short.
bool run_rows(const BatchRows& rows, Members members, std::span<OperatorResult> answers,
              int threads, bool separate_results);

// The steps of a run of increments, pairwise: the left part has the greatest power of two below the
// length.
std::size_t left_part_length(std::size_t length);

// base + (blocks + leaves), all of one Type, by the rows of an addition; null on a device, which
// has a kernel of its own. A result stays empty if neither can compute it.
OperatorResult run_fold(const BatchRows* add, const Type& type, Future& fold, int threads);

} // namespace tenfold
