// Right-hand sides: copied to where they are solved in place, and from there to the result.
//
// Solutions are computed column-major, as LAPACK wants them, or row-major: then BLAS solves for the
// transpose from the right side, and no copy transposes.
#pragma once
#include "lapack/diagonal_tests.h"
#include "lapack/driver.h"

namespace tenfold::lapack {

struct RightHandSides {
    StackedMatrix right, result;
    int64_t columns;
    int64_t row_major; // whether they are solved row-major; of a single column both are the same
    int64_t work;      // offset of scratch memory; negative: solved in the result

    template <class T> MatrixLayout layout(int64_t order) const {
        return row_major ? by_rows<T>(columns) : by_columns<T>(order);
    }
};

// The copies of right-hand sides from buffer 1, and of solutions to buffer 2.
template <class T> class SideCopies {
  public:
    SideCopies(const RightHandSides& sides, int64_t order, void** buffers, void* scratch)
        : sides_(sides), buffers_(buffers), scratch_(scratch),
          copy_in_(sides.right.layout, sides.layout<T>(order), order, sides.columns),
          copy_out_(sides.layout<T>(order), sides.result.layout, order, sides.columns) {}
    // Copies the sides of one matrix to where they are solved, and returns their address.
    T* copy_in(int64_t index) const {
        T* x = sides_.work < 0 ? sides_.result.at<T>(buffers_[2], index)
                               : area<T>(scratch_, sides_.work);
        copy_in_(sides_.right.at(buffers_[1], index), x);
        return x;
    }
    void copy_out(const T* x, int64_t index) const {
        if (sides_.work >= 0) copy_out_(x, sides_.result.at(buffers_[2], index));
    }

  private:
    const RightHandSides& sides_;
    void **buffers_, *scratch_;
    MatrixCopy copy_in_, copy_out_;
};

// Solves with triangles: by `trsm` if right-hand sides are row-major, else by `trtrs`.
template <class T> class Substitution {
  public:
    Substitution(void* address, const RightHandSides& x, int64_t order)
        : address_(address), row_major_(x.row_major), columns_(int(x.columns)), order_(int(order)) {
    }
    // Whether it succeeded: `trsm` tests no diagonal.
    bool operator()(T* triangle, int64_t leading, char uplo, bool transposed, bool unit,
                    T* x) const {
        const char diagonal = unit ? 'U' : 'N';
        if (row_major_) { // x.T @ op(triangle).T
            Trsm<T>{address_}('R', uplo, transposed ? 'N' : 'T', diagonal, columns_, order_, T(1),
                              triangle, int(leading), x, columns_);
            return true;
        }
        return Trtrs<T>{address_}(uplo, transposed ? 'T' : 'N', diagonal, order_, columns_,
                                  triangle, int(leading), x, order_) == 0;
    }
    bool tests_diagonal() const { return !row_major_; }

  private:
    void* address_;
    bool row_major_;
    int columns_, order_;
};

} // namespace tenfold::lapack
