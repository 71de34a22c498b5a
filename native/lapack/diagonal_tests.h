// Diagonal tests: what drivers ask of a matrix between routines.
#pragma once
#include <algorithm>

#include "lapack/complex_arithmetic.h"
#include "lapack/matrix_copies.h"

namespace tenfold::lapack {

// Whether all real parts of the diagonal of a column-major matrix are above 0.
template <class T> bool has_positive_diagonal(const T* matrix, int64_t order) {
    for (int64_t i = 0; i < order; ++i)
        if (!(std::real(matrix[i * (order + 1)]) > 0)) return false;
    return true;
}

// Whether all real parts of the diagonal are finite.
template <class T> bool has_finite_diagonal(const T* matrix, int64_t order) {
    for (int64_t i = 0; i < order; ++i)
        if (!std::isfinite(std::real(matrix[i * (order + 1)]))) return false;
    return true;
}

// Whether the diagonal has no 0; `leading` is the number of elements from column to column.
template <class T> bool has_nonzero_diagonal(const T* matrix, int64_t order, int64_t leading) {
    for (int64_t i = 0; i < order; ++i)
        if (!is_nonzero(matrix[i * (leading + 1)])) return false;
    return true;
}

template <class T> bool is_all_finite(const T* vector, int64_t length) {
    return std::all_of(vector, vector + length, [](const T& number) { return is_finite(number); });
}

// Whether a triangular matrix is an upper triangle, not a lower one. The first row, or column, with
// a nonzero off-diagonal element tells: often the second.
bool is_upper_triangle(const char* matrix, MatrixLayout layout, int64_t order);

} // namespace tenfold::lapack
