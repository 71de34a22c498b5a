// Guard page test: a block is accessible to its last byte, and accesses outside it stop the
// process. So does an access to a freed block.
#include "check.h"
#include "memory/guard_pages.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tenfold;

constexpr std::uintptr_t PAGE = 4096;

static std::uintptr_t address_of(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
}

// The signal that ends a process which does this; 0 where none does.
static int signal_of(const std::function<void()>& act) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); // a sanitizer has a handler of its own
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        act();
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void read_at(const void* memory, std::ptrdiff_t offset) {
    static_cast<void>(*(static_cast<const volatile char*>(memory) + offset));
}

// Blocks of both kinds: among any three successive ones both occur.
static void for_both(std::size_t bytes, const std::function<void(char*, bool)>& check) {
    bool begins = false, ends = false;
    for (int i = 0; i < 3; ++i) {
        auto* memory = static_cast<char*>(map_guarded(bytes));
        CHECK(memory);
        bool at_begin = address_of(memory) % PAGE == 0;
        bool at_end = (address_of(memory) + bytes) % PAGE == 0;
        CHECK(at_begin || at_end);
        begins |= at_begin;
        ends |= at_end;
        check(memory, at_end);
        unmap_guarded(memory, bytes);
    }
    CHECK(begins && ends);
}

static void a_byte_outside_stops_the_process() {
    for (std::size_t bytes : {1ul, 24ul, 4095ul, 4096ul, 4097ul, 100'000ul, 3'000'000ul})
        for_both(bytes, [&](char* memory, bool at_end) {
            std::memset(memory, 1, bytes);
            std::ptrdiff_t outside = at_end ? std::ptrdiff_t(bytes) : -1;
            CHECK(signal_of([&] { read_at(memory, outside); }) == SIGSEGV);
            CHECK(signal_of([&] { read_at(memory, at_end ? 0 : std::ptrdiff_t(bytes) - 1); }) == 0);
        });
}

static void a_byte_written_between_block_and_page_is_found_when_it_is_freed() {
    for_both(100, [&](char* memory, bool at_end) {
        CHECK(signal_of([&] {
                  memory[at_end ? -1 : 100] = 0;
                  unmap_guarded(memory, 100);
              }) == SIGABRT);
    });
}

static void freed_memory_is_unmapped() {
    CHECK(signal_of([] {
              void* memory = map_guarded(64);
              unmap_guarded(memory, 64);
              read_at(memory, 0);
          }) == SIGSEGV);
}

static void a_block_of_no_bytes_holds_none() {
    void* memory = map_guarded(0);
    CHECK(memory && signal_of([&] { read_at(memory, 0); }) == SIGSEGV);
    CHECK(signal_of([&] { read_at(memory, -1); }) == SIGSEGV);
    unmap_guarded(memory, 0);
}

int main() {
    a_byte_outside_stops_the_process();
    a_byte_written_between_block_and_page_is_found_when_it_is_freed();
    freed_memory_is_unmapped();
    a_block_of_no_bytes_holds_none();
    CHECK(map_guarded(std::size_t(1) << 61) == nullptr);
}
