// BLAS threads: limits the threads of a BLAS library while kernels run. The lowest limit of all
// holders applies; the last holder restores the original number.
#pragma once
#include <cstdint>
#include <vector>

#include "threads/fork_safe_lock.h"

namespace tenfold {

class BlasLibrary {
  public:
    // 64 bits: a function of an int uses the lower half.
    using Get = int64_t (*)();
    using Set = void (*)(int64_t threads);

    // The library with these functions; it is never destroyed.
    static BlasLibrary& of(Get get, Set set);
    // In the child of a fork: the launches of other threads are gone.
    static void forget_holders();

    int threads() const { return int(get_()); }
    void limit_threads(int threads);
    void unlimit_threads();

  private:
    BlasLibrary(Get get, Set set) : get_(get), set_(set) {}
    void restore_threads();

    Get get_;
    Set set_;
    Lock lock_; // protects both
    int64_t num_holders_ = 0;
    int original_threads_ = 0; // the threads it had
};

// Limits the threads of some libraries during its lifetime.
class BlasThreadLimit {
  public:
    BlasThreadLimit(const std::vector<BlasLibrary*>& libraries, int threads)
        : libraries_(libraries) {
        for (BlasLibrary* library : libraries_) library->limit_threads(threads);
    }
    ~BlasThreadLimit() {
        for (BlasLibrary* library : libraries_) library->unlimit_threads();
    }
    BlasThreadLimit(const BlasThreadLimit&) = delete;
    BlasThreadLimit& operator=(const BlasThreadLimit&) = delete;

  private:
    const std::vector<BlasLibrary*>& libraries_;
};

} // namespace tenfold
