#include "lock.h"

#include <algorithm>
#include <pthread.h>
#include <vector>

namespace tenfold {
namespace {

// Protects the list itself; it is held over a fork like the locks in it.
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

void respect_forks() {
    static const int registered =
        pthread_atfork(hold_all_locks, release_all_locks, release_all_locks);
    (void)registered; // it fails only without memory, and then nothing else would start either
}

void hold_all_locks() {
    registry_mutex().lock();
    for (Lock* lock : registry()) lock->lock();
}

void release_all_locks() {
    for (auto lock = registry().rbegin(); lock != registry().rend(); ++lock) (*lock)->unlock();
    registry_mutex().unlock();
}

} // namespace tenfold
