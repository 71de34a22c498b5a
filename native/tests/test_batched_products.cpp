// Batched product test: pushed products alone, with a shared factor, and from many threads. It also
// has products without a plan for panels.
#include <random>
#include <thread>

#include "engine_host.h"
#include "threads/counters.h"

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

class TestPanelCompiler : public PanelCompiler {
  public:
    bool plans_panels = true;

    const GilFreeCall* compile(const Products& products, Products::Form form,
                               std::size_t count) override {
        Ref<Type> left = products.factor(0, form, int64_t(count));
        Ref<Type> right = products.factor(1, form, int64_t(count));
        Ref<Type> type = matrix_type(left->shape[0], right->shape[1]);
        Ref<Node> a = placeholder_node(left), b = placeholder_node(right);
        Node* factors[] = {a.get(), b.get()};
        auto inference = Ref<Inference>::adopt(new Inference);
        inference->results.push_back(type);
        Ref<Node> product = operation_node(&product_op(), {}, {inference, type}, factors);
        auto panel = std::make_unique<GilFreeCall>();
        panel->graph_template = std::make_unique<GraphTemplate>();
        Node* outputs[] = {product.get()};
        panel->graph_template->graph = linearize(outputs);
        panel->graph_template->leaves = {0, 1};
        panel->graph_template->output = 2;
        panel->outputs = {2};
        if (form == Products::single || plans_panels) panel->plan = plan(*left, *right, type);
        return panel.release();
    }

  private:
    static Ref<Executable> plan(const Type& left, const Type& right, const Ref<Type>& type) {
        auto result = Ref<Executable>::adopt(new Executable(KeyOwners()));
        result->slots = 3;
        Executable::Run run{};
        run.kernel = multiply;
        run.buffers = {{0, 0}, {1, 0}, {2, 0}};
        int64_t sizes[] = {left.shape[0], left.shape[1], right.shape[1]};
        run.sizes.assign(reinterpret_cast<const char*>(sizes), sizeof sizes);
        run.units = run.grain = run.threads = 1;
        run.multiply_adds = sizes[0] * sizes[1] * sizes[2];
        result->instructions = {Executable::Load{0, 0, 0}, Executable::Load{1, 1, 0},
                                Executable::Allocate{2, type, type->bytes(), {}, false},
                                std::move(run), Executable::Publish{2, {2}}};
        return result;
    }
};

class ProductHost : public NativeHost {
  public:
    TestPanelCompiler compiler;
    Lock lock; // as Python's: one panel is made at a time

    void run(Engine& engine, Job& job) override {
        if (!job.batcher || !job.batcher->products) return NativeHost::run(engine, job);
        Guard guard(lock);
        run_products(*job.batcher->products, job.members, job.answers, job.is_first_part, compiler);
    }
};

Ref<Operation> prepare_products(Engine& engine) {
    Ref<Operation> operation = make_operation(Operation::product, true, "matmul");
    operation->memoized = true;
    operation->op = &product_op();
    Batcher batcher;
    batcher.kind = Operation::product;
    batcher.products = std::make_unique<Products>();
    batcher.products->operation = operation;
    batcher.products->types = {matrix_type(ROWS, INNER), matrix_type(INNER, COLUMNS)};
    batcher.products->type = matrix_type(ROWS, COLUMNS);
    Type* types[] = {batcher.products->types[0].get(), batcher.products->types[1].get()};
    engine.add_batcher(Engine::signature_of(*operation, types), std::move(batcher));
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

void batch_is_one_launch(int shared, bool plans_panels) {
    ProductHost host;
    host.compiler.plans_panels = plans_panels;
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
        CHECK(counted(Counter::launches) == launches + 1);
        CHECK(counted(Counter::multiply_adds) == adds + count * ROWS * INNER * COLUMNS);
    }
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
        for (bool plans_panels : {true, false}) batch_is_one_launch(shared, plans_panels);
    many_threads_push_products();
}
