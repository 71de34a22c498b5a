// Interning test: equal Types and Params are identical, and unowned ones leave the table.
#include "check.h"
#include "ir/params.h"
#include "ir/type.h"
#include "memory/deferred_decref.h"

using namespace tenfold;

int main() {
    std::size_t before = live_types();
    int64_t shape[] = {2, 3}, other[] = {3, 2};
    {
        Ref<Type> a = intern_type({shape, 1, 0, 0, false});
        Ref<Type> b = intern_type({shape, 1, 0, 0, false});
        CHECK(a == b);
        CHECK(a->size() == 6);
        CHECK(!(a == intern_type({other, 1, 0, 0, false})));
        CHECK(!(a == intern_type({shape, 2, 0, 0, false})));
        CHECK(!(a == intern_type({shape, 1, 1, 0, false})));
        CHECK(!(a == intern_type({shape, 1, 0, 1, false})));
        CHECK(!(a == intern_type({shape, 1, 0, 0, true})));
        CHECK(live_types() == before + 1);
    }
    CHECK(live_types() == before);

    int released = 0;
    {
        Ref<Params> params = intern_params("axes");
        params->python = &released;
        CHECK(params == intern_params("axes"));
        CHECK(!(params == intern_params("axis")));
    }
    CHECK(has_deferred_decrefs());
    drain_deferred_decrefs([](void* object) { ++*static_cast<int*>(object); });
    CHECK(released == 1);
    CHECK(!has_deferred_decrefs());
}
