// Floating-point environment: sets the rounding and denormal modes that kernels are compiled for.
#pragma once
#include <immintrin.h>

namespace tenfold {

// Round to nearest, subnormals preserved, exceptions masked.
constexpr unsigned DEFAULT_MXCSR = 0x1F80;

class DefaultFloatMode { // while it lives; a foreign library may have set others
  public:
    DefaultFloatMode() {
        constexpr unsigned EXCEPTION_FLAGS = 0x3F; // the exception flags are not a mode
        if ((saved_ & ~EXCEPTION_FLAGS) != DEFAULT_MXCSR) _mm_setcsr(DEFAULT_MXCSR);
    }
    ~DefaultFloatMode() { _mm_setcsr(saved_); }

  private:
    unsigned saved_ = _mm_getcsr();
};

} // namespace tenfold
