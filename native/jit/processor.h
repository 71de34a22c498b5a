// Processor: identifies the CPU, as far as machine code depends on it.
#pragma once
#include <cstdint>
#include <vector>

namespace tenfold {

// The highest level of x86-64 that it has: 1 to 4.
int processor_level();

// Whether it has instructions for SHA-256, and those that go with them.
bool has_sha_extensions();

// What the processor and the system say of vendor, model and features: equal on processors that run
// each other's code, whatever thread asks. A compiler that goes by the processor goes by this.
std::vector<uint32_t> processor_identity();

} // namespace tenfold
