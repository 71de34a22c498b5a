// Worker pool test: every unit once, the smallest failure, scratch per thread, interrupts and
// forks. It also has several launches at once, and the float mode.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <immintrin.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.h"
#include "memory/allocation_pool.h"
#include "threads/cpu_device.h"
#include "threads/worker_pool.h"

using namespace tenfold;

namespace {

using BulkRef = std::vector<std::atomic<int>>;

template <class Function>
Work work_of(Function kernel, std::span<void* const> buffers, int64_t units, int64_t grain,
             int threads) {
    Work work;
    work.kernel = HostKernel(kernel);
    work.buffers = buffers;
    work.units = units;
    work.grain = grain;
    work.threads = threads;
    return work;
}

Result run(const Work& work) { return Launch(work).run(); }

int64_t count_units(void** buffers, const int64_t*, const double*, void*, int64_t begin,
                    int64_t end) {
    auto& counts = *static_cast<BulkRef*>(buffers[0]);
    for (int64_t i = begin; i < end; ++i) ++counts[std::size_t(i)];
    return 0;
}

// Units are those of the one launch, whatever others do meanwhile.
void count_once(int64_t units, int64_t grain, int threads) {
    BulkRef counts(std::size_t(units) + 1);
    void* buffers[] = {&counts};
    Result result = run(work_of(count_units, buffers, units, grain, threads));
    CHECK(result.outcome == Outcome::done && result.status == 0);
    CHECK(counts.back() == 0);
    counts.back() = 1;
    for (std::atomic<int>& count : counts) CHECK(count == 1);
}

void every_unit_runs_once() {
    for (int threads : {1, 2, 3, 8})
        for (int64_t units : {0, 1, 2, 63, 64, 1000})
            for (int64_t grain : {1, 7, 64, 5000}) count_once(units, grain, threads);
}

void largest_sizes_do_not_overflow() {
    auto kernel = [](void** buffers, const int64_t*, const double*, void*, int64_t begin,
                     int64_t end) -> int64_t {
        static_cast<std::atomic<int64_t>*>(buffers[0])->fetch_add(end - begin);
        return 0;
    };
    for (int64_t grain : {INT64_MAX, INT64_MAX - 1, INT64_MAX / 5}) {
        std::atomic<int64_t> total{0};
        void* buffers[] = {&total};
        CHECK(run(work_of(kernel, buffers, INT64_MAX, grain, 4)).outcome == Outcome::done);
        CHECK(total == INT64_MAX);
    }
}

struct Failing {
    int64_t first, second; // the units that fail
    std::atomic<int64_t> ran{0};
};

int64_t fail_at(void** buffers, const int64_t*, const double*, void*, int64_t begin, int64_t end) {
    auto& failing = *static_cast<Failing*>(buffers[0]);
    failing.ran += end - begin;
    for (int64_t i = begin; i < end; ++i)
        if (i == failing.first || i == failing.second) return i + 1;
    return 0;
}

void smallest_failure_is_the_status() {
    for (int threads : {1, 2, 4})
        for (int64_t first = 0; first < 200; first += 13) {
            Failing failing{first, first + 5};
            void* buffers[] = {&failing};
            Result result = run(work_of(fail_at, buffers, 100'000, 3, threads));
            CHECK(result.outcome == Outcome::done && result.status == first + 1);
            CHECK(failing.ran >= first);
            CHECK(threads > 1 || failing.ran < first + 3 + 1);
        }
}

struct Block {
    int64_t used;
    char rest[1000];
};

void threads_have_scratch_of_their_own() {
    auto kernel = [](void**, const int64_t*, const double*, void* scratch, int64_t begin,
                     int64_t) -> int64_t {
        CHECK(reinterpret_cast<std::size_t>(scratch) % 64 == 0);
        auto& block = *static_cast<Block*>(scratch);
        block.used = begin;
        std::memset(block.rest, 1, sizeof block.rest);
        return block.used == begin ? 0 : begin + 1;
    };
    for (std::size_t bytes : {sizeof(Block), std::size_t(100'000), sizeof(Block)}) {
        Work work = work_of(kernel, {}, 10'000, 1, 4);
        work.scratch = bytes;
        CHECK(run(work).status == 0);
    }
}

void missing_scratch_is_reported_once() {
    BulkRef counts(11);
    void* buffers[] = {&counts};
    Work work = work_of(count_units, buffers, 10, 1, 3);
    work.scratch = 1 << 20;
    for (int64_t n = 1; n <= 3; ++n) { // the caller's, and those of two workers
        work.scratch *= 2;
        fail_allocation(n);
        CHECK(run(work).outcome == Outcome::no_memory);
        CHECK(std::all_of(counts.begin(), counts.end(), [](auto& count) { return count == 0; }));
    }
    CHECK(run(work).outcome == Outcome::done);
    std::size_t live = pool_statistics().live_bytes;
    for (int i = 0; i < 100; ++i) CHECK(run(work).outcome == Outcome::done);
    CHECK(pool_statistics().live_bytes == live);
}

struct Endless {
    std::atomic<int> inside{0};
    std::atomic<bool> asked{false};
};

int64_t nap(void** buffers, const int64_t*, const double*, void*, int64_t, int64_t) {
    auto& endless = *static_cast<Endless*>(buffers[0]);
    ++endless.inside;
    usleep(100);
    --endless.inside;
    return 0;
}

bool interrupt(void* context) {
    static_cast<Endless*>(context)->asked = true;
    return true;
}

void interrupt_cancels_and_the_next_launch_works() {
    for (int threads : {1, 4}) {
        Endless endless;
        void* buffers[] = {&endless};
        Work work = work_of(nap, buffers, int64_t(1) << 40, 1, threads);
        work.interrupted = interrupt;
        work.context = &endless;
        CHECK(run(work).outcome == Outcome::cancelled);
        CHECK(endless.asked && endless.inside == 0);
        count_once(1000, 3, threads);
    }
}

// The caller has nothing left to do, and still asks.
void interrupt_is_noticed_while_a_worker_runs() {
    struct Shared {
        std::thread::id caller = std::this_thread::get_id();
        std::atomic<bool> asked{false}, worker{false};
    } shared;
    auto kernel = [](void** buffers, const int64_t*, const double*, void*, int64_t,
                     int64_t) -> int64_t {
        auto& shared = *static_cast<Shared*>(buffers[0]);
        if (std::this_thread::get_id() == shared.caller) {
            while (!shared.worker) usleep(100); // of two ranges the worker takes the other
            return 0;
        }
        shared.worker = true;
        while (!shared.asked) usleep(100);
        return 0;
    };
    void* buffers[] = {&shared};
    Work work = work_of(kernel, buffers, 2, 1, 2);
    work.interrupted = [](void* context) {
        static_cast<Shared*>(context)->asked = true;
        return true;
    };
    work.context = &shared;
    CHECK(run(work).outcome == Outcome::cancelled);
}

void launches_of_several_threads_at_once() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            for (int i = 0; i < 300; ++i)
                count_once(200 + t * 10 + i % 7, 1 + i % 5, 1 + (i + t) % 4);
        });
    for (std::thread& thread : threads) thread.join();
}

void launch_inside_a_launch_works() {
    Endless endless;
    void* buffers[] = {&endless};
    Work work = work_of(nap, buffers, int64_t(1) << 40, 1, 3);
    work.scratch = 64;
    work.interrupted = [](void*) { // as a signal handler that computes
        count_once(1000, 10, 3);
        Work inner = work_of(nap, {}, 1, 1, 1);
        Endless endless;
        void* buffers[] = {&endless};
        inner.buffers = buffers;
        inner.scratch = 1 << 22; // this thread's scratch moves
        CHECK(run(inner).outcome == Outcome::done);
        return true;
    };
    CHECK(run(work).outcome == Outcome::cancelled);
}

void every_thread_has_the_default_float_mode() {
    auto kernel = [](void**, const int64_t*, const double*, void*, int64_t begin,
                     int64_t) -> int64_t {
        volatile double smallest = 5e-324, ten = 10;
        bool nearest = 1 / ten == 0.1, subnormals = smallest + smallest == 1e-323;
        return nearest && subnormals ? 0 : begin + 1;
    };
    unsigned before = _mm_getcsr();
    unsigned foreign = 0x1F80 | 0x8040 | 0x6000; // FTZ, DAZ, towards zero
    _mm_setcsr(foreign);
    for (int threads : {1, 2, 7}) { // the seventh is started by a thread in that mode
        set_threads(threads);
        CHECK(run(work_of(kernel, {}, 1000, 1, threads)).status == 0);
        CHECK(_mm_getcsr() == foreign);
    }
    _mm_setcsr(before);
    set_threads(4);
}

void compute_in_child() {
#if defined(__SANITIZE_THREAD__) // refuses threads started by the child of several
    count_once(1000, 10, 1);
#elif !defined(__SANITIZE_ADDRESS__) // its allocator may be locked in the child of a busy parent
    for (int i = 0; i < 3; ++i) count_once(1000, 10, 4);
#endif
}

// Children of a busy process compute, with workers of their own.
void forked_children_launch() {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
        threads.emplace_back([&] {
            while (!stop) count_once(500, 1, 3);
        });
    for (int round = 0; round < 40; ++round) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20); // a child that hangs is killed
            compute_in_child();
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
}

// A handler that forks in the middle of a launch: the child's is cut short, the parent's is whole.
void fork_inside_a_launch_cancels_the_childs() {
    static pid_t child = -1;
    BulkRef counts(2'001);
    auto kernel = [](void** buffers, const int64_t* sizes, const double* scalars, void* scratch,
                     int64_t begin, int64_t end) -> int64_t {
        usleep(100);
        return count_units(buffers, sizes, scalars, scratch, begin, end);
    };
    void* buffers[] = {&counts};
    Work work = work_of(kernel, buffers, 2'000, 1, 2);
    work.interrupted = [](void*) {
        if (child == -1) child = fork();
        return false;
    };
    Result result = run(work);
    if (child == 0) {
        alarm(20);
        CHECK(result.outcome == Outcome::cancelled);
        compute_in_child();
        _exit(0);
    }
    CHECK(child > 0 && result.outcome == Outcome::done);
    for (int i = 0; i < 2'000; ++i) CHECK(counts[std::size_t(i)] == 1);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

void end_cancels_the_launches_of_other_threads() {
    Endless endless;
    void* buffers[] = {&endless};
    std::atomic<bool> cancelled{false};
    std::thread thread([&] {
        Result result = run(work_of(nap, buffers, int64_t(1) << 40, 1, 3));
        cancelled = result.outcome == Outcome::cancelled;
    });
    while (endless.inside == 0) usleep(100);
    cancel_launches();
    CHECK(endless.inside == 0);
    thread.join();
    CHECK(cancelled);
    count_once(1000, 3, 4); // later launches run
}

} // namespace

int main() {
    CHECK(threads() == 1);
    every_unit_runs_once();
    set_threads(4);
    every_unit_runs_once();
    set_threads(8);
    every_unit_runs_once();
    set_threads(4);
    largest_sizes_do_not_overflow();
    smallest_failure_is_the_status();
    threads_have_scratch_of_their_own();
    missing_scratch_is_reported_once();
    interrupt_cancels_and_the_next_launch_works();
    interrupt_is_noticed_while_a_worker_runs();
    launches_of_several_threads_at_once();
    launch_inside_a_launch_works();
    every_thread_has_the_default_float_mode();
    forked_children_launch();
    fork_inside_a_launch_cancels_the_childs();
    end_cancels_the_launches_of_other_threads();
} // the workers sleep when the process ends
