#include "pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <sys/mman.h>
#include <unordered_map>
#include <vector>

#include "counters.h"
#include "lock.h"

namespace tenfold {
namespace {

constexpr std::size_t HUGE_PAGE = std::size_t(2) << 20;

struct Pool {
    Lock lock; // protects everything here
    std::unordered_map<std::size_t, std::vector<void*>> kept;
    PoolStatistics statistics{0, 0, 0, std::size_t(1) << 30};
};

Pool* const the_pool = new Pool; // made when the library is loaded; outlives every Value

Pool& pool() { return *the_pool; }

std::atomic<int64_t> until_failure{0}; // relaxed: a number; 0 or less when none is to fail

bool must_fail() {
    return until_failure.load(std::memory_order_relaxed) > 0 &&
           until_failure.fetch_sub(1, std::memory_order_relaxed) == 1;
}

void* system_allocate(std::size_t bytes) {
    if (bytes < HUGE_PAGE) return std::aligned_alloc(ALIGNMENT, bytes);
    void* memory = std::aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (memory)
        madvise(memory, bytes, MADV_HUGEPAGE); // advice: a kernel without huge pages may refuse
    return memory;
}

void* take_kept(std::size_t bytes) {
    auto found = pool().kept.find(bytes);
    if (found == pool().kept.end() || found->second.empty()) return nullptr;
    void* memory = found->second.back();
    found->second.pop_back();
    pool().statistics.kept_bytes -= bytes;
    return memory;
}

void note_live(std::size_t bytes) {
    PoolStatistics& statistics = pool().statistics;
    statistics.live_bytes += bytes;
    statistics.peak_bytes = std::max(statistics.peak_bytes, statistics.live_bytes);
}

} // namespace

std::size_t size_class(std::size_t bytes) {
    bytes = std::max(bytes, ALIGNMENT);
    std::size_t step = std::max(std::bit_floor(bytes) / 4, ALIGNMENT);
    return (bytes + step - 1) / step * step;
}

void* pool_allocate(std::size_t bytes) {
    if (bytes > (std::size_t(1) << 62) || must_fail()) return nullptr;
    bytes = size_class(bytes);
    void* memory = nullptr;
    {
        Guard guard(pool().lock);
        memory = take_kept(bytes);
        if (memory) note_live(bytes);
    }
    if (!memory) {
        memory = system_allocate(bytes);
        if (!memory && trim_pool() > 0) memory = system_allocate(bytes);
        if (!memory) return nullptr;
        count_anywhere(Counter::allocations); // launches ask without the GIL
        count_anywhere(Counter::bytes_allocated, int64_t(bytes));
        Guard guard(pool().lock);
        note_live(bytes);
    }
    return memory;
}

void pool_allocate(std::size_t bytes, std::span<void*> places) {
    std::size_t taken = 0;
    {
        std::size_t size = size_class(bytes);
        bool fails = until_failure.load(std::memory_order_relaxed) > 0; // soon: it counts them
        Guard guard(pool().lock);
        while (!fails && taken < places.size() && (places[taken] = take_kept(size))) {
            note_live(size);
            ++taken;
        }
    }
    for (; taken < places.size(); ++taken) places[taken] = pool_allocate(bytes);
}

void pool_free(void* memory, std::size_t bytes) noexcept {
    bytes = size_class(bytes);
    {
        Guard guard(pool().lock);
        PoolStatistics& statistics = pool().statistics;
        statistics.live_bytes -= bytes;
        if (statistics.kept_bytes + bytes <= statistics.cap_bytes) {
            pool().kept[bytes].push_back(memory);
            statistics.kept_bytes += bytes;
            return;
        }
    }
    std::free(memory);
}

void fail_allocation(int64_t n) { until_failure.store(n, std::memory_order_relaxed); }

PoolStatistics pool_statistics() {
    Guard guard(pool().lock);
    return pool().statistics;
}

void set_pool_cap(std::size_t bytes) {
    {
        Guard guard(pool().lock);
        pool().statistics.cap_bytes = bytes;
        if (pool().statistics.kept_bytes <= bytes) return;
    }
    trim_pool();
}

std::size_t trim_pool() {
    std::unordered_map<std::size_t, std::vector<void*>> kept;
    std::size_t returned = 0;
    {
        Guard guard(pool().lock);
        kept.swap(pool().kept);
        std::swap(returned, pool().statistics.kept_bytes);
    }
    for (auto& [bytes, blocks] : kept)
        for (void* memory : blocks) std::free(memory);
    return returned;
}

} // namespace tenfold
