// The pool hands out aligned blocks, reuses them, keeps at most its cap, refuses the impossible,
// and fails when a test asks for it.
#include "../counters.h"
#include "../pool.h"
#include "check.h"

#include <cstring>

using namespace tenfold;

static void nth_allocation_fails_once() {
    fail_allocation(3);
    for (int i = 1; i <= 6; ++i) {
        void* memory = pool_allocate(100);
        CHECK((memory == nullptr) == (i == 3));
        if (memory) pool_free(memory, 100);
    }
    fail_allocation(1);
    fail_allocation(0);
    void* memory = pool_allocate(100);
    CHECK(memory);
    pool_free(memory, 100);
}

int main() {
    nth_allocation_fails_once();
    for (std::size_t bytes = 1; bytes < 100'000; bytes = bytes * 5 / 4 + 1) {
        CHECK(size_class(bytes) >= bytes && size_class(bytes) % ALIGNMENT == 0);
        CHECK(size_class(size_class(bytes)) == size_class(bytes));
        CHECK(bytes <= 4 * ALIGNMENT || size_class(bytes) <= bytes + bytes / 4 + ALIGNMENT);
        void* memory = pool_allocate(bytes);
        CHECK(reinterpret_cast<std::size_t>(memory) % ALIGNMENT == 0);
        std::memset(memory, 1, bytes);
        pool_free(memory, bytes);
        CHECK(pool_allocate(bytes) == memory); // reused
        pool_free(memory, bytes);
    }
    CHECK(pool_statistics().live_bytes == 0);
    std::size_t kept = pool_statistics().kept_bytes;
    CHECK(kept > 0 && trim_pool() == kept && pool_statistics().kept_bytes == 0);

    set_pool_cap(1 << 20);
    void* large = pool_allocate(std::size_t(8) << 20);
    pool_free(large, std::size_t(8) << 20);
    CHECK(pool_statistics().kept_bytes == 0);
    CHECK(pool_allocate(~std::size_t(0)) == nullptr);
    CHECK(pool_allocate(std::size_t(1) << 61) == nullptr);
    CHECK(counters[std::size_t(Counter::allocations)].load() > 0);
}
