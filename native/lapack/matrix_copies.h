// Matrix copies: convert, transpose, mirror, conjugate and permute matrices between routines.
//
// Takes matrices of any element type and any strides. A copy to another type of element converts;
// real to complex sets the imaginary part to 0, complex to real drops it.
#pragma once
#include <cstdint>
#include <cstring>

#include "lapack/routines.h"

namespace tenfold::lapack {

// The element types of operands and results; Python has the same numbers.
enum class Element : int64_t { float32, float64, complex64, complex128 };

template <class T> constexpr Element element_of();
template <> constexpr Element element_of<float>() { return Element::float32; }
template <> constexpr Element element_of<double>() { return Element::float64; }
template <> constexpr Element element_of<std::complex<float>>() { return Element::complex64; }
template <> constexpr Element element_of<Complex>() { return Element::complex128; }

// Calls a function object with a number of the element type.
template <class F> decltype(auto) with_element(Element element, F function) {
    switch (element) {
    case Element::float32: return function(float());
    case Element::float64: return function(double());
    case Element::complex64: return function(std::complex<float>());
    default: return function(Complex());
    }
}

// How a matrix lies in memory, which need not be aligned.
struct MatrixLayout {
    int64_t row, column; // bytes from one row, and from one column, to the next
    Element element;
};

// Column-major, with columns of `rows` elements without padding.
template <class T> MatrixLayout by_columns(int64_t rows) {
    return {sizeof(T), rows * int64_t(sizeof(T)), element_of<T>()};
}

// Row-major, with rows of `columns` elements without padding.
template <class T> MatrixLayout by_rows(int64_t columns) {
    return {columns * int64_t(sizeof(T)), sizeof(T), element_of<T>()};
}

template <class T> T load(const char* address) {
    T number;
    std::memcpy(&number, address, sizeof number);
    return number;
}

template <class T> void store(char* address, const T& number) {
    std::memcpy(address, &number, sizeof number);
}

// One axis of a copy: its length, and its strides in bytes in the source and in the target.
struct CopyAxis {
    int64_t length, source, target;
};

// A copy between two layouts, prepared once for all matrices of a stack.
class MatrixCopy {
  public:
    MatrixCopy(const MatrixLayout& source, const MatrixLayout& target, int64_t rows,
               int64_t columns);
    void operator()(const void* source, void* target) const {
        copy_(static_cast<const char*>(source), static_cast<char*>(target), outer_, inner_);
    }

  private:
    CopyAxis outer_, inner_;
    void (*copy_)(const char* source, char* target, const CopyAxis& outer, const CopyAxis& inner);
};

// Writes the upper triangle of a column-major Hermitian matrix from its lower triangle.
template <class T> void mirror_lower(T* matrix, int64_t order) {
    for (int64_t j = 0; j < order; ++j) {
        for (int64_t i = 0; i < j; ++i) {
            if constexpr (IS_COMPLEX<T>) {
                matrix[j * order + i] = std::conj(matrix[i * order + j]);
            } else {
                matrix[j * order + i] = matrix[i * order + j];
            }
        }
    }
}

// Conjugates numbers in place; real ones stay.
template <class T> void conjugate(T* vector, int64_t length) {
    if constexpr (IS_COMPLEX<T>)
        for (int64_t i = 0; i < length; ++i) vector[i] = std::conj(vector[i]);
}

// Pivots as numbers, as packed factors have them, and as LAPACK's integers.
template <class T> void store_pivots(const int* pivots, int64_t length, T* target) {
    for (int64_t i = 0; i < length; ++i) target[i] = T(pivots[i]);
}

template <class T> void load_pivots(const T* numbers, int64_t length, int* pivots) {
    for (int64_t i = 0; i < length; ++i) pivots[i] = int(std::real(numbers[i]));
}

// Writes the permutation matrix of pivots to row-major memory of `rows` x `rows` elements. Pivots
// count from 1; `row_numbers` is memory for as many integers as there are rows.
void write_permutation(const int* pivots, int64_t exchanges, int* row_numbers, int64_t rows,
                       void* target, Element element);

} // namespace tenfold::lapack
