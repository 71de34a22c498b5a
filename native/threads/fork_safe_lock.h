// Fork-safe lock: a mutex that is free in the child of a fork(), with its data whole. Every Lock of
// the core registers itself. A fork acquires all of them first, and releases them in parent and
// child. So the child never inherits a structure that another thread was changing. The handlers are
// registered with the C library, not with Python. Between two of Python's handlers another thread
// may run. It would wait for an acquired Lock while it holds the GIL.
//
// A critical section takes tens of nanoseconds, so a waiter spins first. A Lock is one locked
// instruction where a mutex of the C library is two and two calls.
#pragma once
#include <atomic>
#include <mutex>

namespace tenfold {

class Lock {
  public:
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    void lock() {
        if (locked_.exchange(true, std::memory_order_acquire)) wait_until_free();
    }
    void unlock() { locked_.store(false, std::memory_order_release); }

  private:
    void wait_until_free(); // until it is this thread's

    std::atomic<bool> locked_{false};
};

using Guard = std::lock_guard<Lock>;

// Registers the handlers; once per process. A thread that holds a Lock may not wait for the GIL.
void register_fork_handlers();
void lock_all();
void unlock_all();

} // namespace tenfold
