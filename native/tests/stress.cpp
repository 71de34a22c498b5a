// Stress test: threads make, share, publish, linearize and drop nodes and launch kernels. It runs
// for some seconds (argv[1], default 2), and is meant for the thread sanitizer.
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "check.h"
#include "graphs.h"
#include "ir/linearize.h"
#include "memory/allocation_pool.h"
#include "memory/deferred_decref.h"
#include "threads/cpu_device.h"
#include "threads/fork_safe_lock.h"
#include "threads/worker_pool.h"

using namespace tenfold;
using namespace tenfold::testing;

namespace {

struct Shared {
    Lock lock; // protects nodes
    std::vector<Ref<Node>> nodes;
};

void exchange(Shared& shared, std::mt19937& random, Ref<Node>& mine) {
    Guard guard(shared.lock);
    std::swap(shared.nodes[random() % shared.nodes.size()], mine);
}

int64_t add_one(void** buffers, const int64_t*, const double*, void*, int64_t begin, int64_t end) {
    auto* numbers = static_cast<int64_t*>(buffers[0]);
    for (int64_t i = begin; i < end; ++i) ++numbers[i];
    return 0;
}

void launch(std::mt19937& random) {
    std::vector<int64_t> numbers(random() % 300, 0);
    void* buffers[] = {numbers.data()};
    Work work;
    work.kernel = HostKernel(add_one);
    work.buffers = buffers;
    work.units = int64_t(numbers.size());
    work.grain = 1 + int64_t(random() % 20);
    work.threads = 1 + int(random() % 4);
    CHECK(Launch(work).run().status == 0);
    for (int64_t number : numbers) CHECK(number == 1);
}

void work(Shared& shared, unsigned seed, std::chrono::steady_clock::time_point end) {
    std::mt19937 random(seed);
    Ref<Node> mine = leaf(8);
    while (std::chrono::steady_clock::now() < end) {
        Ref<Node> other = mine;
        exchange(shared, random, mine);
        for (int i = 0; i < 20; ++i) other = add(other, mine);
        Node* outputs[] = {other.get()};
        CHECK(!linearize(outputs).nodes.empty());
        if (random() % 4 == 0) publish(other.get(), leaf(8)->value);
        if (random() % 4 == 0)
            publish(mine.get(), leaf(8)->value); // another thread may be reading it
        if (other->depth > 500) other = leaf(8);
        mine = std::move(other);
        int64_t length = int64_t(random() % 64 + 1);
        CHECK(leaf(length)->type->shape[0] == length);
        intern_params(std::string(random() % 8, 'p'));
        if (random() % 8 == 0) launch(random);
        if (random() % 256 == 0) clear_inference_cache();
        if (random() % 256 == 0) trim_pool();
        if (random() % 16 == 0) drain_deferred_decrefs([](void*) {});
    }
}

} // namespace

int main(int count, char** arguments) {
    double seconds = count > 1 ? std::atof(arguments[1]) : 2;
    auto end = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::chrono::duration<double>(seconds));
    set_threads(4);
    Shared shared;
    for (int i = 0; i < 16; ++i) shared.nodes.push_back(leaf(8));
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, std::ref(shared), t, end);
    for (std::thread& thread : threads) thread.join();
    shared.nodes.clear();
    CHECK(pool_statistics().live_bytes == 0);
}
