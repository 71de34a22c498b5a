// Common subexpression elimination (CSE): equal nodes of a linearized graph are computed once.
#pragma once
#include "ir/linearize.h"

namespace tenfold {

// Redirects the readers of a node to the earlier node that it equals, and notes that one in `same`.
void merge_common_subexpressions(LinearizedGraph& graph);
// Gives live-out nodes that equal others the values of those.
void publish_common_subexpressions(const LinearizedGraph& graph);

} // namespace tenfold
