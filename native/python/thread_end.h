// End of threads: what a native thread asks before it enters Python, which may have ended.
#pragma once
#include <Python.h>

namespace tenfold::bindings {

// From the beginning of finalization on. A thread that is not Python's then stays out.
bool is_python_ending() noexcept;
// Waits for the end of the process.
[[noreturn]] void park() noexcept;

} // namespace tenfold::bindings
