// Batch heap test: after random changes the Batcher on top has the lowest mean depth, as a search
// of all finds it. A queue of members gives them in their order, whatever was taken before.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include "engine_host.h"

using namespace tenfold;

namespace {

bool is_lower(const Batcher* one, const Batcher* other) {
    double left = double(one->sum_depths) / double(one->num_live);
    double right = double(other->sum_depths) / double(other->num_live);
    return left != right ? left < right : one->listing < other->listing;
}

void top_has_the_lowest_mean_depth() {
    std::mt19937 random(1);
    std::vector<std::unique_ptr<Batcher>> batchers(40);
    for (auto& batcher : batchers) batcher = std::make_unique<Batcher>();
    BatchHeap<Batcher> heap(0), other(1);
    std::vector<Batcher*> inside;
    for (uint64_t change = 0; change < 20'000; ++change) {
        Batcher& batcher = *batchers[random() % batchers.size()];
        bool is_inside = std::ranges::count(inside, &batcher) > 0;
        if (!is_inside) batcher.listing = change;
        batcher.num_live = random() % 3;
        batcher.sum_depths = batcher.num_live ? random() % 6 : 0;
        bool belongs = batcher.num_live > 0;
        heap.update(batcher, belongs);
        other.update(batcher, belongs && random() % 2);
        if (is_inside && !belongs) std::erase(inside, &batcher);
        if (!is_inside && belongs) inside.push_back(&batcher);
        CHECK(heap.empty() == inside.empty());
        CHECK(heap.entries().size() == inside.size());
        CHECK(inside.empty() || heap.top() == *std::ranges::min_element(inside, is_lower));
    }
}

void queue_keeps_the_order() {
    std::mt19937 random(2);
    NativeHost host;
    auto engine = Ref<Engine>::adopt(new Engine({}, host));
    MemberQueue queue;
    std::deque<Future*> expected;
    for (int change = 0; change < 20'000; ++change) {
        CHECK(queue.empty() == expected.empty());
        if (expected.empty() || random() % 2) {
            Ref<Future> member = engine->put(array_of(1));
            expected.push_back(member.get());
            queue.push(*member);
        } else {
            CHECK(queue.pop().get() == expected.front());
            expected.pop_front();
        }
    }
    PooledVector<Ref<Future>> rest;
    queue.clear(rest);
    CHECK(queue.empty());
    CHECK(std::ranges::equal(rest, expected, [](auto& a, auto* b) { return a.get() == b; }));
}

} // namespace

int main() {
    top_has_the_lowest_mean_depth();
    queue_keeps_the_order();
}
