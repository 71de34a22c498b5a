// Submission bindings: Python's interface to asynchronous evaluations, see ir/submission.h.
#include "ir/submission.h"

#include "python/value_bindings.h"

namespace tenfold::bindings {
namespace {

// submit(nodes): from now on a thread that reaches one of them waits for the end of the submission.
void submit(const NodesHandle& pending) {
    uint32_t number = last_submission.load() + 1;
    if (number == 0) ++number;
    last_submission.store(number);
    for (const Ref<Node>& node : pending.nodes)
        node->submission.store(number, std::memory_order_relaxed);
}

// end(nodes): releases them, so that the submission holds no reference to computed nodes.
void end(NodesHandle& nodes) {
    for (const Ref<Node>& node : nodes.nodes) node->submission.store(0, std::memory_order_relaxed);
    std::exchange(nodes.nodes, {});
    notify_submission_ended();
}

// The present submissions will never run: a waiting thread computes its nodes itself.
void forget() {
    oldest_submission.store(last_submission.load() + 1);
    submissions_stopped.fetch_add(1);
    notify_submission_ended();
}

} // namespace

void declare_submissions(nb::module_& module) {
    using namespace nb::literals;
    module.def(
        "are_all_small", [](nb::handle nodes) { return are_all_small(nodes_from(nodes)); },
        "nodes"_a);
    module.def("submit", submit, "nodes"_a);
    module.def("end_submission", end, "nodes"_a);
    module.def("forget_submissions", forget);
    module.def(
        "run_submissions_here", [](bool here) { in_submission = here; }, "here"_a);
}

} // namespace tenfold::bindings
