// Batch heap: Batchers with the lowest mean depth on top. Each Batcher knows its place in the heap,
// so that a change of one takes logarithmic time.
#pragma once
#include <cstddef>
#include <vector>

namespace tenfold {

struct Batcher;

class BatchHeap {
  public:
    // Its number among the heaps that a Batcher may be in.
    explicit BatchHeap(std::size_t number) : number_(number) {}

    bool empty() const { return batchers_.empty(); }
    // The Batcher of lowest mean depth, of several the one with the oldest first member; or null.
    Batcher* top() const { return batchers_.empty() ? nullptr : batchers_[0]; }
    const std::vector<Batcher*>& batchers() const { return batchers_; } // in no order
    // Inserts, moves or removes a Batcher whose depths have changed.
    void update(Batcher& batcher, bool belongs);

  private:
    std::size_t& place(Batcher& batcher) const;
    void put(std::size_t at, Batcher& batcher);
    void rise(std::size_t at);
    void sink(std::size_t at);

    const std::size_t number_;
    std::vector<Batcher*> batchers_;
};

} // namespace tenfold
