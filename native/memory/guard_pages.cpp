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

constexpr std::size_t PAGE_BYTES = 4096;
constexpr unsigned char FILL = 0xA5;
// Bytes up to which a new block is filled; the pages of a larger one may never be touched.
constexpr std::size_t MAX_FILLED_BYTES = std::size_t(1) << 20;

bool environment_enables() {
    const char* text = std::getenv("TENFOLD_GUARD");
    if (!text) return false;
    std::string word(text);
    std::transform(word.begin(), word.end(), word.begin(), [](char letter) {
        return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
    });
    return word == "1" || word == "true" || word == "yes" || word == "on";
}

const bool enabled = environment_enables();

std::atomic<uint64_t> num_mapped{0}; // relaxed: a number

// The Thue-Morse sequence: both kinds equally often, and no period that a program's allocations
// could match.
bool aligns_to_page_start() {
    return std::popcount(num_mapped.fetch_add(1, std::memory_order_relaxed)) % 2 == 0;
}

// The pages of a block, without those around it.
struct Pages {
    unsigned char *begin, *end;

    Pages(void* memory, std::size_t bytes) {
        auto first = reinterpret_cast<std::uintptr_t>(memory);
        begin = reinterpret_cast<unsigned char*>(first / PAGE_BYTES * PAGE_BYTES);
        end = reinterpret_cast<unsigned char*>((first + bytes + PAGE_BYTES - 1) / PAGE_BYTES *
                                               PAGE_BYTES);
    }
};

bool is_filled(const unsigned char* begin, const unsigned char* end) {
    return std::all_of(begin, end, [](unsigned char byte) { return byte == FILL; });
}

} // namespace

bool guard_pages() { return enabled; }

void* map_guarded(std::size_t bytes) {
    std::size_t usable_bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES,
                total_bytes = usable_bytes + 2 * PAGE_BYTES;
    void* region =
        mmap(nullptr, total_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) return nullptr;
    auto* begin = static_cast<unsigned char*>(region) + PAGE_BYTES;
    if (usable_bytes && mprotect(begin, usable_bytes, PROT_READ | PROT_WRITE) != 0) {
        munmap(region, total_bytes);
        return nullptr;
    }
    auto* memory = aligns_to_page_start() ? begin : begin + usable_bytes - bytes;
    if (bytes <= MAX_FILLED_BYTES) {
        std::memset(begin, FILL, usable_bytes);
    } else {
        std::memset(begin, FILL, std::size_t(memory - begin));
        std::memset(memory + bytes, FILL, std::size_t(begin + usable_bytes - memory) - bytes);
    }
    return memory;
}

void unmap_guarded(void* memory, std::size_t bytes) noexcept {
    Pages pages(memory, bytes);
    auto* block = static_cast<unsigned char*>(memory);
    if (!is_filled(pages.begin, block) || !is_filled(block + bytes, pages.end)) {
        std::fprintf(stderr, "tenfold: written outside an array of %zu bytes at %p\n", bytes,
                     memory);
        std::abort();
    }
    munmap(pages.begin - PAGE_BYTES, std::size_t(pages.end - pages.begin) + 2 * PAGE_BYTES);
}

} // namespace tenfold
