#include "exec/update_deferral.h"

#include <algorithm>

#include "ir/index_map.h"

namespace tenfold {
namespace {

constexpr uint64_t HASH_FACTOR = 0x9e3779b97f4a7c15ULL;

// A nonzero hash of the distance from the last assigned part of the same form; else 0. It is 0 for
// another form, for the same part, or if the value has been read meanwhile.
uint16_t offset_hash(Node& previous, const Params& slice) {
    bool is_update = previous.op && previous.op->part == Op::slice_update;
    if (!is_update || value_of(&previous)) return 0;
    const Starts &previous_starts = starts_of(*previous.params), &current = starts_of(slice);
    if (previous_starts.pattern != current.pattern || previous_starts.starts == current.starts ||
        previous.has(PASSED_THROUGH))
        return 0;
    uint64_t number = 1;
    for (std::size_t i = 0; i < current.starts.size(); ++i)
        number = number * HASH_FACTOR + uint64_t(current.starts[i] - previous_starts.starts[i]);
    return uint16_t(number >> 48 | 1); // a collision only defers; the result stays right
}

// A nonzero hash of the operations of an assigned value and of its operands.
uint64_t form_of(Node* value) {
    auto number = [](const Node* node) { return reinterpret_cast<uint64_t>(node->op); };
    uint64_t form = number(value);
    for (const Ref<Node>& operand : inputs_of(value))
        form = form * HASH_FACTOR + number(operand.get());
    return form | 1;
}

bool is_deferrable(const Params& slice, Node* value) {
    const auto& forms = pattern_of(slice).not_deferred;
    auto is_set = [](const auto& form) { return form.load(std::memory_order_relaxed) != 0; };
    if (std::ranges::none_of(forms, is_set)) return true;
    const uint64_t form = form_of(value);
    return std::ranges::none_of(
        forms, [&](const auto& each) { return each.load(std::memory_order_relaxed) == form; });
}

// Whether an assignment in a long run may defer earlier work, so that it is done at once.
bool may_defer(const UpdateRun& run, const Params& slice, uint16_t stride_hash, Node* value) {
    const bool fits = run.num_similar >= DEFERRAL.min_run &&
                      run.num_deferred < DEFERRAL.max_deferred &&
                      (run.num_deferred == 1 || run.stride_hash == stride_hash);
    return fits && is_deferrable(slice, value);
}

} // namespace

bool changes_part(const Params& slice, const Type& array) {
    const std::vector<int64_t>& shape = pattern_of(slice).map.shape;
    return std::ranges::find(shape, 0) == shape.end() && !is_full_slice(slice, array);
}

UpdateRun next_in_run(Node& previous, const Params& slice, Node* value) {
    UpdateRun run{offset_hash(previous, slice), 0, 1};
    if (run.stride_hash == 0) return run;
    const UpdateRun& before = previous.run;
    if (may_defer(before, slice, run.stride_hash, value))
        run.num_deferred = uint8_t(before.num_deferred + 1);
    run.num_similar = uint8_t(std::min<uint32_t>(before.num_similar + 1u, DEFERRAL.min_run));
    return run;
}

void disable_deferral(Node& update) {
    if (!update.op || update.op->part != Op::slice_update) return;
    std::vector<Ref<Node>> inputs = inputs_of(&update);
    if (inputs.empty()) return;
    auto& forms = pattern_of(*update.params).not_deferred;
    const uint64_t form = form_of(inputs[1].get());
    for (auto& each : forms) {
        uint64_t none = 0;
        if (each.compare_exchange_strong(none, form) || none == form) return;
    }
    forms[form / 2 % forms.size()] = form; // the form that had its place is learnt again
}

DueUpdates due_updates(uint32_t target, uint32_t value, uint32_t retry_limit) {
    const uint32_t limit = retry_limit ? retry_limit : DEFERRAL.max_pending;
    const bool may_share = DEFERRAL.max_pending <= target && target < DEFERRAL.max_sharing;
    if (target < limit && limit > DEFERRAL.max_pending) return {false, false, may_share};
    // The value's count is from the creation of its node, so it includes computed assignments.
    return {target >= limit, value && value % DEFERRAL.max_pending_read == 0, may_share};
}

} // namespace tenfold
