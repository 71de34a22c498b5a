// Timeline: records the engines' events and their times, while a recorder is open.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tenfold {

// A push, or that the inputs of an operator are there, or a step: a batch, or one operator.
struct TraceEvent {
    std::string name;
    const char* category;
    int64_t begin, end;                      // nanoseconds of the steady clock
    uint64_t thread;                         // as pthread_self() has it
    std::vector<uint64_t> operators, inputs; // push numbers
    double depth = 0;
};

// Memory and queue length at one time.
struct TraceCounter {
    int64_t time;
    int64_t bytes, objects;
    std::size_t pending;
};

struct Traces {
    std::vector<TraceEvent> events;
    std::vector<TraceEvent> running; // steps that have not ended: `end` is now
    std::vector<TraceCounter> counters;
};

struct OpenTrace; // trace of a step that has not ended

inline std::atomic<bool> tracing{false}; // relaxed: a thread that misses a change is a step late
// All of these may be called with any Lock held: they take no Lock.
void trace(TraceEvent event);
void trace(const TraceCounter& level);
OpenTrace* trace_begin(TraceEvent event);
void trace_end(OpenTrace* open);
// All since the last time. Steps that run come with the next ones, too.
Traces take_traces();
int64_t nanoseconds_now();
uint64_t this_pthread();

} // namespace tenfold
