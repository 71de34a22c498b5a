// Loader: machine code, copied to where it can be run. Memory is never writeable and executable at
// once: a piece of code has pages of its own, which are made executable when it has been written.
// Pages come from arenas of a megabyte, so that a hundred kernels are two mappings of the system's,
// not two hundred. Code stays as long as the process: bound plans hold addresses in it.
#pragma once
#include <cstddef>

namespace tenfold {

// The address of a copy of code that runs wherever it lies; nullptr where the system gives no
// memory, or none that can be executed.
void* load_code(const void* code, std::size_t bytes);

// Bytes of the pages that hold code.
std::size_t loaded_code_bytes();

} // namespace tenfold
