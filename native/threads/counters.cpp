#include "threads/counters.h"

namespace tenfold {

const std::array<const char*, COUNTERS> counter_names = {
    "kernels",
    "calls",
    "launches",
    "batches",
    "temporaries",
    "gathers",
    "copies",
    "allocations",
    "bytes_allocated",
    "compiles",
    "background_compiles",
    "generic_compiles",
    "multiply_adds",
    "host_syncs",
    "densified",
};

} // namespace tenfold
