// The floor of what memory bounds: a copy in which nothing is computed, the stores going past the
// cache. `c++ -std=c++20 -O3 -march=native -pthread copy.cpp` makes a program of it; as a library
// (`-shared -fPIC`) the bench calls copy_seconds in turn with the array libraries.
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

static void copy(char* to, const char* from, std::size_t bytes) {
#ifdef __AVX512F__
    for (std::size_t i = 0; i < bytes; i += 64)
        _mm512_stream_si512((__m512i*)(to + i), _mm512_load_si512(from + i));
#else
    for (std::size_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i*)(to + i), _mm_load_si128((const __m128i*)(from + i)));
#endif
    _mm_sfence();
}

// Memory in huge pages where the system has them, each page touched before anything is timed.
static char* memory(std::size_t bytes) {
    const std::size_t page = 2 << 20, whole = (bytes + page - 1) / page * page;
    char* made = (char*)std::aligned_alloc(page, whole);
    madvise(made, whole, MADV_HUGEPAGE);
    return (char*)std::memset(made, 1, whole);
}

// Seconds for `threads` threads to copy `bytes`: from the first's start to the last's end.
extern "C" double copy_seconds(std::size_t bytes, int threads) {
    using clock = std::chrono::steady_clock;
    static char* from = memory(bytes);  // of the size that is asked for first: ask for no more
    static char* to = memory(bytes);
    std::vector<clock::time_point> begins(threads), ends(threads);
    std::vector<std::jthread> workers;
    std::latch start(threads);
    for (int t = 0; t < threads; ++t)
        workers.emplace_back([&, share = bytes / threads / 64 * 64, t] {
            start.arrive_and_wait();
            begins[t] = clock::now();
            copy(to + t * share, from + t * share, share);
            ends[t] = clock::now();
        });
    workers.clear();  // joins them
    return std::chrono::duration<double>(*std::ranges::max_element(ends) -
                                         *std::ranges::min_element(begins)).count();
}

int main() {
    const std::size_t bytes = 256 << 20;
    for (int i = 0; i < 8; ++i)
        std::printf("2 threads: %.1f GB/s\n", 2e-9 * bytes / copy_seconds(bytes, 2));
}
