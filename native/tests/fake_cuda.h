// Fake CUDA driver: a library of the entry points of `threads/cuda_driver.h`, whose devices are
// memory and threads of the host. Queued work runs late, when it is waited for, or with a seed at
// random moments. It counts misuse: memory and handles that are gone or never were, memory of the
// wrong side, launches of another form. A kernel is a function of the host that is defined for a
// text.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
// Text `ptx` is a module with this kernel from now on: a function as `HostKernel` has, of so many
// words of buffers, sizes and scalars.
void fake_cuda_define(const char* ptx, const char* name, void* kernel, std::size_t buffers,
                      std::size_t sizes, std::size_t scalars, std::size_t shared_bytes);
void fake_cuda_fail(long number, int error); // the call of this number from now on, 1: the next
void fake_cuda_seed(uint64_t seed);
void fake_cuda_limit(std::size_t bytes); // of memory of each device
long fake_cuda_calls();                  // so far
long fake_cuda_live();                   // contexts, streams, events, modules, blocks
const char* fake_cuda_misuse();          // the first one; empty: none
}
