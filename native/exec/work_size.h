// Work sizes: from how many elements on a kernel leaves the GIL, and from how many it is split.
#pragma once
#include <cstdint>

namespace tenfold {

constexpr int64_t GIL_RELEASE_THRESHOLD = 1 << 12; // elements; up to here the GIL is not released
constexpr int64_t SERIAL_THRESHOLD = 1 << 15;      // elements; up to here one thread runs
constexpr int64_t BLOCK_ELEMENTS = 4096;           // of a unit of work, at most
constexpr int64_t GRAIN_ELEMENTS = 1 << 14;        // of a range of units

// The threads that a launch over so many elements asks for; 0: run on this one, with the GIL.
inline int threads_for(int64_t elements, int max_threads) {
    if (elements <= GIL_RELEASE_THRESHOLD) return 0;
    return elements <= SERIAL_THRESHOLD ? 1 : max_threads;
}

} // namespace tenfold
