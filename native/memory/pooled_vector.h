// Pooled vector: a vector whose memory, where it is large, comes from the allocation pool. The C
// library maps and clears such memory each time; a batch of thousands needs several such vectors.
#pragma once
#include <new>
#include <vector>

#include "memory/allocation_pool.h"

namespace tenfold {

template <class T> struct PooledAllocator {
    using value_type = T;
    static constexpr std::size_t MIN_POOLED_BYTES = std::size_t(1) << 15;

    PooledAllocator() = default;
    template <class U> PooledAllocator(const PooledAllocator<U>&) noexcept {}

    T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        void* memory = bytes < MIN_POOLED_BYTES ? ::operator new(bytes) : pool_allocate(bytes);
        if (!memory) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t count) noexcept {
        const std::size_t bytes = count * sizeof(T);
        bytes < MIN_POOLED_BYTES ? ::operator delete(memory) : pool_free(memory, bytes);
    }
    bool operator==(const PooledAllocator&) const = default;
};

template <class T> using PooledVector = std::vector<T, PooledAllocator<T>>;

} // namespace tenfold
