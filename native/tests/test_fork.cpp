// Fork test: a child forked while other threads use every lock can use them too. A fork never
// deadlocks. It would if a thread acquired two Locks in the opposite order of the fork.
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "engine_host.h"
#include "graphs.h"
#include "memory/allocation_pool.h"
#include "threads/fork_safe_lock.h"

using namespace tenfold;
using namespace tenfold::testing;

namespace {

NativeHost the_host;

// Python operators that only the increments refer to.
void push_increments(Engine& engine, const std::atomic<bool>& stop) {
    while (!stop) {
        Handle object = Handle::of_put(engine.put(array_of(1)));
        Ref<Operation> accumulate = make_operation(Operation::cumulative, false);
        accumulate->python = &an_error;
        Future* inputs[] = {object.get(), object.get()};
        Handle version(engine.push(std::move(accumulate), {}, inputs));
        version.number();
    }
}

} // namespace

int main() {
    register_fork_handlers();
    alarm(120); // as in the child
    declare_dtype(0, {'f', 8});
    Ref<Engine> engine = Ref<Engine>::adopt(new Engine({2, 0, 1'000, 0}, the_host));
    prepare_batcher(*engine);
    add_op(); // a static of the test: half made in one thread, it would stay so in the child
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            for (int64_t i = 1; !stop; ++i) {
                Ref<Node> x = leaf(t * 100'000 + i % 1'000 + 1);
                add(add(x, x), x);
            }
        });
    threads.emplace_back([&] { push_increments(*engine, stop); });
    for (int round = 0; round < 20'000; ++round) { // as around a fork
        lock_all();
        unlock_all();
    }
    for (int round = 0; round < 50; ++round) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10); // a lock that never opens ends the child, not the test
            lock_all();
            unlock_all();
#ifndef __SANITIZE_ADDRESS__ // its allocator, unlike glibc's, may be locked in the child of a busy
                             // parent
            Ref<Node> x = leaf(17);
            add(x, x);
            trim_pool();
#endif
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(engine->stop(60'000'000'000));
}
