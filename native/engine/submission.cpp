#include "engine/submission.h"

namespace tenfold {
namespace {

constexpr std::size_t MOST_NODES = 512;
constexpr int64_t MOST_ELEMENTS = 1 << 16;
constexpr int64_t MOST_OF_MATRICES = 1 << 12; // of what takes more than an operation for each

bool is_small(Node& node) {
    if (node.op && node.op->unbounded_time && !value_of(&node)) return false;
    bool matrices = node.op && node.op->shapes == Op::stated && !node.op->view;
    return node.type->size() <= (matrices ? MOST_OF_MATRICES : MOST_ELEMENTS);
}

} // namespace

bool are_small(std::span<Node* const> outputs) {
    if (outputs.size() > MOST_NODES) return false;
    std::vector<Ref<Node>> below; // a node that is read twice is looked at twice: it is few or many
    for (Node* output : outputs) below.emplace_back(output);
    for (std::size_t seen = 0; seen < below.size(); ++seen) {
        if (seen > MOST_NODES || !is_small(*below[seen])) return false;
        Ref<Node> node = below[seen];
        look(node.get(), below);
    }
    return true;
}

} // namespace tenfold
