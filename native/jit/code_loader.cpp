#include "jit/code_loader.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "threads/device.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

constexpr std::size_t ARENA_BYTES = std::size_t(1) << 20;
constexpr std::size_t MAX_CODE_BYTES = std::size_t(1) << 30; // bytes of one piece of code

struct Arena {
    Lock lock; // protects the other fields; a fork finds no page written in part
    std::uint8_t* next = nullptr;
    std::size_t bytes_left = 0;
    std::size_t bytes_loaded = 0;
    bool never_unload = false; // whether code stays from now on
};

Arena* const arena = new Arena; // made at load, and never destroyed: kernels run until the end

// Writeable pages of the arena that hold no code yet; the latest ones may be returned.
std::uint8_t* reserve_pages(std::size_t bytes) {
    if (bytes > arena->bytes_left) {
        std::size_t arena_bytes = bytes > ARENA_BYTES ? bytes : ARENA_BYTES;
        void* memory =
            mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        // The rest of the previous arena stays untouched, so it takes no physical memory.
        arena->next = static_cast<std::uint8_t*>(memory);
        arena->bytes_left = arena_bytes;
    }
    return arena->next;
}

} // namespace

Ref<Code> load_code(const void* code, std::size_t bytes) {
    if (bytes == 0 || bytes > MAX_CODE_BYTES) return {};
    const auto page = std::size_t(sysconf(_SC_PAGESIZE));
    const std::size_t rounded_bytes = (bytes + page - 1) / page * page;
    Guard guard(arena->lock);
    std::uint8_t* address = reserve_pages(rounded_bytes);
    if (!address) return {};
    std::memcpy(address, code, bytes);
    std::memset(address + bytes, 0xcc, rounded_bytes - bytes); // int3: execution past the end traps
    if (mprotect(address, rounded_bytes, PROT_READ | PROT_EXEC) != 0) return {};
    arena->next += rounded_bytes;
    arena->bytes_left -= rounded_bytes;
    arena->bytes_loaded += rounded_bytes;
    return Ref<Code>::adopt(new Code(address, rounded_bytes));
}

void Code::destroy(Code* code) {
    bool keep_loaded;
    {
        Guard guard(arena->lock);
        keep_loaded = arena->never_unload;
        if (!keep_loaded) arena->bytes_loaded -= code->bytes;
    }
    if (!keep_loaded) {
        wait_for_devices();
        code->unload ? code->unload() : void(munmap(code->begin, code->bytes));
    }
    delete code;
}

void disable_unloading() {
    Guard guard(arena->lock);
    arena->never_unload = true;
}

std::size_t loaded_code_bytes() {
    Guard guard(arena->lock);
    return arena->bytes_loaded;
}

} // namespace tenfold
