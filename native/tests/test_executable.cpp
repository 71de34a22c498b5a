// Executable test: the distinctions of a key, and replays of launches and of scaled products. One
// result reuses its operand's buffer, and a failure publishes nothing. Readers wait for a claim.
#include "exec/executable.h"

#include <thread>

#include "check.h"
#include "exec/stacking.h"
#include "graphs.h"
#include "ir/index_map.h"
#include "memory/allocation_pool.h"
#include "threads/cpu_device.h"
#include "threads/worker_pool.h"

using namespace tenfold;
using namespace tenfold::testing;

namespace {

class Direct : public ExecutionContext {
  public:
    Result run_on_host(Work& work) override { return Launch(work).run(); }
    bool call(const Executable::Call&, const LinearizedGraph&, std::vector<Ref<Value>>&) override {
        return false;
    }
};

struct QueuedLaunch {
    Work work;
    std::vector<void*> buffers;
    std::vector<int64_t> sizes;
    std::vector<uint64_t> scalars;
    Result result;
};
std::vector<QueuedLaunch> queue;
std::size_t num_finished = 0; // of the queue, from its begin

// Runs a kernel when it is waited for.
Device queueing = [] {
    Device device = CPU;
    device.name = "queueing";
    device.number = 1;
    device.launch = [](Work& work, HostLauncher&) {
        queue.push_back({work,
                         {work.buffers.begin(), work.buffers.end()},
                         {work.sizes.begin(), work.sizes.end()},
                         {work.scalars.begin(), work.scalars.end()},
                         {}});
        return Event{{}, queue.size()};
    };
    device.wait = [](const Event& event) {
        for (; num_finished < event.ticket; ++num_finished) {
            QueuedLaunch& queued = queue[num_finished];
            queued.work.buffers = queued.buffers;
            queued.work.sizes = queued.sizes;
            queued.work.scalars = queued.scalars;
            queued.result = Launch(queued.work).run();
        }
        return event.done() ? event.result : queue[event.ticket - 1].result;
    };
    device.record = [] { return Event{{}, queue.size()}; };
    return device;
}();
[[maybe_unused]] const bool is_registered = register_device(queueing);

void clear_queue() {
    queue.clear();
    num_finished = 0;
}

int64_t twice(void** buffers, const int64_t* sizes, const double* scalars, void*, int64_t,
              int64_t) {
    auto *from = static_cast<double*>(buffers[0]), *to = static_cast<double*>(buffers[1]);
    for (int64_t i = 0; i < sizes[0]; ++i) to[i] = from[i] + from[i] + scalars[0];
    return 0;
}

int64_t fails(void**, const int64_t*, const double*, void*, int64_t, int64_t) { return 1; }

double* numbers(Node* node) { return static_cast<double*>(value_of(node)->buffers[0].address()); }

Ref<Node> number_leaf(int64_t length, double number) {
    Ref<Node> result = leaf(length);
    for (int64_t i = 0; i < length; ++i) numbers(result.get())[i] = number;
    return result;
}

Executable::Launch run_of(HostKernel kernel, Executable::Slot from, Executable::Slot to,
                          int64_t length) {
    Executable::Launch run{};
    run.kernel = kernel;
    run.buffers = {{from, 0}, {to, 0}};
    run.sizes = {length};
    run.numbers.resize(1); // 0.0
    run.units = run.grain = run.threads = 1;
    return run;
}

Key written(const LinearizedGraph& graph, uint8_t exact = Key::by_form) {
    Key key;
    CHECK(key.write(graph, {}, exact));
    return key;
}

Ref<Executable> plan_of(const LinearizedGraph& graph, HostKernel kernel, bool over) {
    auto plan = Ref<Executable>::adopt(new Executable(KeyOwners(graph)));
    plan->key = written(graph).words;
    int64_t length = graph.nodes[0].node->type->shape[0];
    plan->slots = 2;
    plan->instructions.push_back(Executable::Load{0, 0, 0});
    if (over) {
        plan->donated_inputs = {0};
        plan->instructions.push_back(Executable::Share{1, 0});
    } else {
        Ref<Type> type(graph.nodes[0].node->type);
        plan->instructions.push_back(
            Executable::Allocate{1, type, std::size_t(length) * 8, {}, false});
    }
    plan->instructions.push_back(run_of(kernel, 0, 1, length));
    plan->instructions.push_back(Executable::Publish{1, {1}});
    return plan;
}

LinearizedGraph linearized(const Ref<Node>& node) {
    Node* outputs[] = {node.get()};
    return linearize(outputs);
}

std::vector<uint64_t> key_of(const Ref<Node>& node, uint8_t exact = Key::by_form) {
    return written(linearized(node), exact).words;
}

// x[start : start + length]
Ref<Node> part(const Ref<Node>& x, int64_t start, int64_t length) {
    static Op& op = declare_op("index");
    op.part = Op::slice;
    Ref<Params> params = slice_params({IndexMap::affine, {{0, 1, start}}, {length}});
    Node* inputs[] = {x.get()};
    static Inferred inference = inferred(vector_type(2));
    return operation_node(&op, std::move(params), Inferred(inference), inputs);
}

Ref<Node> plus(const Ref<Node>& a, double number) {
    static Ref<Type> weak = intern_type({{}, 1, 0, 0, true});
    return add(a, scalar_node({Scalar::real_number, 0, number, 0}, weak));
}

} // namespace

static void keys_tell_structures_apart() {
    Ref<Node> x = leaf(4), y = leaf(4), z = leaf(5);
    CHECK(key_of(add(x, x)) == key_of(add(y, y)));
    CHECK(key_of(add(x, x)) != key_of(add(x, y)));
    CHECK(key_of(add(x, x)) != key_of(add(z, z)));
    CHECK(key_of(plus(x, 3.7)) == key_of(plus(y, 9.1)));
    CHECK(key_of(plus(x, 3.7), Key::scalars) != key_of(plus(y, 9.1), Key::scalars));
    CHECK(key_of(plus(x, 3.7)) != key_of(plus(x, 2.0)));
    CHECK(key_of(plus(x, 0.0)) != key_of(plus(x, -0.0)));
    Ref<Node> alone = add(leaf(4), leaf(4));
    CHECK(key_of(alone) != key_of(add(x, y))); // a dead-after-read value may be overwritten
}

static void parts_count_from_the_first_one_on() {
    Ref<Node> x = leaf(100), y = leaf(100);
    auto pair = [](const Ref<Node>& from, int64_t one, int64_t other) {
        return add(part(from, one, 2), part(from, other, 2));
    };
    CHECK(key_of(pair(x, 1, 3)) == key_of(pair(y, 9, 11))); // 64 bytes further on
    CHECK(key_of(pair(x, 1, 3)) == key_of(pair(y, 2, 4)));  // loads need no alignment
    CHECK(key_of(pair(x, 1, 3)) != key_of(pair(x, 9, 12)));
    CHECK(key_of(pair(x, 1, 3), Key::parts) != key_of(pair(y, 9, 11), Key::parts));
    CHECK(written(linearized(pair(x, 9, 11))).base_offsets[0] == 72);
    auto beside = [&](int64_t start) { return add(add(x, x), part(x, start, 2)); };
    CHECK(key_of(beside(1)) != key_of(beside(9))); // all of x is read too
    auto before = [&](int64_t start) { return add(part(x, start, 2), add(x, x)); };
    CHECK(key_of(before(1)) != key_of(before(9)));
}

static void what_takes_parts_runs_where_they_are() {
    Ref<Node> x = leaf(100);
    for (int64_t i = 0; i < 100; ++i) numbers(x.get())[i] = double(i);
    LinearizedGraph first = linearized(part(x, 8, 2));
    Ref<Executable> plan = plan_of(first, twice, false);
    plan->base_offsets = written(first).base_offsets;
    auto& run = *std::get<Indirect<Executable::Launch>>(plan->instructions[2]);
    int64_t length = 2;
    run.sizes = {length};
    run.buffers[0].offset = 64;
    for (int64_t start : {0, 16, 96}) {
        Ref<Node> y = part(x, start, 2);
        LinearizedGraph graph = linearized(y);
        Key key = written(graph);
        CHECK(key.words == plan->key);
        Direct direct;
        CHECK(replay(*plan, graph, key, direct));
        CHECK(numbers(y.get())[1] == 2 * double(start + 1));
    }
}

static void replay_publishes_and_leaves_operands_alone() {
    Ref<Node> x = number_leaf(3, 2), y = add(x, x);
    LinearizedGraph graph = linearized(y);
    Ref<Executable> plan = plan_of(graph, twice, false);
    Direct direct;
    CHECK(replay(*plan, graph, {}, direct));
    CHECK(numbers(y.get())[2] == 4 && numbers(x.get())[2] == 2);
    cache_plan(plan);
    CHECK(find_plan(key_of(add(x, x)), 0) == plan);
    clear_plan_cache();
    CHECK(!find_plan(key_of(add(x, x)), 0) && num_cached_plans() == 0);
}

static void a_product_is_given_its_scales() {
    Ref<Node> x = number_leaf(3, 2), y = add(x, x);
    LinearizedGraph graph = linearized(y);
    Ref<Executable> plan = plan_of(graph, twice, false);
    auto& run = *std::get<Indirect<Executable::Launch>>(plan->instructions[2]);
    run.numbers.clear();
    run.multiply_adds = 5;
    run.scales = {{{}, 1, true, false, {0, 0}}}; // -(2 * 2), before the sum
    int64_t before = counters[std::size_t(Counter::multiply_adds)];
    Direct direct;
    CHECK(replay(*plan, graph, {}, direct));
    CHECK(numbers(y.get())[1] == 0);
    CHECK(counters[std::size_t(Counter::multiply_adds)] == before + 5);
}

static void result_takes_the_memory_of_what_dies() {
    Ref<Node> y = add(number_leaf(3, 2), number_leaf(3, 2));
    LinearizedGraph graph = linearized(y);
    CHECK(graph.nodes[0].dead_after_read);
    void* memory = numbers(graph.nodes[0].node.get());
    Ref<Executable> plan = plan_of(graph, twice, true);
    plan->instructions.back() = Executable::Publish{2, {1}};
    Direct direct;
    CHECK(replay(*plan, graph, {}, direct));
    CHECK(numbers(y.get()) == memory && numbers(y.get())[0] == 4);
    CHECK(graph.nodes[0].node->claimed_by == 0);
}

static void failure_publishes_nothing() {
    Ref<Node> x = number_leaf(3, 2), y = add(x, x);
    LinearizedGraph graph = linearized(y);
    Direct direct;
    RunResult result = replay(*plan_of(graph, fails, false), graph, {}, direct);
    CHECK(!result && result.cause == RunResult::values && result.instruction == 2);
    CHECK(!value_of(y.get()));
}

static void missing_memory_is_named_with_its_bytes() {
    Ref<Node> x = number_leaf(3, 2), y = add(x, x);
    LinearizedGraph graph = linearized(y);
    Direct direct;
    fail_allocation(1);
    RunResult result = replay(*plan_of(graph, twice, false), graph, {}, direct);
    fail_allocation(0);
    CHECK(result.cause == RunResult::memory && result.instruction == 1 && result.bytes == 24);
}

static void pending_value_is_published_and_its_reader_waits() {
    Ref<Node> x = number_leaf(3, 2), y = add(x, x);
    LinearizedGraph graph = linearized(y);
    Ref<Executable> plan = plan_of(graph, twice, false);
    plan->device = &queueing;
    Direct direct;
    clear_queue();
    CHECK(replay(*plan, graph, {}, direct));
    Ref<Value> value = value_of(y.get());
    CHECK(value && queue.size() == 1 && num_finished == 0);
    CHECK(reinterpret_cast<double*>(host_data(*value))[2] == 4 && num_finished == 1);
}

static void host_refuses_memory_that_it_cannot_reach() {
    Value value;
    value.buffers[0].allocation = Allocation::on_device(queueing, 8);
    queueing.is_host = false;
    bool is_refused = false;
    try {
        host_data(value);
    } catch (const std::logic_error&) { is_refused = true; }
    queueing.is_host = true;
    CHECK(is_refused);
}

// A pending operation that may refuse its operands for their values.
static Ref<Node> refusable(const Ref<Node>& x) {
    static Op& op = declare_op("refusable");
    op.can_fail = true;
    Node* inputs[] = {x.get(), x.get()};
    return operation_node(&op, {}, inferred(x->type), inputs);
}

static void queued_launch_that_may_fail_is_done_before_its_value_is_published() {
    for (HostKernel kernel : {HostKernel(twice), HostKernel(fails)}) {
        Ref<Node> y = refusable(number_leaf(3, 2));
        LinearizedGraph graph = linearized(y);
        Ref<Executable> plan = plan_of(graph, kernel, false);
        plan->device = &queueing;
        Direct direct;
        clear_queue();
        RunResult result = replay(*plan, graph, {}, direct);
        CHECK(num_finished == 1 && bool(result) == bool(value_of(y.get())));
        if (kernel == HostKernel(fails))
            CHECK(result.cause == RunResult::values && result.instruction == 2);
        else
            CHECK(numbers(y.get())[2] == 4);
    }
}

// The kernel of rows with one axis: `sizes` are the elements of all rows and of one, the number of
// axes, and the length and the stride of the axis.
static int64_t copy_rows(void** buffers, const int64_t* sizes, const double*, void*, int64_t begin,
                         int64_t end) {
    auto* to = static_cast<double*>(buffers[0]);
    for (int64_t i = begin; i < end; ++i) {
        auto* row = static_cast<char*>(buffers[1 + i / sizes[1]]);
        to[i] = *reinterpret_cast<double*>(row + i % sizes[1] * sizes[4]);
    }
    return 0;
}

static void rows_of_another_device_are_stacked_by_its_launches() {
    declare_device(1, "queueing");
    queueing.is_host = false;
    row_kernel = [](uint8_t, RowForm, uint16_t) {
        return KernelHandle(reinterpret_cast<void*>(copy_rows));
    };
    int64_t shape[] = {3};
    Ref<Type> type = intern_type({shape, 1, 1, 0, false});
    Ref<Node> x = number_leaf(3, 2), y = number_leaf(6, 5);
    const std::vector<int64_t> every_second{16};
    std::array members{StridedRef::of(*value_of(x.get())), StridedRef::of(*value_of(y.get()))};
    members[1].strides = &every_second;
    StackedOperand operand;
    clear_queue();
    CHECK(stack_operands(operand, members, *type, 3, 1));
    queueing.wait(queueing.record());
    auto* rows = static_cast<double*>(operand.value->buffers[0].address());
    CHECK(queue.size() == 2 && rows[2] == 2 && rows[3] == 5 && rows[8] == 5);
    CHECK(operand.value->buffers[0].allocation->device == 1);
    queueing.is_host = true;
    declare_device(1, "cpu");
}

static void walk_tells_of_a_claim() {
    Ref<Node> x = leaf(3), y = add(x, x);
    x->claimed_by = this_thread();
    CHECK(linearized(y).claimed_by == this_thread());
    uint32_t other = 0;
    std::thread([&] { other = this_thread(); }).join();
    CHECK(other != 0 && other != this_thread());
    x->claimed_by = 0;
    CHECK(linearized(y).claimed_by == 0);
}

static void plans_not_used_for_long_are_forgotten() {
    Ref<Node> x = leaf(2);
    for (uint64_t i = 0; i < 10'000; ++i) {
        auto plan = Ref<Executable>::adopt(new Executable(KeyOwners(linearized(add(x, x)))));
        plan->key = {i};
        cache_plan(std::move(plan));
    }
    CHECK(num_cached_plans() <= 4096);
    uint64_t last[] = {9'999}, first[] = {0};
    CHECK(find_plan(last, 0) && !find_plan(first, 0));
    for (uint64_t i = 0; i < 100; ++i) {
        auto plan = Ref<Executable>::adopt(new Executable(KeyOwners(linearized(add(x, x)))));
        plan->key.assign(std::size_t(1) << 16, i);
        cache_plan(std::move(plan));
    }
    CHECK(num_cached_plans() < 70); // 2^22 words in all
    auto once = Ref<Executable>::adopt(new Executable(KeyOwners(linearized(add(x, x)))));
    once->key = {1u << 30};
    once->remaining_runs = 1;
    cache_plan(once);
    CHECK(find_plan(once->key, 0) && !find_plan(once->key, 0));
    clear_plan_cache();
}

static void what_a_thread_found_last_is_forgotten_with_the_rest() {
    Ref<Node> x = leaf(2);
    std::vector<uint64_t> first{1, 2}, second{1, 3};
    auto kept = [&](std::vector<uint64_t> key) {
        auto plan = Ref<Executable>::adopt(new Executable(KeyOwners(linearized(add(x, x)))));
        plan->key = std::move(key);
        cache_plan(plan);
        return plan;
    };
    Ref<Executable> one = kept(first), other = kept(second);
    for (int i = 0; i < 200; ++i) { // by turns at one place, and again and again
        CHECK(find_plan(first, 7) == one && find_plan(second, 7) == other);
        CHECK(find_plan(second, 7) == other);
    }
    std::thread(clear_plan_cache).join();
    CHECK(!find_plan(first, 7) && !find_plan(second, 7));
    one = kept(first);
    CHECK(find_plan(first, 7) == one);
    auto exact = Ref<Executable>::adopt(new Executable(KeyOwners(linearized(add(x, x)))));
    exact->key = first;
    exact->exact = Key::scalars;
    cache_plan(exact);
    CHECK(find_plan(first, 7) == exact);
    clear_plan_cache();
}

static void threads_keep_and_find_plans_at_once() {
    Ref<Node> x = number_leaf(64, 1);
    auto work = [&](uint64_t seed) {
        Direct direct;
        for (int i = 0; i < 300; ++i) {
            Ref<Node> y = add(x, x);
            LinearizedGraph graph = linearized(y);
            Key key;
            CHECK(key.write(graph, {.settings = seed % 3}, Key::by_form));
            Ref<Executable> plan = find_plan(key.words, 0);
            if (!plan) {
                plan = plan_of(graph, twice, false);
                plan->key = key.words;
                cache_plan(plan);
            }
            CHECK(replay(*plan, graph, key, direct) && numbers(y.get())[63] == 2);
            if (i % 97 == 0) clear_plan_cache();
        }
    };
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
    for (std::thread& thread : threads) thread.join();
}

int main() {
    declare_dtype(1, {'f', 8});
    keys_tell_structures_apart();
    parts_count_from_the_first_one_on();
    what_takes_parts_runs_where_they_are();
    replay_publishes_and_leaves_operands_alone();
    a_product_is_given_its_scales();
    result_takes_the_memory_of_what_dies();
    failure_publishes_nothing();
    missing_memory_is_named_with_its_bytes();
    pending_value_is_published_and_its_reader_waits();
    host_refuses_memory_that_it_cannot_reach();
    queued_launch_that_may_fail_is_done_before_its_value_is_published();
    rows_of_another_device_are_stacked_by_its_launches();
    walk_tells_of_a_claim();
    plans_not_used_for_long_are_forgotten();
    what_a_thread_found_last_is_forgotten_with_the_rest();
    threads_keep_and_find_plans_at_once();
}
