// BLAS threads: holds a library with threads of its own to few threads while ours run. While there
// are holders, it has no more than the fewest that they ask for; the last holder restores the old
// number.
#pragma once
#include <cstdint>
#include <vector>

#include "threads/fork_safe_lock.h"

namespace tenfold {

class Library {
  public:
    // 64 bits: who takes or returns an int has it in the lower half.
    using Get = int64_t (*)();
    using Set = void (*)(int64_t threads);

    // The library with these functions; it is never destroyed.
    static Library& of(Get get, Set set);
    // In the child of a fork: the launches of other threads are gone.
    static void forget_holders();

    int threads() const { return int(get_()); }
    void hold(int threads);
    void let_go();

  private:
    Library(Get get, Set set) : get_(get), set_(set) {}
    void give_back();

    Get get_;
    Set set_;
    Lock lock_; // protects both
    int64_t holders_ = 0;
    int before_ = 0; // the threads it had
};

// Libraries that are held as long as this stands.
class Holding {
  public:
    Holding(const std::vector<Library*>& libraries, int threads) : libraries_(libraries) {
        for (Library* library : libraries_) library->hold(threads);
    }
    ~Holding() {
        for (Library* library : libraries_) library->let_go();
    }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;

  private:
    const std::vector<Library*>& libraries_;
};

} // namespace tenfold
