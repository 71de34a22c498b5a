// Engine threads: workers, which are started on demand, and callers that wait.
#include <algorithm>
#include <csignal>
#include <exception>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "engine/timeline.h"
#include "exec/float_env.h"

namespace tenfold {
namespace {

// Nanoseconds a waiter sleeps at most before it looks again.
constexpr int64_t MAX_SLEEP_NS = 20'000'000;
// Nanoseconds without work after which Python's objects go.
constexpr int64_t DEFERRED_DELAY_NS = 1'000'000;

timespec to_timespec(int64_t nanoseconds) {
    return {time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
}

} // namespace

bool Engine::can_run_now() const {
    return !batch_parts_.empty() || !to_call_.empty() || !due_.empty() || !urgent_.empty() ||
           (unclassified_.empty() ? false : num_holds_ == 0 || unclassified_urgent_) ||
           (num_holds_ == 0 && !ready_.empty());
}

// Whether a worker is to be woken or started; the caller does so once the Lock is free.
Engine::Wake Engine::select_wakeup() {
    bool now = can_run_now();
    bool soon = num_holds_ == 0 && (!active_.empty() || lazy_list_) && num_timed_sleepers_ == 0 &&
                num_busy_ == num_deferring_; // who waits for the GIL takes no batch
    if ((!now && !soon) || stopping_) return no_worker;
    if (num_sleeping_ > num_woken_) {
        ++num_woken_;
        signal_.fetch_add(1);
        return wake_one;
    }
    if (num_woken_ > 0 && !now) return no_worker;
    if (num_started_ == limits_.num_threads || (num_sleeping_ > 0 && num_woken_ > 0))
        return no_worker;
    ++num_started_;
    num_alive_.fetch_add(1);
    return start_one;
}

void Engine::wake_worker(Wake wakeup) {
    if (wakeup == wake_one) host_.wake(signal_, 1);
    if (wakeup != start_one || host_.start_thread(*this)) return;
    Guard guard(lock_); // fewer do it too
    --num_started_;
    num_alive_.fetch_sub(1);
}

bool Host::start_thread(Engine& engine) {
    sigset_t blocked, before; // signals are for Python's threads; faults are the worker's own
    sigfillset(&blocked);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
        sigdelset(&blocked, signal);
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
void Engine::defer_free(DeferredFrees& frees) {
    std::move(to_free_.begin(), to_free_.end(), std::back_inserter(frees.futures));
    to_free_.clear();
    num_freeing_.fetch_add(1, std::memory_order_relaxed);
}

void Engine::step(Worker& worker) {
    switch (worker.next) {
    case Worker::poll:
    case Worker::sleep: return poll(worker);
    case Worker::compute: return run_job_step(worker);
    case Worker::finish: return finish_job(worker);
    case Worker::free: return free_step(worker);
    case Worker::run_deferred: return deferred_step(worker);
    case Worker::exit: return exit_step(worker);
    case Worker::exited: return;
    }
}

// Deferred frees come before the search for work. They can make work ready without a signal to the
// workers that are awake.
void Engine::poll(Worker& worker) {
    Wake wakeup = no_worker;
    {
        Guard guard(lock_);
        if (worker.next == Worker::sleep && !worker.is_helper) {
            --num_sleeping_;
            num_timed_sleepers_ -= worker.sleeps_with_timeout;
            num_woken_ = std::max(0, num_woken_ - 1);
            worker.is_idle = worker.sleeps_with_timeout && worker.events_at_sleep == num_events_ &&
                             may_sleep(worker);
        }
        num_busy_ -= worker.busy;
        num_deferring_ -= std::exchange(worker.is_deferring, false);
        worker.busy = true;
        worker.next = Worker::free;
        if (to_free_.empty()) worker.job = pick_job(worker.is_helper, worker.is_idle);
        if (worker.job.kind != Job::nothing) {
            ++num_busy_;
            worker.is_idle = false;
            worker.next = Worker::compute;
            ran_python_ = true;
            wakeup = select_wakeup();
        } else if (!to_free_.empty()) {
            ++num_busy_;
            worker.is_idle = false;
            ran_python_ = true;
            defer_free(worker.frees);
        } else if (worker.is_idle && num_holds_ == 0 && lazy_list_) {
            ++num_busy_;
            worker.is_idle = false;
            force_all(worker.frees);
            drop_unreferenced(worker.frees);
            num_freeing_.fetch_add(1, std::memory_order_relaxed);
        } else if (worker.is_idle && ran_python_ && num_deferring_ == 0 && host_.has_deferred()) {
            ++num_busy_;
            ++num_deferring_;
            worker.is_deferring = true;
            ran_python_ = worker.is_idle = false;
            worker.next = Worker::run_deferred;
        } else {
            worker.busy = false;
            unregister_if_idle();
            prepare_sleep(worker);
            if (worker.is_helper) wakeup = select_wakeup();
        }
    }
    wake_worker(wakeup);
}

// With the Lock. Who waits and helps sleeps elsewhere.
void Engine::prepare_sleep(Worker& worker) {
    worker.next = Worker::sleep;
    if (worker.is_helper) return;
    if (stopping_) {
        worker.next = Worker::exit;
        return;
    }
    worker.sleeps_with_timeout = num_holds_ == 0 && (!active_.empty() || lazy_list_);
    worker.timeout_ns = worker.sleeps_with_timeout ? limits_.batch_wait_ns : DEFERRED_DELAY_NS;
    worker.sleeps_with_timeout |= ran_python_ && num_deferring_ == 0 && host_.has_deferred();
    worker.events_at_sleep = num_events_;
    worker.signal_at_sleep = signal_.load();
    ++num_sleeping_;
    num_timed_sleepers_ += worker.sleeps_with_timeout;
}

void Engine::free_step(Worker& worker) {
    worker.next = Worker::poll;
    wake_settled(worker.frees);
    worker.job = {};
    worker.frees.free();
    num_freeing_.fetch_sub(1, std::memory_order_release);
}

void Engine::deferred_step(Worker& worker) {
    worker.next = Worker::poll;
    host_.run_deferred();
}

// The last worker of an engine without references deletes it.
void Engine::exit_step(Worker& worker) {
    worker.next = Worker::exited;
    host_.detach_thread();
    Word& alive = num_alive_;
    bool deletes = false;
    {
        Guard guard(lock_);
        deletes = alive.fetch_sub(1) == 1 && is_orphan_;
    }
    tenfold::wake(alive, 1 << 30); // another thread may have deleted it: only its address is used
    if (!deletes) return;
    delete this;
    gil_free_threads.fetch_sub(1);
}

void Engine::work() {
    prctl(PR_SET_TIMERSLACK, 1000); // nanoseconds by which a sleep may last longer
    prctl(PR_SET_NAME, "tenfold");
    Worker worker;
    do {
        timespec span = to_timespec(worker.timeout_ns);
        if (worker.next == Worker::sleep)
            sleep_while(signal_, worker.signal_at_sleep,
                        worker.sleeps_with_timeout ? &span : nullptr);
        step(worker);
    } while (worker.next != Worker::exited);
}

// With the Lock.
void Engine::classify(Job& job, DeferredFrees& frees) {
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        Future& future = *job.members[i];
        if (job.answers[i].failure) {
            fail(future, std::move(job.answers[i].failure), frees);
        } else {
            bool user = future.operation->is_users_batch();
            Batcher* batcher = user ? batcher_of(job.signatures[i]) : find_batcher(future);
            future.batcher = batcher ? batcher : batcher_of({});
            enqueue(future);
            frees.unread.push_back(&future); // its last handle may have gone meanwhile
        }
        frees.futures.push_back(std::move(job.members[i]));
    }
    drop_unreferenced(frees);
}

namespace {

TraceEvent traced_step(const Job& job) {
    const Operation& operation = *job.members[0]->operation;
    const Batcher* batcher = job.members[0]->batcher;
    bool kernel = (job.kind == Job::rows && (batcher->rows || batcher->interprets())) ||
                  (operation.kind == Operation::fold && operation.elementwise_add);
    const char* category = kernel                              ? "kernel"
                           : operation.kind >= Operation::user ? "operator"
                                                               : "call";
    TraceEvent event{operation.name, category, nanoseconds_now(), 0, this_pthread(), {}, {}};
    for (const Ref<Future>& member : job.members) {
        event.operators.push_back(member->engine->trace_id(*member));
        event.depth += member->depth;
    }
    event.depth /= double(job.members.size());
    return event;
}

} // namespace

void Engine::run_job(Job& job) {
    if (job.kind == Job::callbacks) return host_.run_callbacks(*this, job);
    if (job.kind == Job::classify) return host_.classify(*this, job);
    job.answers.resize(job.members.size());
    Future& first = *job.members[0];
    const Operation& operation = *first.operation;
    if (operation.is_builtin() && first.batcher && first.batcher->is_native()) {
        DefaultFloatMode modes;
        BatchPlanner no_planner; // these make nothing
        OpKernelCompiler no_compiler(operation.target());
        compute_members(*first.batcher, job.members, job.answers,
                        resources(no_planner, no_compiler));
    }
    const Type* type = first.input_count > 0 ? first.inputs().back().input->type : nullptr;
    if (operation.kind == Operation::fold && operation.elementwise_add && type)
        job.answers[0] = run_fold(sum_rows(*type, operation.options_number()), *type, first,
                                  limits_.num_threads);
    if (std::ranges::any_of(job.answers, &OperatorResult::empty)) host_.run(*this, job);
}

void Engine::run_job_step(Worker& worker) {
    Job& job = worker.job;
    bool runs = job.kind == Job::rows || job.kind == Job::python;
    bool traced = runs && tracing.load(std::memory_order_relaxed);
    worker.trace = traced ? trace_begin(traced_step(job)) : nullptr;
    run_job(job);
    worker.next = Worker::finish;
    if (traced) trace_end(worker.trace); // before the end is visible to other threads
}

void Engine::finish_job(Worker& worker) {
    TraceCounter counter{};
    {
        Guard guard(lock_);
        num_freeing_.fetch_add(1, std::memory_order_relaxed);
        if (worker.job.kind == Job::classify)
            classify(worker.job, worker.frees);
        else if (worker.job.kind != Job::callbacks)
            finish_job(worker.job, worker.frees);
        counter = {0, live_bytes_.load(std::memory_order_relaxed),
                   live_objects_.load(std::memory_order_relaxed), num_pending_};
    }
    worker.next = Worker::free;
    if (!std::exchange(worker.trace, nullptr)) return;
    counter.time = nanoseconds_now();
    trace(counter);
}

void Engine::wait_for_frees() {
    if (is_from_parent_process()) return;
    Heap ready, urgent; // members removed from the other queue, or settled
    DeferredFrees frees;
    {
        Guard guard(lock_);
        if (num_pending_ == 0) {
            std::swap(ready_, ready);
            std::swap(urgent_, urgent);
        }
        defer_free(frees);
        unregister_if_idle();
    }
    frees.free();
    num_freeing_.fetch_sub(1, std::memory_order_release);
    while (num_freeing_.load(std::memory_order_acquire) > 0) sched_yield();
}

const BatchRows* Engine::sum_rows(const Type& type, uint64_t options) {
    if (!add_) return nullptr;
    std::array<Type*, 2> types{const_cast<Type*>(&type), const_cast<Type*>(&type)};
    Guard guard(lock_);
    BatcherKey signature = signature_of(*add_, types);
    signature.options = options;
    Batcher* found = batcher_of(signature);
    static const BatchRows on_device; // where kernels find rows by themselves
    if (found && found->is_native() && !device_of(type.device).is_host) return &on_device;
    return found && found->rows ? &*found->rows : nullptr;
}

// Deferred frees run here too: the engine may have no worker for them. The need for a worker is
// checked last, after this thread has stopped being busy.
void Engine::finish_helping(Worker& worker) {
    if (!worker.busy) return;
    {
        Guard guard(lock_);
        defer_free(worker.frees);
    }
    free_step(worker);
    worker.busy = false;
    Wake wakeup = no_worker;
    {
        Guard guard(lock_);
        --num_busy_;
        unregister_if_idle();
        wakeup = select_wakeup();
    }
    wake_worker(wakeup);
}

bool Engine::help(Worker& worker, Future& future) {
    bool is_between_jobs = worker.next == Worker::poll || worker.next == Worker::sleep;
    if (is_between_jobs && future.is_settled()) {
        finish_helping(worker);
        return true;
    }
    step(worker);
    if (worker.next != Worker::sleep) return false;
    uint32_t state = Future::pending;
    future.settlement.compare_exchange_strong(state, Future::awaited);
    return state == Future::settled;
}

// Outside of Python: a thread that waits.
bool Engine::wait(Future& future, int64_t timeout_ns) {
    int64_t deadline = nanoseconds_now() + timeout_ns;
    Worker worker;
    worker.is_helper = true;
    for (;;) {
        if (help(worker, future)) return true;
        bool is_sleeping = worker.next == Worker::sleep;
        if (!is_sleeping && worker.next != Worker::poll) continue;
        int64_t remaining_ns = deadline - nanoseconds_now();
        if (remaining_ns <= 0) {
            finish_helping(worker);
            return future.is_settled();
        }
        timespec span = to_timespec(std::min(remaining_ns, MAX_SLEEP_NS));
        if (is_sleeping) sleep_while(future.settlement, Future::awaited, &span);
    }
}

bool Engine::stop(int64_t timeout_ns) {
    if (is_from_parent_process()) return true;
    {
        Guard guard(lock_);
        closed_ = stopping_ = true;
        signal_.fetch_add(1);
    }
    host_.wake(signal_, 1 << 30);
    int64_t deadline = nanoseconds_now() + timeout_ns;
    for (;;) {
        uint32_t alive = num_alive_.load();
        int64_t remaining_ns = deadline - nanoseconds_now();
        if (alive == 0 || remaining_ns <= 0) return alive == 0;
        timespec span = to_timespec(std::min(remaining_ns, MAX_SLEEP_NS));
        sleep_while(num_alive_, alive, &span);
    }
}

} // namespace tenfold
