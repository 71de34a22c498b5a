// Submissions: asynchronous evaluations, started by `tn.eval`. Until one has ended, a reader of the
// nodes that it computes waits for it. So nothing is computed twice, and the result of a node does
// not depend on which reader comes first.
#pragma once
#include "ir/node.h"
#include "threads/futex.h"

namespace tenfold {

// A node has the number of its submission, which is not 0. All is written with the GIL.
inline Word submissions_ended{0}; // futex of waiting readers
inline std::atomic<uint32_t> last_submission{0}, oldest_submission{1};
inline thread_local bool in_submission = false;
inline std::atomic<uint32_t> submissions_stopped{0}; // how often loops in them were told to stop

inline bool is_submitted(const Node& node) {
    if (in_submission) return false;
    uint32_t number = node.submission.load(std::memory_order_relaxed);
    return number && number >= oldest_submission.load(std::memory_order_relaxed);
}

inline void notify_submission_ended() {
    submissions_ended.fetch_add(1, std::memory_order_release);
    wake(submissions_ended, 1 << 30);
}

// Whether these are computed sooner than a thread is woken for it: few nodes of few elements.
bool are_all_small(std::span<Node* const> outputs);

} // namespace tenfold
