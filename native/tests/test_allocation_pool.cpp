// Allocation pool test: aligned blocks, reuse, the cap, impossible sizes and injected failures.
#include "check.h"
#include "memory/pooled_vector.h"
#include "threads/counters.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

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

static void large_vectors_have_blocks_of_the_pool() {
    std::size_t before = pool_statistics().live_bytes;
    {
        PooledVector<int> few(1000), many(100'000, 7);
        std::size_t bytes = pool_statistics().live_bytes - before;
        CHECK(bytes >= 100'000 * sizeof(int) && bytes < 200'000 * sizeof(int));
        for (int i = 0; i < 100'000; ++i) few.push_back(i);
        CHECK(few[1000] == 0 && few.back() == 99'999 && many.back() == 7);
        PooledVector<int> moved = std::move(many);
        CHECK(moved.size() == 100'000);
    }
    CHECK(pool_statistics().live_bytes == before);
    fail_allocation(1);
    bool is_short = false;
    try {
        PooledVector<int> many(100'000);
    } catch (const std::bad_alloc&) { is_short = true; }
    CHECK(is_short);
}

// Takes and gives back so many blocks at once.
static void use(std::size_t bytes, int count) {
    std::vector<void*> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(pool_allocate(bytes));
    for (void* block : blocks) pool_free(block, bytes);
}

static void large_blocks_waste_at_most_64_kib() {
    for (std::size_t bytes :
         {std::size_t(1) << 20, (std::size_t(1) << 20) + 1, std::size_t(8'000'000),
          std::size_t(12'345'678), std::size_t(1) << 30}) {
        CHECK(size_class(bytes) >= bytes && size_class(bytes) - bytes <= 1 << 16);
        CHECK(size_class(bytes) % ALIGNMENT_BYTES == 0);
    }
}

static void a_free_block_a_little_larger_is_used_again() {
    trim_pool();
    auto before = pool_statistics();
    int64_t allocations = counters[std::size_t(Counter::allocations)].load();
    for (std::size_t bytes = 9'000'000; bytes > 7'500'000; bytes -= 100'000) use(bytes, 2);
    CHECK(counters[std::size_t(Counter::allocations)].load() == allocations + 2);
    void* memory = pool_allocate(6'000'000); // more than a quarter larger is another block
    CHECK(counters[std::size_t(Counter::allocations)].load() == allocations + 3);
    pool_free(memory, 6'000'000);
    auto after = pool_statistics();
    CHECK(after.live_bytes == before.live_bytes);
    CHECK(after.cached_bytes == 2 * size_class(9'000'000) + size_class(6'000'000));
    CHECK(trim_pool() == after.cached_bytes);
}

static int resident(void* memory, std::size_t bytes) {
    auto begin = (reinterpret_cast<std::uintptr_t>(memory) + 4095) / 4096 * 4096;
    std::vector<unsigned char> pages((bytes - 4096) / 4096);
    CHECK(mincore(reinterpret_cast<void*>(begin), pages.size() * 4096, pages.data()) == 0);
    return int(std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; }));
}

static void what_was_not_needed_for_long_gives_its_pages_back() {
    trim_pool();
    constexpr std::size_t BYTES = 1 << 18;
    std::vector<void*> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(std::memset(pool_allocate(BYTES), 1, BYTES));
    for (void* block : blocks) pool_free(block, BYTES);
    auto held = [&] {
        return std::count_if(blocks.begin(), blocks.end(),
                             [](void* block) { return resident(block, BYTES) > 0; });
    };
    CHECK(held() == 10);
    for (int i = 0; i < 1 << 16; ++i) use(BYTES, 3);
    CHECK(held() == 3 && pool_statistics().cached_bytes == 10 * BYTES);
    int64_t before = counters[std::size_t(Counter::allocations)].load();
    use(BYTES, 10);
    CHECK(counters[std::size_t(Counter::allocations)].load() == before);
}

static void a_full_pool_keeps_what_comes_for_what_lies_idle() {
    trim_pool();
    std::size_t cap = pool_statistics().cap_bytes;
    set_pool_cap(10 << 16);
    use(1 << 12, 160);
    for (int i = 0; i < 1 << 16; ++i) use(1 << 10, 1); // since then those have not been needed
    for (int i = 0; i < 3; ++i) use(1 << 16, 4);
    int64_t before = counters[std::size_t(Counter::allocations)].load();
    use(1 << 16, 4);
    CHECK(counters[std::size_t(Counter::allocations)].load() == before);
    CHECK(pool_statistics().cached_bytes <= 10 << 16);
    set_pool_cap(cap);
}

std::size_t mapped_bytes() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * std::size_t(sysconf(_SC_PAGESIZE));
}

void arrays_leave_the_reserved_memory_free() {
    CHECK(!reserve_headroom(std::size_t(1) << 60));
    void* memory = pool_allocate(1 << 20);
    CHECK(memory); // the refused reservation is gone
    pool_free(memory, 1 << 20);
    trim_pool();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they map all at the start
    rlimit unlimited;
    getrlimit(RLIMIT_AS, &unlimited);
    rlimit limit{mapped_bytes() + (std::size_t(64) << 20), unlimited.rlim_max};
    CHECK(reserve_headroom(32 << 20));
    setrlimit(RLIMIT_AS, &limit);
    memory = pool_allocate(48 << 20);
    CHECK(!memory);
    release_headroom(32 << 20);
    memory = pool_allocate(48 << 20);
    CHECK(memory);
    pool_free(memory, 48 << 20);
    CHECK(reserve_headroom(32 << 20)); // the cached block makes room
    release_headroom(32 << 20);
    setrlimit(RLIMIT_AS, &unlimited);
#endif
}

int main() {
    nth_allocation_fails_once();
    arrays_leave_the_reserved_memory_free();
    large_vectors_have_blocks_of_the_pool();
    what_was_not_needed_for_long_gives_its_pages_back();
    a_full_pool_keeps_what_comes_for_what_lies_idle();
    large_blocks_waste_at_most_64_kib();
    a_free_block_a_little_larger_is_used_again();
    for (std::size_t bytes = 1; bytes < 100'000; bytes = bytes * 5 / 4 + 1) {
        CHECK(size_class(bytes) >= bytes && size_class(bytes) % ALIGNMENT_BYTES == 0);
        CHECK(size_class(size_class(bytes)) == size_class(bytes));
        CHECK(bytes <= 4 * ALIGNMENT_BYTES ||
              size_class(bytes) <= bytes + bytes / 4 + ALIGNMENT_BYTES);
        void* memory = pool_allocate(bytes);
        CHECK(reinterpret_cast<std::size_t>(memory) % ALIGNMENT_BYTES == 0);
        std::memset(memory, 1, bytes);
        pool_free(memory, bytes);
        CHECK(pool_allocate(bytes) == memory); // reused
        pool_free(memory, bytes);
    }
    CHECK(pool_statistics().live_bytes == 0);
    std::size_t kept = pool_statistics().cached_bytes;
    CHECK(kept > 0 && trim_pool() == kept && pool_statistics().cached_bytes == 0);

    set_pool_cap(1 << 20);
    void* large = pool_allocate(std::size_t(8) << 20);
    pool_free(large, std::size_t(8) << 20);
    CHECK(pool_statistics().cached_bytes == 0);
    CHECK(pool_allocate(~std::size_t(0)) == nullptr);
    CHECK(pool_allocate(std::size_t(1) << 61) == nullptr);
    CHECK(counters[std::size_t(Counter::allocations)].load() > 0);
}
