// Interner<T>: makes one object per distinct key, so that equality is pointer equality. Objects are
// reference counted; the table holds no count, and an object leaves it when its last owner drops
// it.
#pragma once
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "memory/cache_registry.h"
#include "memory/ref_counted.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {

// T needs: references, hash, `T* next`, `bool same(const Key&) const`, and
// `static T* create(const Key&, size_t hash)`.
template <class T, class Key> class Interner {
  public:
    Ref<T> intern(const Key& key, std::size_t hash) {
        Guard guard(lock_);
        // One whose last owner is on the way to remove() stays behind the one that takes its place.
        for (T* candidate = bucket(hash); candidate; candidate = candidate->next)
            if (truncate_hash(candidate->hash) == truncate_hash(hash) && candidate->equals(key) &&
                revive(candidate))
                return Ref<T>::adopt(candidate);
        T* created = T::create(key, hash);
        if (++count_ > table_.size()) rehash_into(std::vector<T*>(2 * table_.size()));
        created->next = std::exchange(bucket(hash), created);
        return Ref<T>::adopt(created);
    }

    // Called by T::destroy, when no owner is left.
    void remove(T* object) {
        Guard guard(lock_);
        T** link = &bucket(object->hash);
        while (*link && *link != object) link = &(*link)->next;
        if (!*link) return;
        *link = object->next;
        --count_;
    }

    std::size_t size() {
        Guard guard(lock_);
        return count_;
    }

    // For when hashes are cut in another way, or most objects have gone.
    void rehash() {
        Guard guard(lock_);
        rehash_into(std::vector<T*>(std::max(MIN_BUCKETS, std::bit_ceil(count_))));
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

    T*& bucket(std::size_t hash) { return table_[truncate_hash(hash) & (table_.size() - 1)]; }

    // Moves all entries to `buckets`, where their places differ.
    void rehash_into(std::vector<T*> buckets) {
        buckets.swap(table_);
        for (T* entry : buckets)
            while (entry) {
                T* next = entry->next;
                entry->next = std::exchange(bucket(entry->hash), entry);
                entry = next;
            }
    }

    static constexpr std::size_t MIN_BUCKETS = 1024; // places
    Lock lock_;                                      // protects all below
    std::vector<T*> table_ = std::vector<T*>(MIN_BUCKETS);
    std::size_t count_ = 0;
};

inline std::size_t mix(std::size_t hash, std::size_t word) {
    // splitmix64's finaliser (Steele, Lea, Flood 2014) over the running value.
    std::size_t z = hash + 0x9e3779b97f4a7c15ULL + word;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

} // namespace tenfold
