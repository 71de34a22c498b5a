// Work: one launch of a kernel, as its caller describes it, and how it ended.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tenfold {

// A kernel as the loader of its device made it. Only the driver of that device looks inside.
class KernelHandle {
  public:
    constexpr KernelHandle() = default;
    explicit constexpr KernelHandle(void* entry) : entry_(entry) {}
    constexpr void* entry() const { return entry_; }
    explicit constexpr operator bool() const { return entry_; }
    constexpr auto operator<=>(const KernelHandle&) const = default;

  private:
    void* entry_ = nullptr;
};

struct Work {
    KernelHandle kernel;
    // A device that queues its launches copies these, and may translate addresses.
    std::span<void* const> buffers; // each address of array memory that the kernel reads or writes
    uint64_t written =
        ~uint64_t(0); // by bit: the buffers that it may write; the last bit for others
    std::span<const int64_t> sizes;    // lengths and strides, or what else a kernel reads
    std::span<const uint64_t> scalars; // the bits of each
    std::size_t scratch = 0;           // bytes for each thread, 64-byte aligned
    int64_t units = 0;
    int64_t grain = 1;
    int threads = 1; // at most, the pool may be smaller or busy; 0: few elements, no other thread
    bool uninterruptible = false; // never interrupted: it writes over values that others may need
    // Asked on the caller's thread every INTERVAL, between its ranges; true cancels the Launch.
    bool (*interrupted)(void* context) = nullptr;
    void* context = nullptr;
};

constexpr bool is_written(uint64_t written, std::size_t buffer) {
    return written >> (buffer < 63 ? buffer : 63) & 1;
}

enum class Outcome : uint8_t { done, cancelled, no_memory };

struct Result {
    Outcome outcome = Outcome::done;
    int64_t status = 0; // the smallest that a range returned, apart from 0

    bool succeeded() const { return outcome == Outcome::done && status == 0; }
};

// A struct as the sizes of a kernel in C++.
template <class Sizes> std::span<const int64_t> words_of(const Sizes& sizes) {
    static_assert(std::is_trivially_copyable_v<Sizes> && sizeof(Sizes) % sizeof(int64_t) == 0);
    return {reinterpret_cast<const int64_t*>(&sizes), sizeof(Sizes) / sizeof(int64_t)};
}

} // namespace tenfold
