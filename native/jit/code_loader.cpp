#include "jit/code_loader.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

constexpr std::size_t ARENA = std::size_t(1) << 20;
constexpr std::size_t MOST = std::size_t(1) << 30; // bytes of one piece of code

struct Arena {
    Lock lock; // protects what follows; a fork finds no page written in part
    std::uint8_t* next = nullptr;
    std::size_t left = 0;
    std::size_t loaded = 0;
    bool ends = false; // whether code stays from now on
};

Arena* const arena = new Arena; // made at load, and never destroyed: kernels run until the end

// Writeable pages of the arena that hold no code yet; the latest ones may be given back.
std::uint8_t* pages(std::size_t bytes) {
    if (bytes > arena->left) {
        std::size_t taken = bytes > ARENA ? bytes : ARENA;
        void* memory =
            mmap(nullptr, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        // The rest of the previous arena stays untouched, so it takes no physical memory.
        arena->next = static_cast<std::uint8_t*>(memory);
        arena->left = taken;
    }
    return arena->next;
}

} // namespace

Ref<Code> load_code(const void* code, std::size_t bytes) {
    if (bytes == 0 || bytes > MOST) return {};
    const auto page = std::size_t(sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    Guard guard(arena->lock);
    std::uint8_t* place = pages(whole);
    if (!place) return {};
    std::memcpy(place, code, bytes);
    std::memset(place + bytes, 0xcc, whole - bytes); // int3: execution past the end traps
    if (mprotect(place, whole, PROT_READ | PROT_EXEC) != 0) return {};
    arena->next += whole;
    arena->left -= whole;
    arena->loaded += whole;
    return Ref<Code>::adopt(new Code(place, whole));
}

void Code::destroy(Code* code) {
    bool stays;
    {
        Guard guard(arena->lock);
        stays = arena->ends;
        if (!stays) arena->loaded -= code->bytes;
    }
    if (!stays) munmap(code->begin, code->bytes);
    delete code;
}

void keep_all_code() {
    Guard guard(arena->lock);
    arena->ends = true;
}

std::size_t loaded_code_bytes() {
    Guard guard(arena->lock);
    return arena->loaded;
}

} // namespace tenfold
