// Symbolic executable test: shape signatures, plans for other lengths, guards, undefined formulas
// and caches. A plan has its own sizes, types and memory; some lengths were inferred otherwise.
#include "exec/symbolic_executable.h"

#include <thread>

#include "check.h"
#include "graphs.h"
#include "ir/index_map.h"
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

int64_t twice(void** buffers, const int64_t* sizes, const double*, void*, int64_t, int64_t) {
    auto *from = static_cast<double*>(buffers[0]), *to = static_cast<double*>(buffers[1]);
    for (int64_t i = 0; i < sizes[0]; ++i) to[i] = from[i] + from[i];
    return 0;
}

LinearizedGraph linearized(const Ref<Node>& node) {
    Node* outputs[] = {node.get()};
    return linearize(outputs);
}

ShapeSignature form_of(const Ref<Node>& node) {
    ShapeSignature form;
    CHECK(form.write(linearized(node), {}));
    return form;
}

Ref<Node> doubled(int64_t length) {
    Ref<Node> x = leaf(length);
    auto* numbers = static_cast<double*>(value_of(x.get())->buffers[0].address());
    for (int64_t i = 0; i < length; ++i) numbers[i] = double(i);
    return add(x, x);
}

Ref<Executable> pattern_of(const LinearizedGraph& graph) {
    auto plan = Ref<Executable>::adopt(new Executable(KeyOwners(graph)));
    const Type& type = *graph.nodes[0].node->type;
    Executable::Launch run{};
    run.kernel = HostKernel(twice);
    run.buffers = {{0, 0}, {1, 0}};
    int64_t length = type.shape[0];
    run.sizes = {length};
    run.units = run.grain = run.threads = 1;
    plan->slots = 2;
    plan->instructions.push_back(Executable::Load{0, 0, 0});
    plan->instructions.push_back(Executable::Allocate{
        1, Ref<Type>(graph.nodes[0].node->type), std::size_t(length) * 8, {}, false});
    plan->instructions.push_back(run);
    plan->instructions.push_back(Executable::Publish{1, {1}});
    return plan;
}

// For lengths below 100: registers are the length, 8, -1, 100, 8 * length, -length, 100 - length.
Ref<SymbolicExecutable> template_of(const LinearizedGraph& graph) {
    using Row = SymbolicExecutable::Row;
    using Number = SymbolicExecutable::PatchedField;
    auto result = Ref<SymbolicExecutable>::adopt(new SymbolicExecutable);
    result->template_plan = pattern_of(graph);
    result->num_lengths = 1;
    result->constants = {8, -1, 100};
    result->rows = {{Row::times, 0, 1}, {Row::times, 0, 2}, {Row::plus, 3, 5}};
    result->guards = {{SymbolicExecutable::Guard::positive, 6}};
    result->inferred_lengths = {0};
    result->patches = {{Number::bytes, 1, 0, 4}, {Number::sizes, 2, 0, 0}};
    result->shapes = {{1, {0}}};
    return result;
}

Ref<Executable> plan_for(const Ref<Node>& node) {
    LinearizedGraph graph = linearized(node);
    Key key;
    ShapeSignature form; // of the same graph: a second one would count the references of the first
    CHECK(key.write(graph, {}, Key::by_form) && form.write(graph, {}));
    return instantiate_plan(form, graph, key);
}

Ref<SymbolicExecutable> kept_for(int64_t length) {
    Ref<Node> example = doubled(length);
    Ref<SymbolicExecutable> result = template_of(linearized(example));
    CHECK(result->is_valid());
    cache_template(form_of(example), result);
    return result;
}

// x[start : start + count], with axes of length 1 put in.
Ref<Node> part(const Ref<Node>& x, int64_t start, int64_t count, std::vector<int64_t> added) {
    static Op& op = declare_op("index");
    op.python = add_op()->python;
    op.part = Op::slice;
    std::vector<int64_t> shape = {count};
    int64_t axis = 0;
    for (int64_t position : added) {
        axis += position <= axis;
        shape.insert(shape.begin() + position, 1);
    }
    IndexMap map{IndexMap::affine, {{axis, 1, start}}, shape};
    Ref<Type> type = intern_type({shape, 1, 0, 0, false});
    Node* inputs[] = {x.get()};
    return operation_node(&op, slice_params(std::move(map)), inferred(type), inputs);
}

} // namespace

static void forms_know_parts_that_are_all_of_an_array() {
    auto form = [](int64_t length, std::vector<int64_t> added) {
        return form_of(part(leaf(length), 0, length, std::move(added))).words;
    };
    CHECK(form(4, {}) == form(5, {}) && form(4, {1}) == form(5, {1}));
    CHECK(form(4, {}) != form(4, {1}) && form(4, {0}) != form(4, {1}));
}

static void forms_know_what_is_taken_of_an_array_by_its_ends() {
    auto form = [](int64_t length, int64_t start, int64_t count) {
        return form_of(part(leaf(length), start, count, {})).words;
    };
    CHECK(form(9, 1, 8) == form(20, 1, 19) && form(9, 1, 8) != form(20, 2, 18)); // x[1:]
    CHECK(form(9, 1, 7) == form(20, 1, 18) && form(9, 1, 7) != form(20, 1, 17)); // x[1:-1]
    CHECK(form(9, 0, 3) == form(20, 0, 3) && form(9, 0, 3) != form(20, 0, 4));   // x[:3]
    CHECK(form(9, 6, 3) == form(20, 17, 3) && form(9, 6, 3) != form(20, 6, 3));  // x[-3:]
    CHECK(form(9, 0, 9) != form(9, 0, 8) && form(9, 4, 0) == form(20, 4, 0));
    // Rules look at the lengths of slices of pending arrays.
    CHECK(ShapeSignature().write(linearized(part(doubled(4), 0, 4, {1})), {}));
    CHECK(!ShapeSignature().write(linearized(part(doubled(4), 1, 3, {})), {}));
}

static void forms_tell_all_but_lengths() {
    CHECK(form_of(doubled(4)).words == form_of(doubled(5)).words);
    CHECK(form_of(doubled(4)).words != form_of(doubled(1)).words);
    CHECK(form_of(doubled(0)).words != form_of(doubled(1)).words);
    CHECK(form_of(doubled(7)).lengths == std::vector<int64_t>{7});
    auto pair = [](int64_t one, int64_t other) { return add(leaf(one), leaf(other)); };
    CHECK(form_of(pair(4, 5)).words == form_of(pair(7, 6)).words);
    CHECK(form_of(pair(4, 4)).words != form_of(pair(4, 5)).words);
    CHECK(form_of(pair(4, 5)).lengths == (std::vector<int64_t>{4, 5}));
    Ref<Node> kept = leaf(4);
    CHECK(form_of(add(kept, kept)).words != form_of(doubled(4)).words); // it does not die
    Ref<Node> strided = leaf(4);
    value_of(strided.get())->strides = {16};
    CHECK(!ShapeSignature().write(linearized(add(strided, strided)), {}));
}

static void a_template_makes_plans_for_other_lengths() {
    kept_for(4);
    CHECK(num_cached_templates() == 1);
    for (int64_t length : {2, 9, 99}) {
        Ref<Node> y = doubled(length);
        Ref<Executable> plan = plan_for(y);
        CHECK(plan);
        LinearizedGraph graph = linearized(y);
        Direct direct;
        CHECK(replay(*plan, graph, {}, direct));
        Ref<Value> value = value_of(y.get());
        CHECK(value->type == vector_type(length));
        CHECK(value->buffers[0].allocation->bytes >= std::size_t(length) * 8);
        CHECK(static_cast<double*>(value->buffers[0].address())[length - 1] == 2.0 * (length - 1));
    }
    clear_plan_cache();
    clear_template_cache();
    CHECK(num_cached_templates() == 0 && !plan_for(doubled(9)));
}

static void a_plan_is_kept_when_it_is_asked_for_again() {
    kept_for(4);
    auto kept = [](int64_t length) {
        Key key;
        CHECK(key.write(linearized(doubled(length)), {}, Key::by_form));
        return find_plan(key.words, 0);
    };
    Ref<Type> types[] = {vector_type(7), vector_type(9)}; // keep the interned Types, so keys match
    const Executable* first = plan_for(doubled(7)).get();
    Ref<Executable> second = plan_for(doubled(9)), third = plan_for(doubled(7));
    CHECK(second.get() == first && third != second); // a holder keeps its plan unchanged
    CHECK(!kept(9) && kept(7) == third && third->key_owners.types.size() == 2);
    Ref<Executable> fourth = plan_for(doubled(9));
    CHECK(kept(9) == fourth && fourth != second && kept(7) == third);
    CHECK(std::get<Executable::Allocate>(third->instructions[1]).bytes == 56);
    CHECK(std::get<Executable::Allocate>(second->instructions[1]).bytes == 72);
    clear_plan_cache();
    clear_template_cache();
}

static void guards_and_inferred_lengths_must_hold() {
    Ref<SymbolicExecutable> result = kept_for(4);
    CHECK(plan_for(doubled(99)) && !plan_for(doubled(100)) && !plan_for(doubled(1)));
    result->guards = {{SymbolicExecutable::Guard::zero, 6}};
    CHECK(!plan_for(doubled(99)) && plan_for(doubled(100)));
    result->guards = {{SymbolicExecutable::Guard::other, 6}};
    CHECK(plan_for(doubled(99)) && !plan_for(doubled(100)));
    result->guards.clear();
    result->inferred_lengths = {4}; // a node is not as long
    CHECK(!plan_for(doubled(99)));
    result->inferred_lengths = {};
    CHECK(!plan_for(doubled(99)));
    set_templates_enabled(false);
    result->inferred_lengths = {0};
    CHECK(!plan_for(doubled(99)) && !should_compile_template(form_of(doubled(4))));
    set_templates_enabled(true);
    CHECK(plan_for(doubled(99)));
    clear_plan_cache();
    clear_template_cache();
}

static void formulas_without_a_result_make_no_plan() {
    using Row = SymbolicExecutable::Row;
    Ref<SymbolicExecutable> result = kept_for(4);
    auto computes = [&](Row::Operation operation, int64_t left, int64_t right, int64_t expected) {
        result->constants = {left, right, -expected};
        result->rows = {{operation, 1, 2}, {Row::plus, 3, 4}, {Row::times, 1, 2}};
        result->rows.resize(2);
        result->patches.clear();
        result->guards = {{SymbolicExecutable::Guard::zero, 5}};
        return bool(plan_for(doubled(9)));
    };
    constexpr int64_t MOST = std::numeric_limits<int64_t>::max();
    CHECK(computes(Row::plus, 7, -9, -2) && computes(Row::times, 7, -9, -63));
    CHECK(computes(Row::floor, 7, 2, 3) && computes(Row::ceil, 7, 2, 4));
    CHECK(computes(Row::ceil, 8, 2, 4) && computes(Row::mod, 7, 4, 3));
    CHECK(computes(Row::min, 7, 4, 4) && computes(Row::max, 7, 4, 7));
    CHECK(computes(Row::bits, 0, 0, 0) && computes(Row::bits, 1023, 1023, 10));
    CHECK(!computes(Row::plus, MOST, 1, MOST) && !computes(Row::times, MOST, 2, MOST));
    CHECK(!computes(Row::floor, 7, 0, 0) && !computes(Row::mod, -7, 4, 1));
    CHECK(!computes(Row::floor, -7, 2, -4) && !computes(Row::bits, -1, -1, 1));
    clear_plan_cache();
    clear_template_cache();
}

static void what_has_no_place_is_not_sound() {
    Ref<Node> example = doubled(4);
    LinearizedGraph graph = linearized(example);
    auto broken = [&](auto change) {
        Ref<SymbolicExecutable> result = template_of(graph);
        change(*result);
        return !result->is_valid();
    };
    CHECK(!broken([](SymbolicExecutable&) {}));
    CHECK(broken([](SymbolicExecutable& result) { result.patches[0].instruction = 4; }));
    CHECK(broken([](SymbolicExecutable& result) { result.patches[0].source = 7; }));
    CHECK(broken([](SymbolicExecutable& result) {
        result.patches[0].field = SymbolicExecutable::PatchedField::strides;
    }));
    CHECK(broken([](SymbolicExecutable& result) { result.patches[1].index = 1; }));
    CHECK(broken([](SymbolicExecutable& result) { result.rows[0].left = 4; }));
    CHECK(broken([](SymbolicExecutable& result) { result.shapes[0].instruction = 2; }));
    CHECK(broken([](SymbolicExecutable& result) { result.guards[0].value = 7; }));
    CHECK(broken([](SymbolicExecutable& result) {
        result.template_plan->instructions.push_back(Executable::Call{});
    }));
}

static void a_template_is_wanted_for_the_second_lengths() {
    CHECK(!should_compile_template(form_of(doubled(4))) &&
          !should_compile_template(form_of(doubled(4))));
    CHECK(should_compile_template(form_of(doubled(5))));
    int wanted = 0;
    for (int i = 0; i < 100; ++i) wanted += should_compile_template(form_of(doubled(5)));
    CHECK(wanted > 0 && wanted < 50); // a form that fails repeatedly is tried less often
    clear_template_cache();
}

static void threads_may_make_plans_at_once() {
    kept_for(4);
    std::vector<std::thread> threads;
    for (int64_t first : {2, 3, 4})
        threads.emplace_back([first] {
            for (int64_t length = first; length < 90; ++length) CHECK(plan_for(doubled(length)));
            should_compile_template(form_of(doubled(5)));
        });
    for (std::thread& thread : threads) thread.join();
    clear_plan_cache();
    clear_template_cache();
}

int main() {
    declare_dtype(1, {'f', 8});
    static char python;
    const_cast<Op*>(add_op())->python = &python; // else it picks one of several results
    forms_tell_all_but_lengths();
    forms_know_parts_that_are_all_of_an_array();
    forms_know_what_is_taken_of_an_array_by_its_ends();
    a_template_makes_plans_for_other_lengths();
    a_plan_is_kept_when_it_is_asked_for_again();
    guards_and_inferred_lengths_must_hold();
    formulas_without_a_result_make_no_plan();
    what_has_no_place_is_not_sound();
    a_template_is_wanted_for_the_second_lengths();
    threads_may_make_plans_at_once();
}
