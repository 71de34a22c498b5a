// Guard pages: under TENFOLD_GUARD=1 the pool maps each block separately, between unmapped pages. A
// block begins at a page, or ends at one, so an access outside it crashes there. Freed memory is
// unmapped at once, and nothing is reused.
#pragma once
#include <cstddef>

namespace tenfold {

// The value of TENFOLD_GUARD at library load.
bool guard_pages();

// A block of exactly so many bytes, full of 0xA5, or nullptr. One that ends at a page is aligned as
// its size is: only to the items of an array.
void* map_guarded(std::size_t bytes);
// Aborts where the bytes between the block and the end of its pages were written to.
void unmap_guarded(void* memory, std::size_t bytes) noexcept;

} // namespace tenfold
