// Kernel table: the kernels of one kind that this process has, each made once for each target.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "jit/processor.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {

template <class T> class KernelTable {
  public:
    // The kernel of a key; `make` is called without the lock if there is none, and may return null.
    template <class Make> const T* find_or_make(uint8_t target, uint64_t key, Make make) {
        auto& kernels = kernels_[target];
        {
            Guard guard(lock_);
            auto it = kernels.find(key);
            if (it != kernels.end()) return it->second.get();
        }
        std::unique_ptr<const T> kernel(make());
        if (!kernel) return nullptr;
        Guard guard(lock_);
        return kernels.try_emplace(key, std::move(kernel)).first->second.get();
    }

  private:
    Lock lock_; // protects kernels_
    std::array<std::unordered_map<uint64_t, std::unique_ptr<const T>>, NUM_TARGETS> kernels_;
};

} // namespace tenfold
