// Symmetric drivers: factors of symmetric matrices, and solutions with them.
//
// Cholesky is tried on real matrices of a positive diagonal. A matrix that it rejects is factored
// by Bunch-Kaufman, and a singular or non-finite one by Gaussian elimination.
#include "lapack/block_diagonal.h"
#include "lapack/right_hand_sides.h"

namespace tenfold::lapack {
namespace {

struct SymmetricFactorSizes {
    StackedMatrix x, result;
    int64_t order;
    int64_t pivots, work;
    int64_t work_length;
};

template <class T> class SymmetricFactorization {
  public:
    SymmetricFactorization(void** buffers, const SymmetricFactorSizes& sizes, void* scratch)
        : buffers_(buffers), sizes_(sizes), n_(int(sizes.order)),
          copy_in_(sizes.x.layout, by_columns<T>(n_), n_, n_),
          pivots_(area<int>(scratch, sizes.pivots)), work_(area<T>(scratch, sizes.work)) {}

    // The result has the factors by columns, a row of pivots, and a row of off-diagonal elements.
    // The last element tells whether another method had failed before.
    void factor(int64_t index) {
        x_ = sizes_.x.at(buffers_[0], index);
        packed_ = sizes_.result.at<T>(buffers_[1], index);
        packed_pivots_ = packed_ + sizes_.order * sizes_.order;
        failed_before_ = false;
        copy_in_(x_, packed_);
        if (IS_COMPLEX<T> || !try_cholesky()) factor_symmetric();
        packed_[(sizes_.order + 2) * sizes_.order - 1] = T(failed_before_);
    }

  private:
    bool try_cholesky() {
        if (!has_positive_diagonal(packed_, n_)) return false;
        // NaN passes through a comparison with 0, so LAPACK need not see it
        if (potrf_('L', n_, packed_, n_) == 0 && has_finite_diagonal(packed_, n_)) {
            std::fill_n(packed_pivots_, n_, T(0));
            return true;
        }
        failed_before_ = true;
        copy_in_(x_, packed_);
        return false;
    }

    void factor_symmetric() {
        T* off_diagonals = packed_pivots_ + n_;
        sytrf_('L', n_, packed_, n_, pivots_, work_, int(sizes_.work_length));
        // applies the exchanges of rows to L, and moves the subdiagonal of D to a vector
        syconv_('L', 'C', n_, packed_, n_, pivots_, off_diagonals);
        const BlockDiagonal<T> blocks{packed_, off_diagonals, n_};
        if (is_invertible(blocks)) {
            store_interchanges(pivots_, blocks, packed_pivots_);
            return;
        }
        copy_in_(x_, packed_);
        getrf_(n_, n_, packed_, n_, pivots_);
        store_pivots(pivots_, n_, packed_pivots_);
        failed_before_ = true;
    }

    void** buffers_;
    const SymmetricFactorSizes& sizes_;
    const int n_;
    MatrixCopy copy_in_;
    int* pivots_;
    T* work_;
    // real matrices have `potrf` too
    const Potrf<T> potrf_{buffers_[2]};
    const Sytrf<T> sytrf_{buffers_[2 + !IS_COMPLEX<T>]};
    const Syconv<T> syconv_{buffers_[3 + !IS_COMPLEX<T>]};
    const Getrf<T> getrf_{buffers_[4 + !IS_COMPLEX<T>]};
    const char* x_ = nullptr;
    T *packed_ = nullptr, *packed_pivots_ = nullptr;
    bool failed_before_ = false;
};

template <class T>
int64_t symmetric_factors(const SymmetricFactorSizes& s, void** buffers, void* scratch,
                          MatrixRange range) {
    SymmetricFactorization<T> factorization(buffers, s, scratch);
    return for_each_matrix(range, [&](int64_t i) {
        factorization.factor(i);
        return true;
    });
}

struct SymmetricSolveSizes {
    StackedMatrix factors;
    RightHandSides sides;
    int64_t order;
    int64_t conjugated; // whether equations with the conjugate matrix are solved
    int64_t pivots;
};

template <class T>
bool solve_packed(T* factors, const int* pivots, const EquationRows<T>& rows, int64_t n,
                  const Substitution<T>& substitute) {
    T* x = rows.data;
    if (pivots[0] == 0) // Cholesky
        return has_nonzero_diagonal(factors, n, n) &&
               substitute(factors, n, 'L', false, false, x) &&
               substitute(factors, n, 'L', true, false, x);
    exchange_rows(pivots, n, rows, false);
    if (!substitute(factors, n, 'L', false, true, x)) return false;
    if (pivots[0] > 0) // LU
        return has_nonzero_diagonal(factors, n, n) && substitute(factors, n, 'U', false, false, x);
    solve_block_diagonal(BlockDiagonal<T>{factors, factors + (n + 1) * n, n}, rows);
    if (!substitute(factors, n, 'L', true, true, x)) return false;
    exchange_rows(pivots, n, rows, true);
    return true;
}

template <class T>
int64_t symmetric_solve(const SymmetricSolveSizes& s, void** buffers, void* scratch,
                        MatrixRange range) {
    const int64_t n = s.order, columns = s.sides.columns;
    const Substitution<T> substitute(buffers[3], s.sides, n);
    const SideCopies<T> sides(s.sides, n, buffers, scratch);
    int* pivots = area<int>(scratch, s.pivots);
    return for_each_matrix(range, [&](int64_t i) {
        T* factors = s.factors.at<T>(buffers[0], i);
        load_pivots(factors + n * n, n, pivots);
        T* x = sides.copy_in(i);
        const EquationRows<T> rows{x, s.sides.row_major ? columns : 1, s.sides.row_major ? 1 : n,
                                   columns};
        const int64_t conjugated = s.conjugated ? n * columns : 0;
        conjugate(x, conjugated);
        if (!solve_packed(factors, pivots, rows, n, substitute)) return false;
        conjugate(x, conjugated);
        sides.copy_out(x, i);
        return true;
    });
}

} // namespace

DriverTable symmetric_drivers() {
    return {entry_of<SymmetricFactorSizes, symmetric_factors<double>, symmetric_factors<Complex>>(
                "symmetric_factors"),
            entry_of<SymmetricSolveSizes, symmetric_solve<double>, symmetric_solve<Complex>>(
                "symmetric_solve")};
}

} // namespace tenfold::lapack
