#include "threads/fork_safe_lock.h"

#include <algorithm>
#include <chrono>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

namespace tenfold {
namespace {

// Protects the list itself; it is locked over a fork like the locks in it.
std::mutex& registry_mutex() {
    static std::mutex* mutex =
        new std::mutex; // never destroyed: locks of static objects outlive main
    return *mutex;
}

std::vector<Lock*>& registry() {
    static auto* locks = new std::vector<Lock*>;
    return *locks;
}

} // namespace

Lock::Lock() {
    std::lock_guard guard(registry_mutex());
    registry().push_back(this);
}

Lock::~Lock() {
    std::lock_guard guard(registry_mutex());
    std::erase(registry(), this);
}

// The holder may have been preempted, or be in the middle of a fork. The waiting thread then yields
// the processor, and later sleeps.
void Lock::wait_until_free() {
    constexpr int SPINS = 64, YIELDS = 256;
    constexpr std::chrono::microseconds SLEEP{50};
    for (int tries = 0;; ++tries) {
        if (!locked_.load(std::memory_order_relaxed) &&
            !locked_.exchange(true, std::memory_order_acquire))
            return;
        if (tries < SPINS)
            _mm_pause();
        else if (tries < YIELDS)
            sched_yield();
        else
            std::this_thread::sleep_for(SLEEP);
    }
}

void register_fork_handlers() {
    static const int registered = pthread_atfork(lock_all, unlock_all, unlock_all);
    (void)registered; // it fails only without memory, and then nothing else would start either
}

void lock_all() {
    registry_mutex().lock();
    for (Lock* lock : registry()) lock->lock();
}

void unlock_all() {
    for (auto lock = registry().rbegin(); lock != registry().rend(); ++lock) (*lock)->unlock();
    registry_mutex().unlock();
}

} // namespace tenfold
