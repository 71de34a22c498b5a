// Slab test: new objects are adjacent once all were freed, and threads free each other's objects.
#include "memory/slab.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "check.h"

using namespace tenfold;

namespace {

struct Thing {
    uint32_t references = 1;
    uint64_t words[8] = {};
    static void* operator new(std::size_t) { return Slab<Thing>::allocate(); }
    static void operator delete(void* memory) { Slab<Thing>::deallocate(memory); }
};

std::size_t alive() {
    std::size_t count = 0;
    Slab<Thing>::for_each([&](auto* slot) { count += slot->free.references != 0; });
    return count;
}

std::vector<Thing*> result(std::size_t count) {
    std::vector<Thing*> things;
    for (std::size_t i = 0; i < count; ++i) things.push_back(new Thing);
    return things;
}

// How many are adjacent to the previous one.
std::size_t in_a_row(const std::vector<Thing*>& things) {
    std::size_t count = 0;
    for (std::size_t i = 1; i < things.size(); ++i) count += things[i] == things[i - 1] + 1;
    return count;
}

void test_each_is_another_and_those_alive_are_found() {
    std::vector<Thing*> things = result(10'000);
    CHECK(std::set<Thing*>(things.begin(), things.end()).size() == things.size());
    CHECK(alive() == things.size());
    for (Thing* thing : things) delete thing;
    CHECK(alive() == 0);
}

void test_what_is_made_after_all_was_freed_lies_in_a_row() {
    std::mt19937 random(1);
    for (int round = 0; round < 3; ++round) {
        std::vector<Thing*> things = result(100'000);
        std::shuffle(things.begin(), things.end(), random);
        for (Thing* thing : things) delete thing;
        things = result(100'000);
        CHECK(in_a_row(things) > 95'000);
        for (Thing* thing : things) delete thing;
    }
}

void test_what_was_freed_last_is_taken_next() {
    std::unique_ptr<Thing> kept(new Thing);
    Thing* first = new Thing;
    delete first;
    Thing* second = new Thing;
    CHECK(first == second);
    delete second;
}

void test_memory_does_not_grow_where_as_many_are_freed() {
    std::mt19937 random(2);
    std::vector<Thing*> things = result(20'000);
    std::size_t slots = 0;
    for (int round = 0; round < 50; ++round) {
        std::shuffle(things.begin(), things.end(), random);
        for (std::size_t i = 0; i < 5'000; ++i) delete things[i];
        for (std::size_t i = 0; i < 5'000; ++i) things[i] = new Thing;
        std::size_t now = 0;
        Slab<Thing>::for_each([&](auto*) { ++now; });
        CHECK(round < 2 || now == slots);
        slots = now;
    }
    for (Thing* thing : things) delete thing;
}

constexpr std::size_t SYSTEM_PAGE_BYTES = 4096, SYSTEM_PAGES = 16; // of a page of the slab

// How many system pages of the slab's page that holds an object are in memory.
std::ptrdiff_t resident_pages(const Thing* thing) {
    std::uintptr_t bytes = SYSTEM_PAGES * SYSTEM_PAGE_BYTES;
    std::array<unsigned char, SYSTEM_PAGES> pages{};
    auto* begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(thing) & ~(bytes - 1));
    CHECK(mincore(begin, bytes, pages.data()) == 0);
    return std::ranges::count_if(pages, [](unsigned char page) { return page & 1; });
}

void test_trim_returns_the_pages_of_freed_objects() {
    std::vector<Thing*> things = result(100'000);
    Thing *kept = things.front(), *middle = things[50'000];
    for (std::size_t i = 1; i < things.size(); ++i) delete things[i];
    kept->words[3] = 7;
    CHECK(resident_pages(middle) == SYSTEM_PAGES);
    Slab<Thing>::trim();
    CHECK(resident_pages(middle) == 1);
    CHECK(alive() == 1 && kept->words[3] == 7);
    delete kept;
    things = result(100'000);
    CHECK(in_a_row(things) > 95'000 && alive() == things.size());
    for (Thing* thing : things) delete thing;
}

// Each thread frees objects that another has made.
void test_threads_make_and_free() {
    constexpr std::size_t THREADS = 4, COUNT = 20'000;
    std::vector<std::atomic<Thing*>> places(1024);
    auto work = [&](unsigned seed) {
        std::mt19937 random(seed);
        for (std::size_t i = 0; i < COUNT; ++i) {
            auto* own = new Thing;
            own->words[0] = own->words[7] = reinterpret_cast<uint64_t>(own);
            Thing* other = places[random() % places.size()].exchange(own);
            if (!other) continue;
            CHECK(other->words[0] == reinterpret_cast<uint64_t>(other));
            CHECK(other->words[7] == other->words[0] && other->references == 1);
            delete other;
        }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < THREADS; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
    for (auto& place : places) delete place.exchange(nullptr);
    CHECK(alive() == 0);
}

} // namespace

int main() {
    test_each_is_another_and_those_alive_are_found();
    test_what_is_made_after_all_was_freed_lies_in_a_row();
    test_what_was_freed_last_is_taken_next();
    test_memory_does_not_grow_where_as_many_are_freed();
    test_trim_returns_the_pages_of_freed_objects();
    test_threads_make_and_free();
}
