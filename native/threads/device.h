// Device: the table of functions by which the executor uses a device: memory, launches and Events.
// The CPU's launches are done when they return. Another device queues them, in order.
#pragma once
#include <string_view>

#include "threads/worker_pool.h"

namespace tenfold {

// The completion of a launch or a copy.
struct Event {
    Result result;       // of work that is done
    uint64_t ticket = 0; // of queued work: the device's number for it; 0: the work is done

    bool done() const { return ticket == 0; }
};

// Runs host kernels: with the GIL, without it, or on one thread, as the caller provides it.
class HostLauncher {
  public:
    virtual ~HostLauncher() = default;
    virtual Result launch(Work& work) = 0;
};

struct Device {
    enum Direction : uint8_t { to_host, from_host };

    std::string_view name;
    uint8_t number;                       // in the table of devices; 0: the CPU
    bool is_host;                         // host code may read and write its memory
    void* (*allocate)(std::size_t bytes); // null when memory is short
    void (*free)(void* memory, std::size_t bytes) noexcept;
    // Copies after all work that was queued before; the host's memory is free when it returns.
    void (*copy)(void* to, const void* from, std::size_t bytes, Direction direction);
    // Runs or queues a kernel; what `work` points to is not read after the return.
    Event (*launch)(Work& work, HostLauncher& host);
    Event (*record)();            // done when all work queued until now is done
    Result (*wait)(const Event&); // until it is done
};

extern const Device CPU;

// Binds the id of Types on a device to its table; a name without a table uses the CPU's memory.
void declare_device(uint8_t id, std::string_view name);
const Device& device_of(uint8_t id);
const Device& device_at(uint8_t number);

} // namespace tenfold
