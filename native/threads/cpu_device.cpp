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
               Device::Direction) { return std::memcpy(to, from, bytes) != nullptr; },
    .launch = [](Work& work, HostLauncher& host) { return Event{host.run_on_host(work)}; },
    .record = [] { return Event{}; },
    .wait = [](const Event& event) { return event.result; },
    .failure = []() -> const char* { return nullptr; },
};

Result DirectLauncher::run_on_host(Work& work) {
    return is_brief(work) ? run_brief(work) : Launch(work).run();
}

bool launch_object(HostKernel kernel, void* object, int64_t units, int64_t grain, int max_threads,
                   std::size_t scratch) {
    void* buffers[] = {object};
    Work work;
    work.kernel = kernel;
    work.buffers = buffers;
    work.scratch = scratch;
    work.units = units;
    work.grain = std::max<int64_t>(1, grain);
    work.threads = units > work.grain ? max_threads : std::min(max_threads, 1);
    if (work.threads > threads()) set_threads(work.threads);
    return DirectLauncher().launch_and_wait(CPU, work).succeeded();
}

} // namespace tenfold
