#include "trace.h"

#include <chrono>
#include <pthread.h>
#include <utility>

#include "lock.h"

namespace tenfold {
namespace {

struct Recorder {
    Lock lock; // protects traces
    Traces traces;
};
Recorder* const the_recorder = new Recorder; // made when the library is loaded

} // namespace

void trace(Traced event) {
    Guard guard(the_recorder->lock);
    the_recorder->traces.events.push_back(std::move(event));
}

void trace(const TracedLevel& level) {
    Guard guard(the_recorder->lock);
    the_recorder->traces.levels.push_back(level);
}

Traces take_traces() {
    Traces taken;
    Guard guard(the_recorder->lock);
    std::swap(taken, the_recorder->traces);
    return taken;
}

int64_t nanoseconds_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

uint64_t this_pthread() { return uint64_t(pthread_self()); }

} // namespace tenfold
