// Diagonal tests: the search for nonzero elements, in blocks where rows are contiguous.
#include "lapack/diagonal_tests.h"

#include <cstdlib>
#include <utility>

namespace tenfold::lapack {
namespace {

constexpr int64_t BLOCK = 16; // numbers that are tested together

// Whether one of contiguous numbers is nonzero: it then has a bit set beside the sign bit.
template <class Bits> bool any_nonzero_bits(const char* start, int64_t count) {
    int64_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK) {
        Bits block[BLOCK], seen = 0;
        std::memcpy(block, start + i * int64_t(sizeof(Bits)), sizeof block);
        for (Bits bits : block) seen |= Bits(bits << 1);
        if (seen) return true;
    }
    for (; i < count; ++i)
        if (Bits(load<Bits>(start + i * int64_t(sizeof(Bits))) << 1)) return true;
    return false;
}

template <class T> bool any_nonzero(const char* start, int64_t stride, int64_t count) {
    if (stride == sizeof(T)) {
        constexpr bool single = sizeof(T) == 4 || std::is_same_v<T, std::complex<float>>;
        using Bits = std::conditional_t<single, uint32_t, uint64_t>;
        return any_nonzero_bits<Bits>(start, count * int64_t(sizeof(T) / sizeof(Bits)));
    }
    for (int64_t i = 0; i < count; ++i)
        if (load<T>(start + i * stride) != T(0)) return true;
    return false;
}

// Whether the first row with a nonzero off-diagonal element has one right of the diagonal.
template <class T>
bool has_nonzero_above(const char* matrix, const MatrixLayout& layout, int64_t order) {
    for (int64_t i = 0; i < order; ++i) {
        const char *row = matrix + i * layout.row, *right = row + (i + 1) * layout.column;
        if (any_nonzero<T>(right, layout.column, order - i - 1)) return true;
        if (any_nonzero<T>(row, layout.column, i)) return false;
    }
    return false;
}

} // namespace

bool is_upper_triangle(const char* matrix, MatrixLayout layout, int64_t order) {
    const bool rows = std::abs(layout.column) <= std::abs(layout.row); // the axis that is tested
    if (!rows) std::swap(layout.row, layout.column);
    const bool above = with_element(layout.element, [&](auto zero) {
        return has_nonzero_above<decltype(zero)>(matrix, layout, order);
    });
    return above == rows;
}

} // namespace tenfold::lapack
