#include "engine/timeline.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <pthread.h>
#include <utility>

namespace tenfold {

struct OpenTrace {
    TraceEvent event;
    std::atomic<int64_t> end; // 0 while it runs; its writer touches nothing else afterwards
    OpenTrace* next = nullptr;
};

namespace {

struct CounterRecord {
    TraceCounter counter;
    CounterRecord* next = nullptr;
};

// Lock-free stacks that are popped as a whole: the callers hold the engine's Lock.
std::atomic<OpenTrace*> event_stack{nullptr};
std::atomic<CounterRecord*> counter_stack{nullptr};

template <class Note> void push(std::atomic<Note*>& stack, Note* note) {
    note->next = stack.load(std::memory_order_relaxed);
    while (!stack.compare_exchange_weak(note->next, note, std::memory_order_release,
                                        std::memory_order_relaxed)) {}
}

// The first that was noted comes first.
template <class Note> std::vector<Note*> take(std::atomic<Note*>& stack) {
    std::vector<Note*> records;
    for (Note* note = stack.exchange(nullptr, std::memory_order_acquire); note; note = note->next)
        records.push_back(note);
    std::reverse(records.begin(), records.end());
    return records;
}

// The parent's open events never end in the child.
const int registered = pthread_atfork(nullptr, nullptr, [] {
    event_stack.store(nullptr, std::memory_order_relaxed);
    counter_stack.store(nullptr, std::memory_order_relaxed);
});

} // namespace

OpenTrace* trace_begin(TraceEvent event) {
    auto* open = new OpenTrace{std::move(event), 0};
    push(event_stack, open);
    return open;
}

void trace_end(OpenTrace* open) { open->end.store(nanoseconds_now(), std::memory_order_release); }

void trace(TraceEvent event) {
    int64_t end = event.end;
    push(event_stack, new OpenTrace{std::move(event), end});
}

void trace(const TraceCounter& counter) { push(counter_stack, new CounterRecord{counter}); }

Traces take_traces() {
    Traces traces;
    for (CounterRecord* record : take(counter_stack)) {
        traces.counters.push_back(record->counter);
        delete record;
    }
    for (OpenTrace* record : take(event_stack)) {
        int64_t end = record->end.load(std::memory_order_acquire);
        if (end != 0) {
            record->event.end = end;
            traces.events.push_back(std::move(record->event));
            delete record;
        } else {
            traces.running.push_back(record->event);
            traces.running.back().end = nanoseconds_now();
            push(event_stack, record);
        }
    }
    return traces;
}

int64_t nanoseconds_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

uint64_t this_pthread() { return uint64_t(pthread_self()); }

} // namespace tenfold
