// Prefetch: asks for memory that is in no cache, or in another processor's, before it is needed.
#pragma once

namespace tenfold {

// A line of memory that is soon counted in or written. `__builtin_prefetch` would share it with the
// thread that has it, who would have to be asked once more; whoever has no such instruction skips
// it.
inline void fetch_to_write(const void* line) noexcept {
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
}

} // namespace tenfold
