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
    CHECK(!find_inference(query));
    Ref<Inference> known = inferred(a).inference;
    cache_inference(query, known);
    CHECK(find_inference(query).inference == known);
    CHECK(!find_inference({add_op(), nullptr, true, pair}));
    CHECK(!find_inference({add_op(), params.get(), false, pair}));
    CHECK(!find_inference({add_op(), nullptr, false, swapped}));

    for (int64_t length = 10; length < 200'000; ++length) {
        Ref<Type> type = vector_type(length);
        Type* one[] = {type.get()};
        InferenceQuery many{add_op(), nullptr, false, one};
        cache_inference(many, inferred(type).inference);
        CHECK(find_inference(query).inference == known); // frequent queries are never evicted
    }
    for (int64_t length = 199'000; length < 200'000; ++length) { // whatever else a thread recalls
        Ref<Type> type = vector_type(length);
        Type* one[] = {type.get()};
        CHECK(find_inference({add_op(), nullptr, false, one}));
    }
    CHECK(find_inference(query).inference == known);
    CHECK(num_cached_inferences() <= CAPACITY);
    CHECK(live_types() <= CAPACITY + 1'000);
    Op& other = declare_op("other");
    Type* one[] = {a.get()};
    cache_inference({&other, nullptr, false, one}, inferred(a).inference);
    std::size_t before = num_cached_inferences();
    drop_inferences_of(&other);
    CHECK(num_cached_inferences() == before - 1);
    CHECK(!find_inference({&other, nullptr, false, one}));
    CHECK(find_inference(query).inference == known);
    clear_inference_cache();
    CHECK(num_cached_inferences() == 0);
    CHECK(!find_inference(query));
}
