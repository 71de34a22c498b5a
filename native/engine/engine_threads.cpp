// Engine threads: workers, which are started when there is work, and callers that wait.
#include <algorithm>
#include <csignal>
#include <exception>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>

#include "engine/engine.h"
#include "engine/timeline.h"
#include "exec/float_env.h"

namespace tenfold {
namespace {

constexpr int64_t LOOK = 20'000'000; // nanoseconds a waiter sleeps at most before it looks again
constexpr int64_t TIDY = 1'000'000;  // nanoseconds without work after which Python's objects go

timespec span_of(int64_t nanoseconds) {
    return {time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
}

} // namespace

bool Engine::can_run_now() const {
    return !parts_.empty() || !to_call_.empty() || due_ || !urgent_.empty() ||
           (loose_.empty() ? false : holds_ == 0 || loose_wanted_) ||
           (holds_ == 0 && !ready_.empty());
}

// Whether a worker is to be woken or started; the caller does so once the Lock is free.
Engine::Wake Engine::needed() {
    bool now = can_run_now();
    bool soon = holds_ == 0 && (!active_.empty() || lazy_) && watchers_ == 0 && busy_ == 0;
    if ((!now && !soon) || stopping_) return no_worker;
    if (sleepers_ > woken_) {
        ++woken_;
        signal_.fetch_add(1);
        return one;
    }
    if (woken_ > 0 && !now) return no_worker;
    if (started_ == limits_.threads || (sleepers_ > 0 && woken_ > 0)) return no_worker;
    ++started_;
    alive_.fetch_add(1);
    return another;
}

void Engine::call(Wake waking) {
    if (waking == one) host_.wake(signal_, 1);
    if (waking != another || host_.start(*this)) return;
    Guard guard(lock_); // fewer do it too
    --started_;
    alive_.fetch_sub(1);
}

bool Host::start(Engine& engine) {
    sigset_t blocked, before; // signals are for Python's threads; faults are the worker's own
    sigfillset(&blocked);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&blocked, own);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool started = true;
    try {
        std::thread([&engine] { engine.work(); }).detach();
    } catch (const std::exception&) { // no more threads for this process
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

void Host::wake(Word& word, int sleepers) { tenfold::wake(word, sleepers); }

// With the Lock. Who frees it counts as busy until then.
void Engine::take_aside(Left& left) {
    std::move(to_free_.begin(), to_free_.end(), std::back_inserter(left.futures));
    to_free_.clear();
    freeing_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::step(Worker& worker) {
    switch (worker.next) {
    case Worker::look:
    case Worker::sleep: return look(worker);
    case Worker::compute: return compute(worker);
    case Worker::finish: return finish(worker);
    case Worker::free: return free(worker);
    case Worker::tidy: return tidy(worker);
    case Worker::leave: return leave(worker);
    case Worker::gone: return;
    }
}

// Deferred frees come before the search for work. They can make work ready without a signal to the
// workers that are awake.
void Engine::look(Worker& worker) {
    Wake waking = no_worker;
    {
        Guard guard(lock_);
        if (worker.next == Worker::sleep && !worker.helps) {
            --sleepers_;
            watchers_ -= worker.watches;
            woken_ = std::max(0, woken_ - 1);
            worker.quiet = worker.watches && worker.events == events_ && may_sleep(worker);
        }
        busy_ -= worker.busy;
        worker.busy = true;
        worker.next = Worker::free;
        if (to_free_.empty()) worker.job = pick(worker.helps, worker.quiet);
        if (worker.job.kind != Job::nothing) {
            ++busy_;
            worker.quiet = false;
            worker.next = Worker::compute;
            ran_ = true;
            waking = needed();
        } else if (!to_free_.empty()) {
            ++busy_;
            worker.quiet = false;
            ran_ = true;
            take_aside(worker.left);
        } else if (worker.quiet && holds_ == 0 && lazy_) {
            ++busy_;
            worker.quiet = false;
            demand_all(worker.left);
            drop_unneeded(worker.left);
            freeing_.fetch_add(1, std::memory_order_relaxed);
        } else if (worker.quiet && ran_ && host_.untidy()) {
            ++busy_;
            ran_ = worker.quiet = false;
            worker.next = Worker::tidy;
        } else {
            worker.busy = false;
            rest();
            fall_asleep(worker);
            if (worker.helps) waking = needed();
        }
    }
    call(waking);
}

// With the Lock. Who waits and helps sleeps elsewhere.
void Engine::fall_asleep(Worker& worker) {
    worker.next = Worker::sleep;
    if (worker.helps) return;
    if (stopping_) {
        worker.next = Worker::leave;
        return;
    }
    worker.watches = holds_ == 0 && (!active_.empty() || lazy_);
    worker.longest = worker.watches ? limits_.wait : TIDY;
    worker.watches |= ran_ && host_.untidy();
    worker.events = events_;
    worker.signal = signal_.load();
    ++sleepers_;
    watchers_ += worker.watches;
}

void Engine::free(Worker& worker) {
    worker.next = Worker::look;
    wake_settled(worker.left);
    worker.job = {};
    worker.left.free();
    freeing_.fetch_sub(1, std::memory_order_release);
}

void Engine::tidy(Worker& worker) {
    worker.next = Worker::look;
    host_.tidy();
}

// The last worker of an engine without references deletes it.
void Engine::leave(Worker& worker) {
    worker.next = Worker::gone;
    host_.leave();
    Word& alive = alive_;
    bool deletes = false;
    {
        Guard guard(lock_);
        deletes = alive.fetch_sub(1) == 1 && orphan_;
    }
    tenfold::wake(alive, 1 << 30); // another thread may have deleted it: only its address is used
    if (!deletes) return;
    delete this;
    outsiders.fetch_sub(1);
}

void Engine::work() {
    prctl(PR_SET_TIMERSLACK, 1000); // nanoseconds by which a sleep may last longer
    prctl(PR_SET_NAME, "tenfold");
    Worker worker;
    do {
        timespec span = span_of(worker.longest);
        if (worker.next == Worker::sleep)
            sleep_while(signal_, worker.signal, worker.watches ? &span : nullptr);
        step(worker);
    } while (worker.next != Worker::gone);
}

// With the Lock.
void Engine::classify(Job& job, Left& left) {
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        Future& future = *job.members[i];
        if (job.answers[i].failure) {
            fail(future, std::move(job.answers[i].failure), left);
        } else {
            bool user = future.operation->is_users_batch();
            Batcher* batcher = user ? batcher_of(job.signatures[i]) : classified(future);
            future.batcher = batcher ? batcher : batcher_of({});
            make_ready(future);
            left.look.push_back(&future); // its last handle may have gone meanwhile
        }
        left.futures.push_back(std::move(job.members[i]));
    }
    drop_unneeded(left);
}

namespace {

Traced traced_step(const Job& job) {
    const Operation& operation = *job.members[0]->operation;
    bool kernel = (job.kind == Job::rows && operation.kind != Operation::product) ||
                  (operation.kind == Operation::fold && operation.plain_add);
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

// What rows cannot compute loops of any layout can, or Python, or that says why not.
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
    rest.batcher = job.batcher;
    rest.first = job.first && places.size() == job.members.size();
    rest.answers.resize(places.size());
    if (const GraphTemplate* pattern = job.batcher->pattern.get())
        run_pattern(*pattern, rest.members, rest.answers, rest.first, nullptr);
    if (std::ranges::any_of(rest.answers, &Answer::empty)) host_.run(*this, rest);
    for (std::size_t i = 0; i < places.size(); ++i)
        job.answers[places[i]] = std::move(rest.answers[i]);
}

void Engine::run(Job& job) {
    if (job.kind == Job::callbacks) return host_.call(*this, job);
    if (job.kind == Job::classify) return host_.classify(*this, job);
    job.answers.resize(job.members.size());
    if (job.kind == Job::rows) {
        UsualModes modes;
        PanelCompiler known; // makes none
        if (Products* products = job.batcher->products.get())
            run_products(*products, job.members, job.answers, job.first, known);
        if (job.batcher->calls)
            run_planned(*job.members[0]->operation->planned, job.members, job.answers, job.first);
        if (job.batcher->rows) run_rows(*job.batcher->rows, job.members, job.answers, job.first);
        return run_rest(job);
    }
    Future& first = *job.members[0];
    const Operation& operation = *first.operation;
    const BatchRows* rows = nullptr;
    if (operation.kind == Operation::fold && operation.plain_add)
        if (const Type* type = first.inputs().back().input->type)
            rows = rows_for_sums(*type, operation.options_number());
    if (rows) job.answers[0] = run_fold(*rows, *first.inputs().back().input->type, first);
    if (first.batcher && first.batcher->planned) {
        UsualModes modes;
        run_planned(*first.batcher->planned, job.members, job.answers, job.first);
    }
    if (std::ranges::any_of(job.answers, &Answer::empty)) host_.run(*this, job);
}

void Engine::compute(Worker& worker) {
    Job& job = worker.job;
    bool runs = job.kind == Job::rows || job.kind == Job::python;
    bool traced = runs && tracing.load(std::memory_order_relaxed);
    worker.trace = traced ? trace_begin(traced_step(job)) : nullptr;
    run(job);
    worker.next = Worker::finish;
    if (traced) trace_end(worker.trace); // before anybody sees that it has ended
}

void Engine::finish(Worker& worker) {
    TracedCounter level{};
    {
        Guard guard(lock_);
        freeing_.fetch_add(1, std::memory_order_relaxed);
        if (worker.job.kind == Job::classify)
            classify(worker.job, worker.left);
        else if (worker.job.kind != Job::callbacks)
            finish(worker.job, worker.left);
        level = {0, live_bytes_.load(std::memory_order_relaxed),
                 live_objects_.load(std::memory_order_relaxed), pending_count_};
    }
    worker.next = Worker::free;
    if (!std::exchange(worker.trace, nullptr)) return;
    level.time = nanoseconds_now();
    trace(level);
}

void Engine::wait_for_freeing() {
    if (is_of_parent()) return;
    Heap ready, urgent; // of what was taken from the other one, or has ended
    Left left;
    {
        Guard guard(lock_);
        if (pending_count_ == 0) {
            std::swap(ready_, ready);
            std::swap(urgent_, urgent);
        }
        take_aside(left);
        rest();
    }
    left.free();
    freeing_.fetch_sub(1, std::memory_order_release);
    while (freeing_.load(std::memory_order_acquire) > 0) sched_yield();
}

const BatchRows* Engine::rows_for_sums(const Type& type, uint64_t options) {
    if (!add_) return nullptr;
    std::array<Type*, 2> types{const_cast<Type*>(&type), const_cast<Type*>(&type)};
    Guard guard(lock_);
    Signature signature = signature_of(*add_, types);
    signature.options = options;
    Batcher* found = batcher_of(signature);
    return found && found->rows ? &*found->rows : nullptr;
}

// Deferred frees run here too: the engine may have no worker for them. The need for a worker is
// checked last, after this thread has stopped being busy.
void Engine::stop_helping(Worker& worker) {
    if (!worker.busy) return;
    {
        Guard guard(lock_);
        take_aside(worker.left);
    }
    free(worker);
    worker.busy = false;
    Wake waking = no_worker;
    {
        Guard guard(lock_);
        --busy_;
        rest();
        waking = needed();
    }
    call(waking);
}

bool Engine::help(Worker& worker, Future& future) {
    bool between = worker.next == Worker::look || worker.next == Worker::sleep;
    if (between && future.is_settled()) {
        stop_helping(worker);
        return true;
    }
    step(worker);
    if (worker.next != Worker::sleep) return false;
    uint32_t state = Future::pending;
    future.settlement.compare_exchange_strong(state, Future::awaited);
    return state == Future::settled;
}

// Outside of Python: a thread that waits.
bool Engine::wait(Future& future, int64_t longest) {
    int64_t until = nanoseconds_now() + longest;
    Worker worker;
    worker.helps = true;
    for (;;) {
        if (help(worker, future)) return true;
        bool sleeps = worker.next == Worker::sleep;
        if (!sleeps && worker.next != Worker::look) continue;
        int64_t remains = until - nanoseconds_now();
        if (remains <= 0) {
            stop_helping(worker);
            return future.is_settled();
        }
        timespec span = span_of(std::min(remains, LOOK));
        if (sleeps) sleep_while(future.settlement, Future::awaited, &span);
    }
}

bool Engine::stop(int64_t longest) {
    if (is_of_parent()) return true;
    {
        Guard guard(lock_);
        closed_ = stopping_ = true;
        signal_.fetch_add(1);
    }
    host_.wake(signal_, 1 << 30);
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
