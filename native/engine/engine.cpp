#include "engine/engine.h"

#include <algorithm>
#include <pthread.h>
#include <sched.h>

#include "engine/timeline.h"
#include "memory/deferred_decref.h"
#include "memory/prefetch.h"

namespace tenfold {
namespace {

constexpr int MAX_HEIGHT_STEPS = 4; // inputs up to which a push raises heights on the longest path

std::atomic<uint32_t> fork_count{0};
const int registered =
    pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });

struct Engines {
    Lock lock; // protects all
    std::vector<Engine*> all;
};
Engines* const engine_registry = new Engines; // made when the library is loaded

} // namespace

void DeferredFrees::free() {
    awaited.clear();
    for (void* object : objects) defer_decref(object);
    objects.clear();
    values.clear();
    constexpr std::size_t PREFETCH_DISTANCE = 8;
    for (std::size_t i = 0; i < futures.size(); ++i) {
        if (i + PREFETCH_DISTANCE < futures.size())
            prefetch_for_write(futures[i + PREFETCH_DISTANCE].get());
        futures[i] = {};
    }
    futures.clear();
    operations.clear();
}

namespace {
std::atomic<uint64_t> num_engines{0}; // relaxed: a count
}

Engine::Engine(const Limits& limits, Host& host)
    : limits_(limits), host_(host), fork_count_(fork_count.load(std::memory_order_relaxed)),
      engine_id_(num_engines.fetch_add(1, std::memory_order_relaxed)) {
    Guard guard(engine_registry->lock);
    engine_registry->all.push_back(this);
}

// Workers may still poll, or wait for the GIL, which the caller may hold. Then the last worker
// deletes the engine. The caller holds the GIL or is counted in `gil_free_threads`.
void Engine::destroy(Engine* engine) {
    {
        Guard guard(engine_registry->lock);
        std::erase(engine_registry->all, engine);
    }
    if (!engine->is_from_parent_process()) {
        Guard guard(engine->lock_);
        if (engine->num_alive_.load() > 0) {
            engine->register_gil_free();
            engine->is_orphan_ = engine->stopping_ = true;
            engine->signal_.fetch_add(1);
            engine->host_.wake(engine->signal_, 1 << 30);
            return;
        }
    }
    bool counted = engine->is_registered_;
    delete engine;
    if (counted) gil_free_threads.fetch_sub(1);
}

std::vector<Ref<Engine>> live_engines() {
    std::vector<Ref<Engine>> engines;
    Guard guard(engine_registry->lock);
    for (Engine* engine : engine_registry->all) {
        uint32_t count = engine->references.load();
        while (count > 0 && !engine->references.compare_exchange_weak(count, count + 1)) {}
        if (count > 0) engines.push_back(Ref<Engine>::adopt(engine));
    }
    return engines;
}

bool Engine::is_from_parent_process() const {
    return fork_count.load(std::memory_order_relaxed) != fork_count_;
}

// The engine counts as a GIL-free thread from a push until it is idle. Its workers count references
// without the GIL.
void Engine::register_gil_free() {
    if (is_registered_) return;
    is_registered_ = true;
    gil_free_threads.fetch_add(1);
}

void Engine::unregister_if_idle() {
    bool is_idle = num_pending_ == 0 && !lazy_list_ && num_busy_ == 0 && active_.empty() &&
                   ready_.empty() && urgent_.empty() && unclassified_.empty() &&
                   batch_parts_.empty() && to_call_.empty() && to_free_.empty();
    if (!is_registered_ || !is_idle || is_orphan_) return; // an orphan is freed by its last worker
    is_registered_ = false;
    gil_free_threads.fetch_sub(1);
}

// Lists of pending Futures, and of versions with unsummed increments.

Future*& Engine::list_of(Future& future) {
    return future.state == Future::lazy ? lazy_list_ : pending_list_;
}

void Engine::list_insert(Future& future) {
    register_gil_free();
    Future*& list = list_of(future);
    retain(&future);
    future.next = list;
    future.prev = nullptr;
    if (list) list->prev = &future;
    list = &future;
    if (future.state == Future::lazy) return;
    if (num_pending_++ == 0) oldest_ = &future;
    future.arrival = ++num_arrivals_;
}

// The list's count goes to the caller.
void Engine::list_remove(Future& future) {
    Future*& list = list_of(future);
    if (oldest_ == &future) oldest_ = future.prev;
    (future.prev ? future.prev->next : list) = future.next;
    if (future.next) future.next->prev = future.prev;
    future.prev = future.next = nullptr;
    if (future.state != Future::lazy) --num_pending_;
}

// Pushing.

void Engine::set_result(Future& future, OperatorResult&& answer) {
    future.value = std::move(answer.value);
    future.object = answer.object;
    future.scalar = std::move(answer.scalar);
    future.bytes = answer.bytes;
    bool several = future.operation && future.operation->result_tree;
    if (!future.type && !several)
        future.type = (future.value ? future.value->type : std::move(answer.type)).detach();
    if (future.value) future.bytes = 0;
    for (const Value* value = future.value.get(); value;
         value = several ? value->next.get() : nullptr)
        future.bytes += value->is_view ? value->type->bytes() : value->buffers[0].allocation->bytes;
}

Ref<Future> Engine::put(OperatorResult answer) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->state = Future::done;
    set_result(*future, std::move(answer));
    account(1, int64_t(future->bytes));
    future->settlement.store(Future::settled, std::memory_order_release);
    return future;
}

OperatorResult Engine::take_if_unique(Future& input) {
    OperatorResult answer;
    Guard guard(lock_);
    if (input.handles > 0 || input.readers > 1 || input.state != Future::done) return answer;
    answer.value = std::move(input.value);
    answer.object = std::exchange(input.object, nullptr);
    if (!answer.empty()) account(-1, -int64_t(input.bytes));
    return answer;
}

void Engine::link_inputs(Future& future, std::span<Future* const> inputs, DeferredFrees& frees) {
    future.input_count = uint32_t(inputs.size());
    if (inputs.size() > Future::INLINE_INPUTS)
        future.heap_edges = std::make_unique<Edge[]>(inputs.size());
    std::span<Edge> edges = future.inputs();
    std::ranges::fill(edges, Edge{}); // a failure of one input may complete the Future meanwhile
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        Future* input = inputs[i];
        Edge& edge = edges[i];
        edge.input = input;
        retain(input);
        ++input->readers;
        if (input->state == Future::lazy) force(*input, frees);
        future.depth = std::max(future.depth, input->depth + 1);
        if (!input->is_pending()) continue;
        ++future.num_missing;
        edge.reader = &future;
        retain(&future);
        edge.next = input->waiters;
        input->waiters = &edge;
    }
}

// Raises the heights of the inputs, which are on a longer path now.
void Engine::propagate_height(Future& future) {
    Future* above = &future;
    for (int i = 0; i < MAX_HEIGHT_STEPS; ++i) {
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

// Schedules an operator whose inputs are linked.
void Engine::schedule(Future& future, DeferredFrees& frees) {
    list_insert(future);
    for (Edge& edge : future.inputs())
        if (edge.input->state == Future::failed) {
            fail(future, edge.input->failure, frees);
            return;
        }
    if (future.operation->is_builtin()) {
        future.batcher = find_batcher(future);
        const PlannedGraph* call = future.operation->planned_graph.get();
        Ref<Type> type;
        if (call && call->graph_template && !future.operation->result_tree)
            type = call->graph_template->type(); // whether by its plan or by Python
        else if (!call && future.batcher)
            type = future.batcher->result;
        future.type_is_known = bool(type);
        if (type) future.type = type.detach();
    }
    if (limits_.max_bytes) reserve_memory(future);
    if (future.num_missing == 0)
        on_ready(future);
    else
        propagate_height(future);
}

namespace {

void trace_push(const Future& future, std::span<Future* const> inputs) {
    const Engine& engine = *future.engine;
    int64_t now = nanoseconds_now();
    TraceEvent event{future.operation->name, "push", now, now, this_pthread(), {}, {}};
    event.operators.push_back(engine.trace_id(future));
    for (Future* input : inputs)
        if (input->number) event.inputs.push_back(engine.trace_id(*input));
    trace(std::move(event));
}

} // namespace

Ref<Future> Engine::push(Ref<Operation> operation, Ref<PushSite> site,
                         std::span<Future* const> inputs, bool by_operator, std::size_t bytes) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->push_site = std::move(site);
    future->impure = !operation->pure;
    future->handles = 1;
    Operation::Kind kind = operation->kind;
    future->operation = std::move(operation);
    DeferredFrees frees;
    Wake wakeup = no_worker;
    {
        Guard guard(lock_);
        if (closed_) return {};
        future->number = ++num_pushed_;
        num_pushed_by_operators_ += by_operator;
        ++num_events_;
        bool is_traced = tracing.load(std::memory_order_relaxed);
        if (kind == Operation::in_place || kind == Operation::cumulative) {
            VersionChain& versions = version_chain_of(*inputs[0]);
            std::vector<Future*> version_inputs(inputs.begin(), inputs.end());
            version_inputs[0] = versions.head;
            if (is_traced) trace_push(*future, version_inputs);
            if (kind == Operation::in_place) {
                link_inputs(*future, version_inputs, frees);
                schedule(*future, frees);
            } else {
                Ref<Future> increment = future->operation->identity_increment
                                            ? Ref<Future>(version_inputs[1])
                                            : make_future(future->operation, inputs.subspan(1),
                                                          future->push_site, frees);
                add_increment(*future, *version_inputs[0], std::move(increment), frees);
            }
            advance(*future, versions, frees);
            ++versions.handles;
        } else {
            if (is_traced) trace_push(*future, inputs);
            future->bytes = bytes;
            link_inputs(*future, inputs, frees);
            schedule(*future, frees);
        }
        if (!frees.unread.empty()) drop_unreferenced(frees);
        wakeup = select_wakeup();
    }
    wake_settled(frees);
    wake_worker(wakeup);
    return future;
}

// Ending.

void Engine::drop_reader(Future* input, DeferredFrees& frees) {
    bool is_needed = --input->readers > 0 || input->handles || input->has_callback;
    if (is_needed) return release_later(input, frees);
    frees.unread.push_back(input);
    frees.futures.push_back(Ref<Future>::adopt(input)); // alive as long as it is in `unread`
}

// Gives a count up; the last one without the Lock.
void Engine::release_later(Future* future, DeferredFrees& frees) {
    if (!drop(future)) return;
    future->references.store(1, std::memory_order_relaxed); // nothing else refers to it
    frees.futures.push_back(Ref<Future>::adopt(future));
}

void Engine::release_inputs(Future& future, DeferredFrees& frees) {
    for (Edge& edge : future.inputs())
        if (Future* input = std::exchange(edge.input, nullptr)) drop_reader(input, frees);
    if (!future.is_newest()) release_increments(future, frees);
}

void Engine::complete(Future& future, Future::State state, DeferredFrees& frees) {
    remove_from_batch(future, frees);
    if (state != Future::done) unreserve_memory(future);
    bool was_listed =
        future.state != Future::lazy || future.prev || future.next || lazy_list_ == &future;
    if (was_listed) {
        list_remove(future);
        frees.futures.push_back(Ref<Future>::adopt(&future));
    }
    future.state = state;
    release_inputs(future, frees);
    Edge* edge = std::exchange(future.waiters, nullptr);
    while (edge) {
        Edge* next = edge->next;
        Future* reader = std::exchange(edge->reader, nullptr);
        if (reader->state == Future::waiting) {
            if (state == Future::failed)
                fail(*reader, future.failure, frees);
            else if (--reader->num_missing == 0)
                on_ready(*reader);
        }
        frees.futures.push_back(Ref<Future>::adopt(reader));
        edge = next;
    }
    // A user's operator lives as long as it is needed; of its Operation the name stays.
    Operation& operation = *future.operation;
    bool owns_objects = operation.kind == Operation::user ||
                        operation.kind == Operation::in_place ||
                        (operation.kind == Operation::batched && !operation.stacked_number);
    if (owns_objects) {
        frees.objects.push_back(std::exchange(operation.python, nullptr));
        frees.objects.push_back(std::exchange(operation.params, nullptr));
    }
    if (future.settlement.exchange(Future::settled, std::memory_order_acq_rel) == Future::awaited) {
        retain(&future);
        frees.futures.push_back(Ref<Future>::adopt(&future));
        frees.awaited.push_back(&future);
    }
    if (future.has_callback) to_call_.push_back(Ref<Future>(&future));
}

void Engine::settle(Future& future, OperatorResult&& answer, DeferredFrees& frees) {
    if (answer.failure) {
        Failure& failure = *answer.failure;
        if (!failure.engine) failures_.push_back(&failure);
        failure.engine = this;
        return fail(future, std::move(answer.failure), frees);
    }
    bool guessed = future.size_is_guess;
    unreserve_memory(future);
    set_result(future, std::move(answer));
    ++frees.num_results;
    frees.bytes += int64_t(future.bytes);
    if (guessed) update_size_estimate(future);
    ++num_done_;
    complete(future, Future::done, frees);
}

// And all that depends on it, one by one.
void Engine::fail(Future& root, Ref<Failure> failure, DeferredFrees& frees) {
    frees.failure_queue.emplace_back(&root, std::move(failure));
    if (std::exchange(frees.draining_failures, true)) return;
    while (!frees.failure_queue.empty()) {
        auto [future, failure] = std::move(frees.failure_queue.back());
        frees.failure_queue.pop_back();
        if (!future->is_pending()) continue;
        ++(failure->error ? num_failed_ : num_cancelled_);
        future->failure = std::move(failure);
        complete(*future, Future::failed, frees);
    }
    frees.draining_failures = false;
}

// The value is dead: queues may still hold the Future, but they do not read it.
void Engine::clear_value(Future& future, DeferredFrees& frees) {
    if (!future.value && !future.object) return;
    account(-1, -int64_t(future.bytes));
    if (future.value) frees.values.push_back(std::move(future.value));
    if (future.object) frees.objects.push_back(std::exchange(future.object, nullptr));
}

void Engine::drop_unreferenced(DeferredFrees& frees) {
    while (!frees.unread.empty()) {
        Future& future = *frees.unread.back();
        frees.unread.pop_back();
        if (future.handles || future.readers || future.has_callback) continue;
        if (future.state == Future::done) {
            clear_value(future, frees);
        } else if (future.state <= Future::ready && !future.impure) {
            ++num_dropped_;
            complete(future, Future::dropped, frees);
        }
    }
}

namespace {

// The lines of a Future that its end changes, and then those of its inputs.
void prefetch_completion(std::span<const Ref<Future>> members, std::size_t i) {
    constexpr std::size_t DISTANCE = 4; // members on the way, from one level to the next
    if (i + 2 * DISTANCE < members.size()) {
        const auto* lines = reinterpret_cast<const char*>(members[i + 2 * DISTANCE].get());
        for (std::size_t offset = 0; offset < sizeof(Future); offset += alignof(Future))
            prefetch_for_write(lines + offset);
    }
    if (i + DISTANCE < members.size())
        for (Edge& edge : members[i + DISTANCE]->inputs())
            if (edge.input) prefetch_for_write(edge.input);
}

} // namespace

void Engine::finish_job(Job& job, DeferredFrees& frees) {
    ++num_events_;
    frees.futures.reserve(4 * job.members.size());
    for (std::size_t i = 0; i < job.members.size(); ++i) {
        prefetch_completion(job.members, i);
        --num_running_;
        settle(*job.members[i], std::move(job.answers[i]), frees);
        const Future& member = *job.members[i];
        if (member.readers == 0 && member.handles == 0 && !member.has_callback)
            frees.unread.push_back(job.members[i].get());
        frees.futures.push_back(std::move(job.members[i]));
    }
    account(std::exchange(frees.num_results, 0),
            std::exchange(frees.bytes, 0)); // once: others count too
    drop_unreferenced(frees);
}

void Engine::wake_settled(DeferredFrees& frees) {
    for (Future* future : frees.awaited) host_.wake(future->settlement, 1 << 30);
}

// Handles.

void Engine::retain_handle(Future& future) {
    Guard guard(lock_);
    ++future.handles;
    if (future.versions) ++future.versions->handles;
}

void Engine::release_handle(Future& future) {
    DeferredFrees frees;
    Ref<Value> value; // all that most leave
    {
        Guard guard(lock_);
        --future.handles;
        if (future.versions) release_version_handle(future, frees);
        bool needed = future.handles || future.readers || future.has_callback;
        if (!needed && future.state == Future::done && future.value) {
            account(-1, -int64_t(future.bytes));
            value = std::move(future.value);
        } else if (!needed) {
            frees.unread.push_back(&future);
        }
        drop_unreferenced(frees);
        unregister_if_idle();
    }
    wake_settled(frees);
}

bool Engine::notify_when_settled(Future& future) {
    DeferredFrees frees;
    Wake wakeup = no_worker;
    {
        Guard guard(lock_);
        if (future.is_settled()) return false;
        future.has_callback = true;
        mark_urgent(future, frees);
        drop_unreferenced(frees);
        wakeup = select_wakeup();
    }
    wake_settled(frees);
    wake_worker(wakeup);
    return true;
}

} // namespace tenfold
