// Strided kernels: the kernels of one elementwise operation that take any shape and layout.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "jit/code_loader.h"
#include "jit/processor.h"
#include "threads/work.h"

namespace tenfold {

// The cached object, or a new one. If another thread was first, its object wins; null where
// `create` fails.
template <class T, class Make> T* get_or_create(std::atomic<T*>& slot, Make&& create) {
    if (T* existing = slot.load(std::memory_order_acquire)) return existing;
    T* created = create();
    T* expected = nullptr;
    if (!created || slot.compare_exchange_strong(expected, created)) return created;
    delete created;
    return expected;
}

// A kernel with an outer and an inner axis. Results and operands read element by element are
// contiguous along the inner axis. Other operands have a constant stride, or stride 0.
struct Loop {
    enum SizeKind : uint8_t { length, stride, block, unused };
    struct Size { // the axis of a length: 1 is the inner one
        SizeKind kind;
        uint8_t operand, axis;
    };
    KernelHandle kernel; // null: this operation has none for these dtypes
    Ref<Code> code;
    std::vector<Size> sizes;

    // The sizes of a launch, from its inner and outer length and the elements of a unit.
    // `stride_of` tells the stride of an operand along the outer axis, 0, or the inner one, 1.
    template <class Stride>
    void write_sizes(std::vector<int64_t>& to, int64_t inner, int64_t outer, int64_t unit,
                     Stride&& stride_of) const {
        to.clear();
        for (const Size& size : sizes)
            to.push_back(size.kind == length   ? (size.operand == 1 ? inner : outer)
                         : size.kind == stride ? stride_of(size.operand, size.axis)
                         : size.kind == block  ? unit
                                               : 0);
    }
};

// The loops of one operation on some dtypes, for each target. They are indexed by the steps of its
// array operands along the inner axis: '0', '1' or 's' each.
struct Loops {
    static constexpr std::size_t OPERANDS = 3, FORMS = 27;
    struct Forms {
        std::array<std::atomic<const Loop*>, FORMS> loops{}; // owned; null: not asked for yet
        ~Forms() {
            for (auto& loop : loops) delete loop.load(std::memory_order_acquire);
        }
    };
    std::atomic<uint32_t> references{1};
    std::array<std::atomic<Forms*>, NUM_TARGETS> targets{}; // owned; null: not asked for yet

    ~Loops() {
        for (auto& forms : targets) delete forms.load(std::memory_order_acquire);
    }
    template <class Make> const Loop* find_or_make(uint8_t target, std::size_t form, Make&& make) {
        Forms* forms = get_or_create(targets[target], [] { return new Forms; });
        return get_or_create(forms->loops[form], make);
    }
    static void destroy(Loops* loops) { delete loops; }
};

} // namespace tenfold
