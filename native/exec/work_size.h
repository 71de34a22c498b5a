// Work sizes: from how many elements on a kernel leaves the GIL, and from how many it is split.
#pragma once
#include "memory/target_facts.h"

namespace tenfold {

// The threads that a launch over so many elements asks for; 0: run on this one, with the GIL.
inline int threads_for(int64_t elements, int max_threads) {
    if (elements <= GIL_ELEMENTS) return 0;
    return elements <= SERIAL_ELEMENTS ? 1 : max_threads;
}

} // namespace tenfold
