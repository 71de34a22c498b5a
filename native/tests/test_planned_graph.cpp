// GIL-free call test: pushed calls of traced functions, replayed by workers and waiters of many
// threads. They use the arrays captured at the push; several results form one chain.
#include <thread>

#include "engine_host.h"
#include "threads/counters.h"
#include "threads/cpu_device.h"

using namespace tenfold;

namespace {

// Writes the sum of two arrays, and then that of the sum and the second.
Ref<PlannedGraph> planned() {
    Ref<Type> type = the_type();
    static Op& op = declare_op("call");
    Ref<Node> a = placeholder_node(type), b = placeholder_node(type);
    auto inference = Ref<Inference>::adopt(new Inference);
    inference->results.push_back(type);
    Node* both[] = {a.get(), b.get()};
    Ref<Node> sum = operation_node(&op, {}, {inference, type}, both);
    Node* next[] = {sum.get(), b.get()};
    Ref<Node> more = operation_node(&op, {}, {inference, type}, next);
    auto result = Ref<PlannedGraph>::adopt(new PlannedGraph);
    result->graph_template = std::make_unique<GraphTemplate>();
    Node* outputs[] = {sum.get(), more.get()};
    result->graph_template->graph = linearize(outputs);
    result->graph_template->leaves = {0, 1};
    result->outputs = result->graph_template->graph.outputs;
    result->graph_template->output = result->outputs[0];
    auto plan = Ref<Executable>::adopt(new Executable(KeyOwners()));
    plan->slots = 4;
    auto run = [&](Executable::Slot x, Executable::Slot result) {
        Executable::Launch run{};
        run.kernel = HostKernel(add_numbers);
        run.buffers = {{x, 0}, {1, 0}, {result, 0}};
        run.sizes = {LENGTH};
        run.units = run.grain = run.threads = 1;
        return run;
    };
    plan->instructions = {Executable::Load{0, 0, 0},
                          Executable::Load{1, 1, 0},
                          Executable::Allocate{2, type, type->bytes(), {}, false},
                          run(0, 2),
                          Executable::Allocate{3, type, type->bytes(), {}, false},
                          run(2, 3),
                          Executable::Publish{result->outputs[0], {2}},
                          Executable::Publish{result->outputs[1], {3}}};
    result->plan = std::move(plan);
    return result;
}

// A call that has captured an array.
Ref<Operation> call(Engine& engine, const Ref<PlannedGraph>& plan, double captured) {
    Ref<Operation> operation = make_operation(Operation::general, true, "call");
    operation->memoized = true;
    operation->planned_graph = plan;
    operation->captured = {array_of(captured).value};
    operation->result_tree = &an_error; // stands for a tuple of Python's
    Batcher calls;
    calls.runs_alone = false;
    calls.planned_graph = plan;
    engine.add_batcher(Engine::signature_of(*operation, {}), std::move(calls));
    return operation;
}

double element(const Ref<Value>& value) {
    return *static_cast<double*>(value->buffers[0].address());
}

void calls_without_a_plan_of_their_batch_run_one_by_one() {
    NativeHost host;
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, host));
    Ref<PlannedGraph> plan = planned();
    Ref<Operation> ten = call(*engine, plan, 10), hundred = call(*engine, plan, 100);
    Handle x = Handle::of_put(engine->put(array_of(1)));
    int64_t launches = counters[std::size_t(Counter::launches)].load();
    engine->hold();
    std::vector<Handle> result;
    for (int i = 0; i < 300; ++i) {
        Future* inputs[] = {x.get()};
        result.emplace_back(engine->push(i % 2 ? hundred : ten, {}, inputs));
    }
    engine->release_hold();
    for (int i = 0; i < 300; ++i) {
        double captured = i % 2 ? 100 : 10;
        CHECK(result[std::size_t(i)].number() == 1 + captured);
        const Future& future = *result[std::size_t(i)];
        CHECK(!future.type && element(future.value->next) == 1 + 2 * captured);
        CHECK(future.bytes == 2 * future.value->buffers[0].allocation->bytes);
    }
    CHECK(counters[std::size_t(Counter::launches)].load() == launches + 2 * 300);
    CHECK(engine->statistics().sizes.at(300) == 1);
    CHECK(engine->stop(60'000'000'000));
}

void many_threads_push_calls() {
    NativeHost host;
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({3, 0, 1'000, 0}, host));
    Ref<PlannedGraph> plan = planned();
    std::vector<std::thread> threads;
    for (int number = 1; number <= 4; ++number)
        threads.emplace_back([&, number] {
            for (int round = 0; round < 40; ++round) {
                Ref<Operation> own = call(*engine, plan, number);
                Handle x = Handle::of_put(engine->put(array_of(round)));
                std::vector<Handle> result;
                for (int i = 0; i < 20; ++i) {
                    Future* inputs[] = {x.get()};
                    result.emplace_back(engine->push(own, {}, inputs));
                }
                CHECK(result[std::size_t(round % 20)].number() == round + number);
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(engine->stop(60'000'000'000));
}

} // namespace

int main() {
    declare_dtype(0, {'f', 8});
    calls_without_a_plan_of_their_batch_run_one_by_one();
    many_threads_push_calls();
}
