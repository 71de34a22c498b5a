// Triangular drivers: equations with a triangle, of known or unknown side, or with a diagonal.
#include "lapack/right_hand_sides.h"

namespace tenfold::lapack {
namespace {

// Which triangle is read, as a Structure of Python; of `triangular` the values tell.
enum class Triangle : int64_t { lower = 1, upper = 2, triangular = 4 };

struct TriangularSizes {
    StackedMatrix matrix;
    RightHandSides sides;
    int64_t order;
    Triangle triangle;
    int64_t unit_diagonal;
    int64_t transposed; // whether LAPACK reads the matrix as its transpose
    int64_t leading;    // elements from column to column
    int64_t copy;       // offset of scratch memory; negative: read in place
};

template <class T>
int64_t triangular(const TriangularSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const int64_t n = s.order;
    const Substitution<T> substitute(buffers[3], s.sides, n);
    const MatrixCopy copy_in(s.matrix.layout, by_columns<T>(n), n, n);
    const SideCopies<T> sides(s.sides, n, buffers, scratch);
    return for_each_matrix(range, [&](int64_t i) {
        const char* matrix = s.matrix.at(buffers[0], i);
        T* triangle = s.copy < 0 ? s.matrix.at<T>(buffers[0], i) : area<T>(scratch, s.copy);
        if (s.copy >= 0) copy_in(matrix, triangle);
        T* x = sides.copy_in(i);
        const bool is_upper =
            s.triangle == Triangle::upper ||
            (s.triangle == Triangle::triangular && is_upper_triangle(matrix, s.matrix.layout, n));
        if (!substitute.tests_diagonal() && !s.unit_diagonal &&
            !has_nonzero_diagonal(triangle, n, s.leading))
            return false;
        const char uplo = is_upper != bool(s.transposed) ? 'U' : 'L';
        if (!substitute(triangle, s.leading, uplo, s.transposed, s.unit_diagonal, x)) return false;
        sides.copy_out(x, i);
        return true;
    });
}

struct DiagonalSizes {
    StackedMatrix matrix;
    RightHandSides sides;
    int64_t order;
    int64_t unit_diagonal;
    int64_t leading; // elements from one number of the diagonal to the next
    int64_t copy;    // offset of scratch memory; negative: read in place
};

// A diagonal is a band matrix of one band.
template <class T>
int64_t diagonal(const DiagonalSizes& s, void** buffers, void* scratch, MatrixRange range) {
    const Tbtrs<T> tbtrs(buffers[3]);
    const int n = int(s.order), columns = int(s.sides.columns);
    MatrixLayout diagonal_layout = s.matrix.layout;
    diagonal_layout.row += diagonal_layout.column;
    const MatrixCopy copy_in(diagonal_layout, by_columns<T>(n), n, 1);
    const SideCopies<T> sides(s.sides, n, buffers, scratch);
    return for_each_matrix(range, [&](int64_t i) {
        T* band = s.copy < 0 ? s.matrix.at<T>(buffers[0], i) : area<T>(scratch, s.copy);
        if (s.copy >= 0) copy_in(s.matrix.at(buffers[0], i), band);
        T* x = sides.copy_in(i);
        const char unit = s.unit_diagonal ? 'U' : 'N';
        if (tbtrs('U', 'N', unit, n, 0, columns, band, int(s.leading), x, n) != 0) return false;
        sides.copy_out(x, i);
        return true;
    });
}

} // namespace

DriverTable triangular_drivers() {
    return {entry_of<TriangularSizes, triangular<double>, triangular<Complex>>("triangular"),
            entry_of<DiagonalSizes, diagonal<double>, diagonal<Complex>>("diagonal")};
}

} // namespace tenfold::lapack
