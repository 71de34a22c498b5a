// Device: the table of functions by which native code uses a device: memory, launches and Events.
// The CPU's launches are done when they return. Another device queues them, each queue in order. It
// is one file, which registers its table.
#pragma once
#include <array>
#include <string_view>

#include "threads/work.h"

namespace tenfold {

struct Device;

// The completion of a launch or a copy.
struct Event {
    Result result;       // result of work that is done
    uint64_t ticket = 0; // the device's number for queued work; 0: the work is done

    bool done() const { return ticket == 0; }
};

// Launches kernels. Those of the host run as its caller can: with the GIL, without it, or on one
// thread.
class HostLauncher {
  public:
    virtual ~HostLauncher() = default;
    // Only the CPU calls it, and a device that leaves a kernel to the CPU.
    virtual Result run_on_host(Work& work) = 0;

    Event launch(const Device& device, Work& work);
    Result launch_and_wait(const Device& device, Work& work);
};

// Runs host kernels from the calling thread, which keeps the GIL if it has it.
class DirectLauncher : public HostLauncher {
  public:
    Result run_on_host(Work& work) override;
};

struct Device {
    enum Direction : uint8_t { to_host, from_host, within };

    std::string_view name;
    uint8_t number;                       // below MAX_DEVICES; 0: the CPU
    bool is_host;                         // host code may read and write its memory
    bool runs_host_kernels;               // on its own memory
    void* (*allocate)(std::size_t bytes); // null when memory is short
    // Freed after all work that was queued before.
    void (*free)(void* memory, std::size_t bytes) noexcept;
    // Copies after all queued work that uses the memory; the host's is free when it returns. False:
    // the device has failed.
    bool (*copy)(void* to, const void* from, std::size_t bytes, Direction direction);
    // Runs or queues a kernel; what `work` points to is not read after the return. Memory that the
    // kernel needs besides is taken here: once queued, it fails for the values of operands alone.
    Event (*launch)(Work& work, HostLauncher& host);
    Event (*record)();            // done when all work queued until now is done
    Result (*wait)(const Event&); // until it is done
    // Until what is queued on memory of another library is done; after each `borrow`. Null: none.
    void (*give_back)(void* memory) noexcept;
    // Why it computes no more, from now on; null: it does. Memory is then short, too.
    const char* (*failure)();
    // Gives the free blocks back and returns their bytes; null: it has none to give.
    std::size_t (*trim)() = nullptr;
};

constexpr std::size_t MAX_DEVICES = 16;
using QueueNumbers = std::array<uint8_t, MAX_DEVICES>;

// The queue of a device to which the calling thread gives work, below MAX_QUEUES. What is queued
// waits by itself for work of other queues whose memory it uses.
uint8_t& current_queue(uint8_t device);
// Python's: writes the queues of the task that the thread runs, if the thread may ask for them.
void set_queue_reader(void (*reader)(QueueNumbers& queues));

inline Event HostLauncher::launch(const Device& device, Work& work) {
    return device.launch(work, *this);
}

inline Result HostLauncher::launch_and_wait(const Device& device, Work& work) {
    Event event = device.launch(work, *this);
    return event.done() ? event.result : device.wait(event);
}

extern const Device CPU;

// Makes a device known by its name; when the library is loaded. Its table is never destroyed.
bool register_device(const Device& device);
// Binds the id of Types on a device to its table; a name without a table uses the CPU's memory.
void declare_device(uint8_t id, std::string_view name);
const Device& device_of(uint8_t id);
// Whether a device computes by the kernels of the host; the reference device has none.
bool has_loops_on(uint8_t id);
const Device& device_at(uint8_t number);
// Until each device has run what was queued before: then code may go that it runs.
void wait_for_devices();
std::size_t trim_devices(); // the bytes that they give back

} // namespace tenfold
