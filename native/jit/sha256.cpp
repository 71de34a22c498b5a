#include "jit/sha256.h"

#include <bit>
#include <cstring>
#include <immintrin.h>

#include "jit/processor.h"

namespace tenfold {
namespace {

constexpr std::size_t BLOCK = 64, ROUNDS = 64;
using State = std::array<uint32_t, 8>;

// The first 32 bits behind the point of a square (power 2) or cube root of a small number.
constexpr uint32_t fraction_of_root(uint32_t number, int power) {
    __extension__ using Wide = unsigned __int128;
    uint64_t root = 0; // times 2**32
    for (int bit = 36; bit >= 0; --bit) {
        Wide tried = root | uint64_t(1) << bit;
        Wide raised = power == 2 ? tried * tried : tried * tried * tried; // below 2**112
        if (raised <= Wide(number) << 32 * power) root = uint64_t(tried);
    }
    return uint32_t(root);
}

constexpr bool is_prime(uint32_t number) {
    for (uint32_t divisor = 2; divisor * divisor <= number; ++divisor)
        if (number % divisor == 0) return false;
    return true;
}

// FIPS 180-4, 4.2.2 and 5.3.3: of the roots of the first primes.
template <std::size_t count> constexpr std::array<uint32_t, count> fractions(int power) {
    std::array<uint32_t, count> fractions_found{};
    uint32_t prime = 2;
    for (uint32_t& fraction : fractions_found) {
        while (!is_prime(prime)) ++prime;
        fraction = fraction_of_root(prime++, power);
    }
    return fractions_found;
}

constexpr auto CONSTANTS = fractions<ROUNDS>(3);
constexpr State FIRST = fractions<8>(2);
static_assert(CONSTANTS.front() == 0x428a2f98 && CONSTANTS.back() == 0xc67178f2);
static_assert(FIRST.front() == 0x6a09e667 && FIRST.back() == 0x5be0cd19);

uint32_t big_endian(const uint8_t* bytes) {
    uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return __builtin_bswap32(word);
}

void compress_block(State& state, const uint8_t* block) {
    std::array<uint32_t, ROUNDS> words;
    for (std::size_t i = 0; i < 16; ++i) words[i] = big_endian(block + 4 * i);
    for (std::size_t i = 16; i < ROUNDS; ++i) {
        uint32_t early = words[i - 15], late = words[i - 2];
        words[i] = words[i - 16] + words[i - 7] +
                   (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) +
                   (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < ROUNDS; ++i) {
        uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                         ((e & f) ^ (~e & g)) + CONSTANTS[i] + words[i];
        uint32_t second =
            (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const State added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

void compress_blocks(State& state, const uint8_t* next, std::size_t blocks) {
    for (; blocks; --blocks, next += BLOCK) compress_block(state, next);
}

// The same by the processor's SHA instructions. They have the state as a, b, e, f and c, d, g, h,
// and take two rounds each. (Intel, Software Developer's Manual, vol. 2B, SHA256RNDS2, SHA256MSG1,
// SHA256MSG2.)
__attribute__((target("sha,sse4.1"))) void compress_blocks_sha_ni(State& state, const uint8_t* next,
                                                                  std::size_t blocks) {
    const auto [a, b, c, d, e, f, g, h] = std::bit_cast<std::array<int, 8>>(state);
    __m128i abef = _mm_set_epi32(a, b, e, f), cdgh = _mm_set_epi32(c, d, g, h);
    const __m128i big_endian_words = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (; blocks; --blocks, next += BLOCK) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        const auto* block = reinterpret_cast<const __m128i*>(next);
        __m128i words[4]; // of these four rounds and of the next twelve
        for (int i = 0; i < 4; ++i)
            words[i] = _mm_shuffle_epi8(_mm_loadu_si128(block + i), big_endian_words);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            __m128i& here = words[i % 4];
            const __m128i one = words[(i + 1) % 4], two = words[(i + 2) % 4];
            const __m128i three = words[(i + 3) % 4];
            const auto* constants = reinterpret_cast<const __m128i*>(CONSTANTS.data() + 4 * i);
            const __m128i added = _mm_add_epi32(here, _mm_loadu_si128(constants));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
            const __m128i sevenths = _mm_alignr_epi8(three, two, 4); // words 9 to 12 of sixteen
            here = _mm_add_epi32(_mm_sha256msg1_epu32(here, one), sevenths);
            here = _mm_sha256msg2_epu32(here, three);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    alignas(16) uint32_t fe[4], hg[4];
    _mm_store_si128(reinterpret_cast<__m128i*>(fe), abef);
    _mm_store_si128(reinterpret_cast<__m128i*>(hg), cdgh);
    state = {fe[3], fe[2], hg[3], hg[2], fe[1], fe[0], hg[1], hg[0]};
}

Digest compute_digest(const void* data, std::size_t bytes, decltype(&compress_blocks) compress) {
    const auto* next = static_cast<const uint8_t*>(data);
    State state = FIRST;
    const std::size_t tail_bytes = bytes % BLOCK;
    compress(state, next, bytes / BLOCK);
    next += bytes - tail_bytes;

    std::array<uint8_t, 2 * BLOCK> padded_tail{}; // remaining bytes, a 1 bit, zeros, length in bits
    if (tail_bytes) std::memcpy(padded_tail.data(), next, tail_bytes);
    padded_tail[tail_bytes] = 0x80;
    std::size_t end = tail_bytes + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    uint64_t length = __builtin_bswap64(uint64_t(bytes) * 8);
    std::memcpy(padded_tail.data() + end - sizeof length, &length, sizeof length);
    compress(state, padded_tail.data(), end / BLOCK);

    Digest digest;
    for (std::size_t i = 0; i < state.size(); ++i) {
        uint32_t word = __builtin_bswap32(state[i]);
        std::memcpy(digest.data() + 4 * i, &word, sizeof word);
    }
    return digest;
}

} // namespace

Digest sha256(const void* data, std::size_t bytes) {
    static const auto compress = has_sha_extensions() ? compress_blocks_sha_ni : compress_blocks;
    return compute_digest(data, bytes, compress);
}

Digest sha256_portable(const void* data, std::size_t bytes) {
    return compute_digest(data, bytes, compress_blocks);
}

} // namespace tenfold
