#include "memory/allocation_pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <malloc.h>
#include <map>
#include <sys/mman.h>
#include <unordered_map>
#include <vector>

#include "memory/guard_pages.h"
#include "threads/counters.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

constexpr std::size_t HUGE_PAGE_BYTES = std::size_t(2) << 20;

// Classes are at most so far apart, so that a large block wastes no more bytes. A request takes a
// free block of a class up to a quarter larger all the same: new pages cost more than unused ones.
constexpr std::size_t MAX_CLASS_STEP = std::size_t(1) << 16, SHARED_BYTES = 4 * MAX_CLASS_STEP;

// After so many returned blocks, blocks that were idle since the last check return their pages to
// the system. They keep their addresses: freed, they would leave holes for small objects. A loop
// that reuses the same blocks leaves none idle. But the peak use of each size may grow for ever.
constexpr std::size_t IDLE_CHECK_INTERVAL = 1 << 16, MIN_TRIMMED_BYTES = 1 << 16,
                      PAGE_BYTES = 4096; // blocks; bytes

struct FreeBlocks {
    std::vector<void*> blocks;
    std::size_t num_idle = 0; // the minimum of blocks.size() since the last check

    std::vector<void*> take_idle(std::size_t max_blocks) {
        auto end = blocks.begin() + std::ptrdiff_t(std::min(max_blocks, num_idle));
        std::vector<void*> idle_blocks(blocks.begin(), end);
        blocks.erase(blocks.begin(), end);
        num_idle -= idle_blocks.size();
        return idle_blocks;
    }
};

struct Pool {
    Lock lock; // protects everything here
    std::map<std::size_t, FreeBlocks> free_lists;
    std::unordered_map<void*, std::size_t> larger_classes; // bytes of blocks larger than asked for
    std::size_t num_returned = 0;                          // blocks, since the last look
    AllocationPoolStatistics statistics{0, 0, 0, std::size_t(1) << 30};
};

Pool* const pool_instance = new Pool; // made when the library is loaded; outlives every Value

Pool& pool() { return *pool_instance; }

std::atomic<int64_t> failure_countdown{0}; // relaxed: a number; 0 or less when none is to fail

bool should_fail() {
    return failure_countdown.load(std::memory_order_relaxed) > 0 &&
           failure_countdown.fetch_sub(1, std::memory_order_relaxed) == 1;
}

std::atomic<std::size_t> headroom_bytes{0}; // relaxed: a number

// Whether malloc, which the library calls, has so many bytes: blocks in its lists count as free.
bool is_memory_free(std::size_t bytes) {
    void* volatile memory = std::malloc(bytes); // volatile: the compiler keeps the call
    std::free(memory);
    return memory;
}

void* system_allocate(std::size_t bytes) {
    bool is_large = bytes >= HUGE_PAGE_BYTES;
    std::size_t alignment = is_large ? HUGE_PAGE_BYTES : ALIGNMENT_BYTES;
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    std::size_t headroom = headroom_bytes.load(std::memory_order_relaxed);
    if (memory && headroom && !is_memory_free(headroom)) {
        std::free(memory);
        return nullptr;
    }
    if (memory && is_large)
        madvise(memory, bytes, MADV_HUGEPAGE); // advice: a kernel without huge pages may refuse
    return memory;
}

// A block and its class.
struct FreeBlock {
    void* memory = nullptr;
    std::size_t bytes = 0;
};

FreeBlock pop_free_block(std::size_t bytes) {
    std::size_t most = bytes < SHARED_BYTES ? bytes : bytes + bytes / 4;
    auto it = pool().free_lists.lower_bound(bytes);
    while (it != pool().free_lists.end() && it->first <= most && it->second.blocks.empty()) ++it;
    if (it == pool().free_lists.end() || it->first > most) return {};
    FreeBlocks& free_blocks = it->second;
    FreeBlock block{free_blocks.blocks.back(), it->first};
    free_blocks.blocks.pop_back();
    free_blocks.num_idle = std::min(free_blocks.num_idle, free_blocks.blocks.size());
    pool().statistics.cached_bytes -= block.bytes;
    if (block.bytes != bytes) pool().larger_classes.emplace(block.memory, block.bytes);
    return block;
}

// The class of a live block that was asked for with so many bytes; it is about to be free.
std::size_t take_class(void* memory, std::size_t bytes) {
    if (pool().larger_classes.empty()) return bytes;
    auto it = pool().larger_classes.find(memory);
    if (it == pool().larger_classes.end()) return bytes;
    bytes = it->second;
    pool().larger_classes.erase(it);
    return bytes;
}

void record_live(std::size_t bytes) {
    AllocationPoolStatistics& statistics = pool().statistics;
    statistics.live_bytes += bytes;
    statistics.peak_bytes = std::max(statistics.peak_bytes, statistics.live_bytes);
}

} // namespace

std::size_t size_class(std::size_t bytes) {
    bytes = std::max(bytes, ALIGNMENT_BYTES);
    std::size_t step = std::clamp(std::bit_floor(bytes) / 4, ALIGNMENT_BYTES, MAX_CLASS_STEP);
    return (bytes + step - 1) / step * step;
}

void* pool_allocate(std::size_t requested_bytes) {
    if (requested_bytes > (std::size_t(1) << 62) || should_fail()) return nullptr;
    std::size_t bytes = size_class(requested_bytes);
    void* memory = nullptr;
    {
        Guard guard(pool().lock);
        FreeBlock block = pop_free_block(bytes);
        memory = block.memory;
        if (memory) record_live(block.bytes);
    }
    if (!memory) {
        memory = guard_pages() ? map_guarded(requested_bytes) : system_allocate(bytes);
        if (!memory && trim_pool() > 0) memory = system_allocate(bytes);
        if (!memory) return nullptr;
        count_anywhere(Counter::allocations); // launches ask without the GIL
        count_anywhere(Counter::bytes_allocated, int64_t(bytes));
        Guard guard(pool().lock);
        record_live(bytes);
    }
    return memory;
}

void pool_allocate(std::size_t bytes, std::span<void*> blocks) {
    std::size_t count = 0;
    {
        std::size_t size = size_class(bytes);
        bool failure_armed =
            failure_countdown.load(std::memory_order_relaxed) > 0; // soon: it counts them
        Guard guard(pool().lock);
        while (!failure_armed && count < blocks.size()) {
            FreeBlock block = pop_free_block(size);
            if (!block.memory) break;
            blocks[count++] = block.memory;
            record_live(block.bytes);
        }
    }
    for (; count < blocks.size(); ++count) blocks[count] = pool_allocate(bytes);
}

namespace {

void release_pages(void* memory, std::size_t bytes) {
    auto begin =
        (reinterpret_cast<std::uintptr_t>(memory) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / PAGE_BYTES * PAGE_BYTES;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void trim_idle() {
    Guard guard(pool().lock);
    pool().num_returned = 0;
    for (auto& [bytes, free_blocks] : pool().free_lists) {
        for (std::size_t i = 0; bytes >= MIN_TRIMMED_BYTES && i < free_blocks.num_idle; ++i)
            release_pages(free_blocks.blocks[i], bytes);
        free_blocks.num_idle = free_blocks.blocks.size();
    }
    std::erase_if(pool().free_lists, [](const auto& entry) { return entry.second.blocks.empty(); });
}

// Makes room for a block of so many bytes by evicting idle blocks.
void evict_idle(std::size_t bytes, std::vector<void*>& evicted) {
    AllocationPoolStatistics& statistics = pool().statistics;
    if (bytes > statistics.cap_bytes) return;
    for (auto& [size, free_blocks] : pool().free_lists) {
        std::size_t needed_bytes = statistics.cached_bytes + bytes;
        if (needed_bytes <= statistics.cap_bytes) return;
        auto blocks = free_blocks.take_idle((needed_bytes - statistics.cap_bytes) / size + 1);
        statistics.cached_bytes -= blocks.size() * size;
        evicted.insert(evicted.end(), blocks.begin(), blocks.end());
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
    std::vector<void*> evicted; // freed outside the lock
    bool check_idle = false;
    {
        Guard guard(pool().lock);
        AllocationPoolStatistics& statistics = pool().statistics;
        bytes = take_class(memory, bytes);
        statistics.live_bytes -= bytes;
        if (statistics.cached_bytes + bytes > statistics.cap_bytes) evict_idle(bytes, evicted);
        if (statistics.cached_bytes + bytes <= statistics.cap_bytes) {
            pool().free_lists[bytes].blocks.push_back(memory);
            statistics.cached_bytes += bytes;
            memory = nullptr;
        }
        check_idle = ++pool().num_returned == IDLE_CHECK_INTERVAL;
    }
    std::free(memory);
    for (void* each : evicted) std::free(each);
    if (check_idle) trim_idle();
}

void fail_allocation(int64_t n) { failure_countdown.store(n, std::memory_order_relaxed); }

AllocationPoolStatistics pool_statistics() {
    Guard guard(pool().lock);
    return pool().statistics;
}

bool reserve_headroom(std::size_t bytes) {
    std::size_t total = headroom_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (is_memory_free(total) || (trim_pool() > 0 && is_memory_free(total))) return true;
    release_headroom(bytes);
    return false;
}

void release_headroom(std::size_t bytes) {
    headroom_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void set_pool_cap(std::size_t bytes) {
    {
        Guard guard(pool().lock);
        pool().statistics.cap_bytes = bytes;
        if (pool().statistics.cached_bytes <= bytes) return;
    }
    trim_pool();
}

std::size_t trim_pool() {
    std::map<std::size_t, FreeBlocks> lists;
    std::size_t returned = 0;
    {
        Guard guard(pool().lock);
        lists.swap(pool().free_lists);
        std::swap(returned, pool().statistics.cached_bytes);
    }
    for (auto& [bytes, free_blocks] : lists)
        for (void* memory : free_blocks.blocks) std::free(memory);
#ifdef __GLIBC__
    malloc_trim(0); // else blocks between others, live or not, keep their pages
#endif
    return returned;
}

} // namespace tenfold
