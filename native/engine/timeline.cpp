#include "engine/timeline.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <pthread.h>
#include <utility>

namespace tenfold {

struct OpenTrace {
    Traced event;
    std::atomic<int64_t> end; // 0 while it runs; who writes it touches nothing else after it
    OpenTrace* next = nullptr;
};

namespace {

struct NotedCounter {
    TracedCounter level;
    NotedCounter* next = nullptr;
};

// Stacks that are taken as a whole: no Lock, for the engine's is held by who notes something here.
std::atomic<OpenTrace*> events{nullptr};
std::atomic<NotedCounter*> levels{nullptr};

template <class Note> void push(std::atomic<Note*>& stack, Note* note) {
    note->next = stack.load(std::memory_order_relaxed);
    while (!stack.compare_exchange_weak(note->next, note, std::memory_order_release,
                                        std::memory_order_relaxed)) {}
}

// The first that was noted comes first.
template <class Note> std::vector<Note*> take(std::atomic<Note*>& stack) {
    std::vector<Note*> taken;
    for (Note* note = stack.exchange(nullptr, std::memory_order_acquire); note; note = note->next)
        taken.push_back(note);
    std::reverse(taken.begin(), taken.end());
    return taken;
}

// What the threads of the parent were doing does not end in the child.
const int registered = pthread_atfork(nullptr, nullptr, [] {
    events.store(nullptr, std::memory_order_relaxed);
    levels.store(nullptr, std::memory_order_relaxed);
});

} // namespace

OpenTrace* trace_begin(Traced event) {
    auto* open = new OpenTrace{std::move(event), 0};
    push(events, open);
    return open;
}

void trace_end(OpenTrace* open) { open->end.store(nanoseconds_now(), std::memory_order_release); }

void trace(Traced event) {
    int64_t end = event.end;
    push(events, new OpenTrace{std::move(event), end});
}

void trace(const TracedCounter& level) { push(levels, new NotedCounter{level}); }

Traces take_traces() {
    Traces taken;
    for (NotedCounter* each : take(levels)) {
        taken.levels.push_back(each->level);
        delete each;
    }
    for (OpenTrace* each : take(events)) {
        int64_t end = each->end.load(std::memory_order_acquire);
        if (end != 0) {
            each->event.end = end;
            taken.events.push_back(std::move(each->event));
            delete each;
        } else {
            taken.running.push_back(each->event);
            taken.running.back().end = nanoseconds_now();
            push(events, each);
        }
    }
    return taken;
}

int64_t nanoseconds_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

uint64_t this_pthread() { return uint64_t(pthread_self()); }

} // namespace tenfold
