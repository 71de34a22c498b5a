#include "engine/batch_heap.h"

#include "engine/operator_batch.h"

namespace tenfold {
namespace {

// Depths per member are compared as fractions.
bool comes_before(const Batcher& one, const Batcher& other) {
    uint64_t left = one.sum_depths * other.num_live, right = other.sum_depths * one.num_live;
    return left != right ? left < right : one.listing < other.listing;
}

} // namespace

std::size_t& BatchHeap::place(Batcher& batcher) const { return batcher.heap_places[number_]; }

void BatchHeap::put(std::size_t at, Batcher& batcher) {
    batchers_[at] = &batcher;
    place(batcher) = at;
}

void BatchHeap::rise(std::size_t at) {
    Batcher& batcher = *batchers_[at];
    while (at > 0 && comes_before(batcher, *batchers_[(at - 1) / 2])) {
        put(at, *batchers_[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(at, batcher);
}

void BatchHeap::sink(std::size_t at) {
    Batcher& batcher = *batchers_[at];
    for (;;) {
        std::size_t child = 2 * at + 1;
        if (child + 1 < batchers_.size() && comes_before(*batchers_[child + 1], *batchers_[child]))
            ++child;
        if (child >= batchers_.size() || !comes_before(*batchers_[child], batcher)) break;
        put(at, *batchers_[child]);
        at = child;
    }
    put(at, batcher);
}

void BatchHeap::update(Batcher& batcher, bool belongs) {
    std::size_t at = place(batcher);
    bool is_inside = at != Batcher::NOWHERE;
    bool changes_nothing = is_inside == belongs && (!is_inside || batchers_.size() == 1);
    if (changes_nothing) return;
    if (!is_inside) {
        at = batchers_.size();
        batchers_.push_back(&batcher);
    } else if (!belongs) {
        place(batcher) = Batcher::NOWHERE;
        Batcher& last = *batchers_.back();
        batchers_.pop_back();
        if (&last == &batcher) return;
        put(at, last);
    }
    Batcher& moved = *batchers_[at];
    rise(at);
    sink(place(moved));
}

} // namespace tenfold
