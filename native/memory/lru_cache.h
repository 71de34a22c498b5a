// LruCache<Key, Value>: a hash table that evicts its least recently used entry when it is full. A
// new entry then reuses the memory of the evicted one: a full table never grows.
#pragma once
#include <list>
#include <unordered_set>
#include <utility>

namespace tenfold {

// Hash and Same are transparent: they accept a Key, or an equivalent lookup key.
template <class Key, class Value, class Hash, class Same> class LruCache {
  public:
    struct Entry {
        Key key;
        Value value;
    };
    using Entries = std::list<Entry>; // evicted, to be freed outside the lock

    // The value of a key, or null; marks it most recently used.
    template <class Query> Value* find(const Query& query) {
        auto it = index_.find(query);
        if (it == index_.end()) return nullptr;
        entries_.splice(entries_.begin(), entries_, *it);
        return &(*it)->value;
    }

    // The key must be absent.
    Value& insert(Key key, Value value) {
        entries_.push_front({std::move(key), std::move(value)});
        index_.insert(entries_.begin());
        return entries_.front().value;
    }

    // The key must be present; the least recently used. The evicted entry comes first.
    template <class Query> Entry& evict(const Query& key, Entries& evicted) {
        auto it = index_.find(key);
        evicted.splice(evicted.begin(), entries_, *it);
        index_.erase(it);
        return evicted.front();
    }
    Entry& evict_oldest(Entries& evicted) { return evict(std::prev(entries_.end()), evicted); }

    // All entries that satisfy the predicate.
    template <class Unwanted> void evict_if(Unwanted predicate, Entries& evicted) {
        for (auto it = entries_.begin(); it != entries_.end();) {
            auto current = it++;
            if (!predicate(*current)) continue;
            index_.erase(current);
            evicted.splice(evicted.begin(), entries_, current);
        }
    }

    std::size_t size() const { return index_.size(); }
    void swap(LruCache& other) {
        entries_.swap(other.entries_);
        index_.swap(other.index_);
    }

  private:
    using Position = typename Entries::iterator;
    struct PositionHash : Hash {
        using is_transparent = void;
        using Hash::operator();
        std::size_t operator()(const Position& place) const { return Hash::operator()(place->key); }
    };
    struct PositionEqual : Same {
        using is_transparent = void;
        bool operator()(const Position& a, const Position& b) const { return a == b; }
        template <class Query> bool operator()(const Query& query, const Position& place) const {
            return Same::operator()(query, place->key);
        }
        template <class Query> bool operator()(const Position& place, const Query& query) const {
            return Same::operator()(query, place->key);
        }
    };

    Entries entries_; // those asked for last come first
    std::unordered_set<Position, PositionHash, PositionEqual> index_;
};

} // namespace tenfold
