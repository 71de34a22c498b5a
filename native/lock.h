// Lock: a mutex that fork() respects. Every Lock of the core registers itself; `hold_all_locks`
// takes them in order of creation before a fork, `release_all_locks` gives them back in parent and
// child, so the child never inherits a structure that another thread was in the middle of changing.
#pragma once
#include <mutex>

namespace tenfold {

class Lock {
  public:
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    std::mutex mutex_;
};

using Guard = std::lock_guard<Lock>;

void hold_all_locks();
void release_all_locks();

} // namespace tenfold
