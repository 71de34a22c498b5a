// Equal: nodes of a walk that do the same to the same inputs, of which one is computed.
#pragma once
#include "ir/linearize.h"

namespace tenfold {

// Redirects the readers of a node to the earlier node that it equals, and notes that one in `same`.
void merge_common_subexpressions(LinearizedGraph& walked);
// Gives live-out nodes that equal others the values of those.
void publish_common_subexpressions(const LinearizedGraph& walked);

} // namespace tenfold
