#include "threads/thread_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>

#include "threads/thread_local.h"

namespace tenfold {
namespace {

// Sanitizers take the stack of a fiber for that of the thread.
#define ON_FIBER __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

// Saves the registers that a call keeps on this stack, and the stack in *from; then goes on where
// the stack `to` was left (System V ABI, AMD64 supplement, 3.2.1).
__attribute__((naked)) ON_FIBER void switch_stack(void** /*from*/, void* /*to*/) {
    asm(R"(
        pushq %rbp
        pushq %rbx
        pushq %r12
        pushq %r13
        pushq %r14
        pushq %r15
        movq %rsp, (%rdi)
        movq %rsi, %rsp
        popq %r15
        popq %r14
        popq %r13
        popq %r12
        popq %rbx
        popq %rbp
        ret
    )");
}

constexpr std::size_t STACK_BYTES = std::size_t(1) << 17, GUARD_BYTES = std::size_t(1) << 12;
constexpr std::size_t SAVED_WORDS = 8; // six registers, the entry, a return address that none takes

// The stacks of the fibers of a thread, each above a page without access.
class Stacks {
  public:
    Stacks() {
        void* memory = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        begin_ = static_cast<std::byte*>(memory);
        for (int64_t i = 0; i < BLOCK_THREADS; ++i)
            mprotect(begin_ + i * STACK_BYTES, GUARD_BYTES, PROT_NONE);
    }
    ~Stacks() { munmap(begin_, BYTES); }
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    void** top(int64_t number) const {
        return reinterpret_cast<void**>(begin_ + (number + 1) * STACK_BYTES);
    }

  private:
    static constexpr std::size_t BYTES = BLOCK_THREADS * STACK_BYTES;
    std::byte* begin_;
};

// The threads of one block. Control goes round: a thread that waits gives it to the next one, and
// has it again when all others of its warp or block have come to the same place.
class ThreadBlock : public BlockTable {
  public:
    ON_FIBER void run(const Stacks& stacks, int64_t first, int64_t count) {
        first_ = first;
        count_ = count;
        for (int64_t i = 0; i < count; ++i) {
            void** top = stacks.top(i);
            std::fill(top - SAVED_WORDS, top, nullptr);
            top[-2] = reinterpret_cast<void*>(&ThreadBlock::enter);
            stacks_[i] = top - SAVED_WORDS;
            rounds_[i] = 0;
        }
        current_ = 0;
        running() = this;
        switch_stack(&caller_, stacks_[0]);
    }

    ON_FIBER static uint32_t exchange(BlockTable* table, uint32_t value, uint32_t lane) {
        auto& block = *static_cast<ThreadBlock*>(table);
        int64_t self = block.current_, warp = self / WARP_THREADS * WARP_THREADS;
        // The first lanes write the next values before the last ones have read these.
        auto& values = block.values_[block.rounds_[self]++ % 2];
        values[self] = value;
        block.switch_to(warp + (self + 1) % WARP_THREADS);
        return values[warp + lane % WARP_THREADS];
    }

    ON_FIBER static void wait(BlockTable* table) {
        auto& block = *static_cast<ThreadBlock*>(table);
        block.switch_to((block.current_ + 1) % block.count_);
    }

    ThreadFunction thread = nullptr;
    void* const* buffers = nullptr;
    const int64_t* sizes = nullptr;
    const double* scalars = nullptr;
    void* shared = nullptr;

  private:
    static ThreadBlock*& running() {
        thread_local ThreadBlock* block = nullptr;
        return block;
    }

    ON_FIBER static void enter() {
        ThreadBlock& block = *running();
        int64_t self = block.current_;
        block.thread(block.buffers, block.sizes, block.scalars, block.shared, &block,
                     block.first_ + self);
        if (self + 1 < block.count_) block.switch_to(self + 1);
        switch_stack(&block.stacks_[self], block.caller_);
    }

    ON_FIBER void switch_to(int64_t next) {
        int64_t self = current_;
        current_ = next;
        if (self != next) switch_stack(&stacks_[self], stacks_[next]);
    }

    int64_t first_ = 0, count_ = 0, current_ = 0;
    void* caller_ = nullptr;
    std::array<void*, BLOCK_THREADS> stacks_{};
    std::array<uint8_t, BLOCK_THREADS> rounds_{};
    std::array<std::array<uint32_t, BLOCK_THREADS>, 2> values_{};
};

} // namespace

int64_t run_blocks(ThreadFunction thread, void* const* buffers, const int64_t* sizes,
                   const double* scalars, void* shared, int64_t begin, int64_t end) {
    const Stacks& stacks = ThreadLocal<Stacks>::get();
    ThreadBlock block;
    block.status = -1;
    block.shuffle = ThreadBlock::exchange;
    block.barrier = ThreadBlock::wait;
    block.thread = thread;
    block.buffers = buffers;
    block.sizes = sizes;
    block.scalars = scalars;
    block.shared = shared;
    for (int64_t first = begin; first < end; first += BLOCK_THREADS)
        block.run(stacks, first, std::min(BLOCK_THREADS, end - first));
    return block.status == -1 ? 0 : block.status;
}

} // namespace tenfold
