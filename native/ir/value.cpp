#include "ir/value.h"

#include "memory/allocation_pool.h"
#include "memory/deferred_decref.h"
#include "threads/device.h"

namespace tenfold {

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

Ref<Allocation> Allocation::foreign(void* data, std::size_t bytes, void* owner) {
    auto* allocation = new Allocation;
    allocation->data = data;
    allocation->bytes = bytes;
    allocation->owner = owner;
    return Ref<Allocation>::adopt(allocation);
}

void Allocation::destroy(Allocation* allocation) {
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

} // namespace tenfold
