// QR, SVD and eigenvalue drivers, and LU of rectangular matrices.
#include "lapack/diagonal_tests.h"
#include "lapack/driver.h"

namespace tenfold::lapack {
namespace {

// Sets the elements below the diagonal of a column-major matrix to 0.
template <class T> void clear_below(const Laset<T>& laset, T* matrix, int rows, int columns) {
    laset('L', rows - 1, columns, T(0), T(0), matrix + 1, rows);
}

// Real values, computed in the result if that is float64, else in scratch memory.
struct RealValues {
    StackedMatrix result;
    int64_t work; // offset of scratch memory; negative: computed in the result

    double* begin(void* buffer, void* scratch, int64_t index) const {
        return work < 0 ? result.at<double>(buffer, index) : area<double>(scratch, work);
    }
    MatrixCopy copy(int64_t length) const {
        return {by_columns<double>(length), result.layout, length, 1};
    }
};

struct QrSizes {
    StackedMatrix x, q, r;
    int64_t rows, columns;
    int64_t q_columns;
    int64_t matrix, reflections, scales, factor_work, expand_work;
    int64_t factor_length, expand_length;
};

template <class T> int64_t qr(const QrSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Geqrf<T> geqrf(buffers[3]);
    const Laset<T> laset(buffers[4]);
    const Orgqr<T> orgqr(buffers[5]);
    const int m = int(s.rows), n = int(s.columns), rank = std::min(m, n), inner = int(s.q_columns);
    T *matrix = area<T>(scratch, s.matrix), *q = area<T>(scratch, s.reflections);
    T *scales = area<T>(scratch, s.scales), *factor_work = area<T>(scratch, s.factor_work);
    T* expand_work = area<T>(scratch, s.expand_work);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(m), m, n);
    const MatrixCopy copy_q(by_columns<T>(m), s.q.layout, m, inner);
    const MatrixCopy copy_r(by_columns<T>(m), s.r.layout, inner, n);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        if (geqrf(m, n, matrix, m, scales, factor_work, int(s.factor_length)) != 0) return false;
        std::copy_n(matrix, s.rows * rank, q);
        clear_below(laset, matrix, m, n);
        copy_r(matrix, s.r.at(buffers[2], i));
        if (orgqr(m, inner, rank, q, m, scales, expand_work, int(s.expand_length)) != 0)
            return false;
        copy_q(q, s.q.at(buffers[1], i));
        return true;
    });
}

struct HermitianSizes {
    StackedMatrix x;
    RealValues values;
    StackedMatrix vectors; // place of the values if no vectors are asked for
    int64_t order;
    int64_t with_vectors;
    int64_t matrix, work, real_work, integer_work;
    int64_t work_length, real_length, integer_length;
};

// Eigenvalues by divide and conquer, from the lower triangle.
template <class T>
int64_t hermitian(const HermitianSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const int n = int(s.order), work_length = int(s.work_length);
    const int integer_length = int(s.integer_length);
    const char job = s.with_vectors ? 'V' : 'N';
    void* address = buffers[2 + !!s.with_vectors];
    T *matrix = area<T>(scratch, s.matrix), *work = area<T>(scratch, s.work);
    int* integers = area<int>(scratch, s.integer_work);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(n), n, n), copy_values = s.values.copy(n);
    const MatrixCopy copy_vectors(by_columns<T>(n), s.vectors.layout, n, n);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        double* values = s.values.begin(buffers[1], scratch, i);
        int info = 0;
        if constexpr (IS_COMPLEX<T>) {
            double* reals = area<double>(scratch, s.real_work);
            info = Heevd{address}(job, 'L', n, matrix, n, values, work, work_length, reals,
                                  int(s.real_length), integers, integer_length);
        } else {
            info = Syevd{address}(job, 'L', n, matrix, n, values, work, work_length, integers,
                                  integer_length);
        }
        if (info != 0) return false;
        if (s.values.work >= 0) copy_values(values, s.values.result.at(buffers[1], i));
        if (s.with_vectors) copy_vectors(matrix, s.vectors.at(buffers[2], i));
        return true;
    });
}

struct SvdSizes {
    StackedMatrix x;
    RealValues values;
    StackedMatrix u, vh; // places of the values if no vectors are asked for
    int64_t rows, columns;
    int64_t u_columns, vh_rows;
    int64_t job; // a character of LAPACK: 'N', 'S' or 'A'
    int64_t matrix, left, right, work, real_work, integer_work;
    int64_t work_length;
};

// SVD by divide and conquer. The results are U, the values and Vh, or the values only.
template <class T>
int64_t svd(const SvdSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const int m = int(s.rows), n = int(s.columns), height = int(s.vh_rows);
    const int work_length = int(s.work_length);
    const char job = char(s.job);
    const bool with_vectors = job != 'N';
    void *values_buffer = buffers[with_vectors ? 2 : 1], *address = buffers[with_vectors ? 4 : 2];
    T *matrix = area<T>(scratch, s.matrix), *work = area<T>(scratch, s.work);
    T *u = area<T>(scratch, s.left), *vh = area<T>(scratch, s.right);
    int* integers = area<int>(scratch, s.integer_work);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(m), m, n);
    const MatrixCopy copy_values = s.values.copy(std::min(m, n));
    const MatrixCopy copy_u(by_columns<T>(m), s.u.layout, m, s.u_columns);
    const MatrixCopy copy_vh(by_columns<T>(height), s.vh.layout, height, n);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        double* values = s.values.begin(values_buffer, scratch, i);
        int info = 0;
        if constexpr (IS_COMPLEX<T>) {
            double* reals = area<double>(scratch, s.real_work);
            info = Zgesdd{address}(job, m, n, matrix, m, values, u, m, vh, height, work,
                                   work_length, reals, integers);
        } else {
            info = Dgesdd{address}(job, m, n, matrix, m, values, u, m, vh, height, work,
                                   work_length, integers);
        }
        if (info != 0) return false;
        if (s.values.work >= 0) copy_values(values, s.values.result.at(values_buffer, i));
        if (with_vectors) {
            copy_u(u, s.u.at(buffers[1], i));
            copy_vh(vh, s.vh.at(buffers[3], i));
        }
        return true;
    });
}

struct EigenvaluesSizes {
    StackedMatrix x, result;
    int64_t order;
    int64_t matrix, values, imaginary, work, real_work;
    int64_t work_length;
};

// Eigenvalues of finite matrices only: the iteration does not end with NaN.
template <class T>
int64_t eigenvalues(const EigenvaluesSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const int n = int(s.order), work_length = int(s.work_length);
    T *matrix = area<T>(scratch, s.matrix), *work = area<T>(scratch, s.work);
    T* values = area<T>(scratch, s.values);
    T no_vectors{};
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(n), n, n);
    MatrixLayout target = s.result.layout;
    const bool single = target.element == Element::complex64;
    if (!IS_COMPLEX<T>) // the real and the imaginary parts are copied apart
        target.element = single ? Element::float32 : Element::float64;
    const MatrixCopy copy_out(by_columns<T>(n), target, n, 1);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        if (!is_all_finite(matrix, s.order * s.order)) return false;
        char* result = s.result.at(buffers[1], i);
        if constexpr (IS_COMPLEX<T>) {
            if (Zgeev{buffers[2]}('N', 'N', n, matrix, n, values, &no_vectors, 1, &no_vectors, 1,
                                  work, work_length, area<double>(scratch, s.real_work)) != 0)
                return false;
        } else {
            T* imaginary = area<T>(scratch, s.imaginary);
            if (Dgeev{buffers[2]}('N', 'N', n, matrix, n, values, imaginary, &no_vectors, 1,
                                  &no_vectors, 1, work, work_length) != 0)
                return false;
            copy_out(imaginary, result + (single ? sizeof(float) : sizeof(double)));
        }
        copy_out(values, result);
        return true;
    });
}

struct LuSizes {
    StackedMatrix x, permutation, lower, upper;
    int64_t rows, columns;
    int64_t matrix, lower_work, pivots, row_numbers;
};

template <class T> int64_t lu(const LuSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Getrf<T> getrf(buffers[4]);
    const Laset<T> laset(buffers[5]);
    const int m = int(s.rows), n = int(s.columns), rank = std::min(m, n);
    T *matrix = area<T>(scratch, s.matrix), *lower = area<T>(scratch, s.lower_work);
    int *pivots = area<int>(scratch, s.pivots), *row_numbers = area<int>(scratch, s.row_numbers);
    const MatrixCopy copy_in(s.x.layout, by_columns<T>(m), m, n);
    const MatrixCopy copy_lower(by_columns<T>(m), s.lower.layout, m, rank);
    const MatrixCopy copy_upper(by_columns<T>(m), s.upper.layout, rank, n);
    return for_each_matrix(range, [&](int64_t i) {
        copy_in(s.x.at(buffers[0], i), matrix);
        getrf(m, n, matrix, m, pivots);
        std::copy_n(matrix, s.rows * rank, lower);
        laset('U', m, rank, T(0), T(1), lower, m);
        clear_below(laset, matrix, m, n);
        write_permutation(pivots, rank, row_numbers, m, s.permutation.at(buffers[1], i),
                          s.permutation.layout.element);
        copy_lower(lower, s.lower.at(buffers[2], i));
        copy_upper(matrix, s.upper.at(buffers[3], i));
        return true;
    });
}

} // namespace

DriverTable qr_svd_eig_drivers() {
    return {entry_of<QrSizes, qr<double>, qr<Complex>>("qr"),
            entry_of<HermitianSizes, hermitian<double>, hermitian<Complex>>("hermitian"),
            entry_of<SvdSizes, svd<double>, svd<Complex>>("svd"),
            entry_of<EigenvaluesSizes, eigenvalues<double>, eigenvalues<Complex>>("eigenvalues"),
            entry_of<LuSizes, lu<double>, lu<Complex>>("lu")};
}

} // namespace tenfold::lapack
