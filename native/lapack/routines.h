// LAPACK routines: the signatures of the routines of LAPACK and BLAS that the drivers call.
//
// A routine is a C function at an address that Python knows. It takes every argument by pointer,
// integers of 32 bits, and column-major matrices of `T`: double, or std::complex<double>.
//
//   const Getrf<T> getrf(buffers[2]);
//   if (getrf(n, n, matrix, n, pivots) != 0) return false; // LAPACK's info
#pragma once
#include <complex>
#include <type_traits>

namespace tenfold::lapack {

using Complex = std::complex<double>;
template <class T> constexpr bool IS_COMPLEX = std::is_same_v<T, Complex>;

// An argument as the routine takes it: memory as it is, a number or character by its address.
template <class P>
using Passed = std::conditional_t<std::is_pointer_v<P>, P, const std::remove_pointer_t<P>*>;

template <class P> Passed<P> pass(const P& argument) {
    if constexpr (std::is_pointer_v<P>) {
        return argument;
    } else {
        return &argument;
    }
}

// A routine that reports nothing.
template <class... P> class Subroutine {
  public:
    explicit Subroutine(void* address)
        : function_(reinterpret_cast<void (*)(Passed<P>...)>(address)) {}
    void operator()(P... arguments) const { function_(pass(arguments)...); }

  private:
    void (*function_)(Passed<P>...);
};

// A routine that reports its info: 0, or how it failed.
template <class... P> class Routine {
  public:
    explicit Routine(void* address)
        : function_(reinterpret_cast<void (*)(Passed<P>..., int*)>(address)) {}
    int operator()(P... arguments) const {
        int info = 0;
        function_(pass(arguments)..., &info);
        return info;
    }

  private:
    void (*function_)(Passed<P>..., int*);
};

// Factorisations, and what is computed from factors.
template <class T> using Potrf = Routine<char, int, T*, int>;
template <class T> using Potri = Potrf<T>;
template <class T> using Potrs = Routine<char, int, int, T*, int, T*, int>;
template <class T> using Getrf = Routine<int, int, T*, int, int*>;
template <class T> using Getri = Routine<int, T*, int, int*, T*, int>;
template <class T> using Getrs = Routine<char, int, int, T*, int, int*, T*, int>;
template <class T> using Sytrf = Routine<char, int, T*, int, int*, T*, int>;
template <class T> using Syconv = Routine<char, char, int, T*, int, int*, T*>;
// Triangles, of the right side of an equation (BLAS) or of the left one, and bands.
template <class T> using Trsm = Subroutine<char, char, char, char, int, int, T, T*, int, T*, int>;
template <class T> using Trtrs = Routine<char, char, char, int, int, T*, int, T*, int>;
template <class T> using Tbtrs = Routine<char, char, char, int, int, int, T*, int, T*, int>;
// QR, and the matrix Q of its reflections (orgqr, ungqr).
template <class T> using Geqrf = Routine<int, int, T*, int, T*, T*, int>;
template <class T> using Orgqr = Routine<int, int, int, T*, int, T*, T*, int>;
// Eigenvalues and singular values; the complex routines need real work memory too.
using Syevd = Routine<char, char, int, double*, int, double*, double*, int, int*, int>;
using Heevd =
    Routine<char, char, int, Complex*, int, double*, Complex*, int, double*, int, int*, int>;
using Dgesdd =
    Routine<char, int, int, double*, int, double*, double*, int, double*, int, double*, int, int*>;
using Zgesdd = Routine<char, int, int, Complex*, int, double*, Complex*, int, Complex*, int,
                       Complex*, int, double*, int*>;
using Dgeev = Routine<char, char, int, double*, int, double*, double*, double*, int, double*, int,
                      double*, int>;
using Zgeev = Routine<char, char, int, Complex*, int, Complex*, Complex*, int, Complex*, int,
                      Complex*, int, double*>;
// Sets a triangle, and the diagonal to another number.
template <class T> using Laset = Subroutine<char, int, int, T, T, T*, int>;

} // namespace tenfold::lapack
