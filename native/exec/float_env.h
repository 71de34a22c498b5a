// Floating-point environment: sets the rounding and denormal modes that kernels are compiled for.
#pragma once
#include <immintrin.h>

namespace tenfold {

// To nearest, subnormals kept, no trap.
constexpr unsigned USUAL_MODES = 0x1F80;

class UsualModes { // while it lives; a foreign library may have set others
  public:
    UsualModes() {
        constexpr unsigned RAISED = 0x3F; // the exception flags are not a mode
        if ((before_ & ~RAISED) != USUAL_MODES) _mm_setcsr(USUAL_MODES);
    }
    ~UsualModes() { _mm_setcsr(before_); }

  private:
    unsigned before_ = _mm_getcsr();
};

} // namespace tenfold
