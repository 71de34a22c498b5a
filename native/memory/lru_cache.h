// LruCache<Key, Value>: a hash table that evicts its least recently used entry when it is full. A
// new entry then reuses the memory of the evicted one: a full table never grows.
#pragma once
#include <list>
#include <unordered_set>
#include <utility>

namespace tenfold {

// Hash and Same are transparent: they take a Key, or what a Key may be looked up by.
template <class Key, class Value, class Hash, class Same> class LruCache {
  public:
    struct Entry {
        Key key;
        Value value;
    };
    using Entries = std::list<Entry>; // what has left, to be freed outside the lock

    // What is kept under a key, or null; it has been asked for now.
    template <class Query> Value* find(const Query& query) {
        auto found = places_.find(query);
        if (found == places_.end()) return nullptr;
        entries_.splice(entries_.begin(), entries_, *found);
        return &(*found)->value;
    }

    // Of a key that is not there.
    Value& keep(Key key, Value value) {
        entries_.push_front({std::move(key), std::move(value)});
        places_.insert(entries_.begin());
        return entries_.front().value;
    }

    // Of a key that is there; and of what was not asked for longest. What has left comes first.
    template <class Query> Entry& drop(const Query& key, Entries& fallen) {
        auto found = places_.find(key);
        fallen.splice(fallen.begin(), entries_, *found);
        places_.erase(found);
        return fallen.front();
    }
    Entry& drop_last(Entries& fallen) { return drop(std::prev(entries_.end()), fallen); }

    // All entries that are unwanted.
    template <class Unwanted> void drop_all(Unwanted unwanted, Entries& fallen) {
        for (auto at = entries_.begin(); at != entries_.end();) {
            auto place = at++;
            if (!unwanted(*place)) continue;
            places_.erase(place);
            fallen.splice(fallen.begin(), entries_, place);
        }
    }

    std::size_t size() const { return places_.size(); }
    void swap(LruCache& other) {
        entries_.swap(other.entries_);
        places_.swap(other.places_);
    }

  private:
    using Place = typename Entries::iterator;
    struct HashOfPlace : Hash {
        using is_transparent = void;
        using Hash::operator();
        std::size_t operator()(const Place& place) const { return Hash::operator()(place->key); }
    };
    struct SamePlace : Same {
        using is_transparent = void;
        bool operator()(const Place& a, const Place& b) const { return a == b; }
        template <class Query> bool operator()(const Query& query, const Place& place) const {
            return Same::operator()(query, place->key);
        }
        template <class Query> bool operator()(const Place& place, const Query& query) const {
            return Same::operator()(query, place->key);
        }
    };

    Entries entries_; // those asked for last come first
    std::unordered_set<Place, HashOfPlace, SamePlace> places_;
};

} // namespace tenfold
