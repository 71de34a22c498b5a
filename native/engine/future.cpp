#include "engine/future.h"

#include "engine/engine.h"
#include "memory/deferred_decref.h"

namespace tenfold {

void OptionSet::destroy(OptionSet* submitted) {
    defer_decref(submitted->context);
    delete submitted;
}

void Operation::destroy(Operation* operation) {
    defer_decref(operation->python);
    defer_decref(operation->params);
    defer_decref(operation->constants);
    defer_decref(operation->result_tree);
    delete operation;
}

void PushSite::destroy(PushSite* site) {
    defer_decref(site->code);
    delete site;
}

void Failure::destroy(Failure* failure) {
    if (failure->engine) failure->engine->forget_failure(*failure);
    if (failure->error && !failure->observed.load(std::memory_order_relaxed) && on_unobserved)
        on_unobserved(failure->error, failure->operation ? failure->operation->name : std::string(),
                      failure->site);
    else
        defer_decref(failure->error);
    delete failure;
}

namespace {

void free_future(Future* future) {
    if (future->value || future->object) future->engine->account(-1, -int64_t(future->bytes));
    if (future->object) defer_decref(future->object);
    if (future->type) release(future->type);
    Engine* engine = future->engine;
    delete future;
    release(engine);
}

} // namespace

// A chain of a million must not overflow the stack. These have no other references.
void Future::destroy(Future* future) {
    std::vector<Future*> dead; // most have no inputs any more
    for (;;) {
        for (Edge& edge : future->inputs())
            if (edge.input && drop(edge.input)) dead.push_back(edge.input);
        free_future(future);
        if (dead.empty()) return;
        future = dead.back();
        dead.pop_back();
    }
}

} // namespace tenfold
