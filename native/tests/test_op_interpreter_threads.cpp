// Op interpreter thread test: several threads compute one graph at once. Each finds its values, and
// a loop is made once or dropped.
#include "sums.h"

#include <thread>

using namespace tenfold;
using namespace tenfold::testing;

namespace {

constexpr int THREADS = 4, ROUNDS = 100;

// Runs in all threads, which begin together.
void at_once(const auto& work) {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; ++i)
        threads.emplace_back([&, i] {
            ++ready;
            while (ready < THREADS) std::this_thread::yield();
            work(i);
        });
    for (std::thread& thread : threads) thread.join();
}

Op& fresh_op() {
    Op& op = declare_op("fresh");
    op.shapes = Op::broadcast;
    op.rule_free = true;
    return op;
}

Ref<Node> first_of(const Ref<Node>& node) {
    static Op& op = []() -> Op& {
        Op& result = declare_op("first");
        result.rule_free = true;
        return result;
    }();
    Node* inputs[] = {node.get()};
    return operation_node(&op, {}, inferred(number_type({1})), inputs);
}

bool compute(const Ref<Node>& node) {
    TestKernelCompiler maker;
    Noting noted;
    LinearizedGraph graph = linearized(node);
    return can_interpret(graph, 0) ? interpret(graph, 2, maker, noted, nullptr)
                                   : bool(value_of(node.get())); // another thread was first
}

} // namespace

static void same_graph_has_its_values() {
    Ref<Node> x = array({40, 30}), y = array({40, 30});
    for (int round = 0; round < ROUNDS; ++round) {
        Ref<Node> seen = sum({x, y}), last = sum({sum({sum({seen, y}), x}), scalar(2)});
        at_once([&](int) { CHECK(compute(last)); });
        check_sum(seen, {x, y});
        check_sum(last, {x, x, y, y, scalar(2)});
    }
}

static void graphs_that_share_nodes_have_theirs() {
    Ref<Node> x = array({300}), y = array({300});
    for (int round = 0; round < ROUNDS; ++round) {
        Ref<Node> below = sum({sum({x, y}), y}); // no Array is there, but each graph reads it
        std::vector<Ref<Node>> graphs;
        for (int i = 0; i < THREADS; ++i) graphs.push_back(sum({sum({below, x}), scalar(i)}));
        below = nullptr;
        at_once([&](int i) { CHECK(compute(graphs[std::size_t(i)])); });
        for (int i = 0; i < THREADS; ++i)
            check_sum(graphs[std::size_t(i)], {x, x, y, y, scalar(i)});
    }
}

static void nodes_between_are_computed_by_one_or_more() {
    Ref<Node> x = array({6}), y = array({50});
    for (int round = 0; round < ROUNDS; ++round) {
        Ref<Node> between = first_of(sum({x, x})), last = sum({sum({between, y}), y});
        at_once([&](int) { CHECK(compute(last)); });
        check_sum(last, {between, y, y});
        CHECK(element(between.get(), {0}) == 2 * element(x.get(), {0}));
    }
}

static void loops_made_at_once_are_kept_once() {
    Ref<Node> x = array({7}), y = array({7, 7});
    for (int round = 0; round < ROUNDS; ++round) {
        Op& op = fresh_op();
        std::vector<Ref<Node>> sums;
        for (int i = 0; i < THREADS; ++i) sums.push_back(sum(op, {x, y}));
        at_once([&](int i) { CHECK(compute(sums[std::size_t(i)])); });
        for (const Ref<Node>& node : sums) check_sum(node, {x, y});
    }
}

static void large_arrays_are_shared_among_workers() {
    Ref<Node> x = array({1 << 16}), y = array({1 << 16}, {2});
    for (int round = 0; round < 5; ++round) {
        Ref<Node> last = sum({sum({x, y}), y});
        at_once([&](int) { CHECK(compute(last)); });
        check_sum(last, {x, y, y});
    }
}

int main() {
    declare_dtype(1, {'f', 8});
    set_threads(2);
    same_graph_has_its_values();
    graphs_that_share_nodes_have_theirs();
    nodes_between_are_computed_by_one_or_more();
    loops_made_at_once_are_kept_once();
    large_arrays_are_shared_among_workers();
}
