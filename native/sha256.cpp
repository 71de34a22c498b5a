#include "sha256.h"

#include <bit>
#include <cstring>

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
    std::array<uint32_t, count> found{};
    uint32_t prime = 2;
    for (uint32_t& fraction : found) {
        while (!is_prime(prime)) ++prime;
        fraction = fraction_of_root(prime++, power);
    }
    return found;
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

void mix(State& state, const uint8_t* block) {
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

} // namespace

Digest sha256(const void* data, std::size_t bytes) {
    const auto* next = static_cast<const uint8_t*>(data);
    State state = FIRST;
    std::size_t left = bytes;
    for (; left >= BLOCK; left -= BLOCK, next += BLOCK) mix(state, next);

    std::array<uint8_t, 2 * BLOCK> last{}; // what is left, a bit, zeros, the length in bits
    if (left) std::memcpy(last.data(), next, left);
    last[left] = 0x80;
    std::size_t end = left + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    uint64_t length = __builtin_bswap64(uint64_t(bytes) * 8);
    std::memcpy(last.data() + end - sizeof length, &length, sizeof length);
    for (std::size_t at = 0; at < end; at += BLOCK) mix(state, last.data() + at);

    Digest digest;
    for (std::size_t i = 0; i < state.size(); ++i) {
        uint32_t word = __builtin_bswap32(state[i]);
        std::memcpy(digest.data() + 4 * i, &word, sizeof word);
    }
    return digest;
}

} // namespace tenfold
