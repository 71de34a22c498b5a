// Slab<T>: memory for objects of one type, which are made by one thread and freed by another, and
// many. They are cut from chunks of 1,024 that are never returned; what is free forms a list. Each
// thread keeps a short list of its own, so that making one takes no lock in the common case.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "per_thread.h"

namespace tenfold {

template <class T> class Slab {
  public:
    static constexpr std::size_t CHUNK = 1024;
    union Slot;
    // What is free has 0 where a T, which nobody ever sees with fewer than 1, counts references.
    struct Free {
        uint32_t references;
        Slot* next;
    };
    union Slot {
        Free free;
        alignas(T) unsigned char bytes[sizeof(T)];
    };

    static void* take() { return PerThread<Local>::get().take(); }
    static void give(void* memory) { PerThread<Local>::get().give(static_cast<Slot*>(memory)); }
    static std::vector<Slot*> chunks() {
        Guard guard(shared_->lock);
        return shared_->chunks;
    }

  private:
    static constexpr std::size_t LOCAL = 256;

    // Lists are handed on as a whole: to go through one would fetch every object.
    struct List {
        Slot* free = nullptr;
        std::size_t length = 0;
    };

    struct Shared {
        Lock lock; // protects the two below
        std::vector<List> lists;
        std::vector<Slot*> chunks;
    };

    struct Local {
        List now, full; // the latter has LOCAL, or none

        Slot* take() {
            if (!now.free) now = full.free ? std::exchange(full, {}) : taken();
            Slot* slot = now.free;
            now.free = slot->free.next;
            --now.length;
            return slot;
        }

        void give(Slot* slot) {
            if (now.length == LOCAL) {
                if (full.free) hand_over(full);
                full = std::exchange(now, {});
            }
            slot->free = {0, now.free};
            now.free = slot;
            ++now.length;
        }

        static List taken() {
            Guard guard(shared_->lock);
            if (shared_->lists.empty()) cut();
            List list = shared_->lists.back();
            shared_->lists.pop_back();
            return list;
        }

        static void hand_over(const List& list) {
            Guard guard(shared_->lock);
            shared_->lists.push_back(list);
        }

        static void cut() {
            constexpr std::align_val_t LINE{64};
            auto* chunk = static_cast<Slot*>(::operator new(CHUNK * sizeof(Slot), LINE));
            shared_->chunks.push_back(chunk);
            for (std::size_t i = 0; i < CHUNK; ++i)
                chunk[i].free = {0, (i + 1) % LOCAL ? chunk + i + 1 : nullptr};
            for (std::size_t i = 0; i < CHUNK; i += LOCAL)
                shared_->lists.push_back({chunk + i, LOCAL});
        }

        ~Local() {
            for (const List& list : {now, full})
                if (list.free) hand_over(list);
        }
    };

    // Made when the library is loaded; outlives every T.
    static inline Shared* const shared_ = new Shared;
};

} // namespace tenfold
