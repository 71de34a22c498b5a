// Object versions: order in-place operators and increments of an object by their pushes. Increments
// are added by a tree whose shape depends on their number alone. It has runs of 64, sums of runs,
// and sums of 64 sums. Every function runs with the engine's Lock held.
#include "engine/engine.h"

#include <algorithm>

namespace tenfold {
namespace {

constexpr std::size_t RUN_LENGTH = 64;

// The summands: the base, the blocks, the increments.
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

VersionChain& Engine::version_chain_of(Future& future) {
    if (!future.versions) {
        future.versions = Ref<VersionChain>::adopt(new VersionChain);
        future.versions->handles = future.handles;
        future.versions->head = &future;
        retain(&future);
        ++future.readers;
    }
    return *future.versions;
}

// The object keeps its newest version as long as it has handles.
void Engine::advance(Future& version, VersionChain& versions, DeferredFrees& frees) {
    version.versions = Ref<VersionChain>(&versions);
    retain(&version);
    ++version.readers;
    detach_head(std::exchange(versions.head, &version), frees);
}

void Engine::detach_head(Future* head, DeferredFrees& frees) {
    if (head->state > Future::running) release_increments(*head, frees);
    drop_reader(head, frees);
}

void Engine::release_version_handle(Future& future, DeferredFrees& frees) {
    VersionChain& versions = *future.versions;
    if (--versions.handles > 0) return;
    if (Future* head = std::exchange(versions.head, nullptr)) detach_head(head, frees);
}

// One without a handle.
Ref<Future> Engine::make_future(Ref<Operation> operation, std::span<Future* const> inputs,
                                const Ref<PushSite>& site, DeferredFrees& frees) {
    auto future = Ref<Future>::adopt(new Future);
    retain(this);
    future->engine = this;
    future->push_site = site;
    future->impure = !operation->pure;
    future->operation = std::move(operation);
    future->number = num_pushed_;
    link_inputs(*future, inputs, frees);
    schedule(*future, frees);
    return future;
}

void Engine::release(Leaves* leaves, DeferredFrees& frees) {
    if (!leaves || --leaves->users > 0) return;
    for (Future* leaf : leaves->futures) drop_reader(leaf, frees);
    delete leaves;
}

void Engine::release(Block* block, DeferredFrees& frees) {
    while (block && --block->users == 0) {
        drop_reader(block->sum, frees);
        Block* next = block->next;
        delete block;
        block = next;
    }
}

void Engine::release_increments(Future& future, DeferredFrees& frees) {
    std::unique_ptr<Increments> increments = std::move(future.increments);
    if (!increments) return;
    release(increments->leaves, frees);
    release(increments->blocks, frees);
    drop_reader(increments->base, frees);
    frees.operations.push_back(std::move(increments->operation)); // freed without the Lock
}

// A full run becomes a sum, and as many sums as make a run one sum of the next level.
void Engine::sum_full_run(Increments& increments, DeferredFrees& frees) {
    std::vector<Future*> inputs = increments.leaves->futures;
    for (uint32_t level = 0;; ++level) {
        Ref<Future> sum = make_future(increments.operation->sum, inputs, {}, frees);
        Block* next = increments.blocks;
        uint32_t num_at_level = next && next->level == level ? next->num_at_level + 1 : 1;
        ++sum->readers;
        increments.blocks = new Block{1, sum.detach(), level, num_at_level, next};
        if (num_at_level < RUN_LENGTH) break;
        Block* block = increments.blocks;
        inputs.assign(RUN_LENGTH, nullptr);
        for (std::size_t i = RUN_LENGTH; i-- > 0; block = block->next) inputs[i] = block->sum;
        if (block) ++block->users;
        release(std::exchange(increments.blocks, block), frees);
    }
    release(std::exchange(increments.leaves, new Leaves{1, {}}), frees);
}

void Engine::add_increment(Future& version, Future& head, Ref<Future> increment,
                           DeferredFrees& frees) {
    // Else a version could stand among the very leaves that it keeps, and all stay for ever.
    if (increment->state == Future::lazy) force(*increment, frees);
    auto increments = std::make_unique<Increments>();
    const Ref<Operation>& operation = version.operation;
    Increments* previous = head.increments.get();
    bool extends_run = previous &&
                       previous->operation->options_number() == operation->options_number() &&
                       (previous->operation == operation ||
                        (previous->operation->elementwise_add && operation->elementwise_add) ||
                        previous->operation->python == operation->python);
    increments->operation = extends_run ? previous->operation : operation;
    increments->is_input = operation->identity_increment;
    increments->base = extends_run ? previous->base : &head;
    increments->leaves = extends_run ? previous->leaves : new Leaves;
    increments->blocks = extends_run ? previous->blocks : nullptr;
    retain(increments->base);
    ++increments->base->readers;
    ++increments->leaves->users;
    if (increments->blocks) ++increments->blocks->users;
    if (increments->leaves->futures.size() == RUN_LENGTH) sum_full_run(*increments, frees);
    ++increment->readers;
    increments->leaves->futures.push_back(increment.detach());
    increments->count = uint32_t(increments->leaves->futures.size());
    version.depth = head.depth + 1;
    version.impure = false;
    version.state = Future::lazy;
    version.increments = std::move(increments);
    list_insert(version);
}

// Schedules its sum, and first the sums below it. A stack replaces recursion: a chain may have a
// million links.
void Engine::force(Future& first, DeferredFrees& frees) {
    std::vector<Future*> stack{&first};
    while (!stack.empty()) {
        Future& future = *stack.back();
        std::size_t before = stack.size();
        std::vector<Future*> inputs;
        if (future.state == Future::lazy) inputs = inputs_of(*future.increments);
        for (Future* input : inputs)
            if (input->state == Future::lazy) stack.push_back(input);
        if (stack.size() > before) continue;
        stack.pop_back();
        if (future.state != Future::lazy) continue;
        if (future.prev || future.next || lazy_list_ == &future) {
            list_remove(future);
            frees.futures.push_back(Ref<Future>::adopt(&future));
        }
        future.state = Future::waiting;
        frees.operations.push_back(std::move(future.operation));
        future.operation = future.increments->operation->sum;
        link_inputs(future, inputs, frees);
        schedule(future, frees);
    }
}

// Demands those with a handle; the others leave the list.
void Engine::force_all(DeferredFrees& frees) {
    std::vector<Ref<Future>> all;
    while (Future* future = lazy_list_) {
        list_remove(*future);
        all.push_back(Ref<Future>::adopt(future));
    }
    for (Ref<Future>& future : all) {
        if (future->handles > 0) force(*future, frees);
        frees.futures.push_back(std::move(future));
    }
}

// The Future whose start prevents the cancellation: for a version, that of its increment.
Future* Engine::cancellation_target(Future& future, DeferredFrees& frees) {
    Increments* increments = future.increments.get();
    if (!increments) return &future;
    std::vector<Future*>& leaves = increments->leaves->futures;
    Future*& leaf = leaves[increments->count - 1];
    if (!increments->is_input) return leaf;
    if (!future.is_newest() || future.state > Future::ready) return nullptr;
    // The versions to come have an increment that was cancelled.
    retain(&future);
    ++future.readers;
    drop_reader(std::exchange(leaf, &future), frees);
    return &future;
}

} // namespace tenfold
