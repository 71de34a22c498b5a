// Engine shutdown: fails cancelled operators, and those still pending when an engine ends.
#include "engine/engine.h"

namespace tenfold {
namespace {

Ref<Failure> cancelled_failure() {
    auto failure = Ref<Failure>::adopt(new Failure);
    failure->observed.store(true, std::memory_order_relaxed);
    return failure;
}

} // namespace

bool Engine::cancel(Future& future) {
    DeferredFrees frees;
    bool is_cancelled = false;
    Wake wakeup = no_worker;
    {
        Guard guard(lock_);
        if (future.state == Future::failed) return !future.failure->error;
        Future* target = cancellation_target(future, frees);
        if (target && target->state <= Future::ready) {
            is_cancelled = true;
            fail(*target, cancelled_failure(), frees);
            if (future.is_pending()) fail(future, target->failure, frees);
            drop_unreferenced(frees);
            unregister_if_idle();
            wakeup = select_wakeup();
        }
    }
    wake_settled(frees);
    wake_worker(wakeup);
    return is_cancelled;
}

void Engine::close() {
    Guard guard(lock_);
    closed_ = true;
}

bool Engine::close_if_done() {
    Guard guard(lock_);
    if (num_pending_ == 0 && !lazy_list_) closed_ = true;
    return closed_;
}

void Engine::cancel_lazy(DeferredFrees& frees) {
    while (Future* future = lazy_list_) {
        retain(future);
        frees.futures.push_back(Ref<Future>::adopt(future));
        fail(*future, cancelled_failure(), frees);
    }
}

void Engine::cancel_all() {
    DeferredFrees frees;
    {
        Guard guard(lock_);
        cancel_lazy(frees);
        std::vector<Ref<Future>> all;
        for (Future* future = pending_list_; future; future = future->next)
            if (future->state != Future::running) all.push_back(Ref<Future>(future));
        Ref<Failure> failure = cancelled_failure();
        for (Ref<Future>& future : all) {
            if (future->state <= Future::ready) fail(*future, failure, frees);
            frees.futures.push_back(std::move(future));
        }
        drop_unreferenced(frees);
    }
    wake_settled(frees);
}

// A reader is pushed after its inputs. So the newest Future comes first. A cancelled Future may
// have been the last reader of an older one.
void Engine::cancel_unneeded() {
    DeferredFrees frees;
    {
        Guard guard(lock_);
        cancel_lazy(frees);
        std::vector<Ref<Future>> pure;
        for (Future* future = pending_list_; future; future = future->next)
            if (!future->impure) pure.push_back(Ref<Future>(future));
        Ref<Failure> failure = cancelled_failure();
        for (Ref<Future>& future : pure) {
            if (future->state <= Future::ready && future->readers == 0)
                fail(*future, failure, frees);
            frees.futures.push_back(std::move(future));
        }
        drop_unreferenced(frees);
    }
    wake_settled(frees);
}

} // namespace tenfold
