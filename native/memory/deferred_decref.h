// Deferred decref: queues Python references that native objects drop without the GIL. The core
// cannot touch Python, so it puts them here; the bindings drain the list while they hold the GIL.
#pragma once

namespace tenfold {

void defer_decref(void* python);

// Calls `release` for everything on the list.
void drain_deferred_decrefs(void (*release)(void*));

// Whether decrefs are pending; one relaxed load.
bool has_deferred_decrefs() noexcept;

} // namespace tenfold
