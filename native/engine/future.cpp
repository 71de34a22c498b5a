#include "engine/future.h"

#include "engine/engine.h"
#include "memory/deferred_decref.h"

namespace tenfold {

void Submitted::destroy(Submitted* submitted) {
    release_later(submitted->context);
    delete submitted;
}

void Operation::destroy(Operation* operation) {
    release_later(operation->python);
    release_later(operation->params);
    release_later(operation->constants);
    release_later(operation->form);
    delete operation;
}

void PushSite::destroy(PushSite* site) {
    release_later(site->code);
    delete site;
}

void Failure::destroy(Failure* failure) {
    if (failure->engine) failure->engine->forget(*failure);
    if (failure->error && !failure->observed.load(std::memory_order_relaxed) && lost)
        lost(failure->error, failure->operation ? failure->operation->name : std::string(),
             failure->site);
    else
        release_later(failure->error);
    delete failure;
}

namespace {

void free_one(Future* future) {
    if (future->value || future->object) future->engine->account(-1, -int64_t(future->bytes));
    if (future->object) release_later(future->object);
    if (future->type) release(future->type);
    Engine* engine = future->engine;
    delete future;
    release(engine);
}

} // namespace

// A chain of a million must not overflow the stack. These have no other references.
void Future::destroy(Future* future) {
    std::vector<Future*> dead{future};
    while (!dead.empty()) {
        Future* next = dead.back();
        dead.pop_back();
        for (Edge& edge : next->inputs())
            if (edge.input && drop(edge.input)) dead.push_back(edge.input);
        free_one(next);
    }
}

} // namespace tenfold
