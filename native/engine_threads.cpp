// The threads of an engine: workers, which are started when there is work, and callers that wait.
#include <algorithm>
#include <csignal>
#include <exception>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>

#include "engine.h"
#include "trace.h"

namespace tenfold {
namespace {

constexpr int64_t LOOK = 20'000'000; // nanoseconds a waiter sleeps at most before it looks again

timespec span_of(int64_t nanoseconds) {
    return {time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
}

} // namespace

bool Engine::can_run_now() const {
    return !parts_.empty() || !to_call_.empty() || due_ || !urgent_.empty() ||
           (loose_.empty() ? false : holds_ == 0 || loose_wanted_) ||
           (holds_ == 0 && !ready_.empty());
}

// Whether a worker is to be woken or started; who calls then does so once the Lock is free.
Engine::Wake Engine::needed() {
    bool now = can_run_now();
    bool soon = holds_ == 0 && (!active_.empty() || lazy_) && watchers_ == 0 && busy_ == 0;
    if ((!now && !soon) || stopping_) return nobody;
    if (sleepers_ > woken_) {
        ++woken_;
        signal_.fetch_add(1);
        return one;
    }
    if (woken_ > 0 && !now) return nobody;
    if (started_ == limits_.threads || (sleepers_ > 0 && woken_ > 0)) return nobody;
    ++started_;
    alive_.fetch_add(1);
    return another;
}

void Engine::call(Wake waking) {
    if (waking == one) wake(signal_, 1);
    if (waking == another) start_worker();
}

void Engine::start_worker() {
    sigset_t blocked, before; // signals are for Python's threads; faults are the worker's own
    sigfillset(&blocked);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&blocked, own);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    try {
        std::thread([this] { work(); }).detach();
    } catch (const std::exception&) { // no more threads for this process: fewer do it too
        Guard guard(lock_);
        --started_;
        alive_.fetch_sub(1);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// With the Lock, which is given away meanwhile.
void Engine::free_aside() {
    if (to_free_.empty()) return;
    std::vector<Ref<Future>> freed;
    freed.swap(to_free_);
    ++busy_;
    freeing_.fetch_add(1, std::memory_order_relaxed);
    lock_.unlock();
    freed.clear();
    freeing_.fetch_sub(1, std::memory_order_release);
    lock_.lock();
    --busy_;
}

// With the Lock, which is given away meanwhile. What is freed is freed while it counts as busy.
void Engine::run_picked(Job& job) {
    ++busy_;
    Wake waking = needed();
    lock_.unlock();
    call(waking);
    run(job);
    job = {};
    lock_.lock();
    --busy_;
}

void Engine::work() {
    prctl(PR_SET_TIMERSLACK, 1000); // nanoseconds by which a sleep may last longer
    prctl(PR_SET_NAME, "tenfold");
    lock_.lock();
    bool quiet = false;
    for (;;) {
        Job job = pick(false, quiet);
        if (job.kind != Job::nothing) {
            run_picked(job);
            free_aside();
            quiet = false;
            continue;
        }
        if (quiet && holds_ == 0 && lazy_) {
            Left left;
            demand_all(left);
            drop_unneeded(left);
            ++busy_;
            freeing_.fetch_add(1, std::memory_order_relaxed);
            lock_.unlock();
            wake_settled(left);
            left.free();
            freeing_.fetch_sub(1, std::memory_order_release);
            lock_.lock();
            --busy_;
            quiet = false;
            continue;
        }
        free_aside();
        rest();
        if (stopping_) break;
        bool watches = holds_ == 0 && (!active_.empty() || lazy_);
        uint64_t events = events_;
        uint32_t signal = signal_.load();
        timespec span = span_of(limits_.wait);
        ++sleepers_;
        watchers_ += watches;
        lock_.unlock();
        sleep_while(signal_, signal, watches ? &span : nullptr);
        lock_.lock();
        --sleepers_;
        watchers_ -= watches;
        woken_ = std::max(0, woken_ - 1);
        quiet = watches && events == events_ && signal == signal_.load();
    }
    bool last = ++ended_ == started_, orphan = orphan_;
    lock_.unlock();
    host_.leave();
    if (last && orphan) {
        while (alive_.load() > 1) sched_yield();
        delete this;
        outsiders.fetch_sub(1);
    } else {
        alive_.fetch_sub(1);
        wake(alive_, 1 << 30);
    }
}

void Engine::classify(Job& job) {
    host_.classify(*this, job);
    Left left;
    {
        Guard guard(lock_);
        freeing_.fetch_add(1, std::memory_order_relaxed);
        for (std::size_t i = 0; i < job.members.size(); ++i) {
            Future& future = *job.members[i];
            if (job.answers[i].failure) {
                fail(future, std::move(job.answers[i].failure), left);
            } else {
                bool user = future.operation->kind == Operation::batched;
                Batcher* batcher = user ? batcher_of(job.signatures[i]) : classified(future);
                future.batcher = batcher ? batcher : batcher_of({});
                make_ready(future);
                left.look.push_back(&future); // its last handle may have gone meanwhile
            }
            left.futures.push_back(std::move(job.members[i]));
        }
        drop_unneeded(left);
    }
    wake_settled(left);
    left.free();
    freeing_.fetch_sub(1, std::memory_order_release);
}

namespace {

Traced traced_step(const Job& job) {
    const Operation& operation = *job.members[0]->operation;
    bool kernel =
        job.kind == Job::rows || (operation.kind == Operation::fold && operation.plain_add);
    const char* category = kernel                              ? "kernel"
                           : operation.kind >= Operation::user ? "operator"
                                                               : "call";
    Traced event{operation.name, category, nanoseconds_now(), 0, this_pthread(), {}, {}};
    for (const Ref<Future>& member : job.members) {
        event.operators.push_back(member->engine->traced_number(*member));
        event.depth += member->depth;
    }
    event.depth /= double(job.members.size());
    return event;
}

} // namespace

// What rows cannot compute, Python can, or says why not.
void Engine::run_rest(Job& job) {
    Job rest;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        if (!job.answers[i].empty()) continue;
        rest.members.push_back(job.members[i]);
        places.push_back(i);
    }
    if (places.empty()) return;
    rest.kind = Job::python;
    rest.answers.resize(places.size());
    host_.run(*this, rest);
    for (std::size_t i = 0; i < places.size(); ++i)
        job.answers[places[i]] = std::move(rest.answers[i]);
}

void Engine::run(Job& job) {
    if (job.kind == Job::callbacks) return host_.call(*this, job);
    if (job.kind == Job::classify) return classify(job);
    job.answers.resize(job.members.size());
    bool traced = tracing.load(std::memory_order_relaxed);
    Traced event;
    if (traced) event = traced_step(job);
    if (job.kind == Job::rows) {
        run_rows(*job.batcher->rows, job.members, job.answers);
        run_rest(job);
    } else {
        Future& first = *job.members[0];
        const Operation& operation = *first.operation;
        const Rows* rows = nullptr;
        if (operation.kind == Operation::fold && operation.plain_add)
            if (const Type* type = first.inputs().back().input->type) rows = rows_for_sums(*type);
        if (rows) job.answers[0] = run_fold(*rows, *first.inputs().back().input->type, first);
        if (job.answers[0].empty()) host_.run(*this, job);
    }
    Left left;
    TracedLevel level{};
    if (traced) event.end = nanoseconds_now();
    if (traced) trace(std::move(event)); // before anybody sees that it has ended
    {
        Guard guard(lock_);
        freeing_.fetch_add(1, std::memory_order_relaxed);
        finish(job, left);
        level = {0, live_bytes_.load(std::memory_order_relaxed),
                 live_objects_.load(std::memory_order_relaxed), pending_count_};
    }
    level.time = traced ? nanoseconds_now() : 0;
    if (traced) trace(level);
    wake_settled(left);
    left.free();
    freeing_.fetch_sub(1, std::memory_order_release);
}

void Engine::wait_for_freeing() {
    if (is_of_parent()) return;
    Heap ready, urgent; // of what was taken from the other one, or has ended
    lock_.lock();
    if (pending_count_ == 0) {
        std::swap(ready_, ready);
        std::swap(urgent_, urgent);
    }
    free_aside();
    rest();
    lock_.unlock();
    while (freeing_.load(std::memory_order_acquire) > 0) sched_yield();
}

const Rows* Engine::rows_for_sums(const Type& type) {
    if (!add_) return nullptr;
    std::array<Type*, 2> types{const_cast<Type*>(&type), const_cast<Type*>(&type)};
    Guard guard(lock_);
    Batcher* found = batcher_of(signature_of(add_->op, types));
    return found && found->rows ? &*found->rows : nullptr;
}

// Outside of Python: a thread that waits.
bool Engine::wait(Future& future, int64_t longest) {
    int64_t until = nanoseconds_now() + longest;
    for (;;) {
        if (future.is_settled()) return true;
        lock_.lock();
        Job job = pick(true, false);
        bool ran = job.kind != Job::nothing;
        if (ran) run_picked(job);
        free_aside();
        rest();
        Wake waking = needed();
        lock_.unlock();
        call(waking);
        int64_t remains = until - nanoseconds_now();
        if (remains <= 0) return future.is_settled();
        if (ran) continue;
        uint32_t state = Future::pending;
        future.settlement.compare_exchange_strong(state, Future::awaited);
        if (state == Future::settled) return true;
        timespec span = span_of(std::min(remains, LOOK));
        sleep_while(future.settlement, Future::awaited, &span);
    }
}

bool Engine::stop(int64_t longest) {
    if (is_of_parent()) return true;
    {
        Guard guard(lock_);
        closed_ = stopping_ = true;
        signal_.fetch_add(1);
    }
    wake(signal_, 1 << 30);
    int64_t until = nanoseconds_now() + longest;
    for (;;) {
        uint32_t alive = alive_.load();
        int64_t remains = until - nanoseconds_now();
        if (alive == 0 || remains <= 0) return alive == 0;
        timespec span = span_of(std::min(remains, LOOK));
        sleep_while(alive_, alive, &span);
    }
}

} // namespace tenfold
