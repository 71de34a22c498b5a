// Worker pool: runs a kernel over [0, units) on the caller's thread and on worker threads. A Launch
// is cut into ranges of `grain` units. Workers are started by the first Launch that needs them, and
// stay.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tenfold {

// Returns 0, or 1 + the first index it could not compute.
using Kernel = int64_t (*)(void** buffers, const int64_t* sizes, const double* scalars,
                           void* scratch, int64_t begin, int64_t end);

struct Work {
    Kernel kernel = nullptr;
    void** buffers = nullptr;
    const int64_t* sizes = nullptr;
    const double* scalars = nullptr;
    uint32_t num_buffers = 0, num_sizes = 0, num_scalars = 0; // for a device that copies them
    std::size_t scratch = 0; // bytes for each thread, 64-byte aligned
    int64_t units = 0;
    int64_t grain = 1;
    int threads = 1;              // at most; the pool may be smaller, or busy with another Launch
    bool uninterruptible = false; // never interrupted: it writes over values that others may need
    // Asked on the caller's thread every INTERVAL, between its ranges; true cancels the Launch.
    bool (*interrupted)(void* context) = nullptr;
    void* context = nullptr;
};

enum class Outcome : uint8_t { done, cancelled, no_memory };

struct Result {
    Outcome outcome = Outcome::done;
    int64_t status = 0; // the smallest that a range returned, apart from 0
};

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

// How many threads a Launch may run on, its caller's included; 1 until it is set. Smaller than
// before: the workers too many sleep.
void set_threads(int threads);
int threads();

// Cancels every Launch made so far. Waits a second at most until their threads have left the
// kernels, before their memory goes away.
void cancel_launches();

} // namespace tenfold
