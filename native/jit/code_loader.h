// Code loader: copies machine code to executable memory. Memory is never writeable and executable
// at once. Code has pages of its own, which become executable after it is written. Pages come from
// arenas of a megabyte, so a hundred kernels need two mappings, not two hundred. Code lives as long
// as its references. An owner of an address in it, or a thread that runs it, holds the Code. That
// of a device is where its driver has put it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "memory/ref_counted.h"
#include "threads/work.h"

namespace tenfold {

struct Code {
    std::atomic<uint32_t> references{1};
    std::uint8_t* begin;
    std::size_t bytes;
    std::function<void()> unload; // of code of a device

    Code(std::uint8_t* begin, std::size_t bytes) : begin(begin), bytes(bytes) {}
    explicit Code(std::function<void()> unload) : Code(nullptr, 0) {
        this->unload = std::move(unload);
    }
    static void destroy(Code* code); // gives the pages back to the system
    // The kernel so many bytes from the begin.
    KernelHandle kernel_at(std::size_t offset) const { return KernelHandle(begin + offset); }
};

// A copy of position-independent code. Empty if the system has no executable memory.
Ref<Code> load_code(const void* code, std::size_t bytes);

// Bytes of the pages that hold code.
std::size_t loaded_code_bytes();

// From now on no code goes away: daemon threads may be running it when the interpreter has ended.
void disable_unloading();

} // namespace tenfold
