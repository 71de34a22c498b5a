// The engine from many threads at once: pushes, waits, cancels, drops, objects with increments, and
// an end in the middle of it. TENFOLD_PUSHES says how many pushes each thread makes.
#include <cstdlib>
#include <random>
#include <thread>

#include "../engine.h"
#include "check.h"

using namespace tenfold;

namespace {

constexpr int64_t LENGTH = 5;

int64_t add_numbers(void** buffers, const int64_t* sizes, const double*, void*, int64_t, int64_t) {
    auto *a = static_cast<double*>(buffers[0]), *b = static_cast<double*>(buffers[1]);
    auto* sum = static_cast<double*>(buffers[2]);
    for (int64_t i = 0; i < sizes[0]; ++i) sum[i] = a[i] + b[i];
    return 0;
}

Ref<Type> the_type() {
    int64_t shape[] = {LENGTH};
    return intern_type({shape, 0, 0, 0, false});
}

Answer array_of(double number) {
    Answer answer;
    answer.value = Ref<Value>::adopt(new Value);
    answer.value->type = the_type();
    answer.value->buffers[0].allocation = Allocation::from_pool(LENGTH * sizeof(double));
    auto* data = static_cast<double*>(answer.value->buffers[0].address());
    std::fill(data, data + LENGTH, number);
    return answer;
}

double number_of(const Future& future) {
    return *static_cast<double*>(future.value->buffers[0].address());
}

// A user's operators add up their inputs; one named "fails" fails.
class NativeHost : public Host {
  public:
    void run(Engine& engine, Job& job) override {
        for (std::size_t i = 0; i < job.members.size(); ++i) {
            Future& future = *job.members[i];
            if (future.operation->name == "fails") {
                job.answers[i].failure = Ref<Failure>::adopt(new Failure);
                continue;
            }
            double sum = future.operation->kind == Operation::in_place ? 1 : 0;
            for (Edge& edge : future.inputs()) sum += number_of(*edge.input);
            if (future.operation->kind == Operation::in_place)
                engine.take(*future.inputs()[0].input);
            job.answers[i] = array_of(sum);
        }
    }
    void classify(Engine& engine, Job& job) override {
        job.answers.resize(job.members.size());
        job.signatures.resize(job.members.size());
        for (std::size_t i = 0; i < job.members.size(); ++i) {
            job.signatures[i].parts[0] = this;
            Batcher batcher;
            batcher.kind = Operation::batched;
            engine.add_batcher(job.signatures[i], std::move(batcher));
        }
    }
    void call(Engine&, Job&) override {}
    void leave() override {}
};

NativeHost the_host;

Ref<Operation> operation(Operation::Kind kind, bool pure, const char* name = "sum") {
    static Op& op = declare_op("add");
    auto made = Ref<Operation>::adopt(new Operation);
    made->kind = kind;
    made->pure = pure;
    made->name = name;
    made->op = &op;
    if (kind == Operation::cumulative) {
        made->plain_run = made->plain_add = true;
        made->sum = operation(Operation::fold, true);
        made->sum->plain_add = true;
    }
    return made;
}

void prepare(Engine& engine) {
    Ref<Operation> add = operation(Operation::elements, true);
    Ref<Type> type = the_type();
    auto inference = Ref<Inference>::adopt(new Inference);
    inference->results.push_back(type);
    inference->operands = {0, 0};
    static Loop loop{add_numbers, {}, {{Loop::length, 1, 0}}};
    Batcher batcher;
    batcher.kind = Operation::elements;
    batcher.types = {type, type};
    batcher.rows.emplace(Rows{std::move(inference), type, &loop});
    Type* types[] = {type.get(), type.get()};
    engine.add_batcher(Engine::signature_of(add->op, types), std::move(batcher));
    engine.set_add(add);
}

// A Handle, as Python has them.
class Handle {
  public:
    explicit Handle(Ref<Future> pushed) : future_(std::move(pushed)) {}
    static Handle of_put(Ref<Future> future) {
        future->engine->hold_handle(*future);
        return Handle(std::move(future));
    }
    Handle(Handle&& other) = default;
    Handle& operator=(Handle&& other) {
        std::swap(future_, other.future_);
        return *this;
    }
    ~Handle() {
        if (future_) future_->engine->drop_handle(*future_);
    }
    Future& operator*() const { return *future_; }
    Future* get() const { return future_.get(); }
    double number() const {
        future_->engine->want(*future_);
        while (!future_->engine->wait(*future_, 1'000'000'000)) {}
        return future_->failure ? -1 : number_of(*future_);
    }

  private:
    Ref<Future> future_;
};

void push_at_random(Engine& engine, Handle& shared, int pushes, unsigned seed) {
    std::mt19937 random(seed);
    Ref<Operation> kinds[] = {
        operation(Operation::elements, true),     operation(Operation::user, false),
        operation(Operation::user, true),         operation(Operation::batched, true),
        operation(Operation::in_place, false),    operation(Operation::cumulative, false),
        operation(Operation::user, true, "fails")};
    std::vector<Handle> handles;
    for (int i = 0; i < 4; ++i) handles.push_back(Handle::of_put(engine.put(array_of(i))));
    for (int i = 0; i < pushes; ++i) {
        unsigned what = random() % 32;
        Ref<Operation> kind = kinds[what < 20 ? 0 : what < 31 ? what % 6 : 6];
        Future* inputs[] = {handles[random() % handles.size()].get(),
                            handles[random() % handles.size()].get()};
        if (what == 30) inputs[0] = shared.get();
        Ref<Future> made = engine.push(kind, {}, inputs);
        CHECK(made);
        Handle handle(std::move(made));
        if (random() % 64 == 0) handle.number();
        if (random() % 128 == 0) engine.cancel(*handle);
        if (random() % 512 == 0) {
            engine.hold();
            engine.let_go();
        }
        if (handles.size() < 16)
            handles.push_back(std::move(handle));
        else
            handles[random() % handles.size()] = std::move(handle);
        if (random() % 8 == 0) handles[0] = Handle::of_put(engine.put(array_of(1)));
    }
}

void many_threads_push_wait_cancel_and_drop(int pushes) {
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({3, 0, 50'000, 0}, the_host));
    prepare(*engine);
    {
        Handle shared = Handle::of_put(engine->put(array_of(0)));
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < 8; ++i)
            threads.emplace_back([&, i] { push_at_random(*engine, shared, pushes, i + 1); });
        for (std::thread& thread : threads) thread.join();
    }
    uint64_t last = engine->want_all();
    while (Ref<Future> oldest = engine->oldest(last)) {
        engine->want(*oldest);
        engine->wait(*oldest, 1'000'000'000);
    }
    CHECK(engine->statistics().pending == 0);
    while (engine->statistics().live_objects > 0) std::this_thread::yield(); // as workers let go
    CHECK(engine->stop(60'000'000'000));
}

void increments_are_added_in_the_order_of_their_pushes() {
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 50'000, 0}, the_host));
    prepare(*engine);
    Ref<Operation> accumulate = operation(Operation::cumulative, false);
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
        prepare(*engine);
        Handle one = Handle::of_put(engine->put(array_of(1)));
        Ref<Operation> add = operation(Operation::elements, true);
        Ref<Operation> user = operation(Operation::user, false);
        for (int k = 0; k < 20; ++k) {
            Future* inputs[] = {one.get(), one.get()};
            Handle sum(engine->push(k % 2 ? add : user, {}, inputs));
            if (k == i % 20) CHECK(sum.number() == 2);
        }
        if (i % 3 == 0) engine->cancel_all();
        if (i % 3 == 1) CHECK(engine->stop(60'000'000'000));
    }
}

} // namespace

int main() {
    declare_dtype(0, {'f', 8});
    const char* given = std::getenv("TENFOLD_PUSHES");
    increments_are_added_in_the_order_of_their_pushes();
    engines_end_in_the_middle_of_work();
    many_threads_push_wait_cancel_and_drop(given ? std::atoi(given) : 3'000);
}
