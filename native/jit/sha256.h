// SHA-256 (FIPS 180-4): names kernels in the disk cache, and detects damaged files. Python's own
// takes 3 ms to import, more than all other work of loading a kernel.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace tenfold {

using Digest = std::array<uint8_t, 32>;

// By the processor's instructions for it, if it has such.
Digest sha256(const void* data, std::size_t bytes);

// The same on any processor.
Digest sha256_portable(const void* data, std::size_t bytes);

} // namespace tenfold
