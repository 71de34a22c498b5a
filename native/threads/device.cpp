#include "threads/device.h"

#include <array>
#include <atomic>

namespace tenfold {
namespace {

// Written when the library is loaded.
constinit std::array<const Device*, MAX_DEVICES> device_by_number{&CPU};

// Devices by id; written under the GIL when a device is declared.
std::array<const Device*, 256> device_by_id = [] {
    std::array<const Device*, 256> table;
    table.fill(&CPU);
    return table;
}();

std::array<bool, 256> has_table{}; // likewise

std::atomic<void (*)(QueueNumbers&)> queue_reader{nullptr};

} // namespace

bool register_device(const Device& device) {
    device_by_number[device.number] = &device;
    return true;
}

void declare_device(uint8_t id, std::string_view name) {
    for (const Device* device : device_by_number)
        if (device && device->name == name) {
            device_by_id[id] = device;
            has_table[id] = true;
        }
}

bool has_loops_on(uint8_t id) { return has_table[id] && device_by_id[id]->runs_host_kernels; }

const Device& device_of(uint8_t id) { return *device_by_id[id]; }

void wait_for_devices() {
    for (const Device* device : device_by_number)
        if (device && !device->is_host) device->wait(device->record());
}

std::size_t trim_devices() {
    std::size_t bytes = 0;
    for (const Device* device : device_by_number)
        if (device && device->trim) bytes += device->trim();
    return bytes;
}

uint8_t& current_queue(uint8_t device) {
    thread_local QueueNumbers queues{};
    if (auto* reader = queue_reader.load(std::memory_order_acquire)) reader(queues);
    return queues[device];
}

void set_queue_reader(void (*reader)(QueueNumbers&)) { queue_reader = reader; }

const Device& device_at(uint8_t number) { return *device_by_number[number]; }

} // namespace tenfold
