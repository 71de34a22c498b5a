// Block diagonal: the work between LAPACK routines on factors of symmetric matrices.
//
// A symmetric matrix is P L D L^T P^T: J. R. Bunch and L. Kaufman, "Some stable methods for
// calculating inertia and solving symmetric linear systems", Mathematics of Computation 31, 1977.
// P exchanges rows, L is a unit lower triangle, and D has blocks of 1 or 2 rows on its diagonal.
// L is column-major, with the diagonal of D on its diagonal. D's off-diagonal elements are a
// separate vector, 0 if a block has one row. Complex matrices are symmetric, not Hermitian.
#pragma once
#include <cstdlib>
#include <utility>

#include "lapack/complex_arithmetic.h"

namespace tenfold::lapack {

template <class T> struct BlockDiagonal {
    const T *factor, *off_diagonals;
    int64_t order;

    T diagonal(int64_t i) const { return factor[i * (order + 1)]; }
    // The element below row i; memory after the last row is not part of D.
    T below(int64_t i) const { return i == order - 1 ? T(0) : off_diagonals[i]; }
    bool begins_block(int64_t i) const { return is_nonzero(below(i)); }
    bool ends_block(int64_t i) const { return i != 0 && is_nonzero(off_diagonals[i - 1]); }
};

// Whether D is finite and invertible; blocks of two rows are invertible.
template <class T> bool is_invertible(const BlockDiagonal<T>& d) {
    for (int64_t i = 0; i < d.order; ++i) {
        if (!is_finite(d.diagonal(i)) || !is_finite(d.below(i))) return false;
        if (!d.begins_block(i) && !d.ends_block(i) && !is_nonzero(d.diagonal(i))) return false;
    }
    return true;
}

// Stores the row that each row was exchanged with, from 1 on and negative, unlike the pivots of LU.
// LAPACK's pivots are negative in both rows of a block of two; only the second was exchanged.
template <class T>
void store_interchanges(const int* pivots, const BlockDiagonal<T>& d, T* target) {
    for (int64_t i = 0; i < d.order; ++i) {
        const int row = d.begins_block(i) ? -int(i + 1) : pivots[i];
        target[i] = T(pivots[i] > 0 ? -pivots[i] : row);
    }
}

// The right-hand sides of equations; strides in elements.
template <class T> struct EquationRows {
    T* data;
    int64_t row, column, columns;

    // Calls `body` with the elements of two rows, column by column.
    template <class Body> void for_each_pair(int64_t i, int64_t j, Body body) const {
        T *first = data + i * row, *second = data + j * row;
        if (column == 1) {
            for (int64_t k = 0; k < columns; ++k) body(first[k], second[k]);
        } else {
            for (int64_t k = 0; k < columns; ++k) body(first[k * column], second[k * column]);
        }
    }
};

// Exchanges rows by pivots of any sign; `reverse` begins with the last.
template <class T>
void exchange_rows(const int* pivots, int64_t order, const EquationRows<T>& x, bool reverse) {
    for (int64_t step = 0; step < order; ++step) {
        const int64_t i = reverse ? order - 1 - step : step, other = std::abs(pivots[i]) - 1;
        if (i != other) x.for_each_pair(i, other, [](T& a, T& b) { std::swap(a, b); });
    }
}

// Solves a block [[a, e], [e, b]]: x = (b/e u - v) / d, y = (a/e v - u) / d, for right-hand sides u
// and v divided by e. d = a/e b/e - 1 is not near 0, as a/e b/e is less than 1/2. The off-diagonal
// element is the largest: all are divided by it, so that no two of them are multiplied.
template <class T>
void solve_block(const BlockDiagonal<T>& d, int64_t i, const EquationRows<T>& x) {
    const T off_diagonal = d.below(i);
    const T first = divide(d.diagonal(i), off_diagonal);
    const T second = divide(d.diagonal(i + 1), off_diagonal);
    const T divisor = multiply(first, second) - T(1);
    const T factor = divide(divide(T(1), divisor), off_diagonal);
    x.for_each_pair(i, i + 1, [&](T& a, T& b) {
        const T u = multiply(a, factor), v = multiply(b, factor);
        a = multiply(second, u) - v;
        b = multiply(first, v) - u;
    });
}

// Solves equations with D in place.
template <class T> void solve_block_diagonal(const BlockDiagonal<T>& d, const EquationRows<T>& x) {
    for (int64_t i = 0; i < d.order; ++i) {
        if (d.begins_block(i)) {
            solve_block(d, i, x);
        } else if (!d.ends_block(i)) {
            const T factor = divide(T(1), d.diagonal(i));
            x.for_each_pair(i, i, [&](T& a, T&) { a = multiply(a, factor); });
        }
    }
}

} // namespace tenfold::lapack
