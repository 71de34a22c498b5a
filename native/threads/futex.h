// Futex: a thread sleeps until a word changes. A fork may copy its state, unlike that of a mutex
// and a condition variable.
#pragma once
#include <atomic>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tenfold {

using Word = std::atomic<uint32_t>;

inline void sleep_while(Word& word, uint32_t value, const timespec* timeout) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

inline void wake(Word& word, int sleepers) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

} // namespace tenfold
