// LruCache<Key, Value>: a hash table that evicts its least recently used entry when it is full. A
// new entry then reuses the memory of the evicted one: a full table never grows.
#pragma once
#include <limits>
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
        std::size_t words = 0;
    };
    using Entries = std::list<Entry>; // evicted, to be freed outside the lock

    // `max_words`: of all entries together; one entry is kept whatever its size.
    explicit LruCache(std::size_t capacity,
                      std::size_t max_words = std::numeric_limits<std::size_t>::max())
        : capacity_(capacity), max_words_(max_words) {}

    // The value of a key, or null; marks it most recently used.
    template <class Query> Value* find(const Query& query) {
        auto it = index_.find(query);
        if (it == index_.end()) return nullptr;
        entries_.splice(entries_.begin(), entries_, *it);
        return &(*it)->value;
    }

    // The key must be absent.
    Value& insert(Key key, Value value, Entries& evicted, std::size_t words = 0) {
        entries_.push_front({std::move(key), std::move(value)});
        index_.insert(entries_.begin());
        grow_latest(words, evicted);
        return entries_.front().value;
    }

    // Adds to the words of the most recently used entry, then evicts what exceeds the limits.
    void grow_latest(std::size_t words, Entries& evicted) {
        entries_.front().words += words;
        words_ += words;
        while (size() > capacity_ || (words_ > max_words_ && size() > 1))
            remove(std::prev(entries_.end()), evicted);
    }

    // The key must be present.
    template <class Query> void evict(const Query& key, Entries& evicted) {
        remove(*index_.find(key), evicted);
    }

    // All entries that satisfy the predicate.
    template <class Unwanted> void evict_if(Unwanted predicate, Entries& evicted) {
        for (auto it = entries_.begin(); it != entries_.end();) {
            auto current = it++;
            if (predicate(*current)) remove(current, evicted);
        }
    }

    void clear(Entries& evicted) {
        index_.clear();
        evicted.splice(evicted.begin(), entries_);
        words_ = 0;
    }

    std::size_t size() const { return index_.size(); }
    std::size_t num_bytes() const { return words_ * sizeof(std::size_t); }
    const Entries& entries() const { return entries_; }

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

    void remove(Position position, Entries& evicted) {
        index_.erase(position);
        words_ -= position->words;
        evicted.splice(evicted.begin(), entries_, position);
    }

    std::size_t capacity_, max_words_, words_ = 0;
    Entries entries_; // the most recently used entry first
    std::unordered_set<Position, PositionHash, PositionEqual> index_;
};

} // namespace tenfold
