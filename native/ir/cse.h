// Common subexpression elimination (CSE): equal nodes of a linearized graph are computed once.
#pragma once
#include "ir/linearize.h"

namespace tenfold {

// From now on who read a node that equals an earlier one reads that one, and `same` says so.
void merge_common_subexpressions(LinearizedGraph& walked);
// Gives nodes that equal others, and that somebody can see, the values those have by now.
void publish_common_subexpressions(const LinearizedGraph& walked);

} // namespace tenfold
