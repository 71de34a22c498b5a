// Strided kernels: the kernels of one elementwise operation that take any shape and layout.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "jit/code_loader.h"
#include "threads/worker_pool.h"

namespace tenfold {

// What is there, or what is made now and stays, unless another thread was first; null where nothing
// was made.
template <class T, class Make> const T* there_or_made(std::atomic<const T*>& place, Make&& make) {
    if (const T* there = place.load(std::memory_order_acquire)) return there;
    const T* made = make();
    const T* first = nullptr;
    if (!made || place.compare_exchange_strong(first, made)) return made;
    delete made;
    return first;
}

// A kernel with an outer and an inner axis. Results and what is read element by element are
// contiguous along the inner one, where others are stepped through by a stride, or not at all.
struct Loop {
    enum What : uint8_t { length, stride, part, nothing };
    struct Size { // of a length `first` is the axis; 1 is the inner one
        What what;
        uint8_t first, axis;
    };
    Kernel kernel = nullptr; // null: this operation has none for these dtypes
    Ref<Code> code;
    std::vector<Size> sizes;
};

// The loops of one operation on some dtypes, by the steps of its array operands along the inner
// axis: '0', '1' or 's' each.
struct Loops {
    static constexpr std::size_t OPERANDS = 3, FORMS = 27;
    std::atomic<uint32_t> references{1};
    std::array<std::atomic<const Loop*>, FORMS> loops{}; // owned; null: not asked for yet

    ~Loops() {
        for (auto& loop : loops) delete loop.load(std::memory_order_acquire);
    }
    static void destroy(Loops* loops) { delete loops; }
};

} // namespace tenfold
