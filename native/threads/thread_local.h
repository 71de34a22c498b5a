// ThreadLocal<T>: one T for each thread, made at the thread's first use and freed when it ends. The
// hot path is one load: the pointer has the initial-exec model, which a shared library must ask
// for.
#pragma once
#include <memory>
#include <vector>

#include "threads/fork_safe_lock.h"

namespace tenfold {

// A T that counts references. An ending thread does not hold the GIL, so it must not release them.
// It leaves its T to the next thread that asks for one.
template <class T>
concept Inherited = requires {
    T::INHERITED;
};

template <class T> class ThreadLocal {
  public:
    static T& get() {
        if (T* object = pointer_) return *object;
        return create();
    }

  private:
    struct Orphans {
        Lock lock; // protects objects
        std::vector<std::unique_ptr<T>> objects;
    };

    static std::unique_ptr<T> adopt_or_create() {
        if constexpr (Inherited<T>) {
            Guard guard(orphans_->lock);
            if (!orphans_->objects.empty()) {
                std::unique_ptr<T> object = std::move(orphans_->objects.back());
                orphans_->objects.pop_back();
                return object;
            }
        }
        return std::make_unique<T>();
    }

    struct Owner {
        std::unique_ptr<T> object = adopt_or_create();
        ~Owner() {
            pointer_ = nullptr;
            if constexpr (Inherited<T>) {
                Guard guard(orphans_->lock);
                orphans_->objects.push_back(std::move(object));
            }
        }
    };

    [[gnu::noinline]] static T& create() {
        thread_local Owner owner;
        return *(pointer_ = owner.object.get());
    }

    // Made when the library is loaded, so that no fork finds it half made; outlives every thread.
    static inline Orphans* const orphans_ = new Orphans;
    __attribute__((tls_model("initial-exec"))) static inline thread_local T* pointer_ = nullptr;
};

} // namespace tenfold
