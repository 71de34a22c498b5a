// PerThread<T>: one T for each thread, made when the thread first asks and freed when it ends. The
// hot path is one load: the pointer has the initial-exec model, which a shared library must ask
// for.
#pragma once
#include <memory>

namespace tenfold {

template <class T> class PerThread {
  public:
    static T& get() {
        if (T* present = pointer_) return *present;
        return make();
    }

  private:
    struct Owner {
        std::unique_ptr<T> object = std::make_unique<T>();
        ~Owner() { pointer_ = nullptr; }
    };

    [[gnu::noinline]] static T& make() {
        thread_local Owner owner;
        return *(pointer_ = owner.object.get());
    }

    __attribute__((tls_model("initial-exec"))) static inline thread_local T* pointer_ = nullptr;
};

} // namespace tenfold
