// Op interpreter test: operand layouts, launches per loop, result memory, failures and graph sizes.
#include "sums.h"

#include "memory/allocation_pool.h"

using namespace tenfold;
using namespace tenfold::testing;

namespace {

struct Made {
    Ref<Node> node;
    Noting noted;
    TestKernelCompiler maker;
};

// Computes the sum of these, and checks each element of it.
Made computed(const std::vector<Ref<Node>>& of, int threads = 4) {
    Made result;
    result.node = sum(of);
    CHECK(interpret(linearized(result.node), threads, result.maker, result.noted, nullptr));
    check_sum(result.node, of);
    return result;
}

bool compute(const Ref<Node>& node, Noting& noted) {
    TestKernelCompiler maker;
    return interpret(linearized(node), 1, maker, noted, nullptr);
}

// An operation whose kernels have not been requested.
Op& fresh_op() {
    Op& op = declare_op("fresh");
    op.shapes = Op::broadcast;
    op.rule_free = true;
    return op;
}

// A node that `compute` is asked for.
Op& picks() {
    static Op& op = declare_op("first");
    op.rule_free = true;
    return op;
}

Ref<Node> first_of(const Ref<Node>& node) {
    Node* inputs[] = {node.get()};
    return operation_node(&picks(), {}, inferred(number_type({1})), inputs);
}

const Shape& strides_of(const Ref<Node>& node) { return value_of(node.get())->strides; }

} // namespace

static void contiguous_arrays_take_one_launch() {
    for (int64_t length : {1, 2, 63, 64, 65, 4'096, 4'097, 100'000}) {
        Made result = computed({array({length}), array({length})});
        CHECK(result.noted.units == std::vector<int64_t>{(length + 4'095) / 4'096});
        CHECK(result.noted.threads[0] == (length <= 4'096 ? 0 : length <= 32'768 ? 1 : 4));
        CHECK(strides_of(result.node).empty());
    }
    CHECK(computed({array({}), array({})}).noted.units.size() == 1);
    CHECK(computed({array({2, 3, 4, 5, 6}), array({2, 3, 4, 5, 6})}).noted.units.size() == 1);
    Shape many(20, 1); // more than MAX_AXES axes, but almost all of length 1
    many[3] = 7;
    computed({array(many), array(many)});
}

static void operands_are_broadcast() {
    computed({array({70, 1}), array({1, 500})});
    computed({array({70, 500}), array({500})});
    computed({array({70, 500}), array({70, 1})});
    computed({array({70, 500}), array({})});
    computed({array({1}), array({9'000})});
    computed({array({5, 1, 6}), array({4, 1}), array({5, 4, 6})});
    computed({array({1, 1}), array({1})});
    computed({array({3, 4}, {0, 0}), array({3, 4})}); // as of a view
}

static void operands_are_stepped_through() {
    computed({array({5'000}, {2}), array({5'000})});
    computed({array({5'000}, {-1}), array({5'000}, {3})});
    computed({array({40, 50}, {1, 40}), array({40, 50})});
    computed({array({40, 50}, {1, 40}), array({40, 50}, {-50, 1})});
    computed({array({40, 50}, {200, 2}), array({50}, {-2}), array({40, 1})});
    computed({array({40, 1}, {3, 17}), array({40, 1}, {5, 1})}); // strides that lead nowhere
}

static void scalars_are_added() {
    computed({array({5, 6}), scalar(3.5)});
    computed({scalar(-2), array({5, 6}, {1, 5})});
    computed({array({7}), scalar(1), array({3, 1})});
    computed({scalar(0.5), array({7}), scalar(-4)});
}

static void order_of_the_operands_is_that_of_the_result() {
    Made result = computed({array({40, 50}, {1, 40}), array({40, 50}, {1, 40})});
    CHECK((strides_of(result.node) == Shape{8, 320}) && result.noted.units.size() == 1);
    result = computed({array({4, 5, 6}, {6, 24, 1}), array({4, 5, 6}, {6, 24, 1}), scalar(1)});
    CHECK((strides_of(result.node) == Shape{48, 192, 8}) && result.noted.units.size() == 1);
    result = computed({array({40, 50}, {1, 40}), array({50})}); // the others follow
    CHECK((strides_of(result.node) == Shape{8, 320}));
    CHECK(strides_of(computed({array({40, 50}, {1, 40}), array({40, 50})}).node).empty());
    CHECK(strides_of(computed({array({40, 50}, {1, 41}), array({40, 50}, {1, 41})}).node).empty());
    computed({result.node, result.node, array({40, 1})});
}

static void outer_axes_take_a_launch_each() {
    auto launches = [](const Shape& shape, const Shape& strides) {
        return computed({array(shape), array(shape, strides)}).noted.units.size();
    };
    CHECK(launches({3, 4, 5}, {200, 40, 2}) == 3);
    CHECK(launches({2, 3, 4, 5}, {1, 2, 6, 24}) == 6);
    CHECK(launches({2, 1, 2, 2, 1, 3, 4, 5}, {3'000, 7, -1'000, 500, 9, 150, 30, 3}) == 24);
    CHECK(launches({3, 4, 5}, {40, 10, 2}) == 1); // axes that follow one another
    CHECK(launches({4'096, 2, 2}, {1, 4'096, 8'192}) == 4'096);
    Ref<Node> more = sum({array({4'097, 2, 2}), array({4'097, 2, 2}, {1, 4'097, 8'194})});
    Noting noted;
    CHECK(!compute(more, noted) && noted.units.empty() && !value_of(more.get()));
}

static void views_take_no_launch_and_no_memory() {
    Op& op = declare_op("turned");
    op.rule_free = op.view = true;
    Ref<Node> base = array({3, 4});
    auto moved = [&](const Shape& shape, IndexMap how) {
        Node* inputs[] = {base.get()};
        Ref<Node> node = operation_node(&op, {}, inferred(number_type(shape)), inputs);
        Noting noted;
        TestKernelCompiler maker;
        maker.how = std::move(how);
        CHECK(interpret(linearized(node), 1, maker, noted, nullptr) && noted.units.empty());
        Ref<Value> value = value_of(node.get());
        const Buffer &own = value_of(base.get())->buffers[0], &result = value->buffers[0];
        CHECK(value->is_view && result.allocation.get() == own.allocation.get());
        return std::pair(result.offset - own.offset, value->strides);
    };
    using Found = std::pair<int64_t, Shape>;
    constexpr auto NONE = IndexMap::NO_AXIS;
    CHECK(moved({4, 3}, {IndexMap::affine, {{1, 1, 0}, {0, 1, 0}}, {}}) == Found(0, {8, 32}));
    CHECK(moved({2}, {IndexMap::affine, {{NONE, 0, 2}, {0, -2, 3}}, {}}) == Found(88, {-16}));
    CHECK(moved({1, 4}, {IndexMap::affine, {{NONE, 0, 1}, {1, 1, 0}}, {}}) == Found(32, {}));
    CHECK(moved({3}, {IndexMap::affine, {{0, 1, 0}, {0, 1, 1}}, {}}) ==
          Found(8, {40})); // a diagonal
    CHECK(moved({0}, {IndexMap::affine, {{NONE, 0, 3}, {0, 1, 4}}, {}}).first == 0);
    CHECK(moved({2, 6}, {IndexMap::in_order, {}, {}}) == Found(0, {}));
    base = array({3, 4}, {1, 3});
    CHECK(moved({4, 3}, {IndexMap::affine, {{1, 1, 0}, {0, 1, 0}}, {}}) == Found(0, {}));
}

static void views_that_need_a_copy_are_computed_otherwise() {
    Op& op = declare_op("reshaped");
    op.rule_free = op.view = true;
    Ref<Node> base = array({3, 4}, {1, 3});
    Node* inputs[] = {base.get()};
    for (IndexMap::Kind kind : {IndexMap::in_order, IndexMap::other}) {
        Ref<Node> node = operation_node(&op, {}, inferred(number_type({1})), inputs);
        Noting noted;
        TestKernelCompiler maker;
        maker.how.kind = kind;
        CHECK(interpret(linearized(node), 1, maker, noted, nullptr));
        CHECK(!value_of(node.get())->is_view);
    }
}

static void axes_beyond_sixteen_are_refused() {
    Shape ones(17, 2);
    Shape strides(17);
    for (std::size_t i = 0; i < 17; ++i) strides[i] = int64_t(1) << (16 - i);
    std::swap(strides[0], strides[16]);
    Ref<Node> wide = sum({array(ones), array(ones, strides)});
    Noting noted;
    CHECK(!compute(wide, noted) && !value_of(wide.get()));
}

static void empty_results_launch_nothing() {
    for (const Shape& shape : {Shape{0}, Shape{3, 0, 5}}) {
        Made result = computed({array(shape), array({1})});
        CHECK(result.noted.units.empty() && value_of(result.node.get())->type->shape == shape);
    }
    computed({array({0, 4}, {1, 3}), array({0, 4}, {1, 3})});
}

static void loops_are_asked_for_once() {
    Op& op = fresh_op();
    TestKernelCompiler maker;
    Noting noted;
    for (int64_t length : {5, 6, 5}) {
        Ref<Node> node = sum(op, {array({length}), array({length, 1})});
        CHECK(interpret(linearized(node), 1, maker, noted, nullptr));
    }
    CHECK(maker.asked == std::vector<std::string>{"10"});
    Ref<Node> node = sum(op, {array({5}, {2}), array({5, 5})});
    CHECK(interpret(linearized(node), 1, maker, noted, nullptr));
    CHECK((maker.asked == std::vector<std::string>{"10", "s1"}));
}

static void result_takes_the_memory_of_what_was_made_for_it() {
    Ref<Node> x = array({50}), y = array({50});
    Ref<Node> last = sum({sum({sum({x, y}), y}), x});
    int64_t before = counters[std::size_t(Counter::temporaries)];
    Noting noted;
    CHECK(compute(last, noted));
    check_sum(last, {x, x, y, y});
    CHECK(!noted.in_place(0) && noted.in_place(1) && noted.in_place(2));
    CHECK(counters[std::size_t(Counter::temporaries)] == before + 2);
}

static void memory_that_others_read_is_left_alone() {
    Ref<Node> x = array({50}), y = array({50}), seen = sum({x, y});
    Noting noted;
    Ref<Node> last = sum({seen, y}); // the Array of `seen` is there
    CHECK(compute(last, noted) && !noted.in_place(1));
    check_sum(seen, {x, y});
    check_sum(last, {x, y, y});

    Ref<Node> twice = sum({x, y});
    last = sum({sum({twice, y}), twice}); // read again later
    twice = nullptr;
    noted = {};
    CHECK(compute(last, noted) && !noted.in_place(1) && noted.in_place(2));
    check_sum(last, {x, y, y, x, y});

    twice = sum({x, y});
    last = sum({twice, twice}); // and twice by one node
    twice = nullptr;
    noted = {};
    CHECK(compute(last, noted) && !noted.in_place(1));
    check_sum(last, {x, y, x, y});

    last = sum({sum({x, y}), array({2, 50})}); // of another shape
    noted = {};
    CHECK(compute(last, noted) && !noted.in_place(1));

    Ref<Node> in_order = array({4, 5}, {1, 4});
    last = sum({sum({in_order, in_order}), array({4, 5})}); // of another order
    noted = {};
    CHECK(compute(last, noted) && !noted.in_place(1));
}

static void held_nodes_have_their_values_at_the_end() {
    Ref<Node> x = array({6}), first = sum({x, x}), second = sum({first, x});
    Ref<Node> last = sum({second, x});
    Noting noted;
    CHECK(compute(last, noted));
    check_sum(first, {x, x});
    check_sum(second, {x, x, x});
    check_sum(last, {x, x, x, x});
}

static void other_operations_are_computed_between() {
    Ref<Node> x = array({6}), y = array({6}), result = sum({x, y});
    Ref<Node> last = sum({first_of(sum({x, x})), sum({first_of(y), result})});
    Noting noted;
    std::vector<StepTiming> timings;
    TestKernelCompiler maker;
    CHECK(interpret(linearized(last), 1, maker, noted, &timings));
    CHECK(element(last.get(), {5}) ==
          2 * element(x.get(), {0}) + element(y.get(), {0}) + element(result.get(), {5}));
    CHECK(timings.size() == 4); // `compute` records its own nodes
    for (const StepTiming& timing : timings)
        CHECK(timing.label == "sum" && timing.begin <= timing.end);
}

static void failures_publish_no_result() {
    auto one = [](void**, const int64_t*, const double*, void*, int64_t, int64_t) -> int64_t {
        return 1;
    };
    KernelHandle wrong = HostKernel(one), none;
    for (const KernelHandle* kernel : {&wrong, &none}) {
        Op& op = fresh_op();
        op.is_permanent = false; // a user's, of which a plan may see the whole
        Ref<Node> x = array({6}), below = sum({x, x}), last = sum(op, {below, x});
        TestKernelCompiler maker;
        maker.kernel = kernel;
        Noting noted;
        CHECK(!interpret(linearized(last), 1, maker, noted, nullptr) && !value_of(last.get()));
        CHECK(!value_of(below.get()) && noted.units.size() == (kernel == &wrong ? 2 : 1));
    }
    Op& op = fresh_op();
    Ref<Node> last = sum(op, {array({6}), array({6})});
    TestKernelCompiler maker;
    Noting noted;
    maker.fails = true;
    CHECK(!interpret(linearized(last), 1, maker, noted, nullptr));
    maker.fails = false; // the failure left no cache entry
    CHECK(interpret(linearized(last), 1, maker, noted, nullptr) && maker.asked.size() == 2);
    Ref<Node> between = first_of(sum({array({6}), array({6})}));
    maker.fails = true;
    CHECK(!interpret(linearized(between), 1, maker, noted, nullptr) && !value_of(between.get()));
}

static void operation_without_a_kernel_is_computed_by_its_plan_between_others() {
    KernelHandle none;
    Op& op = fresh_op();
    Ref<Node> x = array({6}), below = sum({x, x}), last = sum(op, {below, x});
    Ref<Node> alone = sum(op, {x, x});
    TestKernelCompiler maker;
    maker.kernel = &none;
    Noting noted;
    CHECK(interpret(linearized(last), 1, maker, noted, nullptr) && value_of(last.get()));
    CHECK(!interpret(linearized(alone), 1, maker, noted, nullptr) && !value_of(alone.get()));
}

static void without_memory_nothing_is_computed() {
    Ref<Node> x = array({6}), last = sum({sum({x, x}), array({2, 6})});
    Noting noted;
    for (int64_t n : {1, 2}) {
        fail_allocation(n);
        CHECK(!compute(last, noted) && !value_of(last.get()));
    }
    fail_allocation(0);
    CHECK(compute(last, noted));
}

static void only_small_graphs_of_such_operations_fit() {
    auto fits = [](const Ref<Node>& node) { return can_interpret(linearized(node), 0); };
    constexpr int64_t most = 1 << 17;
    CHECK(fits(sum({array({most}), scalar(1)})) && !fits(sum({array({most + 1}), scalar(1)})));
    CHECK(!fits(sum({array({most / 256, 1}), array({257})})));
    CHECK(!can_interpret(linearized(sum({array({3}), scalar(1)})), 1));
    CHECK(!fits(array({3})));           // nothing to compute
    CHECK(!fits(first_of(array({3})))); // nothing that has loops
    CHECK(fits(first_of(sum({array({3}), scalar(1)}))));
    Op& other = fresh_op();
    other.rule_free = false;
    CHECK(!fits(sum({sum(other, {array({3}), array({3})}), scalar(1)})));
    auto* value = new Value;
    value->type = number_type({3}, 0, 1); // of a storage kind of its own
    CHECK(!fits(sum({sum({array({3}), scalar(1)}), first_of(node_of(value))})));
}

static void parts_of_what_is_pending_fit_if_they_are_large() {
    Op& op = declare_op("part");
    op.rule_free = true;
    op.part = Op::slice;
    auto part = [&](const Ref<Node>& of, int64_t length) {
        Node* inputs[] = {of.get()};
        Ref<Node> result = operation_node(&op, {}, inferred(number_type({length})), inputs);
        return can_interpret(linearized(sum({result, scalar(1)})), 0);
    };
    Ref<Node> x = array({40}), pending = sum({x, x});
    CHECK(part(x, 2) && part(pending, 10) && !part(pending, 9));
}

static void long_graphs_are_computed() {
    auto chain = [](const Ref<Node>& x, std::size_t nodes) {
        Ref<Node> last = x;
        for (std::size_t i = 0; i < nodes; ++i) last = sum({last, x});
        return last;
    };
    Ref<Node> x = array({1 << 13}), larger = array({(1 << 13) + 1});
    CHECK(!is_long(linearized(chain(x, MAX_PLANNED_NODES - 1))) &&
          is_long(linearized(chain(x, MAX_PLANNED_NODES))));
    CHECK(can_interpret(linearized(chain(x, MAX_PLANNED_NODES)), 0));
    CHECK(can_interpret(linearized(chain(larger, MAX_PLANNED_NODES - 1)), 0));
    CHECK(!can_interpret(linearized(chain(larger, MAX_PLANNED_NODES)), 0));
    Ref<Node> small = array({3}), last = chain(small, 5'000);
    Noting noted;
    CHECK(compute(last, noted));
    for (int64_t i = 0; i < 3; ++i)
        CHECK(element(last.get(), {i}) == 5'001 * element(small.get(), {i}));
    CHECK(!noted.in_place(0));
    for (std::size_t i = 1; i < 5'000; ++i) CHECK(noted.in_place(i));
}

int main() {
    declare_dtype(1, {'f', 8});
    set_threads(4);
    contiguous_arrays_take_one_launch();
    operands_are_broadcast();
    operands_are_stepped_through();
    scalars_are_added();
    order_of_the_operands_is_that_of_the_result();
    outer_axes_take_a_launch_each();
    views_take_no_launch_and_no_memory();
    views_that_need_a_copy_are_computed_otherwise();
    axes_beyond_sixteen_are_refused();
    empty_results_launch_nothing();
    loops_are_asked_for_once();
    result_takes_the_memory_of_what_was_made_for_it();
    memory_that_others_read_is_left_alone();
    held_nodes_have_their_values_at_the_end();
    other_operations_are_computed_between();
    failures_publish_no_result();
    operation_without_a_kernel_is_computed_by_its_plan_between_others();
    without_memory_nothing_is_computed();
    only_small_graphs_of_such_operations_fit();
    parts_of_what_is_pending_fit_if_they_are_large();
    long_graphs_are_computed();
}
