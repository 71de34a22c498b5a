#include "memory/guard_pages.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>

namespace tenfold {
namespace {

constexpr std::size_t PAGE = 4096;
constexpr unsigned char FILL = 0xA5;
// Bytes up to which a new block is filled; the pages of a larger one may never be touched.
constexpr std::size_t MOST_FILLED = std::size_t(1) << 20;

bool environment_asks() {
    const char* text = std::getenv("TENFOLD_GUARD");
    if (!text) return false;
    std::string word(text);
    std::transform(word.begin(), word.end(), word.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
    });
    return word == "1" || word == "true" || word == "yes" || word == "on";
}

const bool asked = environment_asks();

std::atomic<uint64_t> mapped{0}; // relaxed: a number

// The sequence of Thue and Morse: both ways equally often, and no period with which the allocations
// of a program could fall in.
bool next_begins_at_a_page() {
    return std::popcount(mapped.fetch_add(1, std::memory_order_relaxed)) % 2 == 0;
}

// The pages of a block, without those around it.
struct Pages {
    unsigned char *begin, *end;

    Pages(void* memory, std::size_t bytes) {
        auto first = reinterpret_cast<std::uintptr_t>(memory);
        begin = reinterpret_cast<unsigned char*>(first / PAGE * PAGE);
        end = reinterpret_cast<unsigned char*>((first + bytes + PAGE - 1) / PAGE * PAGE);
    }
};

bool filled(const unsigned char* begin, const unsigned char* end) {
    return std::all_of(begin, end, [](unsigned char byte) { return byte == FILL; });
}

} // namespace

bool guard_pages() { return asked; }

void* map_guarded(std::size_t bytes) {
    std::size_t inside = (bytes + PAGE - 1) / PAGE * PAGE, all = inside + 2 * PAGE;
    void* made = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    auto* begin = static_cast<unsigned char*>(made) + PAGE;
    if (inside && mprotect(begin, inside, PROT_READ | PROT_WRITE) != 0) {
        munmap(made, all);
        return nullptr;
    }
    auto* memory = next_begins_at_a_page() ? begin : begin + inside - bytes;
    if (bytes <= MOST_FILLED) {
        std::memset(begin, FILL, inside);
    } else {
        std::memset(begin, FILL, std::size_t(memory - begin));
        std::memset(memory + bytes, FILL, std::size_t(begin + inside - memory) - bytes);
    }
    return memory;
}

void unmap_guarded(void* memory, std::size_t bytes) noexcept {
    Pages pages(memory, bytes);
    auto* block = static_cast<unsigned char*>(memory);
    if (!filled(pages.begin, block) || !filled(block + bytes, pages.end)) {
        std::fprintf(stderr, "tenfold: written outside an array of %zu bytes at %p\n", bytes,
                     memory);
        std::abort();
    }
    munmap(pages.begin - PAGE, std::size_t(pages.end - pages.begin) + 2 * PAGE);
}

} // namespace tenfold
