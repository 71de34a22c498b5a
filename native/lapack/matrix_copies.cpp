// Matrix copies: loops for any strides, contiguous rows, and transposition in blocks.
#include "lapack/matrix_copies.h"

#include <utility>

namespace tenfold::lapack {
namespace {

constexpr int64_t BLOCK = 4; // rows and columns of a block that is transposed at once

template <class T> struct ScalarOf { using type = T; };
template <class T> struct ScalarOf<std::complex<T>> { using type = T; };

template <class To, class From> To convert(const From& number) {
    using ToScalar = typename ScalarOf<To>::type;
    const ToScalar real = ToScalar(std::real(number));
    if constexpr (std::is_same_v<To, ToScalar>) {
        return real;
    } else if constexpr (std::is_same_v<From, typename ScalarOf<From>::type>) {
        return To(real, ToScalar(0));
    } else {
        return To(real, ToScalar(std::imag(number)));
    }
}

template <class From, class To>
void copy_elements(const char* source, char* target, const CopyAxis& axis, int64_t begin = 0) {
    for (int64_t i = begin; i < axis.length; ++i)
        store(target + i * axis.target, convert<To>(load<From>(source + i * axis.source)));
}

// Copies BLOCK rows, which are contiguous columns of the source, to contiguous rows.
template <class From, class To>
void transpose_rows(const char* source, char* target, const CopyAxis& columns, int64_t row_bytes) {
    constexpr int64_t from_bytes = sizeof(From), to_bytes = sizeof(To);
    const int64_t end = columns.length - columns.length % BLOCK, step = columns.source;
    for (int64_t j = 0; j < end; j += BLOCK) {
        for (int64_t r = 0; r < BLOCK; ++r) {
            const char* from = source + r * from_bytes + j * step;
            const To numbers[BLOCK] = {
                convert<To>(load<From>(from)), convert<To>(load<From>(from + step)),
                convert<To>(load<From>(from + 2 * step)), convert<To>(load<From>(from + 3 * step))};
            std::memcpy(target + r * row_bytes + j * to_bytes, numbers, sizeof numbers);
        }
    }
    if (end == columns.length) return;
    for (int64_t r = 0; r < BLOCK; ++r)
        copy_elements<From, To>(source + r * from_bytes, target + r * row_bytes, columns, end);
}

template <class From, class To>
void copy_axes(const char* source, char* target, const CopyAxis& outer, const CopyAxis& inner) {
    constexpr int64_t from_bytes = sizeof(From), to_bytes = sizeof(To);
    constexpr bool real = std::is_floating_point_v<From> && std::is_floating_point_v<To>;
    int64_t row = 0;
    if (std::is_same_v<From, To> && inner.source == to_bytes && inner.target == to_bytes) {
        for (; row < outer.length; ++row)
            std::memcpy(target + row * outer.target, source + row * outer.source,
                        std::size_t(inner.length * to_bytes));
    } else if constexpr (real) {
        if (outer.source == from_bytes && inner.target == to_bytes)
            for (; row + BLOCK <= outer.length; row += BLOCK)
                transpose_rows<From, To>(source + row * from_bytes, target + row * outer.target,
                                         inner, outer.target);
    }
    for (; row < outer.length; ++row)
        copy_elements<From, To>(source + row * outer.source, target + row * outer.target, inner);
}

} // namespace

MatrixCopy::MatrixCopy(const MatrixLayout& source, const MatrixLayout& target, int64_t rows,
                       int64_t columns)
    : outer_{columns, source.column, target.column}, inner_{rows, source.row, target.row} {
    // the inner axis is the one of smaller stride in the target; a single column is one
    if (columns > 1 && target.column < target.row) std::swap(outer_, inner_);
    with_element(source.element, [&](auto from) {
        with_element(target.element,
                     [&](auto to) { copy_ = copy_axes<decltype(from), decltype(to)>; });
    });
}

void write_permutation(const int* pivots, int64_t exchanges, int* row_numbers, int64_t rows,
                       void* target, Element element) {
    for (int64_t i = 0; i < rows; ++i) row_numbers[i] = int(i);
    for (int64_t i = 0; i < exchanges; ++i) std::swap(row_numbers[i], row_numbers[pivots[i] - 1]);
    with_element(element, [&](auto zero) {
        using T = decltype(zero);
        std::memset(target, 0, sizeof(T) * std::size_t(rows * rows));
        for (int64_t i = 0; i < rows; ++i)
            store(static_cast<char*>(target) + (row_numbers[i] * rows + i) * int64_t(sizeof(T)),
                  T(1));
    });
}

} // namespace tenfold::lapack
