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

// With the Lock, as the next two. What is changed in place takes no more than it did.
void Engine::expect(Future& future) {
    if (const Type* type = future.type) {
        future.bytes = type->bytes();
        expected_ += future.bytes;
    } else if (future.operation->kind != Operation::in_place) {
        future.guessed = true;
        Family& family = families_[future.operation->family];
        ++family.pending;
        guessed_ += family.bytes;
    }
}

void Engine::expect_no_more(Future& future) {
    expected_ -= std::exchange(future.bytes, 0);
    if (!std::exchange(future.guessed, false)) return;
    Family& family = families_[future.operation->family];
    --family.pending;
    guessed_ -= family.bytes;
}

void Engine::note_size(const Future& future) {
    Family& family = families_[future.operation->family];
    guessed_ += family.pending * future.bytes - family.pending * family.bytes;
    family.bytes = future.bytes;
    family.known = true;
}

Engine::Room Engine::room_for(std::size_t bytes, const Operation* operation) {
    if (!limits_.memory) return room;
    Guard guard(lock_);
    auto live = std::size_t(std::max<int64_t>(0, live_bytes_.load(std::memory_order_relaxed)));
    live += expected_ + bytes;
    bool runs = running_ > 0 || busy_ > 0 || can_run_now();
    bool waits = holds_ == 0 && (pending_count_ > 0 || lazy_);
    if (live > limits_.memory) return runs || waits ? perhaps : none;
    if (!operation || (!runs && !waits)) return room;
    constexpr std::size_t UNKNOWN = 16; // operators of a class that has no result yet
    const Family& found = families_[operation->family];
    bool many = !found.known && found.pending >= UNKNOWN;
    return many || live + guessed_ + found.bytes > limits_.memory ? likely : room;
}

std::vector<Ref<Failure>> Engine::unobserved() {
    std::vector<Ref<Failure>> found;
    Guard guard(lock_);
    for (Failure* failure : failures_) {
        if (failure->observed.exchange(true)) continue;
        uint32_t count = failure->references.load();
        while (count > 0 && !failure->references.compare_exchange_weak(count, count + 1)) {}
        if (count > 0) found.push_back(Ref<Failure>::adopt(failure));
    }
    return found;
}

void Engine::forget(Failure& failure) {
    Guard guard(lock_);
    std::erase(failures_, &failure);
}

EngineStatistics Engine::statistics() {
    EngineStatistics found;
    Guard guard(lock_);
    found.pushed = pushed_;
    found.done = done_;
    found.failed = failed_;
    found.cancelled = cancelled_;
    found.dropped = dropped_;
    found.batches = batches_;
    found.sizes = sizes_;
    found.pending = pending_count_;
    found.running = running_;
    for (Future* future = pending_; future; future = future->after)
        found.ready += future->state == Future::ready;
    found.live_objects = live_objects_.load(std::memory_order_relaxed);
    found.live_bytes = live_bytes_.load(std::memory_order_relaxed);
    found.peak_bytes = peak_bytes_.load(std::memory_order_relaxed);
    return found;
}

std::vector<Engine::Shown> Engine::pending() {
    static constexpr const char* STATES[] = {"waiting", "waiting", "ready", "running"};
    std::vector<Shown> all;
    Guard guard(lock_);
    for (Future* list : {pending_, lazy_})
        for (Future* future = list; future; future = future->after) {
            Shown shown{
                future->number, future->impure, future->operation->name, STATES[future->state], {}};
            for (Edge& edge : future->inputs())
                if (edge.input && edge.input->is_pending())
                    shown.inputs.push_back(edge.input->number);
            all.push_back(std::move(shown));
        }
    std::sort(all.begin(), all.end(),
              [](const Shown& a, const Shown& b) { return a.number < b.number; });
    return all;
}

} // namespace tenfold
