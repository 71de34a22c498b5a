// Code loader test: loaded code runs, beside other threads' code and in a forked child. The hash is
// that of the standard.
#include "check.h"
#include "jit/code_loader.h"
#include "jit/processor.h"
#include "threads/fork_safe_lock.h"

#include <cstring>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace tenfold;

// mov eax, number; ret
static std::vector<unsigned char> returning(int number) {
    std::vector<unsigned char> code{0xb8, 0, 0, 0, 0, 0xc3};
    std::memcpy(code.data() + 1, &number, 4);
    return code;
}

static int called(const Ref<Code>& code) { return reinterpret_cast<int (*)()>(code->begin)(); }

static void code_stays_where_it_is_while_more_is_loaded() {
    std::vector<Ref<Code>> loaded;
    for (int i = 0; i < 1000; ++i) {
        auto code = returning(i);
        code.resize(6 + std::size_t(i) * 9); // of one page and of several
        loaded.push_back(load_code(code.data(), code.size()));
        CHECK(loaded.back());
    }
    for (int i = 0; i < 1000; ++i) CHECK(called(loaded[std::size_t(i)]) == i);
    CHECK(loaded_code_bytes() >= 1000 * 4096);
}

// Lines of the system's list of this process's memory.
static bool is_mapped(const void* address) {
    std::ifstream maps("/proc/self/maps");
    auto at = reinterpret_cast<std::uintptr_t>(address);
    for (std::string line; std::getline(maps, line);) {
        std::size_t dash = line.find('-');
        std::uintptr_t begin = std::stoull(line.substr(0, dash), nullptr, 16);
        std::uintptr_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
        if (begin <= at && at < end) return true;
    }
    return false;
}

static void code_goes_with_whoever_holds_it_last() {
    auto bytes = returning(3);
    std::size_t before = loaded_code_bytes();
    Ref<Code> first = load_code(bytes.data(), bytes.size());
    Ref<Code> other = load_code(bytes.data(), bytes.size()), again = first;
    const void* address = first->begin;
    first = nullptr;
    CHECK(called(again) == 3 && is_mapped(address));
    again = nullptr;
    CHECK(!is_mapped(address) && called(other) == 3);
    other = nullptr;
    CHECK(loaded_code_bytes() == before);
}

static void code_that_goes_leaves_room() {
    for (int i = 0; i < 20'000; ++i) { // the system has 65,530 mappings for a process
        auto bytes = returning(i);
        Ref<Code> odd = load_code(bytes.data(), bytes.size());
        Ref<Code> even = load_code(bytes.data(), bytes.size());
        CHECK(called(odd) == i && called(even) == i);
    }
    CHECK(loaded_code_bytes() < 5'000 * 4096);
}

static void no_code_goes_once_the_end_has_begun() {
    auto bytes = returning(5);
    Ref<Code> code = load_code(bytes.data(), bytes.size());
    const void* address = code->begin;
    disable_unloading();
    code = nullptr;
    CHECK(is_mapped(address));
}

static void code_may_be_larger_than_an_arena() {
    auto code = returning(7);
    code.resize(3 << 20);
    CHECK(called(load_code(code.data(), code.size())) == 7);
}

static void nothing_and_too_much_are_not_loaded() {
    auto code = returning(7);
    CHECK(!load_code(code.data(), 0));
    CHECK(!load_code(code.data(), std::size_t(1) << 40));
}

static void threads_load_and_run_at_once() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([i] {
            for (int k = 0; k < 500; ++k) {
                auto code = returning(1000 * i + k);
                CHECK(called(load_code(code.data(), code.size())) == 1000 * i + k);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

static void the_child_of_a_fork_runs_what_was_loaded_and_loads_more() {
    auto first = returning(41), second = returning(42);
    Ref<Code> before = load_code(first.data(), first.size());
    pid_t child = fork();
    if (child == 0) {
        Ref<Code> after = load_code(second.data(), second.size());
        _exit(called(before) == 41 && called(after) == 42 ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void the_processor_is_the_same_for_every_thread() {
    auto here = processor_identity();
    std::vector<uint32_t> there;
    std::thread([&] { there = processor_identity(); }).join();
    CHECK(here == there && here.size() > 6);
    CHECK(processor_level() >= 1 && processor_level() <= 4);
}

int main() {
    register_fork_handlers();
    code_stays_where_it_is_while_more_is_loaded();
    code_may_be_larger_than_an_arena();
    code_goes_with_whoever_holds_it_last();
    code_that_goes_leaves_room();
    nothing_and_too_much_are_not_loaded();
    threads_load_and_run_at_once();
    the_child_of_a_fork_runs_what_was_loaded_and_loads_more();
    the_processor_is_the_same_for_every_thread();
    no_code_goes_once_the_end_has_begun(); // nothing after it
}
