// Interner<T>: one object per distinct key, so that equality is equality of pointers. Objects are
// counted; the table holds no count, an object leaves the table when its last owner drops it.
#pragma once
#include <unordered_map>

#include "caches.h"
#include "lock.h"
#include "reference.h"

namespace tenfold {

// T needs: references, hash, `bool same(const Key&) const`, and `static T* create(const Key&,
// size_t hash)`.
template <class T, class Key> class Interner {
  public:
    Ref<T> intern(const Key& key, std::size_t hash) {
        Guard guard(lock_);
        auto [begin, end] = table_.equal_range(cut(hash));
        for (auto entry = begin; entry != end; ++entry) {
            T* found = entry->second;
            if (!found->same(key)) continue;
            if (revive(found)) return Ref<T>::adopt(found);
            table_.erase(
                entry); // its last owner is on the way to remove(): a new object takes its place
            break;
        }
        T* made = T::create(key, hash);
        table_.emplace(cut(hash), made);
        return Ref<T>::adopt(made);
    }

    // Called by T::destroy, when no owner is left.
    void remove(T* object) {
        Guard guard(lock_);
        auto [begin, end] = table_.equal_range(cut(object->hash));
        for (auto entry = begin; entry != end; ++entry) {
            if (entry->second != object) continue;
            table_.erase(entry);
            break;
        }
    }

    std::size_t size() {
        Guard guard(lock_);
        return table_.size();
    }

    // For when hashes are cut in another way, or most objects have gone.
    void rehash() {
        decltype(table_) table;
        Guard guard(lock_);
        for (auto [hash, object] : table_) table.emplace(cut(object->hash), object);
        table_.swap(table);
    }

  private:
    static bool revive(T* object) {
        // Relaxed: the object was written under lock_, which is held here.
        uint32_t count = object->references.load(std::memory_order_relaxed);
        while (count != 0) {
            if (object->references.compare_exchange_weak(count, count + 1,
                                                         std::memory_order_relaxed))
                return true;
        }
        return false;
    }

    Lock lock_; // protects table_
    std::unordered_multimap<std::size_t, T*> table_;
};

inline std::size_t mix(std::size_t hash, std::size_t word) {
    // splitmix64's finaliser (Steele, Lea, Flood 2014) over the running value.
    std::size_t z = hash + 0x9e3779b97f4a7c15ULL + word;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

} // namespace tenfold
