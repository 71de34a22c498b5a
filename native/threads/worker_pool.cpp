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
#include "threads/thread_local.h"

namespace tenfold {

// Kept and grown.
class Scratch {
  public:
    ~Scratch() {
        if (memory_) pool_free(memory_, bytes_);
    }
    bool grow(std::size_t bytes) {
        if (bytes <= bytes_ && !(bytes && guard_pages())) return true;
        bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; // kernels rely on it
        void* memory = pool_allocate(bytes);
        if (!memory) return false;
        if (memory_) pool_free(memory_, bytes_);
        memory_ = memory;
        bytes_ = bytes;
        return true;
    }
    void forget() {
        memory_ = nullptr;
        bytes_ = 0;
    }
    void* memory() const { return memory_; }

  private:
    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
};

namespace {

constexpr int MOST_THREADS = 1024;
constexpr int64_t INTERVAL = 25'000'000; // nanoseconds between two looks for an interrupt
constexpr int64_t LONGEST_END = 1'000'000'000;
// About 40 us: a sleeper takes as long to wake up, and the next kernel of a plan is there sooner.
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

// No Lock and no condition variable: every state of these is one that a fork may copy. `busy` is
// held by the thread whose Launch has the workers; it alone writes what is not atomic.
struct Workers {
    std::atomic<bool> busy{false}; // acquire, release: hands over the plain members
    Launch* launch = nullptr;
    Scratch scratch[MOST_THREADS]; // by seat: which worker allocates must not depend on arrival
    int started = 0;
    pthread_t threads[MOST_THREADS];
    cpu_set_t home;   // the processors of the thread that started them; none where unknown
    int avoided = -1; // the one that they keep away from
    // A worker takes part when it takes a seat (acquire: it sees launch and scratch as of the
    // release that offered it), and is counted in `left` (release: the caller sees its writes).
    std::atomic<int> seats{0};
    std::atomic<uint32_t> left{0};
    std::atomic<uint32_t> offers{0}; // workers sleep until it changes
    std::atomic<bool> awaited{false};
    std::atomic<int> limit{1};    // relaxed: a number
    std::atomic<int> launches{0}; // relaxed: only cancel_launches() looks, again and again
    std::atomic<uint32_t> era{0}, forks{0}; // relaxed: who misses a change sees it a range later
};

Workers* const the_workers = new Workers; // outlives the threads, which end with the process

using Word = std::atomic<uint32_t>;

void sleep_while(Word& word, uint32_t value, const timespec* longest) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, longest, nullptr, 0);
}

void wake(Word& word, int sleepers) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

// The child of a fork has one thread, whatever the workers were doing. A Scratch may have been in
// the middle of growing, so none is trusted.
void forget_workers() {
    Workers& workers = *the_workers;
    for (Scratch& scratch : workers.scratch) scratch.forget();
    workers.launch = nullptr;
    workers.started = 0;
    workers.avoided = -1;
    workers.seats = 0;
    workers.launches = 0;
    ++workers.forks;
    workers.busy = false;
}

// At load, not at first use: a static that another thread is making stays half made in a child.
const int registered = pthread_atfork(nullptr, nullptr, forget_workers);

// Round to nearest, subnormals kept, no traps: what kernels are compiled for, whatever a foreign
// library left behind.
class FloatControl {
  public:
    FloatControl() : before_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
    ~FloatControl() { _mm_setcsr(before_); }

  private:
    unsigned before_;
};

// Signals are for Python's threads; faults are the worker's own.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t blocked;
        sigfillset(&blocked);
        for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
            sigdelset(&blocked, own);
        pthread_sigmask(SIG_SETMASK, &blocked, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

// The number of a seat, counted from 1, or 0.
int take_seat(Workers& workers) {
    int seat = workers.seats.load(std::memory_order_relaxed);
    while (seat > 0 && !workers.seats.compare_exchange_weak(
                           seat, seat - 1, std::memory_order_acquire, std::memory_order_relaxed)) {}
    return std::max(seat, 0);
}

void be_worker() {
    Workers& workers = *the_workers;
    for (;;) {
        uint32_t offer = workers.offers.load();
        int seat = take_seat(workers);
        for (int spin = 0; !seat && spin < SPINS; ++spin) {
            pause(spin);
            seat = take_seat(workers);
        }
        if (!seat) {
            sleep_while(workers.offers, offer, nullptr);
            continue;
        }
        workers.launch->take_part(workers.scratch[seat], false);
        // Sequentially consistent with wait_for_workers: either it sees this worker has left, or
        // this worker sees that it waits.
        workers.left.fetch_add(1);
        if (workers.awaited.load()) wake(workers.left, 1);
    }
}

// Starts what is missing; the workers there are, up to `wanted`.
int start_workers(Workers& workers, int wanted) {
    if (workers.started >= wanted) return wanted;
    SignalsBlocked blocked;
    if (sched_getaffinity(0, sizeof workers.home, &workers.home) != 0) CPU_ZERO(&workers.home);
    workers.avoided = -1;
    try {
        for (; workers.started < wanted; ++workers.started) {
            std::thread worker(be_worker);
            workers.threads[workers.started] = worker.native_handle();
            worker.detach();
        }
    } catch (const std::exception&) { // no more threads for this process: fewer do it too
    }
    return workers.started;
}

// Keeps workers away from the caller's processor, where it is one of few. A scheduler may wake a
// worker where it ran last, which is there, though another processor is idle: until it looks again,
// milliseconds later, both would take turns.
void make_way(Workers& workers, int wanted) {
    int here = sched_getcpu();
    if (here == workers.avoided || here < 0 || here >= CPU_SETSIZE) return;
    if (2 * wanted < CPU_COUNT(&workers.home)) return;
    cpu_set_t others = workers.home;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) == 0) return;
    for (int i = 0; i < workers.started; ++i)
        pthread_setaffinity_np(workers.threads[i], sizeof others, &others); // if it may: advice
    workers.avoided = here;
}

} // namespace

Launch::Launch(const Work& work)
    : work_(work), own_(ThreadLocal<Scratch>::get()),
      ranges_(work.units <= 0 ? 0 : (work.units - 1) / work.grain + 1),
      era_(the_workers->era.load(std::memory_order_relaxed)),
      forks_(the_workers->forks.load(std::memory_order_relaxed)) {
    the_workers->launches.fetch_add(1, std::memory_order_relaxed);
}

void Launch::leave() {
    bool counted = std::exchange(counted_, false);
    if (counted && the_workers->forks.load(std::memory_order_relaxed) == forks_)
        the_workers->launches.fetch_sub(1, std::memory_order_release);
}

bool Launch::stopped() const {
    return cancelled_.load(std::memory_order_relaxed) ||
           status_.load(std::memory_order_relaxed) != 0 ||
           the_workers->era.load(std::memory_order_relaxed) != era_;
}

void Launch::run_range(int64_t range, void* scratch) {
    int64_t begin = range * work_.grain;
    int64_t end = begin + std::min(work_.grain, work_.units - begin);
    FloatControl control;
    int64_t status = work_.kernel(work_.buffers, work_.sizes, work_.scalars, scratch, begin, end);
    if (status == 0) return;
    int64_t known = status_.load(std::memory_order_relaxed);
    while ((known == 0 || status < known) &&
           !status_.compare_exchange_weak(known, status, std::memory_order_relaxed)) {}
}

void Launch::take_part(const Scratch& scratch, bool caller) {
    // Looked at before a range is claimed, never after: below a range that failed all are claimed,
    // and run.
    while (!stopped()) {
        int64_t range = next_.fetch_add(1, std::memory_order_relaxed);
        if (range >= ranges_) return;
        run_range(range, scratch.memory()); // a Launch in ask() may have moved it
        if (caller && ranges_ > 1) ask();
    }
}

void Launch::ask() {
    if (!work_.interrupted) return;
    int64_t time = now();
    if (asked_ == 0) asked_ = time;
    if (time - asked_ < INTERVAL) return;
    bool cancel = work_.interrupted(work_.context);
    // A signal handler forked, and this is the child: the ranges of the workers stay unfinished.
    cancel |= shared_ && the_workers->forks.load(std::memory_order_relaxed) != forks_;
    if (cancel) cancelled_.store(true, std::memory_order_relaxed);
    asked_ = now();
}

void Launch::wait_for_workers(int count) {
    Workers& workers = *the_workers;
    auto all_left = [&] { return int(workers.left.load()) == count; };
    for (int spin = 0; spin < SPINS; ++spin) {
        if (all_left()) return;
        pause(spin);
    }
    workers.awaited.store(true);
    const timespec longest{0, INTERVAL};
    while (workers.forks.load(std::memory_order_relaxed) == forks_ && !all_left()) {
        uint32_t left = workers.left.load();
        if (int(left) != count) sleep_while(workers.left, left, &longest);
        ask();
    }
    workers.awaited.store(false);
}

// Runs on this thread and up to `wanted` workers; false when another Launch has them.
bool Launch::share(int wanted) {
    Workers& workers = *the_workers;
    if (workers.busy.exchange(true, std::memory_order_acquire)) return false;
    for (int seat = 1; seat <= wanted && !no_memory_; ++seat)
        no_memory_ = !workers.scratch[seat].grow(work_.scratch);
    if (no_memory_) {
        workers.busy.store(false, std::memory_order_release);
        return true;
    }
    shared_ = true;
    wanted = start_workers(workers, wanted);
    make_way(workers, wanted);
    workers.launch = this;
    workers.left.store(0, std::memory_order_relaxed);
    workers.seats.store(wanted, std::memory_order_release);
    workers.offers.fetch_add(1);
    wake(workers.offers, wanted);
    take_part(own_, true);
    if (workers.forks.load(std::memory_order_relaxed) != forks_) return true;
    int unused = workers.seats.exchange(0, std::memory_order_relaxed);
    wait_for_workers(wanted - unused);
    if (workers.forks.load(std::memory_order_relaxed) == forks_)
        workers.busy.store(false, std::memory_order_release);
    return true;
}

Result Launch::run() {
    if (!own_.grow(work_.scratch)) return {Outcome::no_memory, 0};
    int64_t most = std::min<int64_t>({ranges_, work_.threads, threads()});
    if (most < 2 || !share(int(most) - 1)) take_part(own_, true);
    if (no_memory_) return {Outcome::no_memory, 0};
    int64_t status = status_.load(std::memory_order_relaxed);
    bool unfinished = status == 0 && next_.load(std::memory_order_relaxed) < ranges_;
    bool cancelled = cancelled_.load(std::memory_order_relaxed) || unfinished;
    return {cancelled ? Outcome::cancelled : Outcome::done, status};
}

void set_threads(int threads) {
    the_workers->limit.store(std::clamp(threads, 1, MOST_THREADS), std::memory_order_relaxed);
}

int threads() { return the_workers->limit.load(std::memory_order_relaxed); }

void cancel_launches() {
    the_workers->era.fetch_add(1, std::memory_order_relaxed);
    const timespec moment{0, 1'000'000};
    for (int64_t start = now(); now() - start < LONGEST_END; nanosleep(&moment, nullptr))
        if (the_workers->launches.load(std::memory_order_acquire) <= 0) return;
}

} // namespace tenfold
