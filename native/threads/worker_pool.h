// Worker pool: runs a kernel over [0, units) on the caller's thread and on worker threads. A Launch
// is cut into ranges of `grain` units. Workers are started by the first Launch that needs them, and
// stay.
#pragma once
#include <atomic>

#include "threads/work.h"

namespace tenfold {

class Scratch; // memory of one thread

class Launch {
  public:
    // Throws std::bad_alloc; nothing else here throws.
    explicit Launch(const Work& work);
    ~Launch() { unregister(); }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    // Once. When it returns, all threads have left the kernel.
    Result run();

    // From now on cancel_launches() does not wait for this one.
    void unregister();

    void run_ranges(const Scratch& scratch, bool caller); // main function of its threads
    void poll_interrupt();                                // for an interrupt, if it is time

  private:
    bool is_stopped() const;
    void run_range(int64_t range, void* scratch);
    bool run_on_workers(int workers);
    void wait_for_workers(int workers);

    // Each of the atomic ones is a fact by itself, so relaxed; the pool orders what kernels write.
    alignas(64) std::atomic<int64_t> next_{0};
    const Work& work_;
    Scratch& caller_scratch_; // the caller's
    const int64_t ranges_;
    int64_t last_poll_ns_ = 0; // nanoseconds
    std::atomic<int64_t> status_{0};
    const uint32_t epoch_, fork_count_;
    bool is_registered_ = true;
    bool shared_ = false;
    bool no_memory_ = false;
    std::atomic<bool> cancelled_{false};
};

// Whether one call of the kernel computes a Work that asks for no threads. It takes microseconds,
// so `run_brief` is not cancelled, and cancel_launches() does not wait for it.
inline bool is_brief(const Work& work) { return work.threads == 0 && work.units <= work.grain; }
Result run_brief(const Work& work);

// How many threads a Launch may run on, its caller's included; 1 until it is set. Smaller than
// before: the workers too many sleep.
void set_threads(int threads);
int threads();

// Cancels every Launch made so far. Waits a second at most until their threads have left the
// kernels, before their memory goes away.
void cancel_launches();

} // namespace tenfold
