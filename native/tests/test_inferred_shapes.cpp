// Shape inference test: broadcasts and reductions of new shapes, Python's share, and the cache's
// size.
#include "ir/inferred_shapes.h"

#include <thread>

#include "check.h"
#include "ir/index_map.h"

using namespace tenfold;

namespace {

using Shape = std::vector<int64_t>;
constexpr uint16_t WIDE = 1, NARROW = 2;
constexpr std::size_t CAPACITY = 8192;

Ref<Type> type(const Shape& shape, uint16_t dtype = WIDE, uint8_t device = 0, uint8_t storage = 0) {
    return intern_type({shape, dtype, device, storage, false});
}

Ref<Type> weak(uint8_t device = 0) { return intern_type({{}, WIDE, device, 0, true}); }

Op& fresh_op(Op::Shapes shapes) {
    Op& op = declare_op("op");
    op.shapes = shapes;
    return op;
}

// A query that owns its operands.
struct Asked {
    Asked(const Op& op, std::vector<Ref<Type>> owned, Ref<Params> with = {}, bool strict = false)
        : types(std::move(owned)), params(std::move(with)) {
        for (const Ref<Type>& type : types) pointers.push_back(type.get());
        query = {&op, params.get(), strict, pointers};
    }
    Asked(const Asked&) = delete;

    std::vector<Ref<Type>> types;
    std::vector<Type*> pointers;
    Ref<Params> params;
    InferenceQuery query;
};

Inferred infer(const Op& op, std::vector<Ref<Type>> types, Ref<Params> params = {},
               bool strict = false) {
    return infer_shape(Asked(op, std::move(types), std::move(params), strict).query);
}

// As if Python's rules had said so.
Ref<Inference> learn(const Op& op, std::vector<Ref<Type>> types, Ref<Params> params = {},
                     uint16_t dtype = WIDE) {
    auto said = Ref<Inference>::adopt(new Inference);
    said->kind = MAP;
    said->operands.assign(types.size(), dtype);
    said->results.push_back(type({}, dtype, types[0]->device, types[0]->storage));
    cache_dtypes(Asked(op, std::move(types), std::move(params)).query, said);
    return said;
}

// As Python's parameters of a reduction or a permutation.
Ref<Params> axes(const Shape& axes, bool keeps = false) {
    std::string bytes(1, keeps ? 'T' : 'F');
    for (int64_t axis : axes) bytes += std::to_string(axis) + ' ';
    Ref<Params> params = intern_params(bytes);
    if (std::exchange(params->has_axes, true)) return params;
    params->axes = axes;
    params->keepdims = keeps;
    return params;
}

bool has_shape(const Inferred& inferred, const Shape& shape) {
    return inferred && inferred.type->shape == shape;
}

} // namespace

static void operands_are_broadcast() {
    Op& op = fresh_op(Op::broadcast);
    learn(op, {type({}), type({})});
    auto gives = [&](const Shape& a, const Shape& b, const Shape& both) {
        return has_shape(infer(op, {type(a), type(b)}), both) &&
               has_shape(infer(op, {type(b), type(a)}), both);
    };
    CHECK(gives({}, {}, {}) && gives({3}, {3}, {3}) && gives({3}, {}, {3}));
    CHECK(gives({3, 1}, {1, 4}, {3, 4}) && gives({4}, {3, 1}, {3, 4}));
    CHECK(gives({2, 1, 5}, {3, 1}, {2, 3, 5}) && gives({1, 1}, {7}, {1, 7}));
    CHECK(gives({0}, {1}, {0}) && gives({5, 0}, {1}, {5, 0}) && gives({1, 0}, {6, 1}, {6, 0}));
    for (const Shape& other : {Shape{2}, Shape{3, 2}, Shape{0}, Shape{2, 4}})
        CHECK(!infer(op, {type(other), type({3})}) && !infer(op, {type({3}), type(other)}));
    CHECK(!infer(op, {type({2, 3}), type({3, 3})}) && !infer(op, {type({2, 3}), type({2})}));
    Op& three = fresh_op(Op::broadcast);
    learn(three, {type({}), type({}), type({})});
    CHECK(has_shape(infer(three, {type({5, 1, 1}), type({6, 1}), type({7})}), {5, 6, 7}));
    CHECK(!infer(three, {type({5, 1}), type({6}), type({2, 1})}));
}

static void result_is_like_the_example() {
    Op& op = fresh_op(Op::broadcast);
    Ref<Inference> said = learn(op, {type({3}, NARROW), weak()}, {}, NARROW);
    Inferred result = infer(op, {type({9, 4}, NARROW), weak()});
    CHECK(has_shape(result, {9, 4}) && result.type == type({9, 4}, NARROW) &&
          result.inference == said);
    Ref<Inference> other = learn(op, {type({3}, WIDE, 2, 1), weak()});
    CHECK(infer(op, {type({8}, WIDE, 2, 1), weak()}).type == type({8}, WIDE, 2, 1));
    CHECK(said->loops && said->loops != other->loops);
    CHECK(learn(op, {type({7}, NARROW), weak()}, {}, NARROW)->loops == said->loops);
}

static void results_of_their_operands_own_type_are_quick() {
    Op &sum = fresh_op(Op::broadcast), &less = fresh_op(Op::broadcast);
    auto alike = [](const Op& op, std::vector<Ref<Type>> types) {
        return infer_same_type(Asked(op, std::move(types)).query);
    };
    Ref<Inference> said = learn(sum, {type({3}), type({3})});
    learn(less, {type({3}), type({3})}, {}, NARROW);
    Ref<Type> own = type({5});
    infer(sum, {own, own}), infer(less, {own, own}); // the table has been asked, once for a thread
    Inferred found = alike(sum, {own, own});
    CHECK(found.inference == said && found.type == own);
    CHECK(alike(sum, {type({5, 0}), type({5, 0})}));
    CHECK(!alike(sum, {own, type({1})}) && !alike(sum, {own, type({5}, NARROW)}));
    CHECK(!alike(less, {own, own}) && !alike(sum, {weak(), weak()}) && !alike(sum, {}));
    CHECK(!infer_same_type(Asked(sum, {own, own}, axes({0})).query));
    CHECK(!infer_same_type(Asked(sum, {own, own}, {}, true).query)); // strict
    int times = 0;
    while (alike(sum, {own, own}) && times < 1'000) ++times;
    CHECK(times > 0 && times < 1'000); // now and then the table is asked, where examples age
    clear_dtype_cache();
    CHECK(!alike(sum, {own, own}) && !infer(sum, {own, own}));
}

static void what_was_not_seen_is_left_to_the_rules() {
    Op &op = fresh_op(Op::broadcast), &stated = fresh_op(Op::stated);
    std::size_t before = num_cached_dtypes();
    learn(stated, {type({3}), type({3})});
    CHECK(num_cached_dtypes() == before && !infer(stated, {type({3}), type({3})}));
    CHECK(!infer(op, {type({3}), type({3})}));
    learn(op, {type({3}), type({3})});
    CHECK(infer(op, {type({4}), type({4})}));
    CHECK(!infer(op, {type({4}), type({4}, NARROW)}) && !infer(op, {type({4}), weak()}));
    CHECK(!infer(op, {type({4})}) && !infer(op, {type({4}), type({4}), type({4})}));
    CHECK(!infer(op, {type({4}), type({4})}, {}, true)); // strict
    CHECK(!infer(op, {type({4}), type({4})}, axes({0})));
    CHECK(!infer(op, {}) && !infer(op, {weak(), weak()}));
    CHECK(!infer(fresh_op(Op::broadcast), {type({4}), type({4})}));
    std::vector<Ref<Type>> many(17, type({4}));
    learn(op, many);
    CHECK(!infer(op, many));
}

static void two_devices_are_left_to_the_rules() {
    Op& op = fresh_op(Op::broadcast);
    learn(op, {type({3}), type({3}, WIDE, 1)});
    learn(op, {type({3}), type({3}, WIDE, 0, 1)});
    CHECK(!infer(op, {type({3}), type({3}, WIDE, 1)}));
    CHECK(!infer(op, {type({3}), type({3}, WIDE, 0, 1)})); // and two kinds of storage
    learn(op, {weak(), type({3}, WIDE, 1)});
    CHECK(infer(op, {weak(), type({5}, WIDE, 1)}).type->device == 0); // as the rules said
    CHECK(!infer(op, {weak(1), type({5}, WIDE, 1)}));
}

static void reductions_drop_or_keep_their_axes() {
    Op& op = fresh_op(Op::reduced);
    auto gives = [&](const Shape& of, const Shape& over, bool keeps, const Shape& left) {
        learn(op, {type(Shape(of.size(), 1))}, axes(over, keeps));
        return has_shape(infer(op, {type(of)}, axes(over, keeps)), left);
    };
    CHECK(gives({2, 3, 4}, {1}, false, {2, 4}) && gives({2, 3, 4}, {1}, true, {2, 1, 4}));
    CHECK(gives({2, 3, 4}, {0, 2}, false, {3}) && gives({2, 3, 4}, {0, 2}, true, {1, 3, 1}));
    CHECK(gives({2, 3}, {0, 1}, false, {}) && gives({2, 3}, {0, 1}, true, {1, 1}));
    CHECK(gives({2, 3}, {}, false, {2, 3}) && gives({}, {}, false, {}) && gives({}, {}, true, {}));
    CHECK(!infer(op, {type({2, 3})}, axes({1}))); // these axes only of three
    CHECK(!infer(op, {type({2, 3})}));            // no Params
    CHECK(!learn(op, {type({2, 3})}, axes({1}))->loops);
    // Of operands of their own a reduction keeps the shape of the first.
    learn(op, {type({1, 1}), type({1})}, axes({1}));
    CHECK(has_shape(infer(op, {type({6, 7}), type({7})}, axes({1})), {6}));
}

static void permutations_order_their_axes() {
    Op& op = fresh_op(Op::permuted);
    Ref<Inference> first = learn(op, {type({1, 1, 1})}, axes({2, 0, 1}));
    CHECK(has_shape(infer(op, {type({2, 3, 4})}, axes({2, 0, 1})), {4, 2, 3}));
    CHECK(!infer(op, {type({2, 3, 4})}, axes({0, 1, 2}))); // this order has no example
    learn(op, {type({1})}, axes({1}));
    CHECK(!infer(op, {type({7})}, axes({1}))); // no axis of it
    learn(op, {type({1, 1})}, axes({0}));
    CHECK(!infer(op, {type({7, 7})}, axes({0})));
    first->index_map = new IndexMap{IndexMap::affine, {{1, 1, 0}, {2, 1, 0}, {0, 1, 0}}, {}};
    CHECK(infer(op, {type({5, 6, 7})}, axes({2, 0, 1})).inference == first);
}

static void what_is_taken_has_the_lengths_of_its_picks() {
    Op& op = fresh_op(Op::stated);
    op.part = Op::slice;
    // x[row, start : start + 3 * count : 3] with an axis added in front.
    auto picks = [](int64_t count, int64_t row = 0, int64_t start = 0) {
        return slice_params(
            {IndexMap::affine, {{IndexMap::NO_AXIS, 0, row}, {1, 3, start}}, {1, count}});
    };
    CHECK(!infer(op, {type({9, 9})}, picks(2)));
    Ref<Inference> said = learn(op, {type({9, 9})}, picks(2));
    Inferred result = infer(op, {type({9, 99})}, picks(30));
    CHECK(has_shape(result, {1, 30}));
    CHECK(result.inference != said &&
          result.inference->results[0] == result.type); // of these picks
    CHECK(!infer(op, {type({9})}, picks(30)) && !infer(op, {type({9, 99}, NARROW)}, picks(30)));
    Ref<Params> moved = picks(2, 2, 1); // of the same pattern
    CHECK(moved != picks(2) && starts_of(*moved).pattern == picks(2).get());
    CHECK(starts_of(*moved).starts == AxisVector(std::array<int64_t, 2>{2, 1}));
    const IndexMap& map = pattern_of(*picks(2)).map;
    CHECK(map.steps.size() == 2 && map.steps[0].axis == IndexMap::NO_AXIS);
    CHECK(map.steps[1].axis == 1 && map.steps[1].coefficient == 3 && map.steps[1].start == 0);
}

static void reductions_of_empty_axes_are_left_to_the_rules() {
    Op& op = fresh_op(Op::reduced);
    learn(op, {type({1, 1})}, axes({1}));
    CHECK(!infer(op, {type({3, 0})}, axes({1})) && !infer(op, {type({0, 0})}, axes({1})));
    CHECK(has_shape(infer(op, {type({0, 3})}, axes({1})), {0}));
}

static void axes_that_are_none_are_left_to_the_rules() {
    Op& op = fresh_op(Op::reduced);
    std::vector<Ref<Params>> all = {axes({2}), axes({-1}), axes(Shape(65, 0)),
                                    intern_params("no axes")};
    for (const Ref<Params>& params : all) {
        learn(op, {type({1, 1})}, params);
        CHECK(!infer(op, {type({2, 2})}, params));
    }
}

static void axes_come_in_another_order() {
    Op& op = fresh_op(Op::permuted);
    Ref<Params> turned = axes({2, 0, 1});
    learn(op, {type({1, 1, 1})}, turned);
    CHECK(has_shape(infer(op, {type({3, 0, 5})}, turned), {5, 3, 0}));
    CHECK(!infer(op, {type({3, 4})}, turned) && !infer(op, {type({3, 4, 5, 6})}, turned));
    CHECK(!infer(op, {type({3, 4, 5})}));
    learn(op, {type({})}, axes({}));
    CHECK(has_shape(infer(op, {type({})}, axes({})), {}));
    for (const Ref<Params>& params : {axes({0, 3, 1}), axes({0, -1, 1}), intern_params("none")}) {
        learn(op, {type({1, 1, 1})}, params);
        CHECK(!infer(op, {type({3, 4, 5})}, params));
    }
}

static void shapes_that_are_too_large_are_left_to_the_rules() {
    Op& op = fresh_op(Op::broadcast);
    learn(op, {type({}), type({})});
    constexpr int64_t most = int64_t(1) << 59; // of 8 bytes each
    CHECK(infer(op, {type({most}), type({1})}) && !infer(op, {type({most + 1}), type({1})}));
    CHECK(!infer(op, {type({most, 1}), type({2})}) && !infer(op, {type({most, 1}), type({most})}));
    CHECK(!infer(op, {type({INT64_MAX}), type({INT64_MAX})}));
    CHECK(!infer(op, {type({INT64_MAX, 1}), type({1, 0})})); // as without the empty axis
    CHECK(infer(op, {type(Shape(64, 1)), type({})}) && !infer(op, {type(Shape(65, 1)), type({})}));
}

static void params_are_kept_while_they_are_remembered() {
    Op& op = fresh_op(Op::reduced);
    Ref<Params> params = axes({0, 5});
    learn(op, {type(Shape(6, 1))}, params);
    CHECK(params->references == 2);
    clear_dtype_cache();
    CHECK(params->references == 1 && num_cached_dtypes() == 0);
    CHECK(!infer(op, {type(Shape(6, 1))}, params));
}

static void what_is_not_asked_for_is_forgotten_at_last() {
    clear_dtype_cache();
    Op &used = fresh_op(Op::broadcast), &unused = fresh_op(Op::broadcast);
    learn(unused, {type({})});
    Ref<Loops> loops = learn(used, {type({})})->loops;
    for (std::size_t i = 0; i < 3 * CAPACITY; ++i) {
        learn(fresh_op(Op::broadcast), {type({})});
        CHECK(num_cached_dtypes() <= CAPACITY);
        if (i % 1'000 == 0) CHECK(infer(used, {type({int64_t(i)})}).inference->loops == loops);
    }
    CHECK(infer(used, {type({2})}) && !infer(unused, {type({2})}));
    clear_dtype_cache();
    CHECK(!infer(used, {type({2})}));
}

static void what_is_asked_for_again_takes_no_more_room() {
    clear_dtype_cache();
    std::vector<const Op*> ops;
    for (std::size_t round = 0; round < 6; ++round) {
        for (std::size_t i = 0; i < CAPACITY / 4; ++i) {
            ops.push_back(&fresh_op(Op::broadcast));
            learn(*ops.back(), {type({})});
            CHECK(num_cached_dtypes() <= CAPACITY);
        }
        for (const Op* op : ops) infer(*op, {type({3})});
        CHECK(num_cached_dtypes() <= CAPACITY);
    }
    clear_dtype_cache();
}

static void threads_remember_and_infer_at_once() {
    Op& op = fresh_op(Op::broadcast);
    learn(op, {type({}), type({})});
    auto work = [&](int64_t seed) {
        for (int64_t i = 0; i < 2'000; ++i) {
            auto dtype = uint16_t(1 + i % 7);
            Inferred result = infer(op, {type({i, 1}, dtype), type({seed + 2}, dtype)});
            if (result)
                CHECK(has_shape(result, {i, seed + 2}) && result.inference->loops);
            else
                CHECK(learn(op, {type({}, dtype), type({}, dtype)}, {}, dtype)->loops);
            if (i % 499 == 498) clear_dtype_cache();
        }
    };
    std::vector<std::thread> threads;
    for (int64_t seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
    for (std::thread& thread : threads) thread.join();
}

int main() {
    for (uint16_t dtype = 0; dtype < 8; ++dtype) declare_dtype(dtype, {'f', 8});
    declare_dtype(NARROW, {'f', 4});
    operands_are_broadcast();
    result_is_like_the_example();
    results_of_their_operands_own_type_are_quick();
    what_was_not_seen_is_left_to_the_rules();
    two_devices_are_left_to_the_rules();
    reductions_drop_or_keep_their_axes();
    permutations_order_their_axes();
    what_is_taken_has_the_lengths_of_its_picks();
    reductions_of_empty_axes_are_left_to_the_rules();
    axes_that_are_none_are_left_to_the_rules();
    axes_come_in_another_order();
    shapes_that_are_too_large_are_left_to_the_rules();
    params_are_kept_while_they_are_remembered();
    what_is_not_asked_for_is_forgotten_at_last();
    what_is_asked_for_again_takes_no_more_room();
    threads_remember_and_infer_at_once();
}
