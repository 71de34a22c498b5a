// Value: a Type and Buffers, named by the storage kind in Python: dense has one. A Buffer is a
// range of an Allocation. An Allocation is memory of the pool or of another device, or foreign
// memory owned by a Python object.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "ir/type.h"
#include "memory/ref_counted.h"
#include "memory/slab.h"

namespace tenfold {

struct Device;

struct Allocation {
    std::atomic<uint32_t> references{1};
    uint8_t device = 0;      // whose memory it is, by its number; 0: the pool's
    bool is_watched = false; // written by `watch`, whose caller holds a reference
    void* data = nullptr;
    std::size_t bytes = 0;
    void* owner =
        nullptr; // foreign memory: one Python reference, released through the deferred decrefs

    static Ref<Allocation> from_pool(std::size_t bytes); // empty when memory is short
    static Ref<Allocation> adopt_pool_block(void* memory, std::size_t bytes);  // takes it over
    static Ref<Allocation> on_device(const Device& device, std::size_t bytes); // empty likewise
    static Ref<Allocation> foreign(void* data, std::size_t bytes, void* owner, uint8_t device = 0);
    // A number for this allocation, by which `exchange_watched` finds it while it exists.
    uint64_t watch();
    static void destroy(Allocation* allocation);
    static void* operator new(std::size_t) { return Slab<Allocation>::allocate(); }
    static void operator delete(void* memory) { Slab<Allocation>::deallocate(memory); }
};

// Swaps the memory of two Allocations: references to one see the memory of the other from now on.
void exchange_memory(Allocation& one, Allocation& other);
// The same without a reference to the first; false where that has gone.
bool exchange_watched(uint64_t number, Allocation& other);
bool is_watched(uint64_t number); // whether it exists

struct Buffer {
    Ref<Allocation> allocation;
    int64_t offset = 0; // bytes from allocation->data to the element at index 0

    void* address() const { return static_cast<char*>(allocation->data) + offset; }
};

struct Value {
    std::atomic<uint32_t> references{1};
    bool is_view = false;
    Ref<Type> type;
    std::vector<int64_t> strides; // bytes; dense storage only, empty means C order
    std::array<Buffer, 1> buffers;
    Ref<Value> next; // the following result of an operation with several results

    // Empty without memory.
    static Ref<Value> in_memory(Ref<Allocation> memory, Ref<Type> type,
                                std::vector<int64_t> strides = {}) {
        if (!memory) return {};
        auto value = Ref<Value>::adopt(new Value);
        value->type = std::move(type);
        value->is_view = !strides.empty();
        value->strides = std::move(strides);
        value->buffers[0].allocation = std::move(memory);
        return value;
    }
    // Other elements of the same memory, from so many bytes on.
    static Ref<Value> view_of(const Value& base, Ref<Type> type, int64_t offset,
                              std::vector<int64_t> strides = {}) {
        auto value = Ref<Value>::adopt(new Value);
        value->is_view = true;
        value->type = std::move(type);
        value->strides = std::move(strides);
        value->buffers[0] = base.buffers[0];
        value->buffers[0].offset += offset;
        return value;
    }
    // The same elements, of another chain.
    static Ref<Value> alias_of(const Value& other, Ref<Value> next = {}) {
        auto value = Ref<Value>::adopt(new Value);
        value->is_view = true;
        value->type = other.type;
        value->strides = other.strides;
        value->buffers = other.buffers;
        value->next = std::move(next);
        return value;
    }
    // On the device of its Type; empty without memory.
    static Ref<Value> uninitialized(const Ref<Type>& type);
    [[gnu::noinline]] static void destroy(Value* value) { delete value; }
    static void* operator new(std::size_t) { return Slab<Value>::allocate(); }
    static void operator delete(void* memory) { Slab<Value>::deallocate(memory); }
};

inline std::vector<int64_t> strides_of(const Value& value) {
    return value.strides.empty() ? c_order_strides(*value.type) : value.strides;
}

// Whether several elements may have one place in memory, as those of a broadcast or of windows: it
// cannot be written element by element. Also true for some layouts of which that is not so.
bool may_overlap_itself(const Value& value);

// For code of the host, which reads or writes the elements: the address of the first one. Waits for
// what a device has queued. Throws std::logic_error if the host cannot reach the memory.
void wait_for_host_access(uint8_t device);
inline char* host_data(const Value& value) {
    const Buffer& buffer = value.buffers[0];
    if (buffer.allocation->device) wait_for_host_access(buffer.allocation->device);
    return static_cast<char*>(buffer.address());
}

} // namespace tenfold
