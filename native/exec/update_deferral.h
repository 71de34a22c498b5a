// Update deferral: assignments to parts of one Array wait, so that a long run of similar ones is
// computed together. It decides which ones wait, and what the next one computes first.
#pragma once
#include "ir/node.h"

namespace tenfold {

// The numbers of this policy; Python reads them as `_native.DEFERRAL`.
struct DeferralThresholds {
    // Pending assignments of one Array, and below an assigned value, when the next one begins.
    uint32_t max_pending = 1, max_pending_read = 32;
    // After `min_run` successive assignments to similar parts of one Array, up to `max_deferred`
    // are computed together.
    uint32_t min_run = 32, max_deferred = 8;
    // Where more have piled up one has failed; Python knows when it is tried again.
    uint32_t max_tried = max_deferred + 4;
    // From this count on, the pending assignments below a value are recounted: some may be
    // computed.
    uint32_t max_stale = 4;
    // As `max_pending`: of assignments that each compute the same product, and after a failure.
    uint32_t max_sharing = 16, max_after_failure = 256;
};
inline constexpr DeferralThresholds DEFERRAL;

// Whether a slice is neither empty nor the whole array.
bool changes_part(const Params& slice, const Type& array);
// Where an assignment to a slice stands in the run that ends with the node `previous`.
UpdateRun next_in_run(Node& previous, const Params& slice, Node* value);
// From now on assignments like this one are not deferred.
void disable_deferral(Node& update);

// Which assignments are computed before a new one: the earlier ones of its target, and the ones
// below its value. A target that shares a product with the value may wait instead.
struct DueUpdates {
    bool target = false, value = false, may_share = false;
};
// From the numbers of pending assignments of the target and below the value. `retry_limit`: after
// a failure, the number of the target's at which it is tried again; else 0.
DueUpdates due_updates(uint32_t target, uint32_t value, uint32_t retry_limit);
// Whether the work may be done by a plan, without a look at shared products and failures.
inline bool may_compute_natively(uint32_t target, uint32_t value) {
    return target <= DEFERRAL.max_tried && value < DEFERRAL.max_pending_read;
}

} // namespace tenfold
