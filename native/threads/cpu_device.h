// CPU device: its kernels are C functions, whose type and call stand in this file alone.
#pragma once
#include "threads/work.h"

namespace tenfold {

class HostKernel : public KernelHandle {
    // Returns 0, or 1 + the first index it could not compute.
    using Function = int64_t (*)(void** buffers, const int64_t* sizes, const double* scalars,
                                 void* scratch, int64_t begin, int64_t end);

  public:
    HostKernel(Function function) : KernelHandle(reinterpret_cast<void*>(function)) {}

    // Computes the units from `begin` to `end`, on the calling thread.
    static int64_t call(KernelHandle kernel, void* const* buffers, const int64_t* sizes,
                        const uint64_t* scalars, void* scratch, int64_t begin, int64_t end) {
        auto function = reinterpret_cast<Function>(kernel.entry());
        return function(const_cast<void**>(buffers), sizes,
                        reinterpret_cast<const double*>(scalars), scratch, begin, end);
    }
};

// Runs a kernel that finds the arrays through an object of the host, with so many threads at most.
bool launch_object(HostKernel kernel, void* object, int64_t units, int64_t grain, int threads,
                   std::size_t scratch = 0);

} // namespace tenfold
