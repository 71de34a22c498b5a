// Memory accounting: the memory that an engine's values take, its failures and its pending
// operators.
#include <algorithm>

#include "engine/engine.h"

namespace tenfold {

void Engine::account(int64_t objects, int64_t bytes) {
    live_objects_.fetch_add(objects, std::memory_order_relaxed);
    int64_t live = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_bytes_.load(std::memory_order_relaxed);
    while (live > peak &&
           !peak_bytes_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {}
}

// With the Lock, as the next two. An in-place operator needs no additional memory.
void Engine::reserve_memory(Future& future) {
    if (future.bytes || future.type) {
        if (!future.bytes) future.bytes = future.type->bytes();
        reserved_bytes_ += future.bytes;
    } else if (future.operation->kind != Operation::in_place) {
        future.size_is_guess = true;
        SizeEstimate& estimate = size_estimates_[future.operation->cost_class];
        ++estimate.pending;
        guessed_bytes_ += estimate.bytes;
    }
}

void Engine::unreserve_memory(Future& future) {
    reserved_bytes_ -= std::exchange(future.bytes, 0);
    if (!std::exchange(future.size_is_guess, false)) return;
    SizeEstimate& estimate = size_estimates_[future.operation->cost_class];
    --estimate.pending;
    guessed_bytes_ -= estimate.bytes;
}

void Engine::update_size_estimate(const Future& future) {
    SizeEstimate& estimate = size_estimates_[future.operation->cost_class];
    guessed_bytes_ += estimate.pending * future.bytes - estimate.pending * estimate.bytes;
    estimate.bytes = future.bytes;
    estimate.known = true;
}

std::size_t Engine::expected_bytes(const Operation& operation, std::span<Future* const> inputs) {
    if (const PlannedGraph* call = operation.planned_graph.get()) {
        if (!call->graph_template) return 0;
        std::size_t bytes = 0;
        const LinearizedGraph& graph = call->graph_template->graph;
        for (uint32_t output : graph.outputs) bytes += graph.nodes[output].node->type->bytes();
        return bytes;
    }
    std::array<Type*, Future::INLINE_INPUTS> types{};
    if (inputs.empty() || inputs.size() > types.size()) return 0;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (!(types[i] = inputs[i]->known_type())) return 0;
    Guard guard(lock_);
    const Batcher* batcher = batcher_of(signature_of(operation, {types.data(), inputs.size()}));
    return batcher && batcher->result ? batcher->result->bytes() : 0;
}

Engine::Room Engine::memory_room(std::size_t bytes, const Operation* operation) {
    if (!limits_.max_bytes) return room;
    Guard guard(lock_);
    auto live_bytes =
        std::size_t(std::max<int64_t>(0, live_bytes_.load(std::memory_order_relaxed)));
    live_bytes += reserved_bytes_ + bytes;
    bool is_running = num_running_ > 0 || num_busy_ > 0 || can_run_now();
    bool has_pending = num_holds_ == 0 && (num_pending_ > 0 || lazy_list_);
    if (live_bytes > limits_.max_bytes) return is_running || has_pending ? perhaps : none;
    if (!operation || (!is_running && !has_pending)) return room;
    constexpr std::size_t UNKNOWN = 16; // operators of a class that has no result yet
    const SizeEstimate& estimate = size_estimates_[operation->cost_class];
    bool too_many = !estimate.known && estimate.pending >= UNKNOWN;
    return too_many || live_bytes + guessed_bytes_ + estimate.bytes > limits_.max_bytes ? likely
                                                                                        : room;
}

std::vector<Ref<Failure>> Engine::take_unobserved() {
    std::vector<Ref<Failure>> failures;
    Guard guard(lock_);
    for (Failure* failure : failures_) {
        if (failure->observed.exchange(true)) continue;
        uint32_t count = failure->references.load();
        while (count > 0 && !failure->references.compare_exchange_weak(count, count + 1)) {}
        if (count > 0) failures.push_back(Ref<Failure>::adopt(failure));
    }
    return failures;
}

void Engine::forget_failure(Failure& failure) {
    Guard guard(lock_);
    std::erase(failures_, &failure);
}

EngineStatistics Engine::statistics() {
    EngineStatistics totals;
    Guard guard(lock_);
    totals.pushed = num_pushed_;
    totals.done = num_done_;
    totals.failed = num_failed_;
    totals.cancelled = num_cancelled_;
    totals.dropped = num_dropped_;
    totals.batches = num_batches_;
    totals.sizes = batch_sizes_;
    totals.pending = num_pending_;
    totals.running = num_running_;
    for (Future* future = pending_list_; future; future = future->next)
        totals.ready += future->state == Future::ready;
    totals.live_objects = live_objects_.load(std::memory_order_relaxed);
    totals.live_bytes = live_bytes_.load(std::memory_order_relaxed);
    totals.peak_bytes = peak_bytes_.load(std::memory_order_relaxed);
    return totals;
}

std::vector<Engine::PendingInfo> Engine::pending() {
    static constexpr const char* STATES[] = {"waiting", "waiting", "ready", "running"};
    std::vector<PendingInfo> result;
    Guard guard(lock_);
    for (Future* list : {pending_list_, lazy_list_})
        for (Future* future = list; future; future = future->next) {
            PendingInfo info{
                future->number, future->impure, future->operation->name, STATES[future->state], {}};
            for (Edge& edge : future->inputs())
                if (edge.input && edge.input->is_pending())
                    info.inputs.push_back(edge.input->number);
            result.push_back(std::move(info));
        }
    std::sort(result.begin(), result.end(),
              [](const PendingInfo& a, const PendingInfo& b) { return a.number < b.number; });
    return result;
}

} // namespace tenfold
