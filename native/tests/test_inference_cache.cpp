// Inference cache test: stored answers come back, combinations differ, and capacity holds.
#include "check.h"
#include "dispatch/inference_cache.h"
#include "graphs.h"

using namespace tenfold;
using namespace tenfold::testing;

constexpr std::size_t CAPACITY = 1 << 16;

int main() {
    Ref<Type> a = vector_type(2), b = vector_type(3);
    Type* pair[] = {a.get(), b.get()};
    Type* swapped[] = {b.get(), a.get()};
    Ref<Params> params = intern_params("p");
    InferenceQuery query{add_op(), nullptr, false, pair};
    CHECK(!recall(query));
    Ref<Inference> known = inferred(a).inference;
    remember(query, known);
    CHECK(recall(query).inference == known);
    CHECK(!recall({add_op(), nullptr, true, pair}));
    CHECK(!recall({add_op(), params.get(), false, pair}));
    CHECK(!recall({add_op(), nullptr, false, swapped}));

    for (int64_t length = 10; length < 200'000; ++length) {
        Ref<Type> type = vector_type(length);
        Type* one[] = {type.get()};
        InferenceQuery many{add_op(), nullptr, false, one};
        remember(many, inferred(type).inference);
        CHECK(recall(query).inference == known); // what is asked for all the time is never dropped
    }
    for (int64_t length = 199'000; length < 200'000; ++length) { // whatever else a thread recalls
        Ref<Type> type = vector_type(length);
        Type* one[] = {type.get()};
        CHECK(recall({add_op(), nullptr, false, one}));
    }
    CHECK(recall(query).inference == known);
    CHECK(remembered_inferences() <= CAPACITY);
    CHECK(live_types() <= CAPACITY + 1'000);
    Op& other = declare_op("other");
    Type* one[] = {a.get()};
    remember({&other, nullptr, false, one}, inferred(a).inference);
    std::size_t before = remembered_inferences();
    forget_inferences(&other);
    CHECK(remembered_inferences() == before - 1);
    CHECK(!recall({&other, nullptr, false, one}));
    CHECK(recall(query).inference == known);
    clear_memo();
    CHECK(remembered_inferences() == 0);
    CHECK(!recall(query));
}
