// BLAS thread test: a library has the fewest threads its holders ask for, and afterwards its old
// number.
#include "check.h"
#include "threads/blas_threads.h"

#include <atomic>
#include <thread>
#include <vector>

using namespace tenfold;

static std::atomic<int> present{4};
static int64_t get() { return present; }
static void set(int64_t threads) { present = int(threads); }

static void the_last_to_let_go_gives_back() {
    BlasLibrary& library = BlasLibrary::of(get, set);
    CHECK(&library == &BlasLibrary::of(get, set));
    std::vector<BlasLibrary*> held{&library};
    {
        BlasThreadLimit outer(held, 9);
        CHECK(present == 4);
        BlasThreadLimit inner(held, 1);
        CHECK(present == 1);
    }
    CHECK(present == 4);
}

static void threads_may_hold_at_once() {
    std::vector<BlasLibrary*> held{&BlasLibrary::of(get, set)};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            for (int k = 0; k < 1000; ++k) {
                BlasThreadLimit holding(held, 1);
                CHECK(present == 1);
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(present == 4);
}

static void a_child_of_a_fork_forgets_holders() {
    BlasLibrary& library = BlasLibrary::of(get, set);
    library.limit_threads(2);
    BlasLibrary::forget_holders();
    CHECK(present == 4);
    library.unlimit_threads(); // of before
    CHECK(present == 4);
}

int main() {
    the_last_to_let_go_gives_back();
    threads_may_hold_at_once();
    a_child_of_a_fork_forgets_holders();
}
