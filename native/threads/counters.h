// Counters: totals of the process, incremented where the work is done. A profile is the difference
// of two readings.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "memory/ref_counted.h"

namespace tenfold {

enum class Counter : uint8_t {
    kernels,
    calls,
    launches,
    batches,
    temporaries,
    gathers,
    copies,
    allocations,
    bytes_allocated,
    compiles,
    background_compiles,
    generic_compiles,
    multiply_adds,
    host_syncs,
    densified,
    count_of_counters
};

constexpr std::size_t COUNTERS = std::size_t(Counter::count_of_counters);
extern const std::array<const char*, COUNTERS> counter_names;

inline std::array<std::atomic<int64_t>, COUNTERS> counters{};

// Relaxed: each is a total by itself and orders nothing else.
inline void count_anywhere(Counter counter, int64_t by = 1) noexcept {
    counters[std::size_t(counter)].fetch_add(by, std::memory_order_relaxed);
}

// For events that only occur with the GIL, or among gil_free_threads.
inline void count(Counter counter, int64_t by = 1) noexcept {
    std::atomic<int64_t>& total = counters[std::size_t(counter)];
    if (no_gil_free_threads())
        total.store(total.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    else
        count_anywhere(counter, by);
}

} // namespace tenfold
