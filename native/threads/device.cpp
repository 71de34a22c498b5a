#include "threads/device.h"

#include <array>

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

uint8_t& current_queue(uint8_t device) {
    thread_local std::array<uint8_t, MAX_DEVICES> queues{};
    return queues[device];
}

const Device& device_at(uint8_t number) { return *device_by_number[number]; }

} // namespace tenfold
