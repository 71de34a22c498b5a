// Determinant: the value, the sign or the log-modulus, from a matrix's factors and pivots.
//
// The determinant is the product of the diagonal, negated by each exchange of rows. Without pivots
// (Cholesky) it is the square of the product. Powers of two are counted separately, so that no
// product overflows.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "lapack/complex_arithmetic.h"

namespace tenfold::lapack {

// A number times 2**(600 * shifts).
template <class T> struct ShiftedNumber {
    T number;
    int64_t shifts;
};

constexpr double TWO_400 = 0x1p400, TWO_600 = 0x1p600;
constexpr int64_t MAX_SHIFTS = 4; // these make any number 0 or infinite

inline double largest_component(double x) { return std::fabs(x); }
inline double largest_component(const Complex& x) {
    const double real = std::fabs(x.real()), imag = std::fabs(x.imag());
    return imag > real ? imag : real;
}

// Multiplies a number beyond 2**400 or below 2**-400 by a power of two, once.
template <class T> ShiftedNumber<T> rescale(const ShiftedNumber<T>& x) {
    const double largest = largest_component(x.number);
    if (largest > TWO_400) return {scale(x.number, 1 / TWO_600), x.shifts + 1};
    if (largest < 1 / TWO_400) return {scale(x.number, TWO_600), x.shifts - 1};
    return x;
}

// The determinant of column-major factors. Pivots count from 1; null for a Cholesky factor.
template <class T>
ShiftedNumber<T> determinant_of(const T* factors, const int* pivots, int64_t order) {
    ShiftedNumber<T> product{T(1), 0};
    for (int64_t i = 0; i < order; ++i) {
        T element = factors[i * (order + 1)];
        if (pivots && pivots[i] != i + 1) element = -element;
        for (int times = 0; times < (pivots ? 1 : 2); ++times) {
            const auto [scaled, shifts] = rescale<T>({element, product.shifts});
            product = rescale<T>({multiply(product.number, scaled), shifts});
        }
    }
    return product;
}

template <class T> T value_of(const ShiftedNumber<T>& x) {
    const double factor = x.shifts > 0 ? TWO_600 : 1 / TWO_600;
    T value = x.number;
    for (int64_t i = std::min<int64_t>(std::abs(x.shifts), MAX_SHIFTS); i > 0; --i)
        value = scale(value, factor);
    return value;
}

// The modulus of a number that is neither very large nor very small.
inline double modulus_of(double x) { return std::fabs(x); }
inline double modulus_of(const Complex& x) {
    return std::sqrt(x.real() * x.real() + x.imag() * x.imag());
}

template <class T> T sign_of(const ShiftedNumber<T>& x) {
    const double modulus = modulus_of(x.number), divisor = modulus == 0 ? 1 : modulus;
    if constexpr (IS_COMPLEX<T>) {
        return {x.number.real() / divisor, x.number.imag() / divisor};
    } else {
        return x.number / divisor;
    }
}

// The natural logarithm: the formula of `log` (codegen/vecmath/logarithm.py), with the same bits.
// The number is not subnormal: -inf at 0, NaN for NaN, inf at inf.
inline double natural_logarithm(double x) {
    using Limits = std::numeric_limits<double>;
    if (!(x > 0)) return x == 0 ? -Limits::infinity() : Limits::quiet_NaN();
    if (std::isinf(x)) return x;
    constexpr uint64_t ONE = 0x3FF0000000000000, LOW = 0x3FE6A09E667F3BCD;
    constexpr double LOG2_HEAD = 0.6931471805599453, LOG2_TAIL = 2.3190468138462996e-17;
    constexpr double ATANH[] = {0.6666666666666734, 0.39999999999414554, 0.2857142874240437,
                                0.222221985725323,  0.1818356431589428,  0.15314051670466805,
                                0.14795932160292366};
    // x is 2**exponent * (1 + f)
    const uint64_t bits = std::bit_cast<uint64_t>(x) + (ONE - LOW);
    const double exponent = double(int64_t(bits >> 52) - 1023);
    const double f = std::bit_cast<double>((bits & ((uint64_t(1) << 52) - 1)) + LOW) - 1;
    const double s = f / (f + 2), z = s * s;
    double polynomial = ATANH[6];
    for (int i = 5; i >= 0; --i) polynomial = std::fma(polynomial, z, ATANH[i]);
    const double rest = std::fma(s, std::fma(z, polynomial, -f), f);
    return std::fma(exponent, LOG2_HEAD, std::fma(exponent, LOG2_TAIL, rest));
}

template <class T> double log_modulus_of(const ShiftedNumber<T>& x) {
    constexpr double LOG_OF_SHIFT = 0x1.9fe3682cd3be4p+8; // 600 * log(2)
    return natural_logarithm(modulus_of(x.number)) + double(x.shifts) * LOG_OF_SHIFT;
}

} // namespace tenfold::lapack
