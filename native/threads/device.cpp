#include "threads/device.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "memory/allocation_pool.h"

namespace tenfold {

const Device CPU{
    .name = "cpu",
    .number = 0,
    .is_host = true,
    .allocate = [](std::size_t bytes) { return pool_allocate(bytes); },
    .free = pool_free,
    .copy = [](void* to, const void* from, std::size_t bytes,
               Device::Direction) { std::memcpy(to, from, bytes); },
    .launch = [](Work& work, HostLauncher& host) { return Event{host.launch(work)}; },
    .record = [] { return Event{}; },
    .wait = [](const Event& event) { return event.result; },
};

namespace {

const std::array DEVICES{&CPU}; // by their numbers

// By id; written under the GIL when a device is declared.
std::array<const Device*, 256> device_by_id = [] {
    std::array<const Device*, 256> table;
    table.fill(&CPU);
    return table;
}();

} // namespace

void declare_device(uint8_t id, std::string_view name) {
    auto found = std::ranges::find(DEVICES, name, &Device::name);
    if (found != DEVICES.end()) device_by_id[id] = *found;
}

const Device& device_of(uint8_t id) { return *device_by_id[id]; }

const Device& device_at(uint8_t number) { return *DEVICES[number]; }

} // namespace tenfold
