#include "memory/deferred_decref.h"

#include <atomic>
#include <vector>

#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

struct DeferredDecrefs {
    Lock lock; // protects pending
    std::vector<void*> pending;
    std::atomic<bool> any{false}; // relaxed: who misses a change drains at the next call
};

// Made when the library is loaded; outlives every static object that may release.
DeferredDecrefs* const the_list = new DeferredDecrefs;

DeferredDecrefs& list() { return *the_list; }

} // namespace

void release_later(void* python) {
    if (!python) return;
    Guard guard(list().lock);
    list().pending.push_back(python);
    list().any.store(true, std::memory_order_relaxed);
}

void drain_released(void (*release)(void*)) {
    std::vector<void*> taken;
    {
        Guard guard(list().lock);
        taken.swap(list().pending);
        list().any.store(false, std::memory_order_relaxed);
    }
    for (void* python : taken)
        release(python); // outside the lock: a release may run any Python code
}

bool anything_released() noexcept { return list().any.load(std::memory_order_relaxed); }

} // namespace tenfold
