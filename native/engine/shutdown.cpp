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
    Left left;
    bool gone = false;
    Wake waking = no_worker;
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

void Engine::close() {
    Guard guard(lock_);
    closed_ = true;
}

bool Engine::close_if_done() {
    Guard guard(lock_);
    if (pending_count_ == 0 && !lazy_) closed_ = true;
    return closed_;
}

void Engine::cancel_lazy(Left& left) {
    while (Future* future = lazy_) {
        retain(future);
        left.futures.push_back(Ref<Future>::adopt(future));
        fail(*future, cancelled_failure(), left);
    }
}

void Engine::cancel_all() {
    Left left;
    {
        Guard guard(lock_);
        cancel_lazy(left);
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

// A reader was pushed after its inputs. So the walk starts at the newest: it cancels each Future
// without readers, which may have been the last reader of an older one.
void Engine::cancel_unneeded() {
    Left left;
    {
        Guard guard(lock_);
        cancel_lazy(left);
        std::vector<Ref<Future>> pure;
        for (Future* future = pending_; future; future = future->after)
            if (!future->impure) pure.push_back(Ref<Future>(future));
        Ref<Failure> failure = cancelled_failure();
        for (Ref<Future>& future : pure) {
            if (future->state <= Future::ready && future->readers == 0)
                fail(*future, failure, left);
            left.futures.push_back(std::move(future));
        }
        drop_unneeded(left);
    }
    wake_settled(left);
}

} // namespace tenfold
