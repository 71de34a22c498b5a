#include "memory/allocation_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <unordered_map>
#include <vector>

#include "memory/guard_pages.h"
#include "threads/counters.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

constexpr std::size_t HUGE_PAGE = std::size_t(2) << 20;

// Every so many blocks that come back it is looked which were not needed since the last time: those
// keep their place, and give their pages back to the system. (Freed, they would leave holes in
// which small things settle.) A loop that takes and gives back the same blocks leaves none idle,
// but the most that were ever in use at once, of each size, are a number that creeps up for ever.
constexpr std::size_t LOOK = 1 << 16, WORTH_IT = 1 << 16, PAGE = 4096; // blocks; bytes

struct FreeBlocks {
    std::vector<void*> blocks;
    std::size_t idle = 0; // the fewest there were since the last look

    std::vector<void*> take_idle(std::size_t most) {
        auto end = blocks.begin() + std::ptrdiff_t(std::min(most, idle));
        std::vector<void*> taken(blocks.begin(), end);
        blocks.erase(blocks.begin(), end);
        idle -= taken.size();
        return taken;
    }
};

struct Pool {
    Lock lock; // protects everything here
    std::unordered_map<std::size_t, FreeBlocks> kept;
    std::size_t returned = 0; // blocks, since the last look
    AllocationPoolStatistics statistics{0, 0, 0, std::size_t(1) << 30};
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
    if (found == pool().kept.end() || found->second.blocks.empty()) return nullptr;
    FreeBlocks& kept = found->second;
    void* memory = kept.blocks.back();
    kept.blocks.pop_back();
    kept.idle = std::min(kept.idle, kept.blocks.size());
    pool().statistics.kept_bytes -= bytes;
    return memory;
}

void note_live(std::size_t bytes) {
    AllocationPoolStatistics& statistics = pool().statistics;
    statistics.live_bytes += bytes;
    statistics.peak_bytes = std::max(statistics.peak_bytes, statistics.live_bytes);
}

} // namespace

std::size_t size_class(std::size_t bytes) {
    bytes = std::max(bytes, ALIGNMENT);
    std::size_t step = std::max(std::bit_floor(bytes) / 4, ALIGNMENT);
    return (bytes + step - 1) / step * step;
}

void* pool_allocate(std::size_t exact) {
    if (exact > (std::size_t(1) << 62) || must_fail()) return nullptr;
    std::size_t bytes = size_class(exact);
    void* memory = nullptr;
    {
        Guard guard(pool().lock);
        memory = take_kept(bytes);
        if (memory) note_live(bytes);
    }
    if (!memory) {
        memory = guard_pages() ? map_guarded(exact) : system_allocate(bytes);
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

namespace {

void give_pages_back(void* memory, std::size_t bytes) {
    auto begin = (reinterpret_cast<std::uintptr_t>(memory) + PAGE - 1) / PAGE * PAGE;
    auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / PAGE * PAGE;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void look() {
    Guard guard(pool().lock);
    pool().returned = 0;
    for (auto& [bytes, kept] : pool().kept) {
        for (std::size_t i = 0; bytes >= WORTH_IT && i < kept.idle; ++i)
            give_pages_back(kept.blocks[i], bytes);
        kept.idle = kept.blocks.size();
    }
}

// Makes room for a block of so many bytes by what is idle.
void make_room(std::size_t bytes, std::vector<void*>& fallen) {
    AllocationPoolStatistics& statistics = pool().statistics;
    if (bytes > statistics.cap_bytes) return;
    for (auto& [each, kept] : pool().kept) {
        std::size_t after = statistics.kept_bytes + bytes;
        if (after <= statistics.cap_bytes) return;
        auto taken = kept.take_idle((after - statistics.cap_bytes) / each + 1);
        statistics.kept_bytes -= taken.size() * each;
        fallen.insert(fallen.end(), taken.begin(), taken.end());
    }
}

} // namespace

void pool_free(void* memory, std::size_t bytes) noexcept {
    if (guard_pages()) {
        unmap_guarded(memory, bytes);
        Guard guard(pool().lock);
        pool().statistics.live_bytes -= size_class(bytes);
        return;
    }
    bytes = size_class(bytes);
    std::vector<void*> fallen; // freed outside the lock
    bool time_to_look = false;
    {
        Guard guard(pool().lock);
        AllocationPoolStatistics& statistics = pool().statistics;
        statistics.live_bytes -= bytes;
        if (statistics.kept_bytes + bytes > statistics.cap_bytes) make_room(bytes, fallen);
        if (statistics.kept_bytes + bytes <= statistics.cap_bytes) {
            pool().kept[bytes].blocks.push_back(memory);
            statistics.kept_bytes += bytes;
            memory = nullptr;
        }
        time_to_look = ++pool().returned == LOOK;
    }
    std::free(memory);
    for (void* each : fallen) std::free(each);
    if (time_to_look) look();
}

void fail_allocation(int64_t n) { until_failure.store(n, std::memory_order_relaxed); }

AllocationPoolStatistics pool_statistics() {
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
    std::unordered_map<std::size_t, FreeBlocks> kept;
    std::size_t returned = 0;
    {
        Guard guard(pool().lock);
        kept.swap(pool().kept);
        std::swap(returned, pool().statistics.kept_bytes);
    }
    for (auto& [bytes, each] : kept)
        for (void* memory : each.blocks) std::free(memory);
    return returned;
}

} // namespace tenfold
