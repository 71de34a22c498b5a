#include "ir/submission.h"

#include "memory/target_facts.h"

namespace tenfold {
namespace {

constexpr int64_t MAX_MATRIX_ELEMENTS = 1 << 12; // elements for ops with several steps per element

bool is_small(Node& node) {
    if (node.op && node.op->unbounded_time && !value_of(&node)) return false;
    bool is_matrix_op = node.op && node.op->shapes == Op::stated && !node.op->view;
    return node.type->size() <= (is_matrix_op ? MAX_MATRIX_ELEMENTS : STACKED_ELEMENTS);
}

} // namespace

bool are_all_small(std::span<Node* const> outputs) {
    if (outputs.size() > MAX_PLANNED_NODES) return false;
    std::vector<Ref<Node>> stack; // a node that is read twice is looked at twice: it is few or many
    for (Node* output : outputs) stack.emplace_back(output);
    for (std::size_t next = 0; next < stack.size(); ++next) {
        if (next > MAX_PLANNED_NODES || !is_small(*stack[next])) return false;
        Ref<Node> node = stack[next];
        load_value_or_inputs(node.get(), stack);
    }
    return true;
}

} // namespace tenfold
