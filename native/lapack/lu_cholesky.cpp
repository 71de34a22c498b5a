// LU and Cholesky drivers: factors, solutions, inverses and determinants of square matrices.
#include "lapack/determinant.h"
#include "lapack/right_hand_sides.h"

namespace tenfold::lapack {
namespace {

struct CholeskySizes {
    StackedMatrix x, result;
    int64_t order, upper;
    int64_t work; // negative: factored in the result
};

// A lower triangle in row-major order is an upper one in column-major order.
template <class T>
int64_t cholesky(const CholeskySizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Potrf<T> potrf(buffers[2]);
    const Laset<T> laset(buffers[3]);
    const int n = int(s.order);
    const MatrixCopy copy_in(s.x.layout, by_rows<T>(n), n, n);
    const MatrixCopy copy_out(by_rows<T>(n), s.result.layout, n, n);
    return for_each_matrix(range, [&](int64_t i) {
        T* matrix = s.work < 0 ? s.result.at<T>(buffers[1], i) : area<T>(scratch, s.work);
        copy_in(s.x.at(buffers[0], i), matrix);
        if (potrf(s.upper ? 'L' : 'U', n, matrix, n) != 0) return false;
        laset(s.upper ? 'U' : 'L', n - 1, n - 1, T(0), T(0), matrix + (s.upper ? n : 1), n);
        if (s.work >= 0) copy_out(matrix, s.result.at(buffers[1], i));
        return true;
    });
}

struct InverseSizes {
    StackedMatrix x, result;
    int64_t order;
    int64_t matrix, pivots, work; // work: the identity, or as long as `work_length`
    int64_t work_length;
};

template <class T>
int64_t inverse_by_solve(const InverseSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Getrf<T> getrf(buffers[2]);
    const Laset<T> laset(buffers[3]);
    const Getrs<T> getrs(buffers[4]);
    const int n = int(s.order);
    T *matrix = area<T>(scratch, s.matrix), *inverse = area<T>(scratch, s.work);
    int* pivots = area<int>(scratch, s.pivots);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(n), n, n);
    const MatrixCopy copy_out(by_columns<T>(n), s.result.layout, n, n);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        if (getrf(n, n, matrix, n, pivots) != 0) return false;
        laset('A', n, n, T(0), T(1), inverse, n);
        if (getrs('N', n, n, matrix, n, pivots, inverse, n) != 0) return false;
        copy_out(inverse, s.result.at(buffers[1], i));
        return true;
    });
}

template <class T>
int64_t inverse(const InverseSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Getrf<T> getrf(buffers[2]);
    const Getri<T> getri(buffers[3]);
    const int n = int(s.order);
    T *matrix = area<T>(scratch, s.matrix), *work = area<T>(scratch, s.work);
    int* pivots = area<int>(scratch, s.pivots);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(n), n, n);
    const MatrixCopy copy_out(by_columns<T>(n), s.result.layout, n, n);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        if (getrf(n, n, matrix, n, pivots) != 0) return false;
        if (getri(n, matrix, n, pivots, work, int(s.work_length)) != 0) return false;
        copy_out(matrix, s.result.at(buffers[1], i));
        return true;
    });
}

// The part of a determinant that a call asks for; Python has the same numbers.
enum class Quantity : int64_t { value, sign, logarithm };

template <class T> class QuantityStore {
  public:
    QuantityStore(Quantity quantity, const MatrixLayout& result)
        : quantity_(quantity), copy_number_(by_columns<T>(1), result, 1, 1),
          copy_real_(by_columns<double>(1), result, 1, 1) {}
    void operator()(const ShiftedNumber<T>& determinant, void* target) const {
        if (quantity_ == Quantity::logarithm) {
            const double logarithm = log_modulus_of(determinant);
            copy_real_(&logarithm, target);
        } else {
            const bool is_value = quantity_ == Quantity::value;
            const T number = is_value ? value_of(determinant) : sign_of(determinant);
            copy_number_(&number, target);
        }
    }

  private:
    Quantity quantity_;
    MatrixCopy copy_number_, copy_real_;
};

struct DeterminantSizes {
    StackedMatrix x, result;
    int64_t order;
    int64_t matrix, pivots;
};

// The determinant of a singular matrix is 0: no failure.
template <class T>
int64_t determinant(const DeterminantSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Getrf<T> getrf(buffers[2]);
    const int n = int(s.order);
    T* matrix = area<T>(scratch, s.matrix);
    int* pivots = area<int>(scratch, s.pivots);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(n), n, n);
    const QuantityStore<T> store(Quantity::value, s.result.layout);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        getrf(n, n, matrix, n, pivots);
        store(determinant_of(matrix, pivots, n), s.result.at(buffers[1], i));
        return true;
    });
}

struct SolveSizes {
    StackedMatrix matrix;
    RightHandSides sides;
    int64_t order;
    int64_t factors, pivots;
};

template <class T>
int64_t solve(const SolveSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Getrf<T> getrf(buffers[3]);
    const Getrs<T> getrs(buffers[4]);
    const int n = int(s.order), columns = int(s.sides.columns);
    T* matrix = area<T>(scratch, s.factors);
    int* pivots = area<int>(scratch, s.pivots);
    const MatrixCopy copy_in(s.matrix.layout, by_columns<T>(n), n, n);
    const SideCopies<T> sides(s.sides, n, buffers, scratch);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.matrix.at(buffers[0], i), matrix);
        if (getrf(n, n, matrix, n, pivots) != 0) return false;
        T* x = sides.copy_in(i);
        if (getrs('N', n, columns, matrix, n, pivots, x, n) != 0) return false;
        sides.copy_out(x, i);
        return true;
    });
}

struct FactorSizes {
    StackedMatrix x, result;
    int64_t order;
    int64_t pivots;
    int64_t refuses_singular;
};

// The factors by columns, then the pivots as numbers.
template <class T>
int64_t lu_factors(const FactorSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Getrf<T> getrf(buffers[2]);
    const int n = int(s.order);
    int* pivots = area<int>(scratch, s.pivots);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(n), n, n);
    return for_each_matrix(range, [&](int64_t i) {
        T* packed = s.result.at<T>(buffers[1], i);
        copy_in(s.x.at(buffers[0], i), packed);
        const int info = getrf(n, n, packed, n, pivots);
        store_pivots(pivots, n, packed + s.order * s.order);
        return !s.refuses_singular || info == 0;
    });
}

// The Cholesky factor with pivots 0 if it exists, else the LU factors.
template <class T>
int64_t cholesky_factors(const FactorSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Potrf<T> potrf(buffers[2]);
    const Getrf<T> getrf(buffers[3]);
    const int n = int(s.order);
    int* pivots = area<int>(scratch, s.pivots);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(n), n, n);
    return for_each_matrix(range, [&](int64_t i) {
        T *packed = s.result.at<T>(buffers[1], i), *packed_pivots = packed + s.order * s.order;
        const char* x = s.x.at(buffers[0], i);
        copy_in(x, packed);
        // NaN passes through a comparison with 0, so LAPACK need not see it
        if (has_positive_diagonal(packed, n) && potrf('L', n, packed, n) == 0 &&
            has_finite_diagonal(packed, n)) {
            std::fill_n(packed_pivots, n, T(0));
            return true;
        }
        copy_in(x, packed);
        const int info = getrf(n, n, packed, n, pivots);
        store_pivots(pivots, n, packed_pivots);
        return !s.refuses_singular || info == 0;
    });
}

template <class T>
int64_t inverse_factored(const InverseSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Potri<T> potri(buffers[2]);
    const Getri<T> getri(buffers[3]);
    const int n = int(s.order);
    T *matrix = area<T>(scratch, s.matrix), *work = area<T>(scratch, s.work);
    int* pivots = area<int>(scratch, s.pivots);
    const MatrixCopy copy_out(by_columns<T>(n), s.result.layout, n, n);
    return for_each_matrix(range, [&](int64_t i) {
        const T* packed = s.x.at<T>(buffers[0], i);
        if (!has_nonzero_diagonal(packed, n, n)) return false;
        load_pivots(packed + s.order * s.order, n, pivots);
        std::copy_n(packed, s.order * s.order, matrix);
        if (pivots[0] == 0) {
            if (potri('L', n, matrix, n) != 0) return false;
            mirror_lower(matrix, n);
        } else if (getri(n, matrix, n, pivots, work, int(s.work_length)) != 0) {
            return false;
        }
        copy_out(matrix, s.result.at(buffers[1], i));
        return true;
    });
}

struct FactoredDeterminantSizes {
    StackedMatrix x, result;
    int64_t order;
    Quantity quantity;
    int64_t pivots;
};

template <class T>
int64_t determinant_factored(const FactoredDeterminantSizes& s, void** buffers, void* scratch,
                             MatrixRange range) {
    int* pivots = area<int>(scratch, s.pivots);
    const QuantityStore<T> store(s.quantity, s.result.layout);
    return for_each_matrix(range, [&](int64_t i) {
        const T* packed = s.x.at<T>(buffers[0], i);
        load_pivots(packed + s.order * s.order, s.order, pivots);
        const int* exchanges = pivots[0] == 0 ? nullptr : pivots;
        store(determinant_of(packed, exchanges, s.order), s.result.at(buffers[1], i));
        return true;
    });
}

struct FactoredSolveSizes {
    StackedMatrix factors;
    RightHandSides sides;
    int64_t order;
    int64_t transposed; // a character of LAPACK: 'N', 'T' or 'C'
    int64_t pivots;
};

template <class T>
int64_t solve_factored(const FactoredSolveSizes& s, void** buffers, void* scratch,
                       MatrixRange range) {
    const Potrs<T> potrs(buffers[3]);
    const Getrs<T> getrs(buffers[4]);
    const int n = int(s.order), columns = int(s.sides.columns);
    int* pivots = area<int>(scratch, s.pivots);
    const char transposed = char(s.transposed);
    const SideCopies<T> sides(s.sides, n, buffers, scratch);
    return for_each_matrix(range, [&](int64_t i) {
        T* factors = s.factors.at<T>(buffers[0], i);
        if (!has_nonzero_diagonal(factors, n, n)) return false;
        load_pivots(factors + s.order * s.order, n, pivots);
        T* x = sides.copy_in(i);
        if (pivots[0] == 0) {
            // the transpose is the conjugate, as the matrix is Hermitian
            const int64_t conjugated = transposed == 'T' ? s.order * s.sides.columns : 0;
            conjugate(x, conjugated);
            if (potrs('L', n, columns, factors, n, x, n) != 0) return false;
            conjugate(x, conjugated);
        } else if (getrs(transposed, n, columns, factors, n, pivots, x, n) != 0) {
            return false;
        }
        sides.copy_out(x, i);
        return true;
    });
}

} // namespace

DriverTable lu_cholesky_drivers() {
    return {entry_of<CholeskySizes, cholesky<double>, cholesky<Complex>>("cholesky"),
            entry_of<InverseSizes, inverse_by_solve<double>, inverse_by_solve<Complex>>(
                "inverse_by_solve"),
            entry_of<InverseSizes, inverse<double>, inverse<Complex>>("inverse"),
            entry_of<DeterminantSizes, determinant<double>, determinant<Complex>>("determinant"),
            entry_of<SolveSizes, solve<double>, solve<Complex>>("solve"),
            entry_of<FactorSizes, lu_factors<double>, lu_factors<Complex>>("lu_factors"),
            entry_of<FactorSizes, cholesky_factors<double>, cholesky_factors<Complex>>(
                "cholesky_factors"),
            entry_of<InverseSizes, inverse_factored<double>, inverse_factored<Complex>>(
                "inverse_factored"),
            entry_of<FactoredDeterminantSizes, determinant_factored<double>,
                     determinant_factored<Complex>>("determinant_factored"),
            entry_of<FactoredSolveSizes, solve_factored<double>, solve_factored<Complex>>(
                "solve_factored")};
}

} // namespace tenfold::lapack
