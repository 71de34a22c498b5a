// Thread blocks: runs the threads of a kernel of one thread for each element as fibers, so that
// they can wait for each other on one processor. `codegen/simt/words.py` has the calls that kernels
// make.
#pragma once
#include <cstdint>

namespace tenfold {

// What a thread finds at its %status.
struct BlockTable {
    int64_t status;                                                  // of the element that failed
    uint32_t (*shuffle)(BlockTable*, uint32_t value, uint32_t lane); // the value of another lane
    void (*barrier)(BlockTable*);                                    // until all threads are here
};

using ThreadFunction = void (*)(void* const* buffers, const int64_t* sizes, const double* scalars,
                                void* shared, BlockTable* table, int64_t unit);

constexpr int64_t BLOCK_THREADS = 256, WARP_THREADS = 32;

// Runs threads begin to end, whole warps, in blocks; returns 0, or the lowest status. Without
// memory for their stacks the process ends.
int64_t run_blocks(ThreadFunction thread, void* const* buffers, const int64_t* sizes,
                   const double* scalars, void* shared, int64_t begin, int64_t end);

} // namespace tenfold
