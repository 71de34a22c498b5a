// Processor: identifies the CPU, as far as machine code depends on it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenfold {

// The highest level of x86-64 that it has: 1 to 4.
int processor_level();

// The targets of kernels: 0 is this processor with all its features, 1 to 4 are the levels of
// x86-64.
constexpr std::size_t NUM_TARGETS = 5;

// Vendor, model and features, as reported by the processor and the system. They are equal on
// processors that run each other's code, on all threads. A compiler that targets the host uses this
// key.
std::vector<uint32_t> processor_identity();

} // namespace tenfold
