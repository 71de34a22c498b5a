// Batch heap: the agenda of batches, for pushed operations and large graphs. The entry whose
// members have the lowest mean depth is on top (Neubig, Goldberg, Dyer, "On-the-fly operation
// batching in dynamic computation graphs", 2017). Each entry knows its place, so that a change of
// one takes logarithmic time.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenfold {

// Members of one signature, some of which may be computed as a batch.
struct AgendaEntry {
    static constexpr std::size_t NOWHERE = ~std::size_t(0);
    std::size_t num_live = 0; // members that are still to be computed
    uint64_t sum_depths = 0;
    uint64_t listing = 0; // when it got its first member
    std::array<std::size_t, 2> heap_places{NOWHERE, NOWHERE};
    bool comes_before(const AgendaEntry& other) const {
        // Depths per member are compared as fractions.
        uint64_t left = sum_depths * other.num_live, right = other.sum_depths * num_live;
        return left != right ? left < right : listing < other.listing;
    }
};

template <class Entry> class BatchHeap {
  public:
    // Its number among the heaps that an entry may be in.
    explicit BatchHeap(std::size_t number) : number_(number) {}

    bool empty() const { return entries_.empty(); }
    // The entry of lowest mean depth, of several the one that was listed first; or null.
    Entry* top() const { return entries_.empty() ? nullptr : entries_[0]; }
    const std::vector<Entry*>& entries() const { return entries_; } // in no order
    bool contains(const Entry& entry) const {
        return entry.heap_places[number_] != AgendaEntry::NOWHERE;
    }
    // Inserts, moves or removes an entry whose depths have changed.
    void update(Entry& entry, bool belongs) {
        bool is_inside = contains(entry);
        bool changes_nothing = is_inside == belongs && (!is_inside || entries_.size() == 1);
        if (changes_nothing) return;
        std::size_t at = place(entry);
        if (!is_inside) {
            at = entries_.size();
            entries_.push_back(&entry);
        } else if (!belongs) {
            place(entry) = AgendaEntry::NOWHERE;
            Entry& last = *entries_.back();
            entries_.pop_back();
            if (&last == &entry) return;
            put(at, last);
        }
        Entry& moved = *entries_[at];
        rise(at);
        sink(place(moved));
    }

  private:
    std::size_t& place(Entry& entry) const { return entry.heap_places[number_]; }

    void put(std::size_t at, Entry& entry) {
        entries_[at] = &entry;
        place(entry) = at;
    }

    void rise(std::size_t at) {
        Entry& entry = *entries_[at];
        while (at > 0 && entry.comes_before(*entries_[(at - 1) / 2])) {
            put(at, *entries_[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        put(at, entry);
    }

    void sink(std::size_t at) {
        Entry& entry = *entries_[at];
        for (;;) {
            std::size_t child = 2 * at + 1;
            if (child + 1 < entries_.size() && entries_[child + 1]->comes_before(*entries_[child]))
                ++child;
            if (child >= entries_.size() || !entries_[child]->comes_before(entry)) break;
            put(at, *entries_[child]);
            at = child;
        }
        put(at, entry);
    }

    const std::size_t number_;
    std::vector<Entry*> entries_;
};

} // namespace tenfold
