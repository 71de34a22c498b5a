// Kernel table: the kernels of one kind that this process has, each made once.
#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "threads/fork_safe_lock.h"

namespace tenfold {

template <class T> class KernelTable {
  public:
    // The kernel of a key; `make` is called without the lock if there is none, and may return null.
    template <class Make> const T* find_or_make(uint64_t key, Make make) {
        {
            Guard guard(lock_);
            auto it = kernels_.find(key);
            if (it != kernels_.end()) return it->second.get();
        }
        std::unique_ptr<const T> kernel(make());
        if (!kernel) return nullptr;
        Guard guard(lock_);
        return kernels_.try_emplace(key, std::move(kernel)).first->second.get();
    }

  private:
    Lock lock_;
    std::unordered_map<uint64_t, std::unique_ptr<const T>> kernels_;
};

} // namespace tenfold
