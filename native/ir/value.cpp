#include "ir/value.h"

#include "memory/allocation_pool.h"
#include "memory/deferred_decref.h"

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
    else
        pool_free(allocation->data, allocation->bytes);
    delete allocation;
}

} // namespace tenfold
