// Cache registry: lists all native caches, reports how full each is, and empties them. A cache
// stands in its own file and joins the list there.
#pragma once
#include <atomic>
#include <cstddef>
#include <list>

namespace tenfold {

struct Cache {
    const char* name;
    const char* reason;   // why it exists
    std::size_t capacity; // entries at most; 0 for interning: a table of objects that others own
    std::size_t (*num_entries)();
    void (*clear)();                      // an interning table finds its entries new places
    std::size_t (*num_bytes)() = nullptr; // null where it is unknown
};

Cache& register_cache(
    const Cache& cache); // at load, so that the list is whole when it is asked for
const std::list<Cache>& registered_caches();
void clear_caches();

// The bits of a hash that lead to an entry. All of them; in tests fewer, so that different keys
// collide: a lookup compares keys in full.
inline std::atomic<std::size_t> hash_mask{~std::size_t(0)};
inline std::size_t truncate_hash(std::size_t hash) {
    return hash & hash_mask.load(std::memory_order_relaxed);
}
// Has all hashes cut to so many bits, and forgets all caches; while no other thread runs.
void truncate_hashes(int bits);

} // namespace tenfold
