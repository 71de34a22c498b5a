// Threads of a block exchange values and wait for each other.
#include <algorithm>
#include <vector>

#include "check.h"
#include "threads/thread_blocks.h"

using namespace tenfold;

namespace {

// Each thread adds the values of its warp, and stores the sum; after the barrier it reads what the
// last thread of the block has stored.
__attribute__((no_sanitize("address", "thread"))) void add_up(void* const* buffers,
                                                              const int64_t* sizes, const double*,
                                                              void* shared, BlockTable* table,
                                                              int64_t unit) {
    auto* results = static_cast<int64_t*>(buffers[0]);
    auto* sums = static_cast<uint32_t*>(shared);
    auto total = uint32_t(unit);
    for (uint32_t half = WARP_THREADS / 2; half; half /= 2)
        total += table->shuffle(table, total, uint32_t(unit) + half);
    sums[unit % BLOCK_THREADS] = total;
    table->barrier(table);
    int64_t first = unit / BLOCK_THREADS * BLOCK_THREADS;
    int64_t last = first + BLOCK_THREADS < sizes[0] ? BLOCK_THREADS - 1 : sizes[0] - first - 1;
    results[unit] = int64_t(total) * 1000 + sums[last] % 1000;
    table->barrier(table);
    if (unit % 100 == 77 && unit + 1 < table->status) table->status = unit + 1;
    if (unit == 77) table->status = 78;
}

uint32_t sum_of_warp(int64_t unit) {
    int64_t first = unit / WARP_THREADS * WARP_THREADS;
    return uint32_t(first * WARP_THREADS + WARP_THREADS * (WARP_THREADS - 1) / 2);
}

} // namespace

int main() {
    for (int64_t units : {32, 64, 256, 288, 1024}) {
        std::vector<int64_t> results(units);
        std::vector<uint32_t> shared(BLOCK_THREADS);
        void* buffers[] = {results.data()};
        int64_t status = run_blocks(add_up, buffers, &units, nullptr, shared.data(), 0, units);
        CHECK(status == (units > 77 ? 78 : 0));
        for (int64_t unit = 0; unit < units; ++unit) {
            int64_t last =
                std::min(units, unit / BLOCK_THREADS * BLOCK_THREADS + BLOCK_THREADS) - 1;
            CHECK(results[unit] == int64_t(sum_of_warp(unit)) * 1000 + sum_of_warp(last) % 1000);
        }
    }
}
