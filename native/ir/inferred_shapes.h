// Shape inference: infers an operation's results for new shapes when its dtypes were inferred
// before. It serves only operations whose dtypes do not depend on shapes: elementwise ones of
// broadcast operands, reductions, permutations, and `index`.
#pragma once
#include "dispatch/inference_cache.h"

namespace tenfold {

// Which axes a reduction folds, a bit for each, and whether it keeps them.
struct ReducedAxes {
    uint64_t mask = 0;
    bool keepdims = false;

    bool is_reduced(std::size_t axis) const { return mask >> axis & 1; }
};

// From its Params; false where they have no axes of this rank.
bool read_axes(const Params& params, std::size_t rank, ReducedAxes& axes);

// Empty where Python's rules must run: for other operations, for new dtypes, and for errors.
Inferred infer_shape(const InferenceQuery& query);
// Fast path for few operands, all of one Type, which the result has as well. Else empty.
Inferred infer_same_type(const InferenceQuery& query);
// Caches a result of Python's rules.
void cache_dtypes(const InferenceQuery& query, const Ref<Inference>& inference);
// Drops the entries of an op that is not called any more.
void drop_dtypes_of(const Op* op);
std::size_t num_cached_dtypes();
void clear_dtype_cache();

} // namespace tenfold
