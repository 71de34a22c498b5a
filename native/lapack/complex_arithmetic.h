// Complex arithmetic: products and quotients of real or complex numbers, rounded step by step.
//
// std::complex multiplies again where it meets NaN, so that its bits depend on the compiler.
#pragma once
#include <cmath>

#include "lapack/routines.h"

namespace tenfold::lapack {

inline double multiply(double x, double y) { return x * y; }

inline Complex multiply(const Complex& x, const Complex& y) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}

inline double divide(double x, double y) { return x / y; }

// `y` is scaled by its larger component first, so that its modulus is not squared.
inline Complex divide(const Complex& x, const Complex& y) {
    const double real = std::fabs(y.real()), imag = std::fabs(y.imag());
    const double largest = real > imag ? real : imag;
    const double c = y.real() / largest, d = y.imag() / largest, square = c * c + d * d;
    const Complex numerator = multiply(x, Complex(c, -d));
    return {numerator.real() / square / largest, numerator.imag() / square / largest};
}

inline double scale(double x, double factor) { return x * factor; }
inline Complex scale(const Complex& x, double factor) {
    return {x.real() * factor, x.imag() * factor};
}

inline bool is_nonzero(double x) { return x != 0; }
inline bool is_nonzero(const Complex& x) { return x.real() != 0 || x.imag() != 0; }

inline bool is_finite(double x) { return std::isfinite(x); }
inline bool is_finite(const Complex& x) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
}

} // namespace tenfold::lapack
