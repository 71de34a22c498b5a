// Prefetch: asks for memory that is in no cache, or in another processor's, before it is needed.
#pragma once

namespace tenfold {

// Prefetches a cache line for writing. `__builtin_prefetch` would fetch it in a shared state. The
// write would then have to claim it from the owning core. A processor without the instruction skips
// it.
inline void prefetch_for_write(const void* line) noexcept {
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

} // namespace tenfold
