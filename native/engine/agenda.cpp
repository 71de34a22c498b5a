// Agenda: the engine's priority queue, single operators by critical path, batches by mean depth.
// Every function runs with the engine's Lock held, except the wake-ups at the end.
#include <algorithm>

#include "engine/engine.h"
#include "exec/batch_policy.h"
#include "threads/counters.h"

namespace tenfold {
namespace {

bool is_batchable(const Operation& operation) {
    return operation.is_builtin() || operation.is_users_batch();
}

} // namespace

// An operation without parameters is identified by its op and options, any other by its address.
BatcherKey Engine::signature_of(const Operation& operation, std::span<Type* const> types) {
    BatcherKey signature;
    signature.options = operation.options_number();
    signature.parts[0] = operation.op;
    if (operation.kind == Operation::general) signature.parts[0] = &operation;
    if (operation.planned_graph) signature.parts[0] = operation.planned_graph.get();
    if (operation.stacked_number)
        signature.parts[0] = reinterpret_cast<const void*>(operation.stacked_number);
    for (std::size_t i = 0; i < types.size() && i + 1 < signature.parts.size(); ++i)
        signature.parts[i + 1] = types[i];
    return signature;
}

// The Batcher of an operation of tenfold on inputs of known Types, if that is known.
Batcher* Engine::find_batcher(Future& future) {
    std::array<Type*, Future::INLINE_INPUTS> types{};
    std::size_t count = 0;
    if (!future.operation->memoized) return batcher_of({});
    if (future.operation->planned_graph) return batcher_of(signature_of(*future.operation, {}));
    if (future.input_count > types.size()) return batcher_of({});
    for (Edge& edge : future.inputs()) {
        if (!edge.input->type) return future.num_missing > 0 ? nullptr : batcher_of({});
        types[count++] = edge.input->type;
    }
    Batcher* found = batcher_of(signature_of(*future.operation, {types.data(), count}));
    if (!found || !found->is_native()) return found;
    std::size_t position = 0;
    for (Edge& edge : future.inputs()) {
        const Scalar* scalar = edge.input->scalar.get();
        if (scalar && !found->accepts_scalar(position, *scalar)) return batcher_of({});
        ++position;
    }
    return found;
}

// The Batcher of a user's operator on arrays that are stacked; null for other inputs.
Batcher* Engine::find_stacked_batcher(Future& future) {
    std::array<Type*, Future::INLINE_INPUTS> types{};
    if (future.input_count > types.size()) return nullptr;
    std::size_t count = 0;
    for (Edge& edge : future.inputs()) {
        if (!edge.input->value) return nullptr;
        types[count++] = edge.input->type;
    }
    auto& batcher = batchers_[signature_of(*future.operation, {types.data(), count})];
    if (!batcher) batcher = std::make_unique<Batcher>();
    batcher->runs_alone = false;
    return batcher.get();
}

Batcher* Engine::batcher_of(const BatcherKey& signature) {
    if (last_batcher_.second && last_batcher_.first == signature) return last_batcher_.second;
    auto found = batchers_.find(signature);
    if (found == batchers_.end()) return nullptr;
    last_batcher_ = {signature, found->second.get()};
    return found->second.get();
}

Engine::Batchers Engine::make_batchers() {
    Batchers batchers;
    batchers.emplace(BatcherKey(), std::make_unique<Batcher>()); // for operators that run alone
    return batchers;
}

Batcher& Engine::add_batcher(const BatcherKey& signature, Batcher&& batcher) {
    auto owner = std::make_unique<Batcher>(std::move(batcher));
    Batchers unused; // freed after the Lock
    Guard guard(lock_);
    bool is_idle = num_pending_ == 0 && !lazy_list_ && num_busy_ == 0; // no Future has a Batcher
    if (is_idle && batchers_.size() >= MAX_IDLE_BATCHERS) {
        unused = std::exchange(batchers_, make_batchers());
        last_batcher_ = {};
    }
    return *batchers_.emplace(signature, std::move(owner)).first->second;
}

// Under hold no batch is: a worker woken for each push would find nothing.
bool Engine::is_full(const Batcher& batcher) const {
    return num_holds_ == 0 && (batcher.num_live >= BATCHES.full_members ||
                               (limits_.max_batch && batcher.num_live >= limits_.max_batch));
}

void Engine::add_to_batch(Batcher& batcher, Future& future) {
    future.batcher = &batcher;
    (future.urgent ? batcher.urgent_members : batcher.members).push(future);
    if (batcher.num_live++ == 0) batcher.listing = ++num_listings_;
    batcher.num_urgent += future.urgent;
    batcher.sum_depths += future.depth;
    update_heaps(batcher);
}

void Engine::take_live(Batcher& batcher, const Future& future) {
    --batcher.num_live;
    batcher.num_urgent -= future.urgent;
    batcher.sum_depths -= future.depth;
}

void Engine::update_heaps(Batcher& batcher) {
    bool is_active = batcher.num_live > 0;
    active_.update(batcher, is_active);
    due_.update(batcher, is_active && (batcher.num_urgent > 0 || is_full(batcher)));
}

// One that has been dropped or cancelled; its place among the members stays while others are live.
void Engine::remove_from_batch(Future& future, DeferredFrees& frees) {
    Batcher* batcher = future.batcher;
    if (future.state != Future::ready || !batcher || batcher->runs_alone) return;
    take_live(*batcher, future);
    update_heaps(*batcher);
    if (batcher->num_live == 0) batcher->clear_members(frees.futures);
}

// The user's priority, then the critical path. Under a memory limit the deepest operators go first:
// they are nearer to freeing their inputs.
int64_t Engine::priority(const Future& future) const {
    uint32_t height = limits_.max_bytes ? future.depth : future.height;
    return int64_t(future.operation->priority) * (int64_t(1) << 32) + height;
}

// For the first time.
void Engine::on_ready(Future& future) {
    if (tracing.load(std::memory_order_relaxed)) {
        int64_t now = nanoseconds_now();
        std::vector<uint64_t> number{trace_id(future)};
        trace({future.operation->name, "ready", now, now, this_pthread(), std::move(number), {}});
    }
    enqueue(future);
}

void Engine::enqueue(Future& future) {
    future.state = Future::ready;
    bool batched = is_batchable(*future.operation);
    if (!future.batcher && future.operation->is_builtin()) future.batcher = find_batcher(future);
    if (!future.batcher && future.operation->stacked_number)
        future.batcher = find_stacked_batcher(future);
    if (batched && !future.batcher) {
        unclassified_.push_back(Ref<Future>(&future));
        unclassified_urgent_ |= future.urgent;
    } else if (batched && !future.batcher->runs_alone) {
        add_to_batch(*future.batcher, future);
    } else {
        (future.urgent ? urgent_ : ready_)
            .push({priority(future), future.number, Ref<Future>(&future)});
    }
}

void Engine::mark_urgent(Future& future, DeferredFrees& frees) {
    std::vector<Future*>& stack = urgent_stack_;
    stack.push_back(&future);
    while (!stack.empty()) {
        Future& next = *stack.back();
        stack.pop_back();
        if (next.state == Future::lazy) force(next, frees);
        if (!next.is_pending() || next.urgent) continue;
        next.urgent = true;
        if (next.state == Future::ready) mark_ready_urgent(next);
        if (next.num_missing == 0) continue; // its inputs are there
        std::span<Edge> inputs = next.inputs();
        for (std::size_t i = inputs.size(); i-- > 0;) // the first one comes first
            if (inputs[i].input) stack.push_back(inputs[i].input);
    }
}

void Engine::mark_ready_urgent(Future& future) {
    if (!future.batcher && is_batchable(*future.operation)) {
        unclassified_urgent_ = true;
    } else if (future.batcher && !future.batcher->runs_alone) {
        // Else all members are taken, in their order.
        if (num_holds_ > 0 || limits_.max_batch) future.batcher->urgent_members.push(future);
        if (future.batcher->num_urgent++ == 0) update_heaps(*future.batcher);
    } else {
        urgent_.push({priority(future), future.number, Ref<Future>(&future)});
    }
}

void Engine::hold() {
    Guard guard(lock_);
    if (num_holds_++ > 0) return;
    update_all_heaps();
    for (Batcher* batcher : active_.entries()) queue_urgent_members(*batcher);
}

// Under hold urgent members alone are taken, from a queue of theirs.
void Engine::queue_urgent_members(Batcher& batcher) {
    if (batcher.num_urgent == 0) return;
    PooledVector<Ref<Future>> members;
    batcher.members.clear(members);
    for (Ref<Future>& member : members)
        (member->urgent ? batcher.urgent_members : batcher.members).push(*member);
    std::move(members.begin(), members.end(), std::back_inserter(to_free_));
}

// Which Batchers are full depends on whether a hold is in force.
void Engine::update_all_heaps() {
    std::vector<Batcher*> batchers = active_.entries();
    for (Batcher* batcher : batchers) update_heaps(*batcher);
}

void Engine::release_hold() {
    Wake wakeup = no_worker;
    {
        Guard guard(lock_);
        if (--num_holds_ == 0) update_all_heaps();
        ++num_events_;
        wakeup = select_wakeup();
    }
    wake_worker(wakeup);
}

// Who calls this waits, and helps: no worker is woken.
void Engine::prioritize(Future& future) {
    DeferredFrees frees;
    {
        Guard guard(lock_);
        mark_urgent(future, frees);
        drop_unreferenced(frees);
    }
    wake_settled(frees);
}

void Engine::force_sum(Future& future) {
    DeferredFrees frees;
    Wake wakeup = no_worker;
    {
        Guard guard(lock_);
        if (future.state != Future::lazy || num_holds_ > 0) return;
        force(future, frees);
        drop_unreferenced(frees);
        wakeup = select_wakeup();
    }
    wake_settled(frees);
    wake_worker(wakeup);
}

uint64_t Engine::prioritize_all() {
    DeferredFrees frees;
    uint64_t last = 0;
    {
        Guard guard(lock_);
        force_all(frees);
        for (Future* future = oldest_; future; future = future->prev) {
            mark_urgent(*future, frees);
            bool is_needed = future->handles || future->readers || future->has_callback;
            if (!is_needed) frees.unread.push_back(future);
        }
        drop_unreferenced(frees);
        last = num_arrivals_;
    }
    wake_settled(frees);
    return last;
}

uint64_t Engine::pushed_by_operators() {
    Guard guard(lock_);
    return num_pushed_by_operators_;
}

Ref<Future> Engine::oldest(uint64_t last) {
    Guard guard(lock_);
    return oldest_ && oldest_->arrival <= last ? Ref<Future>(oldest_) : Ref<Future>();
}

// Under hold urgent members alone; else the others behind them.
PooledVector<Ref<Future>> Engine::take_members(Batcher& batcher) {
    PooledVector<Ref<Future>> members;
    std::size_t max_members = limits_.max_batch ? limits_.max_batch : batcher.num_live;
    bool is_ordered = true;
    auto take_from = [&](MemberQueue& queue) {
        while (members.size() < max_members && !queue.empty()) {
            Ref<Future> member = queue.pop();
            if (member->state != Future::ready) {
                to_free_.push_back(std::move(member));
                continue;
            }
            take_live(batcher, *member);
            member->state = Future::running;
            is_ordered &= members.empty() || members.back()->number <= member->number;
            members.push_back(std::move(member));
        }
    };
    take_from(batcher.urgent_members);
    if (num_holds_ == 0) take_from(batcher.members);
    update_heaps(batcher);
    if (batcher.num_live == 0) batcher.clear_members(to_free_);
    if (!is_ordered)
        std::ranges::stable_sort(members, {}, [](const auto& member) { return member->number; });
    return members;
}

Job Engine::start_batch(Batcher& batcher) {
    Job job;
    bool is_native = batcher.is_native();
    job.kind = is_native ? Job::rows : Job::python;
    job.batcher = &batcher;
    job.members = take_members(batcher);
    num_running_ += job.members.size();
    ++num_batches_;
    ++batch_sizes_[job.members.size()];
    if (job.members.size() > 1) count_anywhere(Counter::batches);
    if (!is_native || batcher.stacks) return job;
    std::size_t max_part = max_part_members(batcher.result.get());
    while (job.members.size() > max_part) {
        Job part;
        part.kind = Job::rows;
        part.batcher = &batcher;
        auto from = job.members.end() - std::ptrdiff_t(max_part);
        part.members.assign(std::make_move_iterator(from),
                            std::make_move_iterator(job.members.end()));
        job.members.erase(from, job.members.end());
        batch_parts_.push_front(std::move(part));
    }
    return job;
}

Job Engine::pop_ready() {
    Job job;
    for (Heap* heap : {&urgent_, &ready_}) {
        if (heap == &ready_ && num_holds_ > 0) break;
        while (!heap->empty() && job.members.empty()) {
            Ref<Future> future = heap->top().future;
            heap->pop();
            if (future->state == Future::ready) {
                future->state = Future::running;
                ++num_running_;
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

Job Engine::pop_unclassified() {
    Job job;
    if (unclassified_.empty() || (num_holds_ > 0 && !unclassified_urgent_)) return job;
    for (Ref<Future>& future : unclassified_) {
        if (future->state == Future::ready) {
            future->state = Future::running; // meanwhile
            job.kind = Job::classify;
            job.members.push_back(std::move(future));
        } else {
            to_free_.push_back(std::move(future));
        }
    }
    unclassified_.clear();
    unclassified_urgent_ = false;
    return job;
}

// `native`: nothing that needs the GIL; `quiet`: nothing has happened for a while.
Job Engine::pick_job(bool native_only, bool is_idle) {
    if (!batch_parts_.empty()) {
        Job job = std::move(batch_parts_.front());
        batch_parts_.pop_front();
        return job;
    }
    if (!native_only && !to_call_.empty()) {
        Job job;
        job.kind = Job::callbacks;
        job.members.swap(to_call_);
        return job;
    }
    if (!native_only)
        if (Job job = pop_unclassified(); job.kind != Job::nothing) return job;
    Batcher* batcher = due_.top();
    if (batcher && (!native_only || batcher->is_native())) return start_batch(*batcher);
    if (native_only) return {};
    if (Job job = pop_ready(); job.kind != Job::nothing) return job;
    if (!is_idle || num_holds_ > 0) return {};
    if ((batcher = active_.top())) return start_batch(*batcher);
    return {};
}

} // namespace tenfold
