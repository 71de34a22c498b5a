// What an engine knows of itself: the memory that its values take, what failed, what is pending.
#include <algorithm>

#include "engine.h"

namespace tenfold {

void Engine::account(int64_t objects, int64_t bytes) {
    live_objects_.fetch_add(objects, std::memory_order_relaxed);
    int64_t live = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_bytes_.load(std::memory_order_relaxed);
    while (live > peak &&
           !peak_bytes_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {}
}

Engine::Room Engine::room_for(std::size_t bytes) {
    if (!limits_.memory) return room;
    Guard guard(lock_);
    auto live = std::size_t(std::max<int64_t>(0, live_bytes_.load(std::memory_order_relaxed)));
    if (live + expected_ + bytes <= limits_.memory) return room;
    bool runs = running_ > 0 || busy_ > 0 || can_run_now();
    bool waits = holds_ == 0 && (pending_count_ > 0 || lazy_);
    return runs || waits ? perhaps : none;
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
            Shown shown{future->number, future->operation->name, STATES[future->state], {}};
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
