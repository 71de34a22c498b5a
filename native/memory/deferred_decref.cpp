#include "memory/deferred_decref.h"

#include <atomic>
#include <vector>

#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

struct DeferredDecrefs {
    Lock lock; // protects pending
    std::vector<void*> pending;
    std::atomic<bool> any{false}; // relaxed: a thread that misses a change drains at the next call
};

// Made when the library is loaded; outlives every static object that may release.
DeferredDecrefs* const deferred_decrefs_instance = new DeferredDecrefs;

DeferredDecrefs& deferred_decrefs() { return *deferred_decrefs_instance; }

} // namespace

void defer_decref(void* python) {
    if (!python) return;
    Guard guard(deferred_decrefs().lock);
    deferred_decrefs().pending.push_back(python);
    deferred_decrefs().any.store(true, std::memory_order_relaxed);
}

void drain_deferred_decrefs(void (*release)(void*)) {
    std::vector<void*> objects;
    {
        Guard guard(deferred_decrefs().lock);
        objects.swap(deferred_decrefs().pending);
        deferred_decrefs().any.store(false, std::memory_order_relaxed);
    }
    for (void* python : objects)
        release(python); // outside the lock: a release may run any Python code
}

bool has_deferred_decrefs() noexcept {
    return deferred_decrefs().any.load(std::memory_order_relaxed);
}

} // namespace tenfold
