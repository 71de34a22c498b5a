#include "ir/value.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "memory/allocation_pool.h"
#include "memory/deferred_decref.h"
#include "threads/device.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

struct Watched {
    Lock lock; // protects all below; while it is held no watched Allocation goes
    uint64_t num_watched = 0;
    std::unordered_map<uint64_t, Allocation*> allocations;
};
Watched* const watched = new Watched;

} // namespace

uint64_t Allocation::watch() {
    Guard guard(watched->lock);
    is_watched = true;
    watched->allocations.emplace(++watched->num_watched, this);
    return watched->num_watched;
}

void exchange_memory(Allocation& one, Allocation& other) {
    std::swap(one.data, other.data);
    std::swap(one.bytes, other.bytes);
    std::swap(one.owner, other.owner);
}

bool exchange_watched(uint64_t number, Allocation& other) {
    Guard guard(watched->lock);
    auto found = watched->allocations.find(number);
    if (found == watched->allocations.end()) return false;
    exchange_memory(*found->second, other);
    return true;
}

bool is_watched(uint64_t number) {
    Guard guard(watched->lock);
    return watched->allocations.contains(number);
}

Ref<Allocation> Allocation::from_pool(std::size_t bytes) {
    void* memory = pool_allocate(bytes);
    return memory ? adopt_pool_block(memory, bytes) : Ref<Allocation>();
}

Ref<Allocation> Allocation::adopt_pool_block(void* memory, std::size_t bytes) {
    auto* allocation = new Allocation;
    allocation->data = memory;
    allocation->bytes = bytes;
    return Ref<Allocation>::adopt(allocation);
}

Ref<Allocation> Allocation::on_device(const Device& device, std::size_t bytes) {
    if (&device == &CPU) return from_pool(bytes);
    void* memory = device.allocate(bytes);
    if (!memory) return {};
    Ref<Allocation> allocation = adopt_pool_block(memory, bytes);
    allocation->device = device.number;
    return allocation;
}

Ref<Allocation> Allocation::foreign(void* data, std::size_t bytes, void* owner, uint8_t device) {
    auto* allocation = new Allocation;
    allocation->data = data;
    allocation->bytes = bytes;
    allocation->owner = owner;
    allocation->device = device;
    return Ref<Allocation>::adopt(allocation);
}

void Allocation::destroy(Allocation* allocation) {
    if (allocation->is_watched) {
        Guard guard(watched->lock);
        std::erase_if(watched->allocations,
                      [&](const auto& entry) { return entry.second == allocation; });
    }
    if (allocation->owner && allocation->device)
        device_at(allocation->device).give_back(allocation->data);
    if (allocation->owner)
        defer_decref(allocation->owner);
    else if (allocation->device)
        device_at(allocation->device).free(allocation->data, allocation->bytes);
    else
        pool_free(allocation->data, allocation->bytes);
    delete allocation;
}

Ref<Value> Value::uninitialized(const Ref<Type>& type) {
    return in_memory(Allocation::on_device(device_of(type->device), type->bytes()), type);
}

bool may_overlap_itself(const Value& value) {
    if (value.strides.empty()) return false;
    const Type& type = *value.type;
    int64_t reach = dtype_of(type.dtype).bytes; // of the axes so far, from the shortest step on
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < value.strides.size(); ++axis)
        if (type.shape[axis] > 1) axes.push_back(axis);
    std::ranges::sort(axes, {}, [&](std::size_t axis) { return std::abs(value.strides[axis]); });
    for (std::size_t axis : axes) {
        const int64_t step = std::abs(value.strides[axis]);
        if (step < reach) return true;
        reach += step * (type.shape[axis] - 1);
    }
    return false;
}

void wait_for_host_access(uint8_t number) {
    const Device& device = device_at(number);
    if (!device.is_host) throw std::logic_error("code of the host reads the memory of a device");
    device.wait(device.record());
}

} // namespace tenfold
