// Guard pages: under TENFOLD_GUARD=1 the pool maps each block by itself, between unmapped pages. A
// block begins at a page, or ends at one, so a kernel that reads or writes outside it stops there.
// Freed memory is unmapped at once, and nothing is reused.
#pragma once
#include <cstddef>

namespace tenfold {

// What TENFOLD_GUARD said when the library was loaded.
bool guard_pages();

// A block of exactly so many bytes, full of 0xA5, or nullptr. One that ends at a page is aligned as
// its size is: to the items of an array, to no more.
void* map_guarded(std::size_t bytes);
// Aborts where the bytes between the block and the end of its pages were written to.
void unmap_guarded(void* memory, std::size_t bytes) noexcept;

} // namespace tenfold
