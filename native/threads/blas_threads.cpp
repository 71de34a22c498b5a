#include "threads/blas_threads.h"

namespace tenfold {
namespace {

struct LibraryRegistry {
    Lock lock; // protects `libraries`
    std::vector<BlasLibrary*> libraries;
};

LibraryRegistry& library_registry() {
    static auto* libraries =
        new LibraryRegistry; // never destroyed: threads may hold one at the end
    return *libraries;
}

// At load: a static that another thread is making stays half made in the child of a fork.
const LibraryRegistry& registered_at_load = library_registry();

} // namespace

BlasLibrary& BlasLibrary::of(Get get, Set set) {
    Guard guard(library_registry().lock);
    for (BlasLibrary* library : library_registry().libraries)
        if (library->get_ == get && library->set_ == set) return *library;
    library_registry().libraries.push_back(new BlasLibrary(get, set));
    return *library_registry().libraries.back();
}

void BlasLibrary::limit_threads(int threads) {
    Guard guard(lock_);
    int current = this->threads();
    if (num_holders_++ == 0) original_threads_ = current;
    if (threads < current) set_(threads);
}

void BlasLibrary::unlimit_threads() {
    Guard guard(lock_);
    if (num_holders_ > 0 && --num_holders_ == 0)
        restore_threads(); // a child of a fork has forgotten holders
}

void BlasLibrary::restore_threads() {
    if (threads() != original_threads_) set_(original_threads_);
}

void BlasLibrary::forget_holders() {
    Guard guard(library_registry().lock);
    for (BlasLibrary* library : library_registry().libraries) {
        Guard library_guard(library->lock_);
        if (library->num_holders_ > 0) library->restore_threads();
        library->num_holders_ = 0;
    }
}

} // namespace tenfold
