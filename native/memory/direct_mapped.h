// DirectMapped<Entry>: a small table in which an entry has one slot and the next one of that slot
// replaces it. ThreadCache: such a table of each thread in front of an LruCache, so that the common
// case takes no lock.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "threads/thread_local.h"

namespace tenfold {

// An Entry is true if it is in use.
template <class Entry, std::size_t LOG2> class DirectMapped {
  public:
    static constexpr std::size_t LOG2_SLOTS = LOG2, NUM_SLOTS = std::size_t(1) << LOG2;

    // The slot for the upper bits of a hash, which are the best bits of a product.
    Entry& slot(std::size_t hash) { return entries_[hash >> (64 - LOG2)]; }
    std::size_t size() const {
        return std::size_t(
            std::ranges::count_if(entries_, [](const Entry& entry) { return bool(entry); }));
    }
    [[gnu::noinline]] void clear() { entries_ = {}; } // out of the way of a look-up

  private:
    std::array<Entry, NUM_SLOTS> entries_;
};

// Its entries hold what their keys point to. Derived finds and stores them.
template <class Derived, class Entry, std::size_t LOG2> class ThreadCache {
  public:
    static constexpr bool INHERITED = true;

    // The cache of this thread.
    static Derived& get() {
        Derived& cache = ThreadLocal<Derived>::get();
        // Relaxed: entries that a thread finds before it sees a new epoch are still valid.
        uint64_t now = current_epoch.load(std::memory_order_relaxed);
        if (std::exchange(cache.epoch_, now) != now) [[unlikely]]
            cache.clear();
        return cache;
    }

    // For when the cache behind it loses entries.
    static void invalidate_all() {
        current_epoch.fetch_add(1, std::memory_order_relaxed);
        get(); // this thread's at once
    }

    void clear() { entries_.clear(); }

  protected:
    Entry& slot(std::size_t hash) { return entries_.slot(hash); }
    // The slot for the lower bits of a hash. Tests that cut hashes leave only these bits.
    Entry& slot_of_low(std::size_t hash) { return slot(hash << (64 - LOG2)); }

    // Whether to ask the cache behind it: now and then, since entries age there.
    static bool should_revalidate(Entry& entry) { return ++entry.uses % REVALIDATE_INTERVAL == 0; }

  private:
    static constexpr std::size_t REVALIDATE_INTERVAL = 64;
    static inline std::atomic<uint64_t> current_epoch{0};
    DirectMapped<Entry, LOG2> entries_;
    uint64_t epoch_ = 0;
};

} // namespace tenfold
