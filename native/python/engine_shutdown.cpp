// Engine shutdown: ends one engine, or all of them when the interpreter ends.
#include "python/engine_bindings.h"

#include <nanobind/stl/string.h>

namespace tenfold::bindings {

bool flush_all(Engine& engine) {
    uint64_t before;
    do {
        before = engine.pushed_by_operators();
        uint64_t last = engine.prioritize_all();
        while (Ref<Future> oldest = engine.oldest(last))
            if (wait_for_future(*oldest, -1, "flush") < 0 || PyErr_CheckSignals() != 0)
                return false;
    } while (engine.pushed_by_operators() != before);
    return true;
}

void finish_frees(Engine& engine) {
    engine.wait_for_frees();
    drain_decrefs();
    log_unobserved();
}

bool shut_down_engine(Engine& engine, bool cancel, double seconds) {
    engine.close();
    if (engine.is_from_parent_process()) return true;
    if (cancel) engine.cancel_all();
    bool ended;
    {
        nb::gil_scoped_release released;
        ended = engine.stop(is_inside_operator() ? 0 : int64_t(seconds * 1e9));
    }
    drain_decrefs();
    for (Ref<Failure>& failure : engine.take_unobserved()) log_failure(*failure);
    log_unobserved();
    return ended;
}

namespace {

constexpr double LAST_SECONDS = 0.1; // for operators that run when the time is over

// Until nothing is pending in any engine, or until a signal interrupts it. Results are not read.
void drain_engines(double until) {
    for (bool any = true; any;) {
        any = false;
        for (Ref<Engine>& engine : live_engines()) {
            if (engine->is_from_parent_process()) continue;
            engine->cancel_unneeded();
            uint64_t last = engine->prioritize_all();
            while (Ref<Future> oldest = engine->oldest(last)) {
                any = true;
                double left = std::max(0.0, until - seconds_now());
                if (wait_for_future(*oldest, left, "exit") != 1 || PyErr_CheckSignals() != 0)
                    return;
            }
        }
    }
}

} // namespace

nb::list shut_down_engines(double seconds) {
    nb::list left;
    drain_engines(seconds_now() + seconds);
    PyErr_Clear();
    for (Ref<Engine>& engine : live_engines()) {
        if (engine->is_from_parent_process()) continue;
        for (const Engine::PendingInfo& each : engine->pending())
            if (each.impure) left.append(nb::make_tuple(each.name, each.state == "running"));
        shut_down_engine(*engine, true, LAST_SECONDS);
    }
    return left;
}

} // namespace tenfold::bindings
