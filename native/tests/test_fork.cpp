// A child forked while other threads use every lock can use them too.
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "../lock.h"
#include "../pool.h"
#include "check.h"
#include "graphs.h"

using namespace tenfold;
using namespace tenfold::testing;

int main() {
    respect_forks();
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
    for (int round = 0; round < 50; ++round) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10); // a lock that never opens ends the child, not the test
            hold_all_locks();
            release_all_locks();
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
}
