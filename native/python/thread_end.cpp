// End of threads: parks a thread that Python ends, before any destructor on its stack runs.
//
// Once finalization has begun, Python 3.11 to 3.13 end a thread that asks for the GIL by
// pthread_exit, which unwinds the stack. Each frame with destructors or handlers asks its
// personality routine what to do (Itanium C++ ABI: Exception Handling, 1.6.2). The linker puts the
// routine below in the place of the usual one, for all frames of this module (`--wrap`), so the
// first such frame parks the thread, with everything above it intact. Python 3.14 parks by itself.
#include "python/thread_end.h"

#include <unistd.h>
#include <unwind.h>

namespace tenfold::bindings {

bool is_python_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() || !Py_IsInitialized();
#else
    return _Py_IsFinalizing() || !Py_IsInitialized();
#endif
}

void park() noexcept {
    for (;;) ::pause();
}

} // namespace tenfold::bindings

extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context);

__attribute__((used)) _Unwind_Reason_Code __wrap___gxx_personality_v0(int version,
                                                                      _Unwind_Action actions,
                                                                      _Unwind_Exception_Class kind,
                                                                      _Unwind_Exception* exception,
                                                                      _Unwind_Context* context) {
    using namespace tenfold::bindings;
    if ((actions & _UA_FORCE_UNWIND) && is_python_ending()) park();
    return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
}
