// Emulated device: a second device on the host's processor, for tests. The host cannot read its
// memory: a read stops the process. Its queue runs launches late, or at random moments.
#pragma once
#include <cstdint>

namespace tenfold {

// From now on some of the queued launches run whenever another is queued, at moments that follow
// from the seed; 0: they run when they are waited for, or when too many are queued.
void seed_emulated_queues(uint64_t seed);

// What the emulated devices have done: launches, copies, waits for launches that were queued.
struct EmulatedTraffic {
    int64_t launches, copies, waits;
};
EmulatedTraffic emulated_traffic();

} // namespace tenfold
