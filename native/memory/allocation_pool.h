// Allocation pool: recycles 64-byte aligned blocks in size classes, up to a cap. Each power of two
// has four classes, at most 64 KiB apart; large blocks ask for huge pages. Blocks that stay idle
// return their pages to the system, and are evicted first at the cap.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/target_facts.h"

namespace tenfold {

// The bytes a request takes from the pool: the next size class.
std::size_t size_class(std::size_t bytes);

// Uninitialised memory of at least `bytes` bytes, or nullptr. Give it back with the same number.
// Under TENFOLD_GUARD=1 (memory/guard_pages.h) it is of no more bytes, and aligned as far as those
// are.
void* pool_allocate(std::size_t bytes);
void pool_free(void* memory, std::size_t bytes) noexcept;
// Fills `blocks` with blocks of so many bytes; null where memory runs out.
void pool_allocate(std::size_t bytes, std::span<void*> blocks);

// Frees memory of the pool that a unique_ptr has.
struct PoolFree {
    std::size_t bytes = 0;
    void operator()(void* memory) const noexcept { pool_free(memory, bytes); }
};

// For tests of memory exhaustion: the n-th pool_allocate from now returns nullptr, once. 0 cancels
// it.
void fail_allocation(int64_t n);

struct AllocationPoolStatistics {
    std::size_t live_bytes, peak_bytes, cached_bytes, cap_bytes;
};
AllocationPoolStatistics pool_statistics();
void set_pool_cap(std::size_t bytes);
// Returns all cached blocks to the system; the number of bytes returned.
std::size_t trim_pool();

// Reserves address space for a library that ends the process when it finds none, as LLVM does: new
// array memory leaves so much free until it is released. False if it is not free, even without
// cached blocks.
bool reserve_headroom(std::size_t bytes);
void release_headroom(std::size_t bytes);

} // namespace tenfold
