// Lock test: one holder at a time, waiters that get their turn, and a forked child with free Locks.
// The data that the locks protect is whole in the child.
#include "threads/fork_safe_lock.h"

#include <chrono>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.h"

using namespace tenfold;

namespace {

// Two numbers that are equal whenever the Lock is free.
struct Pair {
    Lock lock;
    int64_t first = 0, second = 0;

    void raise() {
        Guard guard(lock);
        ++first;
        ++second;
    }
    bool is_whole() {
        Guard guard(lock);
        return first == second;
    }
};

std::vector<std::thread> started(int count, const auto& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back(work);
    return threads;
}

void join(std::vector<std::thread>& threads) {
    for (std::thread& thread : threads) thread.join();
}

// Whether a child in which this runs ends well.
bool in_child(const auto& work) {
    pid_t child = fork();
    if (child == 0) {
        alarm(10); // a Lock that never opens ends the child, not the test
        _exit(work() ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

static void one_thread_holds_it_at_a_time() {
    constexpr int THREADS = 8, TIMES = 20'000;
    Pair pair;
    auto threads = started(THREADS, [&] {
        for (int i = 0; i < TIMES; ++i) pair.raise();
    });
    join(threads);
    CHECK(pair.first == THREADS * TIMES && pair.second == THREADS * TIMES);
}

static void waiters_get_their_turn_after_a_long_one() {
    Lock lock;
    std::atomic<int> coming{0}, inside{0};
    int turns = 0;
    lock.lock();
    auto threads = started(4, [&] {
        ++coming;
        Guard guard(lock);
        ++inside;
        ++turns;
    });
    while (coming < 4) std::this_thread::yield();
    // Until they sleep between polls; correctness does not depend on the delay.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(inside == 0);
    lock.unlock();
    join(threads);
    CHECK(turns == 4);
    Guard guard(lock); // and it is free
}

static void all_locks_are_held_and_given_back() {
    Pair one, other;
    std::atomic<int> raised{0};
    lock_all();
    auto threads = started(3, [&] {
        one.raise();
        other.raise();
        ++raised;
    });
    std::thread maker([] { Lock result; }); // waits until it can be registered
    CHECK(one.first == 0 && other.first == 0 && raised == 0);
    ++one.first; // no other thread is in it
    ++one.second;
    unlock_all();
    join(threads);
    maker.join();
    CHECK(one.first == 4 && other.first == 3 && one.is_whole() && other.is_whole());
}

static void destroyed_locks_are_not_held() {
    auto gone = std::make_unique<Pair>();
    gone->raise();
    gone.reset();
    for (int i = 0; i < 3; ++i) {
        lock_all();
        unlock_all();
    }
}

static void fork_waits_for_the_holder() {
    Pair pair;
    std::atomic<bool> holds{false}, forked{false};
    std::thread holder([&] {
        {
            Guard guard(pair.lock);
            ++pair.first;
            holds = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the fork comes meanwhile
            ++pair.second;
        }
        while (!forked) std::this_thread::yield(); // a sanitizer's child does not see ended threads
    });
    while (!holds) std::this_thread::yield();
    CHECK(in_child([&] { return pair.is_whole() && pair.first == 1; }));
    forked = true;
    holder.join();
    CHECK(pair.is_whole());
}

static void children_find_what_busy_threads_share_whole() {
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < 8; ++i) pairs.push_back(std::make_unique<Pair>());
    std::atomic<bool> stop{false};
    auto threads = started(3, [&] {
        for (std::size_t i = 0; !stop; ++i) {
            pairs[i % pairs.size()]->raise();
            Pair short_lived; // forks come between its constructor and destructor too
            short_lived.raise();
        }
    });
    for (int round = 0; round < 50; ++round) {
        CHECK(in_child([&] {
            for (const auto& pair : pairs) {
                if (!pair->is_whole()) return false;
                pair->raise();
            }
            lock_all(); // those of the child's own forks
            unlock_all();
            return true;
        }));
        CHECK(pairs[0]->is_whole()); // and the parent's are free again
    }
    stop = true;
    join(threads);
}

int main() {
    register_fork_handlers();
    register_fork_handlers(); // the handlers are registered once: else a fork would wait for itself
    one_thread_holds_it_at_a_time();
    waiters_get_their_turn_after_a_long_one();
    all_locks_are_held_and_given_back();
    destroyed_locks_are_not_held();
    fork_waits_for_the_holder();
    children_find_what_busy_threads_share_whole();
}
