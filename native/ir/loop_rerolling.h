// Loop rerolling: finds the repeated steps of a long pending graph, as a loop of Python makes it,
// and cuts the graph into parts that are computed one after another. Equal parts share a plan, so
// that the cost of a step does not depend on the number of steps. The cuts are those of a program
// that waits for its state after each step; so the results have its bits.
#pragma once
#include <vector>

#include "ir/linearize.h"

namespace tenfold {

struct LoopSteps {
    // The results of each part that later parts or outputs of the graph need, in the order in which
    // parts are computed. A part is a step, or several equal ones.
    std::vector<std::vector<Ref<Node>>> outputs;
    std::vector<uint32_t> counts; // steps of each part
    std::vector<uint32_t> kinds;  // a number for the structure of a step
};

constexpr std::size_t MAX_UNDIVIDED_NODES = 128;

// No parts for a graph that is no loop, or is short: its steps are not many, or may form batches.
LoopSteps steps_of(const LinearizedGraph& graph);

} // namespace tenfold
