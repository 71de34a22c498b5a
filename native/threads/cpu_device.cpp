#include "threads/cpu_device.h"

#include <cstring>

#include "memory/allocation_pool.h"
#include "threads/device.h"
#include "threads/worker_pool.h"

namespace tenfold {

const Device CPU{
    .name = "cpu",
    .number = 0,
    .is_host = true,
    .runs_host_kernels = true,
    .allocate = [](std::size_t bytes) { return pool_allocate(bytes); },
    .free = pool_free,
    .copy = [](void* to, const void* from, std::size_t bytes,
               Device::Direction) { std::memcpy(to, from, bytes); },
    .launch = [](Work& work, HostLauncher& host) { return Event{host.run_on_host(work)}; },
    .record = [] { return Event{}; },
    .wait = [](const Event& event) { return event.result; },
};

Result DirectLauncher::run_on_host(Work& work) {
    return is_brief(work) ? run_brief(work) : Launch(work).run();
}

} // namespace tenfold
