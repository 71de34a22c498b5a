// Stacked batch test: pushed products alone, with a shared factor, with equal factors, and from
// many threads. It also has batches without a plan.
#include <random>
#include <thread>

#include "engine_host.h"
#include "threads/counters.h"
#include "threads/cpu_device.h"

using namespace tenfold;

namespace {

constexpr int64_t ROWS = 2, INNER = 3, COLUMNS = 2;

int64_t multiply(void** buffers, const int64_t* sizes, const double*, void*, int64_t, int64_t) {
    auto *a = static_cast<double*>(buffers[0]), *b = static_cast<double*>(buffers[1]);
    auto* c = static_cast<double*>(buffers[2]);
    for (int64_t i = 0; i < sizes[0]; ++i)
        for (int64_t j = 0; j < sizes[2]; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < sizes[1]; ++k) sum += a[i * sizes[1] + k] * b[k * sizes[2] + j];
            c[i * sizes[2] + j] = sum;
        }
    return 0;
}

Ref<Type> matrix_type(int64_t rows, int64_t columns) {
    int64_t shape[] = {rows, columns};
    return intern_type({shape, 0, 0, 0, false});
}

Op& product_op() {
    static Op& op = declare_op("matmul");
    return op;
}

// The shape of a stack of matrices, or of one matrix.
Ref<Type> stack_type(std::size_t rows, bool is_stacked, int64_t m, int64_t n) {
    int64_t shape[] = {int64_t(rows), m, n};
    return intern_type({std::span(shape).subspan(is_stacked ? 0 : 1), 0, 0, 0, false});
}

// Multiplies the matrices of a stack; a shared one has stride 0 there.
int64_t multiply_stack(void** buffers, const int64_t* sizes, const double*, void*, int64_t,
                       int64_t) {
    for (int64_t i = 0; i < sizes[0]; ++i) {
        auto *a = static_cast<double*>(buffers[0]), *b = static_cast<double*>(buffers[1]);
        void* one[] = {a + i * sizes[1], b + i * sizes[2],
                       static_cast<double*>(buffers[2]) + i * ROWS * COLUMNS};
        int64_t lengths[] = {ROWS, INNER, COLUMNS};
        multiply(one, lengths, nullptr, nullptr, 0, 1);
    }
    return 0;
}

// The product of two leaves: of one member's, or of stacks.
Ref<PlannedGraph> product_call(std::size_t rows, bool first, bool second) {
    Ref<Type> left = stack_type(rows, first, ROWS, INNER),
              right = stack_type(rows, second, INNER, COLUMNS),
              type = stack_type(rows, first || second, ROWS, COLUMNS);
    Ref<Node> a = placeholder_node(left), b = placeholder_node(right);
    Node* factors[] = {a.get(), b.get()};
    auto inference = Ref<Inference>::adopt(new Inference);
    inference->results.push_back(type);
    Ref<Node> product = operation_node(&product_op(), {}, {inference, type}, factors);
    auto result = Ref<PlannedGraph>::adopt(new PlannedGraph);
    result->graph_template = std::make_unique<GraphTemplate>();
    Node* outputs[] = {product.get()};
    result->graph_template->graph = linearize(outputs);
    result->graph_template->leaves = {0, 1};
    result->graph_template->output = 2;
    result->outputs = {2};
    result->plan = Ref<Executable>::adopt(new Executable(KeyOwners()));
    result->plan->slots = 3;
    Executable::Launch run{};
    run.kernel = HostKernel(multiply_stack);
    run.buffers = {{0, 0}, {1, 0}, {2, 0}};
    int64_t sizes[] = {first || second ? int64_t(rows) : 1, first ? ROWS * INNER : 0,
                       second ? INNER * COLUMNS : 0};
    run.sizes.assign(std::begin(sizes), std::end(sizes));
    run.units = run.grain = run.threads = 1;
    run.multiply_adds = sizes[0] * ROWS * INNER * COLUMNS;
    result->plan->instructions = {Executable::Load{0, 0, 0}, Executable::Load{1, 1, 0},
                                  Executable::Allocate{2, type, type->bytes(), {}, false},
                                  std::move(run), Executable::Publish{2, {2}}};
    return result;
}

class TestPlanner : public BatchPlanner {
  public:
    bool plans_batches = true;

    Ref<PlannedGraph> plan(const Batcher&, const Operation&,
                           std::span<const MemberOperands> operands, std::size_t rows) override {
        auto planned = plans_batches ? product_call(rows, is_stacked(operands[0].form),
                                                    is_stacked(operands[1].form))
                                     : Ref<PlannedGraph>::adopt(new PlannedGraph);
        planned->rows = rows;
        return planned;
    }
};

std::vector<Ref<Operation>> prepared;

class ProductHost : public NativeHost {
  public:
    TestPlanner planner;
    Lock lock; // as Python's: one plan is made at a time

    void run(Engine& engine, Job& job) override {
        const Batcher* batcher = job.members[0]->batcher;
        if (!batcher || !batcher->planned_graph) return NativeHost::run(engine, job);
        Guard guard(lock);
        OpKernelCompiler no_compiler;
        compute_members(*batcher, job.members, job.answers, engine.resources(planner, no_compiler));
    }
};

Ref<Operation> prepare_products(Engine& engine) {
    Ref<Operation> operation = make_operation(Operation::general, true, "matmul");
    operation->memoized = true;
    operation->op = &product_op();
    Ref<Type> types[] = {matrix_type(ROWS, INNER), matrix_type(INNER, COLUMNS)};
    Batcher batcher;
    batcher.runs_alone = false;
    batcher.operation = operation;
    batcher.types = {types[0], types[1]};
    batcher.result = matrix_type(ROWS, COLUMNS);
    batcher.planned_graph = product_call(1, false, false);
    batcher.stacks = true;
    Type* inputs[] = {types[0].get(), types[1].get()};
    prepared.push_back(operation); // whose address is that of the signature
    engine.add_batcher(Engine::signature_of(*operation, inputs), std::move(batcher));
    return operation;
}

Handle put(Engine& engine, int64_t rows, int64_t columns, int seed) {
    OperatorResult answer;
    answer.value = Value::uninitialized(matrix_type(rows, columns));
    auto* data = static_cast<double*>(answer.value->buffers[0].address());
    for (int64_t i = 0; i < rows * columns; ++i) data[i] = double((seed + 7 * i) % 11);
    return Handle::of_put(engine.put(std::move(answer)));
}

void is_product(const Handle& product, const Handle& left, const Handle& right) {
    product.number();
    std::array<double, ROWS * COLUMNS> expected;
    void* buffers[] = {(*left).value->buffers[0].address(), (*right).value->buffers[0].address(),
                       expected.data()};
    int64_t sizes[] = {ROWS, INNER, COLUMNS};
    multiply(buffers, sizes, nullptr, nullptr, 0, 1);
    auto* found = static_cast<double*>((*product).value->buffers[0].address());
    CHECK(std::equal(expected.begin(), expected.end(), found));
}

int64_t counted(Counter counter) { return counters[std::size_t(counter)].load(); }

void batch_is_one_launch(int shared, bool plans_batches) {
    ProductHost host;
    host.planner.plans_batches = plans_batches;
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, host));
    Ref<Operation> matmul = prepare_products(*engine);
    for (int count : {1, 2, 3, 64, 100, 300}) {
        std::vector<Handle> lefts, rights, result;
        for (int i = 0; i < (shared == 0 ? 1 : count); ++i)
            lefts.push_back(put(*engine, ROWS, INNER, i));
        for (int i = 0; i < (shared == 1 ? 1 : count); ++i)
            rights.push_back(put(*engine, INNER, COLUMNS, 3 * i));
        int64_t launches = counted(Counter::launches), adds = counted(Counter::multiply_adds);
        engine->hold();
        for (int i = 0; i < count; ++i) {
            Future* inputs[] = {lefts[std::size_t(i) % lefts.size()].get(),
                                rights[std::size_t(i) % rights.size()].get()};
            result.emplace_back(engine->push(matmul, {}, inputs));
        }
        engine->release_hold();
        for (std::size_t i = 0; i < result.size(); ++i)
            is_product(result[i], lefts[i % lefts.size()], rights[i % rights.size()]);
        CHECK(counted(Counter::launches) == launches + (plans_batches ? 1 : count));
        int64_t rows = count;
        if (plans_batches && count > 100) rows = (count + 15) / 16 * 16;
        if (plans_batches && (count == 2 || count == 3)) rows = 4; // no axis has that length
        CHECK(counted(Counter::multiply_adds) == adds + rows * ROWS * INNER * COLUMNS);
    }
    CHECK(engine->stop(60'000'000'000));
}

void equal_members_are_computed_once() {
    ProductHost host;
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, host));
    Ref<Operation> matmul = prepare_products(*engine);
    Handle left = put(*engine, ROWS, INNER, 1), right = put(*engine, INNER, COLUMNS, 2);
    int64_t launches = counted(Counter::launches);
    engine->hold();
    Future* inputs[] = {left.get(), right.get()};
    std::vector<Handle> result;
    for (int i = 0; i < 50; ++i) result.emplace_back(engine->push(matmul, {}, inputs));
    engine->release_hold();
    for (const Handle& handle : result) is_product(handle, left, right);
    CHECK(counted(Counter::launches) == launches + 1);
    CHECK(engine->stop(60'000'000'000));
}

void many_threads_push_products() {
    ProductHost host;
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({3, 0, 1'000, 0}, host));
    Ref<Operation> matmul = prepare_products(*engine);
    Handle shared[] = {put(*engine, ROWS, INNER, 1), put(*engine, INNER, COLUMNS, 2)};
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed)
        threads.emplace_back([&, seed] {
            std::mt19937 random(seed);
            for (int round = 0; round < 40; ++round) {
                Handle left = put(*engine, ROWS, INNER, int(random() % 100));
                Handle right = put(*engine, INNER, COLUMNS, int(random() % 100));
                const Handle& a = random() % 2 ? left : shared[0];
                const Handle& b = random() % 2 ? right : shared[1];
                Future* inputs[] = {a.get(), b.get()};
                std::vector<Handle> result;
                for (unsigned i = 0; i < 1 + random() % 70; ++i)
                    result.emplace_back(engine->push(matmul, {}, inputs));
                is_product(result[random() % result.size()], a, b);
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(engine->stop(60'000'000'000));
}

} // namespace

int main() {
    declare_dtype(0, {'f', 8});
    for (int shared : {0, 1, 2})
        for (bool plans_batches : {true, false}) batch_is_one_launch(shared, plans_batches);
    equal_members_are_computed_once();
    many_threads_push_products();
}
