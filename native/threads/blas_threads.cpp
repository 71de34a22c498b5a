#include "threads/blas_threads.h"

namespace tenfold {
namespace {

struct KnownLibraries {
    Lock lock; // protects what follows
    std::vector<Library*> libraries;
};

KnownLibraries& known() {
    static auto* libraries = new KnownLibraries; // never destroyed: threads may hold one at the end
    return *libraries;
}

// At load: a static that another thread is making stays half made in the child of a fork.
const KnownLibraries& made_at_load = known();

} // namespace

Library& Library::of(Get get, Set set) {
    Guard guard(known().lock);
    for (Library* library : known().libraries)
        if (library->get_ == get && library->set_ == set) return *library;
    known().libraries.push_back(new Library(get, set));
    return *known().libraries.back();
}

void Library::hold(int threads) {
    Guard guard(lock_);
    int now = this->threads();
    if (holders_++ == 0) before_ = now;
    if (threads < now) set_(threads);
}

void Library::let_go() {
    Guard guard(lock_);
    if (holders_ > 0 && --holders_ == 0) give_back(); // a child of a fork has forgotten holders
}

void Library::give_back() {
    if (threads() != before_) set_(before_);
}

void Library::forget_holders() {
    Guard guard(known().lock);
    for (Library* library : known().libraries) {
        Guard own(library->lock_);
        if (library->holders_ > 0) library->give_back();
        library->holders_ = 0;
    }
}

} // namespace tenfold
