// Agenda: the engine's priority queue, single operators by critical path, batches by mean depth.
// All of it runs with the engine's Lock held, but for the wake-ups at the end.
#include <algorithm>

#include "engine/engine.h"
#include "threads/counters.h"

namespace tenfold {
namespace {

constexpr std::size_t ENOUGH = 256; // members that an idle worker does not wait on
// Of a batch, that one thread computes at a go: members at least, or so many elements.
constexpr std::size_t PART = 128, GRAIN = 1 << 16;

bool batches(const Operation& operation) {
    return operation.is_ours() || operation.is_users_batch();
}

} // namespace

// What has no parameters is known by what it does, under its options; else by its address.
Signature Engine::signature_of(const Operation& operation, std::span<Type* const> types) {
    Signature signature;
    signature.options = operation.options_number();
    signature.parts[0] = operation.op;
    if (operation.kind == Operation::general) signature.parts[0] = &operation;
    if (operation.planned) signature.parts[0] = operation.planned.get();
    for (std::size_t i = 0; i < types.size() && i + 1 < signature.parts.size(); ++i)
        signature.parts[i + 1] = types[i];
    return signature;
}

// The Batcher of an operation of tenfold on inputs of known Types, if that is known.
Batcher* Engine::classified(Future& future) {
    std::array<Type*, Future::FEW> types{};
    std::size_t count = 0;
    if (!future.operation->kept) return batcher_of({});
    if (future.operation->planned) return batcher_of(signature_of(*future.operation, {}));
    if (future.input_count > types.size()) return batcher_of({});
    for (Edge& edge : future.inputs()) {
        if (!edge.input->type) return future.missing > 0 ? nullptr : batcher_of({});
        types[count++] = edge.input->type;
    }
    Batcher* found = batcher_of(signature_of(*future.operation, {types.data(), count}));
    if (!found || !found->is_native()) return found;
    std::size_t position = 0;
    for (Edge& edge : future.inputs()) {
        const Scalar* scalar = edge.input->scalar.get();
        if (scalar && !found->takes(position, *scalar)) return batcher_of({});
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

// Under hold no batch is: a worker woken for each push would find nothing.
bool Engine::is_full(const Batcher& batcher) const {
    return holds_ == 0 &&
           (batcher.live >= ENOUGH || (limits_.batch && batcher.live >= limits_.batch));
}

void Engine::join(Batcher& batcher, Future& future) {
    future.batcher = &batcher;
    batcher.members.push_back(Ref<Future>(&future));
    ++batcher.live;
    batcher.wanted += future.wanted;
    batcher.depths += future.depth;
    if (!std::exchange(batcher.listed, true)) active_.push_back(&batcher);
    due_ |= future.wanted || is_full(batcher);
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

// With a limit of memory what has come far goes first: it is nearer to freeing what it reads.
uint32_t Engine::urgency(const Future& future) const {
    return limits_.memory ? future.depth : future.height;
}

// For the first time.
void Engine::become_ready(Future& future) {
    if (tracing.load(std::memory_order_relaxed)) {
        int64_t now = nanoseconds_now();
        std::vector<uint64_t> number{traced_number(future)};
        trace({future.operation->name, "ready", now, now, this_pthread(), std::move(number), {}});
    }
    make_ready(future);
}

void Engine::make_ready(Future& future) {
    future.state = Future::ready;
    bool batched = batches(*future.operation);
    if (!future.batcher && future.operation->is_ours()) future.batcher = classified(future);
    if (batched && !future.batcher) {
        loose_.push_back(Ref<Future>(&future));
        loose_wanted_ |= future.wanted;
    } else if (batched && future.batcher->kind != Operation::general) {
        join(*future.batcher, future);
    } else {
        (future.wanted ? urgent_ : ready_)
            .push({urgency(future), future.number, Ref<Future>(&future)});
    }
}
void Engine::mark_wanted(Future& future, Left& left) {
    std::vector<Future*> todo{&future};
    while (!todo.empty()) {
        Future& next = *todo.back();
        todo.pop_back();
        if (next.state == Future::lazy) demand(next, left);
        if (!next.is_pending() || next.wanted) continue;
        next.wanted = true;
        if (next.state == Future::ready) {
            if (!next.batcher && batches(*next.operation))
                loose_wanted_ = true;
            else if (next.batcher && next.batcher->kind != Operation::general)
                ++next.batcher->wanted, due_ = true;
            else
                urgent_.push({urgency(next), next.number, Ref<Future>(&next)});
        }
        for (Edge& edge : next.inputs())
            if (edge.input) todo.push_back(edge.input);
    }
}

void Engine::hold() {
    Guard guard(lock_);
    ++holds_;
}

void Engine::let_go() {
    Wake waking = no_worker;
    {
        Guard guard(lock_);
        --holds_;
        ++events_;
        due_ = true; // whether any is due is to be looked at anew
        waking = needed();
    }
    call(waking);
}

// Who calls this waits, and helps: no worker is woken.
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
    Wake waking = no_worker;
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

uint64_t Engine::want_all() {
    Left left;
    uint64_t last = 0;
    {
        Guard guard(lock_);
        demand_all(left);
        for (Future* future = pending_; future; future = future->after) {
            mark_wanted(*future, left);
            left.look.push_back(future);
        }
        drop_unneeded(left);
        last = arrived_;
    }
    wake_settled(left);
    return last;
}

uint64_t Engine::pushed_by_operators() {
    Guard guard(lock_);
    return pushed_by_operators_;
}

Ref<Future> Engine::oldest(uint64_t last) {
    Guard guard(lock_);
    return oldest_ && oldest_->arrival <= last ? Ref<Future>(oldest_) : Ref<Future>();
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
        if ((holds_ > 0 || (due && !is_full(*batcher))) && batcher->wanted == 0) continue;
        // depths / live as fractions
        if (!best || batcher->depths * best->live < best->depths * batcher->live) best = batcher;
    }
    if (due && !best) due_ = false;
    return best;
}

Job Engine::fire(Batcher& batcher) {
    Job job;
    bool rows = batcher.is_native();
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
    const GilFreeCall* call = rows ? job.members[0]->operation->planned.get() : nullptr;
    const Type* type = call ? call->pattern->type().get() : rows ? batcher.type().get() : nullptr;
    std::size_t size = type ? std::max<std::size_t>(1, type->size()) : 1;
    std::size_t most_of_part = std::max(PART, GRAIN / size);
    while (rows && job.members.size() > most_of_part) {
        Job part;
        part.kind = Job::rows;
        part.batcher = &batcher;
        part.first = false;
        auto from = job.members.end() - std::ptrdiff_t(most_of_part);
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
    for (Ref<Future>& future : loose_) {
        if (future->state == Future::ready) {
            future->state = Future::running; // meanwhile
            job.kind = Job::classify;
            job.members.push_back(std::move(future));
        } else {
            to_free_.push_back(std::move(future));
        }
    }
    loose_.clear();
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
    if (batcher && (!native || batcher->is_native())) return fire(*batcher);
    if (native) return {};
    if (Job job = from_heaps(); job.kind != Job::nothing) return job;
    if (!quiet || holds_ > 0) return {};
    if ((batcher = lowest(false))) return fire(*batcher);
    return {};
}

} // namespace tenfold
