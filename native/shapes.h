// Shapes: what an operation makes of Types of new shapes when it has been inferred for the same
// dtypes before. Only for those whose dtypes do not depend on shapes: on elements of broadcast
// operands, reductions, permutations, and what `index` takes.
#pragma once
#include "memo.h"

namespace tenfold {

// Empty where Python's rules are to be asked: for other operations, for new dtypes, and where there
// is an error to be raised.
Ref<Inference> infer_shape(const MemoQuery& query);
// Of what Python's rules have said.
void remember_dtypes(const MemoQuery& query, const Ref<Inference>& inference);
std::size_t remembered_dtypes();
void forget_dtypes();

} // namespace tenfold
