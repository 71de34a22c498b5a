#include "threads/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "memory/allocation_pool.h"
#include "memory/guard_pages.h"
#include "threads/cpu_device.h"
#include "threads/thread_local.h"

namespace tenfold {

// Scratch memory, reused, and grown on demand.
class Scratch {
  public:
    ~Scratch() {
        if (memory_) pool_free(memory_, bytes_);
    }
    bool grow(std::size_t bytes) {
        if (bytes <= bytes_ && !(bytes && guard_pages())) return true;
        bytes =
            (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES; // kernels rely on it
        void* memory = pool_allocate(bytes);
        if (!memory) return false;
        if (memory_) pool_free(memory_, bytes_);
        memory_ = memory;
        bytes_ = bytes;
        return true;
    }
    void reset() {
        memory_ = nullptr;
        bytes_ = 0;
    }
    void* memory() const { return memory_; }

  private:
    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

namespace {

constexpr int MAX_THREADS = 1024;
constexpr int64_t POLL_INTERVAL_NS = 25'000'000; // nanoseconds between two looks for an interrupt
constexpr int64_t MAX_CANCEL_WAIT_NS = 1'000'000'000;
// About 40 us, the time in which a sleeper wakes up. The next kernel of a plan comes sooner.
constexpr int SPINS = 1000;

// One spin; now and then it yields the core to another thread.
void pause(int spin) {
    if (spin % 32 == 31)
        sched_yield();
    else
        _mm_pause();
}

int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// No Lock and no condition variable: a fork may copy these in any state. `busy` belongs to the
// thread whose Launch has the workers; it alone writes the non-atomic fields.
struct Workers {
    std::atomic<bool> busy{false}; // acquire, release: hands over the plain members
    Launch* launch = nullptr;
    Scratch scratch[MAX_THREADS]; // one per seat: which worker allocates must not depend on arrival
    int num_started = 0;
    pthread_t threads[MAX_THREADS];
    cpu_set_t affinity;   // the processors of the thread that started them; none where unknown
    int avoided_cpu = -1; // the one that they keep away from
    // A worker takes part when it takes a seat, and then counts itself in `num_finished`. Acquire:
    // it sees launch and scratch as of the release that offered it. Release: the caller sees its
    // writes.
    std::atomic<int> num_free_seats{0};
    std::atomic<uint32_t> num_finished{0};
    std::atomic<uint32_t> offer_epoch{0}; // workers sleep until it changes
    std::atomic<bool> caller_waits{false};
    std::atomic<int> limit{1};        // relaxed: a number
    std::atomic<int> num_launches{0}; // relaxed: only cancel_launches() looks, again and again
    std::atomic<uint32_t> epoch{0},
        fork_count{0}; // relaxed: a thread that misses a change sees it a range later
};

Workers* const worker_pool = new Workers; // outlives the threads, which end with the process

using Word = std::atomic<uint32_t>;

void sleep_while(Word& word, uint32_t value, const timespec* timeout) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

void wake(Word& word, int sleepers) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

// The child of a fork has one thread, whatever the workers were doing. A Scratch may have been in
// the middle of growing, so none is trusted.
void reset_after_fork() {
    Workers& workers = *worker_pool;
    for (Scratch& scratch : workers.scratch) scratch.reset();
    workers.launch = nullptr;
    workers.num_started = 0;
    workers.avoided_cpu = -1;
    workers.num_free_seats = 0;
    workers.num_launches = 0;
    ++workers.fork_count;
    workers.busy = false;
}

// At load, not at first use: a static that another thread is making stays half made in a child.
const int registered = pthread_atfork(nullptr, nullptr, reset_after_fork);

// Rounds to nearest, with subnormals and without traps. Kernels are compiled for this mode,
// whatever a foreign library left behind.
class FloatControl {
  public:
    FloatControl() : saved_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
    ~FloatControl() { _mm_setcsr(saved_); }

  private:
    unsigned saved_;
};

// Signals are for Python's threads; faults are the worker's own.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t blocked;
        sigfillset(&blocked);
        for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
            sigdelset(&blocked, signal);
        pthread_sigmask(SIG_SETMASK, &blocked, &saved_mask_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &saved_mask_, nullptr); }

  private:
    sigset_t saved_mask_;
};

// The number of a seat, counted from 1, or 0.
int take_seat(Workers& workers) {
    int seat = workers.num_free_seats.load(std::memory_order_relaxed);
    while (seat > 0 && !workers.num_free_seats.compare_exchange_weak(
                           seat, seat - 1, std::memory_order_acquire, std::memory_order_relaxed)) {}
    return std::max(seat, 0);
}

void worker_main() {
    Workers& workers = *worker_pool;
    for (;;) {
        uint32_t offer = workers.offer_epoch.load();
        int seat = take_seat(workers);
        for (int spin = 0; !seat && spin < SPINS; ++spin) {
            pause(spin);
            seat = take_seat(workers);
        }
        if (!seat) {
            sleep_while(workers.offer_epoch, offer, nullptr);
            continue;
        }
        workers.launch->run_ranges(workers.scratch[seat], false);
        // Sequentially consistent with wait_for_workers: either it sees this worker has left, or
        // this worker sees that it waits.
        workers.num_finished.fetch_add(1);
        if (workers.caller_waits.load()) wake(workers.num_finished, 1);
    }
}

// Starts the missing workers; returns the number of workers, up to `num_wanted`.
int start_workers(Workers& workers, int num_wanted) {
    if (workers.num_started >= num_wanted) return num_wanted;
    SignalsBlocked blocked;
    if (sched_getaffinity(0, sizeof workers.affinity, &workers.affinity) != 0)
        CPU_ZERO(&workers.affinity);
    workers.avoided_cpu = -1;
    try {
        for (; workers.num_started < num_wanted; ++workers.num_started) {
            std::thread worker(worker_main);
            workers.threads[workers.num_started] = worker.native_handle();
            worker.detach();
        }
    } catch (const std::exception&) { // no more threads for this process: fewer do it too
    }
    return workers.num_started;
}

// Keeps workers away from the caller's processor, if processors are few. A scheduler may wake a
// worker on the caller's processor, though another is idle. Both would share it for milliseconds,
// until the scheduler balances the load.
void avoid_caller_cpu(Workers& workers, int num_wanted) {
    int cpu = sched_getcpu();
    if (cpu == workers.avoided_cpu || cpu < 0 || cpu >= CPU_SETSIZE) return;
    if (2 * num_wanted < CPU_COUNT(&workers.affinity)) return;
    cpu_set_t others = workers.affinity;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0) return;
    for (int i = 0; i < workers.num_started; ++i)
        pthread_setaffinity_np(workers.threads[i], sizeof others, &others); // if it may: advice
    workers.avoided_cpu = cpu;
}

} // namespace

Launch::Launch(const Work& work)
    : work_(work), caller_scratch_(ThreadLocal<Scratch>::get()),
      ranges_(work.units <= 0 ? 0 : (work.units - 1) / work.grain + 1),
      epoch_(worker_pool->epoch.load(std::memory_order_relaxed)),
      fork_count_(worker_pool->fork_count.load(std::memory_order_relaxed)) {
    worker_pool->num_launches.fetch_add(1, std::memory_order_relaxed);
}

void Launch::unregister() {
    bool was_registered = std::exchange(is_registered_, false);
    if (was_registered && worker_pool->fork_count.load(std::memory_order_relaxed) == fork_count_)
        worker_pool->num_launches.fetch_sub(1, std::memory_order_release);
}

bool Launch::is_stopped() const {
    return cancelled_.load(std::memory_order_relaxed) ||
           status_.load(std::memory_order_relaxed) != 0 ||
           worker_pool->epoch.load(std::memory_order_relaxed) != epoch_;
}

namespace {

int64_t call_kernel(const Work& work, void* scratch, int64_t begin, int64_t end) {
    FloatControl control;
    return HostKernel::call(work.kernel, work.buffers.data(), work.sizes.data(),
                            work.scalars.data(), scratch, begin, end);
}

} // namespace

Result run_brief(const Work& work) {
    if (work.units <= 0) return {};
    Scratch& scratch = ThreadLocal<Scratch>::get();
    if (!scratch.grow(work.scratch)) return {Outcome::no_memory, 0};
    return {Outcome::done, call_kernel(work, scratch.memory(), 0, work.units)};
}

void Launch::run_range(int64_t range, void* scratch) {
    int64_t begin = range * work_.grain;
    int64_t end = begin + std::min(work_.grain, work_.units - begin);
    int64_t status = call_kernel(work_, scratch, begin, end);
    if (status == 0) return;
    int64_t current = status_.load(std::memory_order_relaxed);
    while ((current == 0 || status < current) &&
           !status_.compare_exchange_weak(current, status, std::memory_order_relaxed)) {}
}

void Launch::run_ranges(const Scratch& scratch, bool caller) {
    // Looked at before a range is claimed, never after: below a range that failed all are claimed,
    // and run.
    while (!is_stopped()) {
        int64_t range = next_.fetch_add(1, std::memory_order_relaxed);
        if (range >= ranges_) return;
        run_range(range, scratch.memory()); // a Launch in ask() may have moved it
        if (caller && ranges_ > 1) poll_interrupt();
    }
}

void Launch::poll_interrupt() {
    if (!work_.interrupted) return;
    int64_t time = now();
    if (last_poll_ns_ == 0) last_poll_ns_ = time;
    if (time - last_poll_ns_ < POLL_INTERVAL_NS) return;
    bool cancel = work_.interrupted(work_.context);
    // A signal handler forked, and this is the child: the ranges of the workers stay unfinished.
    cancel |= shared_ && worker_pool->fork_count.load(std::memory_order_relaxed) != fork_count_;
    if (cancel) cancelled_.store(true, std::memory_order_relaxed);
    last_poll_ns_ = now();
}

void Launch::wait_for_workers(int count) {
    Workers& workers = *worker_pool;
    auto all_finished = [&] { return int(workers.num_finished.load()) == count; };
    for (int spin = 0; spin < SPINS; ++spin) {
        if (all_finished()) return;
        pause(spin);
    }
    workers.caller_waits.store(true);
    const timespec timeout{0, POLL_INTERVAL_NS};
    while (workers.fork_count.load(std::memory_order_relaxed) == fork_count_ && !all_finished()) {
        uint32_t num_finished = workers.num_finished.load();
        if (int(num_finished) != count) sleep_while(workers.num_finished, num_finished, &timeout);
        poll_interrupt();
    }
    workers.caller_waits.store(false);
}

// Runs on this thread and up to `wanted` workers; false when another Launch has them.
bool Launch::run_on_workers(int num_workers) {
    Workers& workers = *worker_pool;
    if (workers.busy.exchange(true, std::memory_order_acquire)) return false;
    for (int seat = 1; seat <= num_workers && !no_memory_; ++seat)
        no_memory_ = !workers.scratch[seat].grow(work_.scratch);
    if (no_memory_) {
        workers.busy.store(false, std::memory_order_release);
        return true;
    }
    shared_ = true;
    num_workers = start_workers(workers, num_workers);
    avoid_caller_cpu(workers, num_workers);
    workers.launch = this;
    workers.num_finished.store(0, std::memory_order_relaxed);
    workers.num_free_seats.store(num_workers, std::memory_order_release);
    workers.offer_epoch.fetch_add(1);
    wake(workers.offer_epoch, num_workers);
    run_ranges(caller_scratch_, true);
    if (workers.fork_count.load(std::memory_order_relaxed) != fork_count_) return true;
    int num_unclaimed = workers.num_free_seats.exchange(0, std::memory_order_relaxed);
    wait_for_workers(num_workers - num_unclaimed);
    if (workers.fork_count.load(std::memory_order_relaxed) == fork_count_)
        workers.busy.store(false, std::memory_order_release);
    return true;
}

Result Launch::run() {
    if (!caller_scratch_.grow(work_.scratch)) return {Outcome::no_memory, 0};
    int64_t max_threads = std::min<int64_t>({ranges_, work_.threads, threads()});
    if (max_threads < 2 || !run_on_workers(int(max_threads) - 1)) run_ranges(caller_scratch_, true);
    if (no_memory_) return {Outcome::no_memory, 0};
    int64_t status = status_.load(std::memory_order_relaxed);
    bool unfinished = status == 0 && next_.load(std::memory_order_relaxed) < ranges_;
    bool cancelled = cancelled_.load(std::memory_order_relaxed) || unfinished;
    return {cancelled ? Outcome::cancelled : Outcome::done, status};
}

void set_threads(int threads) {
    worker_pool->limit.store(std::clamp(threads, 1, MAX_THREADS), std::memory_order_relaxed);
}

int threads() { return worker_pool->limit.load(std::memory_order_relaxed); }

void cancel_launches() {
    worker_pool->epoch.fetch_add(1, std::memory_order_relaxed);
    const timespec poll_delay{0, 1'000'000};
    for (int64_t start = now(); now() - start < MAX_CANCEL_WAIT_NS; nanosleep(&poll_delay, nullptr))
        if (worker_pool->num_launches.load(std::memory_order_acquire) <= 0) return;
}

} // namespace tenfold
