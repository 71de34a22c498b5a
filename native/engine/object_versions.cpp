// Object versions: order in-place operators and increments of an object by their pushes. Increments
// are added by a tree whose shape depends on their number alone: runs of 64, sums of runs, sums of
// 64 sums. All of it runs with the engine's Lock held.
#include "engine/engine.h"

#include <algorithm>

namespace tenfold {
namespace {

constexpr std::size_t RUN = 64;

// What is added: the base, the blocks, the increments.
std::vector<Future*> inputs_of(const Increments& increments) {
    std::vector<Future*> inputs;
    for (Block* block = increments.blocks; block; block = block->next) inputs.push_back(block->sum);
    inputs.push_back(increments.base);
    std::reverse(inputs.begin(), inputs.end());
    const std::vector<Future*>& leaves = increments.leaves->futures;
    inputs.insert(inputs.end(), leaves.begin(), leaves.begin() + increments.count);
    return inputs;
}

} // namespace

Timeline& Engine::timeline_of(Future& future) {
    if (!future.timeline) {
        future.timeline = Ref<Timeline>::adopt(new Timeline);
        future.timeline->handles = future.handles;
        future.timeline->head = &future;
        retain(&future);
        ++future.readers;
    }
    return *future.timeline;
}

// The object keeps its newest version as long as it has handles.
void Engine::advance(Future& version, Timeline& timeline, Left& left) {
    version.timeline = Ref<Timeline>(&timeline);
    retain(&version);
    ++version.readers;
    unhead(std::exchange(timeline.head, &version), left);
}

void Engine::unhead(Future* head, Left& left) {
    if (head->state > Future::running) release_increments(*head, left);
    unread(head, left);
}

void Engine::forget_handle(Future& future, Left& left) {
    Timeline& timeline = *future.timeline;
    if (--timeline.handles > 0) return;
    if (Future* head = std::exchange(timeline.head, nullptr)) unhead(head, left);
}

// One without a handle.
Ref<Future> Engine::make(Ref<Operation> operation, std::span<Future* const> inputs,
                         const Ref<PushSite>& site, Left& left) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->site = site;
    future->impure = !operation->pure;
    future->operation = std::move(operation);
    future->number = pushed_;
    link(*future, inputs, left);
    begin(*future, left);
    return future;
}

void Engine::release(Leaves* leaves, Left& left) {
    if (!leaves || --leaves->users > 0) return;
    for (Future* leaf : leaves->futures) unread(leaf, left);
    delete leaves;
}

void Engine::release(Block* block, Left& left) {
    while (block && --block->users == 0) {
        unread(block->sum, left);
        Block* next = block->next;
        delete block;
        block = next;
    }
}

void Engine::release_increments(Future& future, Left& left) {
    std::unique_ptr<Increments> increments = std::move(future.increments);
    if (!increments) return;
    release(increments->leaves, left);
    release(increments->blocks, left);
    unread(increments->base, left);
    left.operations.push_back(std::move(increments->operation)); // freed without the Lock
}

// A full run becomes a sum, and as many sums as make a run one sum of the next level.
void Engine::close_leaves(Increments& increments, Left& left) {
    std::vector<Future*> inputs = increments.leaves->futures;
    for (uint32_t level = 0;; ++level) {
        Ref<Future> sum = make(increments.operation->sum, inputs, {}, left);
        Block* next = increments.blocks;
        uint32_t alike = next && next->level == level ? next->alike + 1 : 1;
        ++sum->readers;
        increments.blocks = new Block{1, sum.detach(), level, alike, next};
        if (alike < RUN) break;
        Block* rest = increments.blocks;
        inputs.assign(RUN, nullptr);
        for (std::size_t i = RUN; i-- > 0; rest = rest->next) inputs[i] = rest->sum;
        if (rest) ++rest->users;
        release(std::exchange(increments.blocks, rest), left);
    }
    release(std::exchange(increments.leaves, new Leaves{1, {}}), left);
}

void Engine::add_increment(Future& version, Future& head, Ref<Future> increment, Left& left) {
    // Else a version could stand among the very leaves that it keeps, and all stay for ever.
    if (increment->state == Future::lazy) demand(*increment, left);
    auto made = std::make_unique<Increments>();
    const Ref<Operation>& operation = version.operation;
    Increments* before = head.increments.get();
    bool follows =
        before && before->operation->options_number() == operation->options_number() &&
        (before->operation == operation || (before->operation->plain_add && operation->plain_add) ||
         before->operation->python == operation->python);
    made->operation = follows ? before->operation : operation;
    made->borrowed = operation->plain_run;
    made->base = follows ? before->base : &head;
    made->leaves = follows ? before->leaves : new Leaves;
    made->blocks = follows ? before->blocks : nullptr;
    retain(made->base);
    ++made->base->readers;
    ++made->leaves->users;
    if (made->blocks) ++made->blocks->users;
    if (made->leaves->futures.size() == RUN) close_leaves(*made, left);
    ++increment->readers;
    made->leaves->futures.push_back(increment.detach());
    made->count = uint32_t(made->leaves->futures.size());
    version.depth = head.depth + 1;
    version.impure = false;
    version.state = Future::lazy;
    version.increments = std::move(made);
    enlist(version);
}

// Its sum is to be computed, and first those that it needs: there may be a million.
void Engine::demand(Future& first, Left& left) {
    std::vector<Future*> todo{&first};
    while (!todo.empty()) {
        Future& future = *todo.back();
        std::size_t before = todo.size();
        std::vector<Future*> inputs;
        if (future.state == Future::lazy) inputs = inputs_of(*future.increments);
        for (Future* input : inputs)
            if (input->state == Future::lazy) todo.push_back(input);
        if (todo.size() > before) continue;
        todo.pop_back();
        if (future.state != Future::lazy) continue;
        if (future.before || future.after || lazy_ == &future) {
            unlist(future);
            left.futures.push_back(Ref<Future>::adopt(&future));
        }
        future.state = Future::waiting;
        left.operations.push_back(std::move(future.operation));
        future.operation = future.increments->operation->sum;
        link(future, inputs, left);
        begin(future, left);
    }
}

// Demands those with a handle; the others leave the list.
void Engine::demand_all(Left& left) {
    std::vector<Ref<Future>> all;
    while (Future* future = lazy_) {
        unlist(*future);
        all.push_back(Ref<Future>::adopt(future));
    }
    for (Ref<Future>& future : all) {
        if (future->handles > 0) demand(*future, left);
        left.futures.push_back(std::move(future));
    }
}

// What must not have started for it to be cancelled: of a version its increment.
Future* Engine::to_cancel(Future& future, Left& left) {
    Increments* increments = future.increments.get();
    if (!increments) return &future;
    std::vector<Future*>& leaves = increments->leaves->futures;
    Future*& leaf = leaves[increments->count - 1];
    if (!increments->borrowed) return leaf;
    if (!future.is_newest() || future.state > Future::ready) return nullptr;
    // The versions to come have an increment that was cancelled.
    retain(&future);
    ++future.readers;
    unread(std::exchange(leaf, &future), left);
    return &future;
}

} // namespace tenfold
