#include "engine.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>

#include "counters.h"

namespace tenfold {
namespace {

constexpr std::size_t ENOUGH = 256; // members that an idle worker does not wait on
constexpr std::size_t PART = 128;   // members of a batch that one thread computes at a go
constexpr int HIGHER = 4;           // inputs up to which a push raises who is on the longest way
constexpr int64_t LOOK = 20'000'000; // nanoseconds a waiter sleeps at most before it looks again

std::atomic<uint32_t> forks{0};
const int registered =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

struct Engines {
    Lock lock; // protects all
    std::vector<Engine*> all;
};
Engines* const the_engines = new Engines; // made when the library is loaded

timespec span_of(int64_t nanoseconds) {
    return {time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
}

int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Ref<Failure> cancelled_failure() {
    auto failure = Ref<Failure>::adopt(new Failure);
    failure->observed.store(true, std::memory_order_relaxed);
    return failure;
}

} // namespace

Engine::Engine(const Limits& limits, Host& host)
    : limits_(limits), host_(host), forks_(forks.load(std::memory_order_relaxed)) {
    batchers_.emplace(Signature(), std::make_unique<Batcher>()); // of what runs alone
    Guard guard(the_engines->lock);
    the_engines->all.push_back(this);
}

// Workers may still look whether there is anything to do: then the last of them deletes it. Who
// comes here holds the GIL, or is counted among `outsiders`: there may be one more.
void Engine::destroy(Engine* engine) {
    {
        Guard guard(the_engines->lock);
        std::erase(the_engines->all, engine);
    }
    if (!engine->is_of_parent()) {
        Guard guard(engine->lock_);
        engine->be_counted();
        if (engine->ended_ < engine->started_) {
            engine->orphan_ = engine->stopping_ = true;
            engine->signal_.fetch_add(1);
            wake(engine->signal_, 1 << 30);
            return;
        }
    }
    while (!engine->is_of_parent() && engine->alive_.load() > 0) sched_yield();
    bool counted = engine->counted_;
    delete engine;
    if (counted) outsiders.fetch_sub(1);
}

std::vector<Ref<Engine>> live_engines() {
    std::vector<Ref<Engine>> found;
    Guard guard(the_engines->lock);
    for (Engine* engine : the_engines->all) {
        uint32_t count = engine->references.load();
        while (count > 0 && !engine->references.compare_exchange_weak(count, count + 1)) {}
        if (count > 0) found.push_back(Ref<Engine>::adopt(engine));
    }
    return found;
}

bool Engine::is_of_parent() const { return forks.load(std::memory_order_relaxed) != forks_; }

void Engine::account(int64_t objects, int64_t bytes) {
    live_objects_.fetch_add(objects, std::memory_order_relaxed);
    int64_t live = live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_bytes_.load(std::memory_order_relaxed);
    while (live > peak &&
           !peak_bytes_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {}
}

// Who counts references here without the GIL is known to those who hold it, from a push on to when
// nothing is left to do.
void Engine::be_counted() {
    if (counted_) return;
    counted_ = true;
    outsiders.fetch_add(1);
}

void Engine::rest() {
    if (!counted_ || pending_count_ > 0 || lazy_ || busy_ > 0) return;
    if (!to_call_.empty() || !to_free_.empty()) return;
    counted_ = false;
    outsiders.fetch_sub(1);
}

// Lists: of what is pending, and of versions whose increments are to be added.

Future*& Engine::list_of(Future& future) {
    return future.state == Future::lazy ? lazy_ : pending_;
}

void Engine::enlist(Future& future) {
    be_counted();
    Future*& list = list_of(future);
    retain(&future);
    future.after = list;
    future.before = nullptr;
    if (list) list->before = &future;
    list = &future;
    if (future.state != Future::lazy) ++pending_count_;
}

// The list's count goes to the caller.
void Engine::unlist(Future& future) {
    Future*& list = list_of(future);
    (future.before ? future.before->after : list) = future.after;
    if (future.after) future.after->before = future.before;
    future.before = future.after = nullptr;
    if (future.state != Future::lazy) --pending_count_;
}

// Pushing.

void Engine::fill(Future& future, Answer&& answer) {
    future.value = std::move(answer.value);
    future.object = answer.object;
    future.scalar = std::move(answer.scalar);
    future.bytes = answer.bytes;
    Ref<Type> type = future.value ? future.value->type : std::move(answer.type);
    if (!future.type) future.type = type.detach();
    if (future.value) future.bytes = future.value->buffers[0].allocation->bytes;
    account(1, int64_t(future.bytes));
}

Ref<Future> Engine::put(Answer answer) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->state = Future::done;
    fill(*future, std::move(answer));
    future->settlement.store(Future::settled, std::memory_order_release);
    return future;
}

Answer Engine::take(Future& input) {
    Answer taken;
    Guard guard(lock_);
    if (input.handles > 0 || input.readers > 1 || input.state != Future::done) return taken;
    taken.value = std::move(input.value);
    taken.object = std::exchange(input.object, nullptr);
    if (!taken.empty()) account(-1, -int64_t(input.bytes));
    return taken;
}

void Engine::link(Future& future, std::span<Future* const> inputs, Left& left) {
    future.input_count = uint32_t(inputs.size());
    if (inputs.size() > Future::FEW) future.many = std::make_unique<Edge[]>(inputs.size());
    std::span<Edge> edges = future.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Future* input = inputs[i];
        Edge& edge = edges[i];
        edge.input = input;
        retain(input);
        ++input->readers;
        if (input->state == Future::lazy) demand(*input, left);
        future.depth = std::max(future.depth, input->depth + 1);
        if (!input->is_pending()) continue;
        ++future.missing;
        edge.reader = &future;
        retain(&future);
        edge.next = input->waiters;
        input->waiters = &edge;
    }
}

// Those above are on a longer way now.
void Engine::raise(Future& future) {
    Future* above = &future;
    for (int i = 0; i < HIGHER; ++i) {
        Future* longest = nullptr;
        for (Edge& edge : above->inputs())
            if (edge.input && edge.input->state == Future::waiting &&
                (!longest || edge.input->depth > longest->depth))
                longest = edge.input;
        if (!longest || longest->height > above->height) return;
        longest->height = above->height + 1;
        above = longest;
    }
}

// Of one whose inputs are linked.
void Engine::begin(Future& future, Left& left) {
    enlist(future);
    for (Edge& edge : future.inputs())
        if (edge.input->state == Future::failed) {
            fail(future, edge.input->failure, left);
            return;
        }
    Operation::Kind kind = future.operation->kind;
    if (kind == Operation::elements || kind == Operation::product) {
        future.batcher = classified(future);
        if (future.batcher && future.batcher->rows) {
            Type* type = future.batcher->rows->inference->results[0].get();
            future.type = Ref<Type>(type).detach();
        }
    }
    if (future.missing == 0)
        make_ready(future);
    else
        raise(future);
}

Ref<Future> Engine::push(Ref<Operation> operation, Ref<Site> site,
                         std::span<Future* const> inputs) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->site = std::move(site);
    future->impure = !operation->pure;
    Operation::Kind kind = operation->kind;
    future->operation = std::move(operation);
    Left left;
    Wake waking = nobody;
    {
        Guard guard(lock_);
        if (closed_) return {};
        future->number = ++pushed_;
        ++events_;
        if (kind == Operation::in_place || kind == Operation::cumulative) {
            Timeline& timeline = timeline_of(*inputs[0]);
            std::vector<Future*> given(inputs.begin(), inputs.end());
            given[0] = timeline.head;
            if (kind == Operation::in_place) {
                link(*future, given, left);
                begin(*future, left);
            } else {
                Ref<Future> increment =
                    future->operation->plain_run
                        ? Ref<Future>(given[1])
                        : make(future->operation, inputs.subspan(1), future->site, left);
                add_increment(*future, *given[0], std::move(increment), left);
            }
            advance(*future, timeline, left);
        } else {
            link(*future, inputs, left);
            begin(*future, left);
        }
        if (!left.look.empty()) drop_unneeded(left);
        waking = needed();
    }
    wake_settled(left);
    call(waking);
    return future;
}

// Becoming ready.

Signature Engine::signature_of(const Op* op, std::span<Type* const> types) {
    Signature signature;
    signature.parts[0] = op;
    for (std::size_t i = 0; i < types.size() && i + 1 < signature.parts.size(); ++i)
        signature.parts[i + 1] = types[i];
    return signature;
}

// The Batcher of an operation of tenfold on inputs of known Types, if that is known.
Batcher* Engine::classified(Future& future) {
    std::array<Type*, Future::FEW> types{};
    std::size_t count = 0;
    for (Edge& edge : future.inputs()) {
        if (count == types.size() || !edge.input->type) return nullptr;
        types[count++] = edge.input->type;
    }
    Batcher* found = batcher_of(signature_of(future.operation->op, {types.data(), count}));
    if (!found || !found->rows) return found;
    std::size_t position = 0;
    for (Edge& edge : future.inputs()) {
        const Scalar* scalar = edge.input->scalar.get();
        if (scalar && !found->rows->takes(position, *scalar)) return batcher_of({});
        ++position;
    }
    return found;
}

Batcher* Engine::batcher_of(const Signature& signature) {
    auto found = batchers_.find(signature);
    return found == batchers_.end() ? nullptr : found->second.get();
}

Batcher& Engine::add_batcher(const Signature& signature, Batcher&& made) {
    auto owned = std::make_unique<Batcher>(std::move(made));
    Guard guard(lock_);
    return *batchers_.emplace(signature, std::move(owned)).first->second;
}

void Engine::join(Batcher& batcher, Future& future) {
    future.batcher = &batcher;
    batcher.members.push_back(Ref<Future>(&future));
    ++batcher.live;
    batcher.wanted += future.wanted;
    batcher.depths += future.depth;
    if (!std::exchange(batcher.listed, true)) active_.push_back(&batcher);
    due_ |= future.wanted || batcher.live >= ENOUGH ||
            (limits_.batch && batcher.live >= limits_.batch);
}

// One that has been dropped or cancelled, or runs; its place among the members stays.
void Engine::leave_batcher(Future& future) {
    Batcher* batcher = future.batcher;
    if (future.state != Future::ready || !batcher || !batcher->listed) return;
    if (batcher->kind == Operation::general) return;
    --batcher->live;
    batcher->wanted -= future.wanted;
    batcher->depths -= future.depth;
}

void Engine::make_ready(Future& future) {
    future.state = Future::ready;
    Operation::Kind kind = future.operation->kind;
    bool batches =
        kind == Operation::elements || kind == Operation::product || kind == Operation::batched;
    if (batches && !future.batcher && kind != Operation::batched)
        future.batcher = classified(future);
    if (batches && !future.batcher) {
        loose_.push_back(Ref<Future>(&future));
        loose_wanted_ |= future.wanted;
    } else if (batches && future.batcher->kind != Operation::general) {
        join(*future.batcher, future);
    } else {
        (future.wanted ? urgent_ : ready_)
            .push({future.height, future.number, Ref<Future>(&future)});
    }
}

// Ending.

void Engine::unread(Future* input, Left& left) {
    if (--input->readers == 0) left.look.push_back(input);
    left.futures.push_back(Ref<Future>::adopt(input));
}

void Engine::release_inputs(Future& future, Left& left) {
    for (Edge& edge : future.inputs())
        if (Future* input = std::exchange(edge.input, nullptr)) unread(input, left);
    if (!future.is_newest()) release_increments(future, left);
}

void Engine::end(Future& future, Future::State state, Left& left) {
    leave_batcher(future);
    bool was_listed = future.state != Future::lazy || future.before || future.after ||
                      lazy_ == &future;
    if (was_listed) {
        unlist(future);
        left.futures.push_back(Ref<Future>::adopt(&future));
    }
    future.state = state;
    release_inputs(future, left);
    Edge* edge = std::exchange(future.waiters, nullptr);
    while (edge) {
        Edge* next = edge->next;
        Future* reader = std::exchange(edge->reader, nullptr);
        if (reader->state == Future::waiting) {
            if (state == Future::failed)
                fail(*reader, future.failure, left);
            else if (--reader->missing == 0)
                make_ready(*reader);
        }
        left.futures.push_back(Ref<Future>::adopt(reader));
        edge = next;
    }
    if (state == Future::dropped) return;
    if (future.settlement.exchange(Future::settled, std::memory_order_acq_rel) == Future::awaited) {
        retain(&future);
        left.futures.push_back(Ref<Future>::adopt(&future));
        left.awaited.push_back(&future);
    }
    if (future.called) to_call_.push_back(Ref<Future>(&future));
}

void Engine::settle(Future& future, Answer&& answer, Left& left) {
    if (answer.failure) return fail(future, std::move(answer.failure), left);
    fill(future, std::move(answer));
    ++done_;
    end(future, Future::done, left);
}

// And all that depends on it, one by one.
void Engine::fail(Future& first, Ref<Failure> why, Left& left) {
    left.failing.emplace_back(&first, std::move(why));
    if (std::exchange(left.in_turn, true)) return;
    while (!left.failing.empty()) {
        auto [future, failure] = std::move(left.failing.back());
        left.failing.pop_back();
        if (!future->is_pending()) continue;
        ++(failure->error ? failed_ : cancelled_);
        future->failure = std::move(failure);
        end(*future, Future::failed, left);
    }
    left.in_turn = false;
}

void Engine::drop_unneeded(Left& left) {
    while (!left.look.empty()) {
        Future& future = *left.look.back();
        left.look.pop_back();
        if (future.handles || future.readers || future.impure || future.called) continue;
        if (future.state > Future::ready) continue;
        ++dropped_;
        end(future, Future::dropped, left);
    }
}

void Engine::finish(Job& job, Left& left) {
    ++events_;
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        --running_;
        settle(*job.members[i], std::move(job.answers[i]), left);
        left.futures.push_back(std::move(job.members[i]));
    }
    drop_unneeded(left);
}

void Engine::wake_settled(Left& left) {
    for (Future* future : left.awaited) wake(future->settlement, 1 << 30);
}

// Handles.

void Engine::hold_handle(Future& future) {
    Guard guard(lock_);
    ++future.handles;
    if (future.timeline) ++future.timeline->handles;
}

void Engine::drop_handle(Future& future) {
    Left left;
    {
        Guard guard(lock_);
        --future.handles;
        if (future.timeline) forget_handle(future, left);
        if (future.readers == 0) left.look.push_back(&future);
        drop_unneeded(left);
        rest();
    }
    wake_settled(left);
}

bool Engine::cancel(Future& future) {
    Left left;
    bool gone = false;
    Wake waking = nobody;
    {
        Guard guard(lock_);
        if (future.state == Future::failed) return !future.failure->error;
        Future* target = to_cancel(future, left);
        if (target && target->state <= Future::ready) {
            gone = true;
            fail(*target, cancelled_failure(), left);
            if (future.is_pending()) fail(future, target->failure, left);
            drop_unneeded(left);
            rest();
            waking = needed();
        }
    }
    wake_settled(left);
    call(waking);
    return gone;
}

bool Engine::call_when_settled(Future& future) {
    Guard guard(lock_);
    if (future.is_settled()) return false;
    future.called = true;
    return true;
}

// What runs first.

void Engine::mark_wanted(Future& future, Left& left) {
    std::vector<Future*> todo{&future};
    while (!todo.empty()) {
        Future& next = *todo.back();
        todo.pop_back();
        if (next.state == Future::lazy) demand(next, left);
        if (!next.is_pending() || next.wanted) continue;
        next.wanted = true;
        if (next.state == Future::ready) {
            if (!next.batcher && next.operation->kind == Operation::batched)
                loose_wanted_ = true;
            else if (!next.batcher && next.operation->kind == Operation::elements)
                loose_wanted_ = true;
            else if (next.batcher && next.batcher->kind != Operation::general)
                ++next.batcher->wanted, due_ = true;
            else
                urgent_.push({next.height, next.number, Ref<Future>(&next)});
        }
        for (Edge& edge : next.inputs())
            if (edge.input) todo.push_back(edge.input);
    }
}

void Engine::want(Future& future) {
    Left left;
    {
        Guard guard(lock_);
        mark_wanted(future, left);
        drop_unneeded(left);
    }
    wake_settled(left);
}

void Engine::demand_sum(Future& future) {
    Left left;
    Wake waking = nobody;
    {
        Guard guard(lock_);
        if (future.state != Future::lazy || holds_ > 0) return;
        demand(future, left);
        drop_unneeded(left);
        waking = needed();
    }
    wake_settled(left);
    call(waking);
}

std::vector<Ref<Future>> Engine::want_all() {
    std::vector<Ref<Future>> all;
    Left left;
    {
        Guard guard(lock_);
        demand_all(left);
        for (Future* future = pending_; future; future = future->after)
            all.push_back(Ref<Future>(future));
        for (const Ref<Future>& future : all) mark_wanted(*future, left);
        drop_unneeded(left);
    }
    wake_settled(left);
    return all;
}

// Of lowest mean depth; `due`: of those that need not wait.
Batcher* Engine::lowest(bool due) {
    Batcher* best = nullptr;
    for (std::size_t i = 0; i < active_.size();) {
        Batcher* batcher = active_[i];
        if (batcher->live == 0) {
            batcher->listed = false;
            for (Ref<Future>& gone : batcher->members) to_free_.push_back(std::move(gone));
            batcher->members.clear();
            active_[i] = active_.back();
            active_.pop_back();
            continue;
        }
        ++i;
        bool full = (limits_.batch && batcher->live >= limits_.batch) || batcher->live >= ENOUGH;
        if (holds_ > 0 ? batcher->wanted == 0 : due && !full && batcher->wanted == 0) continue;
        // depths / live as fractions
        if (!best || batcher->depths * best->live < best->depths * batcher->live) best = batcher;
    }
    if (due && !best) due_ = false;
    return best;
}

Job Engine::fire(Batcher& batcher) {
    Job job;
    bool rows = batcher.rows.has_value();
    job.kind = rows ? Job::rows : Job::python;
    job.batcher = &batcher;
    std::size_t most = limits_.batch ? limits_.batch : batcher.members.size(), kept = 0, i = 0;
    for (; i < batcher.members.size(); ++i) {
        Ref<Future>& member = batcher.members[i];
        if (member->state != Future::ready) {
            to_free_.push_back(std::move(member));
        } else if (job.members.size() == most || (holds_ > 0 && !member->wanted)) {
            if (kept != i) batcher.members[kept] = std::move(member);
            ++kept;
        } else {
            leave_batcher(*member);
            member->state = Future::running;
            job.members.push_back(std::move(member));
        }
    }
    batcher.members.resize(kept);
    running_ += job.members.size();
    ++batches_;
    ++sizes_[job.members.size()];
    if (job.members.size() > 1) count_anywhere(Counter::batches);
    if (rows) {
        count_anywhere(Counter::launches);
        count_anywhere(Counter::kernels);
    }
    while (rows && job.members.size() > PART) {
        Job part;
        part.kind = Job::rows;
        part.batcher = &batcher;
        auto from = job.members.end() - std::ptrdiff_t(PART);
        part.members.assign(std::make_move_iterator(from),
                            std::make_move_iterator(job.members.end()));
        job.members.erase(from, job.members.end());
        parts_.push_front(std::move(part));
    }
    return job;
}

Job Engine::from_heaps() {
    Job job;
    for (Heap* heap : {&urgent_, &ready_}) {
        if (heap == &ready_ && holds_ > 0) break;
        while (!heap->empty() && job.members.empty()) {
            Ref<Future> future = heap->top().future;
            heap->pop();
            if (future->state == Future::ready) {
                future->state = Future::running;
                ++running_;
                job.kind = Job::python;
                job.members.push_back(std::move(future));
            } else {
                to_free_.push_back(std::move(future));
            }
        }
        if (!job.members.empty()) break;
    }
    return job;
}

Job Engine::classify_loose() {
    Job job;
    if (loose_.empty() || (holds_ > 0 && !loose_wanted_)) return job;
    job.kind = Job::classify;
    job.members.swap(loose_);
    loose_wanted_ = false;
    return job;
}

// `native`: nothing that needs the GIL; `quiet`: nothing has happened for a while.
Job Engine::pick(bool native, bool quiet) {
    if (!parts_.empty()) {
        Job job = std::move(parts_.front());
        parts_.pop_front();
        return job;
    }
    if (!native && !to_call_.empty()) {
        Job job;
        job.kind = Job::callbacks;
        job.members.swap(to_call_);
        return job;
    }
    if (!native)
        if (Job job = classify_loose(); job.kind != Job::nothing) return job;
    Batcher* batcher = lowest(true);
    if (batcher && (!native || batcher->rows)) return fire(*batcher);
    if (native) return {};
    if (Job job = from_heaps(); job.kind != Job::nothing) return job;
    if (!quiet || holds_ > 0) return {};
    if ((batcher = lowest(false))) return fire(*batcher);
    return {};
}

// Who runs.

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
    lock_.unlock();
    freed.clear();
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
            quiet = false;
            continue;
        }
        if (quiet && holds_ == 0 && lazy_) {
            Left left;
            demand_all(left);
            drop_unneeded(left);
            ++busy_;
            lock_.unlock();
            wake_settled(left);
            left = {};
            lock_.lock();
            --busy_;
            quiet = false;
            continue;
        }
        free_aside();
        if (stopping_) break;
        rest();
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
    bool gone = alive_.fetch_sub(1) == 1;
    if (orphan) {
        if (!last && !gone) return;
        if (gone) {
            delete this;
            outsiders.fetch_sub(1);
        }
        return;
    }
    wake(alive_, 1 << 30);
}

void Engine::classify(Job& job) {
    host_.classify(*this, job);
    Left left;
    {
        Guard guard(lock_);
        for (std::size_t i = 0; i < job.members.size(); ++i) {
            Future& future = *job.members[i];
            if (future.state == Future::ready && job.answers[i].failure) {
                fail(future, std::move(job.answers[i].failure), left);
            } else if (future.state == Future::ready) {
                bool user = future.operation->kind == Operation::batched;
                Batcher* batcher = user ? batcher_of(job.signatures[i]) : classified(future);
                future.batcher = batcher ? batcher : batcher_of({});
                make_ready(future);
            }
            left.futures.push_back(std::move(job.members[i]));
        }
        drop_unneeded(left);
    }
    wake_settled(left);
}

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
    {
        Guard guard(lock_);
        finish(job, left);
    }
    wake_settled(left);
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
    int64_t until = now() + longest;
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
        int64_t remains = until - now();
        if (remains <= 0) return future.is_settled();
        if (ran) continue;
        uint32_t state = Future::pending;
        future.settlement.compare_exchange_strong(state, Future::awaited);
        if (state == Future::settled) return true;
        timespec span = span_of(std::min(remains, LOOK));
        sleep_while(future.settlement, Future::awaited, &span);
    }
}

void Engine::hold() {
    Guard guard(lock_);
    ++holds_;
}

void Engine::let_go() {
    Wake waking = nobody;
    {
        Guard guard(lock_);
        --holds_;
        ++events_;
        due_ = true; // whether any is due is to be looked at anew
        waking = needed();
    }
    call(waking);
}

void Engine::close() {
    Guard guard(lock_);
    closed_ = true;
}

void Engine::cancel_all() {
    Left left;
    {
        Guard guard(lock_);
        while (lazy_) {
            Future* future = lazy_;
            retain(future);
            left.futures.push_back(Ref<Future>::adopt(future));
            fail(*future, cancelled_failure(), left);
        }
        std::vector<Ref<Future>> all;
        for (Future* future = pending_; future; future = future->after)
            if (future->state != Future::running) all.push_back(Ref<Future>(future));
        Ref<Failure> failure = cancelled_failure();
        for (Ref<Future>& future : all) {
            if (future->state <= Future::ready) fail(*future, failure, left);
            left.futures.push_back(std::move(future));
        }
        drop_unneeded(left);
    }
    wake_settled(left);
}

bool Engine::stop(int64_t longest) {
    if (is_of_parent()) return true;
    {
        Guard guard(lock_);
        closed_ = stopping_ = true;
        signal_.fetch_add(1);
    }
    wake(signal_, 1 << 30);
    int64_t until = now() + longest;
    for (;;) {
        uint32_t alive = alive_.load();
        int64_t remains = until - now();
        if (alive == 0 || remains <= 0) return alive == 0;
        timespec span = span_of(std::min(remains, LOOK));
        sleep_while(alive_, alive, &span);
    }
}

EngineStatistics Engine::statistics() {
    EngineStatistics found;
    Guard guard(lock_);
    found.pushed = pushed_;
    found.done = done_;
    found.failed = failed_;
    found.cancelled = cancelled_;
    found.dropped = dropped_;
    found.batches = batches_;
    found.sizes = sizes_;
    found.pending = pending_count_;
    found.running = running_;
    for (Future* future = pending_; future; future = future->after)
        found.ready += future->state == Future::ready;
    found.live_objects = live_objects_.load(std::memory_order_relaxed);
    found.live_bytes = live_bytes_.load(std::memory_order_relaxed);
    found.peak_bytes = peak_bytes_.load(std::memory_order_relaxed);
    return found;
}

std::vector<Engine::Shown> Engine::pending() {
    static constexpr const char* STATES[] = {"waiting", "waiting", "ready", "running"};
    std::vector<Shown> all;
    Guard guard(lock_);
    for (Future* list : {pending_, lazy_})
        for (Future* future = list; future; future = future->after) {
            Shown shown{future->number, future->operation->name, STATES[future->state], {}};
            for (Edge& edge : future->inputs())
                if (edge.input && edge.input->is_pending())
                    shown.inputs.push_back(edge.input->number);
            all.push_back(std::move(shown));
        }
    std::sort(all.begin(), all.end(),
              [](const Shown& a, const Shown& b) { return a.number < b.number; });
    return all;
}

} // namespace tenfold
