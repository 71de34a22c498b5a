// Engine test: pushes, waits, cancels, drops and calls from many threads at once. It also has holds
// with waiters, and objects with increments. Batches and memory have limits, and a shutdown comes
// in the middle. TENFOLD_PUSHES says how many pushes each thread makes.
#include <cstdlib>
#include <random>
#include <thread>

#include "engine_host.h"

using namespace tenfold;

namespace {

NativeHost the_host;

// As Python does before a push, and longer where it is told that nothing will make any room.
void make_room(Engine& engine) {
    for (int i = 0; engine.memory_room(0, nullptr) == Engine::perhaps && i < 1'000'000; ++i)
        sched_yield();
}

void hold_and_wait(Engine& engine, const Ref<Operation>& kind, Future* one, bool waits) {
    engine.hold();
    Future* inputs[] = {one, one};
    if (Ref<Future> pushed = engine.push(kind, {}, inputs)) { // else the engine was closed
        Handle first(std::move(pushed));
        Future* again[] = {first.get(), one};
        if ((pushed = engine.push(kind, {}, again))) {
            Handle second(std::move(pushed));
            if (waits) second.number();
        }
    }
    engine.release_hold();
}

void push_at_random(Engine& engine, Handle& shared, int pushes, unsigned seed) {
    std::mt19937 random(seed);
    Ref<Operation> kinds[] = {addition(),
                              make_operation(Operation::user, false),
                              make_operation(Operation::user, true),
                              make_operation(Operation::batched, true),
                              make_operation(Operation::in_place, false),
                              make_operation(Operation::cumulative, false),
                              make_operation(Operation::cumulative, false, "gather"),
                              make_operation(Operation::cumulative, false, "merge"),
                              make_operation(Operation::user, true, "fails")};
    std::vector<Handle> handles;
    for (int i = 0; i < 4; ++i) handles.push_back(Handle::of_put(engine.put(array_of(i))));
    for (int i = 0; i < pushes; ++i) {
        unsigned what = random() % 32;
        Ref<Operation> kind = kinds[what < 20 ? 0 : what < 31 ? what % 8 : 8];
        Future* inputs[] = {handles[random() % handles.size()].get(),
                            handles[random() % handles.size()].get()};
        if (what == 30) inputs[0] = shared.get();
        make_room(engine);
        Ref<Future> result = engine.push(kind, {}, inputs);
        if (!result) return; // the engine was closed
        Handle handle(std::move(result));
        if (random() % 64 == 0) handle.number();
        if (random() % 128 == 0) engine.cancel(*handle);
        if (random() % 128 == 0) engine.notify_when_settled(*handle);
        if (random() % 128 == 0) engine.force_sum(*handle);
        if (random() % 512 == 0) hold_and_wait(engine, kinds[random() % 4], inputs[1], i % 2);
        if (handles.size() < 16)
            handles.push_back(std::move(handle));
        else
            handles[random() % handles.size()] = std::move(handle);
        if (random() % 8 == 0) handles[0] = Handle::of_put(engine.put(array_of(1)));
    }
}

void flush(Engine& engine) {
    uint64_t last = engine.prioritize_all();
    while (Ref<Future> oldest = engine.oldest(last)) {
        engine.prioritize(*oldest);
        engine.wait(*oldest, 1'000'000'000);
    }
    engine.wait_for_frees();
}

void many_threads_push_wait_cancel_and_drop(int pushes, const Limits& limits) {
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine(limits, the_host));
    prepare_batcher(*engine);
    {
        Handle shared = Handle::of_put(engine->put(array_of(0)));
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < 8; ++i)
            threads.emplace_back([&, i] { push_at_random(*engine, shared, pushes, i + 1); });
        for (std::thread& thread : threads) thread.join();
    }
    flush(*engine);
    EngineStatistics now = engine->statistics();
    CHECK(now.pending == 0 && now.live_objects == 0 && now.live_bytes == 0);
    for (auto [size, count] : now.sizes) CHECK(limits.max_batch == 0 || size <= limits.max_batch);
    CHECK(engine->stop(60'000'000'000));
}

void engine_is_closed_while_many_threads_push() {
    for (int i = 0; i < 20; ++i) {
        Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, the_host));
        prepare_batcher(*engine);
        {
            Handle shared = Handle::of_put(engine->put(array_of(0)));
            std::vector<std::thread> threads;
            for (unsigned k = 0; k < 4; ++k)
                threads.emplace_back([&, k] { push_at_random(*engine, shared, 100'000, k + 1); });
            while (engine->statistics().pushed < uint64_t(500 * i)) sched_yield();
            engine->close();
            if (i % 2) engine->cancel_all();
            for (std::thread& thread : threads) thread.join();
        }
        flush(*engine);
        CHECK(engine->statistics().pending == 0 && engine->statistics().live_objects == 0);
        if (i % 3) CHECK(engine->stop(60'000'000'000));
    }
}

// A version must not stand among the increments that it keeps itself.
void version_is_an_increment_of_its_own_object() {
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, the_host));
    prepare_batcher(*engine);
    Ref<Operation> accumulate = make_operation(Operation::cumulative, false);
    for (bool waits : {false, true}) {
        {
            Handle object = Handle::of_put(engine->put(array_of(1)));
            double sum = 1;
            for (int i = 0; i < 5; ++i) {
                Future* one[] = {object.get(), object.get()};
                Handle version(engine->push(accumulate, {}, one));
                Future* itself[] = {object.get(), version.get()};
                Handle doubled(engine->push(accumulate, {}, itself));
                sum = 2 * (sum + 1);
                if (waits) CHECK(doubled.number() == sum);
            }
        }
        flush(*engine);
        CHECK(engine->statistics().pending == 0 && engine->statistics().live_objects == 0);
    }
    CHECK(engine->stop(60'000'000'000));
}

void increments_are_added_in_the_order_of_their_pushes() {
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 50'000, 0}, the_host));
    prepare_batcher(*engine);
    Ref<Operation> accumulate = make_operation(Operation::cumulative, false);
    Handle first = Handle::of_put(engine->put(array_of(0)));
    double sum = 0;
    for (int i = 0; i < 10'000; ++i) {
        Handle increment = Handle::of_put(engine->put(array_of(i)));
        Future* inputs[] = {first.get(), increment.get()};
        Handle version(engine->push(accumulate, {}, inputs));
        sum += i;
        if (i % 777 == 0) CHECK(version.number() == sum);
        if (i == 9'999) CHECK(version.number() == sum);
    }
    CHECK(number_of(*first) == 0);
    CHECK(engine->stop(60'000'000'000));
}

void engines_end_in_the_middle_of_work() {
    for (int i = 0; i < 300; ++i) {
        Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, the_host));
        prepare_batcher(*engine);
        Handle one = Handle::of_put(engine->put(array_of(1)));
        Ref<Operation> add = addition();
        Ref<Operation> user = make_operation(Operation::user, false);
        for (int k = 0; k < 20; ++k) {
            Future* inputs[] = {one.get(), one.get()};
            Handle sum(engine->push(k % 2 ? add : user, {}, inputs));
            if (k == i % 20) CHECK(sum.number() == 2);
        }
        if (i % 3 == 0) engine->cancel_all();
        if (i % 3 == 1) CHECK(engine->stop(60'000'000'000));
    }
}

class CountingHost : public NativeHost {
  public:
    bool start_thread(Engine& engine) override {
        ++started;
        return NativeHost::start_thread(engine);
    }
    std::atomic<int> started{0};
};

void pushes_under_hold_start_nobody_however_many_they_are() {
    CountingHost host;
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 64, 1'000, 0}, host));
    prepare_batcher(*engine);
    Handle one = Handle::of_put(engine->put(array_of(1)));
    Future* inputs[] = {one.get(), one.get()};
    engine->hold();
    std::vector<Handle> handles;
    for (int i = 0; i < 1'000; ++i) handles.emplace_back(engine->push(addition(), {}, inputs));
    CHECK(host.started == 0);
    engine->release_hold();
    flush(*engine);
    CHECK(host.started > 0 && engine->statistics().done == 1'000);
    CHECK(engine->stop(60'000'000'000));
}

// As while a thread of Python's computes without a pause.
class BusyInterpreter : public NativeHost {
  public:
    bool has_deferred() override { return !is_waiting; }
    void run_deferred() override {
        is_waiting = true;
        while (!is_released) std::this_thread::yield();
    }
    std::atomic<bool> is_waiting{false}, is_released{false};
};

void worker_that_waits_for_python_keeps_no_batch_from_the_others() {
    BusyInterpreter host;
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, host));
    prepare_batcher(*engine);
    Handle one = Handle::of_put(engine->put(array_of(1)));
    Future* inputs[] = {one.get(), one.get()};
    Handle first(engine->push(addition(), {}, inputs));
    while (!host.is_waiting) std::this_thread::yield();
    Handle second(engine->push(addition(), {}, inputs));
    int64_t end = nanoseconds_now() + 60'000'000'000;
    while (!second.get()->is_settled() && nanoseconds_now() < end) std::this_thread::yield();
    CHECK(second.get()->is_settled()); // without the help of a caller who waits
    host.is_released = true;
    CHECK(engine->stop(60'000'000'000));
}

// Signatures by number, of functions that were pushed once.
BatcherKey signature(std::size_t number) {
    BatcherKey result;
    result.parts[0] = reinterpret_cast<const void*>(number);
    return result;
}

void batchers_of_functions_that_have_gone_are_dropped_when_nothing_is_pending() {
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({1, 0, 50'000, 0}, the_host));
    Handle one = Handle::of_put(engine->put(array_of(1)));
    Future* inputs[] = {one.get(), one.get()};
    engine->hold();
    Handle pending(engine->push(addition(), {}, inputs));
    for (std::size_t number = 1; number <= 2 * MAX_IDLE_BATCHERS; ++number)
        engine->add_batcher(signature(number), Batcher());
    CHECK(engine->batcher_of(signature(1))); // the pending one may have it
    engine->release_hold();
    CHECK(pending.number() == 2);
    int64_t end = nanoseconds_now() + 60'000'000'000;
    for (std::size_t number = 2 * MAX_IDLE_BATCHERS + 1;
         engine->batcher_of(signature(1)) && nanoseconds_now() < end; ++number) {
        engine->add_batcher(signature(number), Batcher());
        std::this_thread::yield(); // its worker may still be busy
    }
    CHECK(!engine->batcher_of(signature(1)));
    CHECK(engine->batcher_of(BatcherKey()));
    CHECK(Handle(engine->push(addition(), {}, inputs)).number() == 2);
    CHECK(engine->stop(60'000'000'000));
}

} // namespace

int main() {
    declare_dtype(0, {'f', 8});
    const char* given = std::getenv("TENFOLD_PUSHES");
    increments_are_added_in_the_order_of_their_pushes();
    engines_end_in_the_middle_of_work();
    pushes_under_hold_start_nobody_however_many_they_are();
    worker_that_waits_for_python_keeps_no_batch_from_the_others();
    version_is_an_increment_of_its_own_object();
    engine_is_closed_while_many_threads_push();
    batchers_of_functions_that_have_gone_are_dropped_when_nothing_is_pending();
    int pushes = given ? std::atoi(given) : 3'000;
    many_threads_push_wait_cancel_and_drop(pushes, {3, 0, 50'000, 0});
    many_threads_push_wait_cancel_and_drop(pushes / 4, {4, 5, 1'000, 100'000});
    many_threads_push_wait_cancel_and_drop(pushes / 4, {1, 1, 0, 0});
}
