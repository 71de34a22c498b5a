#include "engine/engine.h"

#include <algorithm>
#include <pthread.h>
#include <sched.h>

#include "engine/timeline.h"
#include "memory/deferred_decref.h"

namespace tenfold {
namespace {

constexpr int HIGHER = 4; // inputs up to which a push raises who is on the longest way

std::atomic<uint32_t> forks{0};
const int registered =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

struct Engines {
    Lock lock; // protects all
    std::vector<Engine*> all;
};
Engines* const the_engines = new Engines; // made when the library is loaded

} // namespace

void Left::free() {
    awaited.clear();
    for (void* object : objects) release_later(object);
    objects.clear();
    values.clear();
    futures.clear();
    operations.clear();
}

namespace {
std::atomic<uint64_t> engines_made{0}; // relaxed: a count
}

Engine::Engine(const Limits& limits, Host& host)
    : limits_(limits), host_(host), forks_(forks.load(std::memory_order_relaxed)),
      serial_(engines_made.fetch_add(1, std::memory_order_relaxed)) {
    batchers_.emplace(Signature(), std::make_unique<Batcher>()); // of what runs alone
    Guard guard(the_engines->lock);
    the_engines->all.push_back(this);
}

// Workers may still look whether there is anything to do, or wait for the GIL, which who comes here
// may hold, before they end: then the last of them deletes it. Who comes here holds the GIL, or is
// counted among `outsiders`: there may be one more.
void Engine::destroy(Engine* engine) {
    {
        Guard guard(the_engines->lock);
        std::erase(the_engines->all, engine);
    }
    if (!engine->is_of_parent()) {
        Guard guard(engine->lock_);
        if (engine->alive_.load() > 0) {
            engine->be_counted();
            engine->orphan_ = engine->stopping_ = true;
            engine->signal_.fetch_add(1);
            engine->host_.wake(engine->signal_, 1 << 30);
            return;
        }
    }
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

// Who counts references here without the GIL is known to those who hold it, from a push on to when
// nothing is left to do.
void Engine::be_counted() {
    if (counted_) return;
    counted_ = true;
    outsiders.fetch_add(1);
}

void Engine::rest() {
    bool nothing = pending_count_ == 0 && !lazy_ && busy_ == 0 && active_.empty() &&
                   ready_.empty() && urgent_.empty() && loose_.empty() && parts_.empty() &&
                   to_call_.empty() && to_free_.empty();
    if (!counted_ || !nothing || orphan_) return; // an orphan is freed by its last worker
    counted_ = false;
    outsiders.fetch_sub(1);
}

// Lists: of what is pending, and of versions whose increments are to be added.

Future*& Engine::list_of(Future& future) { return future.state == Future::lazy ? lazy_ : pending_; }

void Engine::enlist(Future& future) {
    be_counted();
    Future*& list = list_of(future);
    retain(&future);
    future.after = list;
    future.before = nullptr;
    if (list) list->before = &future;
    list = &future;
    if (future.state == Future::lazy) return;
    if (pending_count_++ == 0) oldest_ = &future;
    future.arrival = ++arrived_;
}

// The list's count goes to the caller.
void Engine::unlist(Future& future) {
    Future*& list = list_of(future);
    if (oldest_ == &future) oldest_ = future.before;
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
    bool several = future.operation && future.operation->form;
    if (!future.type && !several)
        future.type = (future.value ? future.value->type : std::move(answer.type)).detach();
    if (future.value) future.bytes = 0;
    for (const Value* each = future.value.get(); each; each = several ? each->next.get() : nullptr)
        future.bytes += each->buffers[0].allocation->bytes;
}

Ref<Future> Engine::put(Answer answer) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->state = Future::done;
    fill(*future, std::move(answer));
    account(1, int64_t(future->bytes));
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
    if (future.operation->is_ours()) {
        future.batcher = classified(future);
        const GilFreeCall* call = future.operation->planned.get();
        Ref<Type> type;
        if (call && call->pattern && !future.operation->form)
            type = call->pattern->type(); // whether by its plan or by Python
        else if (!call && future.batcher && future.batcher->is_native())
            type = future.batcher->type();
        future.typed = bool(type);
        if (type) future.type = type.detach();
    }
    if (limits_.memory) expect(future);
    if (future.missing == 0)
        become_ready(future);
    else
        raise(future);
}

namespace {

void note_push(const Future& future, std::span<Future* const> inputs) {
    const Engine& engine = *future.engine;
    int64_t now = nanoseconds_now();
    Traced event{future.operation->name, "push", now, now, this_pthread(), {}, {}};
    event.operators.push_back(engine.traced_number(future));
    for (Future* input : inputs)
        if (input->number) event.inputs.push_back(engine.traced_number(*input));
    trace(std::move(event));
}

} // namespace

Ref<Future> Engine::push(Ref<Operation> operation, Ref<PushSite> site,
                         std::span<Future* const> inputs, bool by_operator) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->site = std::move(site);
    future->impure = !operation->pure;
    future->handles = 1;
    Operation::Kind kind = operation->kind;
    future->operation = std::move(operation);
    Left left;
    Wake waking = no_worker;
    {
        Guard guard(lock_);
        if (closed_) return {};
        future->number = ++pushed_;
        pushed_by_operators_ += by_operator;
        ++events_;
        bool traced = tracing.load(std::memory_order_relaxed);
        if (kind == Operation::in_place || kind == Operation::cumulative) {
            Timeline& timeline = timeline_of(*inputs[0]);
            std::vector<Future*> given(inputs.begin(), inputs.end());
            given[0] = timeline.head;
            if (traced) note_push(*future, given);
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
            ++timeline.handles;
        } else {
            if (traced) note_push(*future, inputs);
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
    if (state != Future::done) expect_no_more(future);
    bool was_listed =
        future.state != Future::lazy || future.before || future.after || lazy_ == &future;
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
                become_ready(*reader);
        }
        left.futures.push_back(Ref<Future>::adopt(reader));
        edge = next;
    }
    // A user's operator lives as long as it is needed; of its Operation the name stays.
    Operation& operation = *future.operation;
    bool own = operation.kind == Operation::user || operation.kind == Operation::batched ||
               operation.kind == Operation::in_place;
    if (own) {
        left.objects.push_back(std::exchange(operation.python, nullptr));
        left.objects.push_back(std::exchange(operation.params, nullptr));
    }
    if (future.settlement.exchange(Future::settled, std::memory_order_acq_rel) == Future::awaited) {
        retain(&future);
        left.futures.push_back(Ref<Future>::adopt(&future));
        left.awaited.push_back(&future);
    }
    if (future.called) to_call_.push_back(Ref<Future>(&future));
}

void Engine::settle(Future& future, Answer&& answer, Left& left) {
    if (answer.failure) {
        Failure& failure = *answer.failure;
        if (!failure.engine) failures_.push_back(&failure);
        failure.engine = this;
        return fail(future, std::move(answer.failure), left);
    }
    bool guessed = future.guessed;
    expect_no_more(future);
    fill(future, std::move(answer));
    ++left.made;
    left.bytes += int64_t(future.bytes);
    if (guessed) note_size(future);
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

// The value is dead: queues may still hold the Future, but they do not read it.
void Engine::empty(Future& future, Left& left) {
    if (!future.value && !future.object) return;
    account(-1, -int64_t(future.bytes));
    if (future.value) left.values.push_back(std::move(future.value));
    if (future.object) left.objects.push_back(std::exchange(future.object, nullptr));
}

void Engine::drop_unneeded(Left& left) {
    while (!left.look.empty()) {
        Future& future = *left.look.back();
        left.look.pop_back();
        if (future.handles || future.readers || future.called) continue;
        if (future.state == Future::done) {
            empty(future, left);
        } else if (future.state <= Future::ready && !future.impure) {
            ++dropped_;
            end(future, Future::dropped, left);
        }
    }
}

void Engine::finish(Job& job, Left& left) {
    ++events_;
    left.futures.reserve(4 * job.members.size());
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        --running_;
        settle(*job.members[i], std::move(job.answers[i]), left);
        if (job.members[i]->readers == 0) left.look.push_back(job.members[i].get());
        left.futures.push_back(std::move(job.members[i]));
    }
    account(std::exchange(left.made, 0), std::exchange(left.bytes, 0)); // once: others count too
    drop_unneeded(left);
}

void Engine::wake_settled(Left& left) {
    for (Future* future : left.awaited) host_.wake(future->settlement, 1 << 30);
}

// Handles.

void Engine::hold_handle(Future& future) {
    Guard guard(lock_);
    ++future.handles;
    if (future.timeline) ++future.timeline->handles;
}

void Engine::drop_handle(Future& future) {
    Left left;
    Ref<Value> value; // all that most leave
    {
        Guard guard(lock_);
        --future.handles;
        if (future.timeline) forget_handle(future, left);
        bool needed = future.handles || future.readers || future.called;
        if (!needed && future.state == Future::done && future.value) {
            account(-1, -int64_t(future.bytes));
            value = std::move(future.value);
        } else if (!needed) {
            left.look.push_back(&future);
        }
        drop_unneeded(left);
        rest();
    }
    wake_settled(left);
}

bool Engine::call_when_settled(Future& future) {
    Left left;
    Wake waking = no_worker;
    {
        Guard guard(lock_);
        if (future.is_settled()) return false;
        future.called = true;
        mark_wanted(future, left);
        drop_unneeded(left);
        waking = needed();
    }
    wake_settled(left);
    call(waking);
    return true;
}

} // namespace tenfold
