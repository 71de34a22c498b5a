// The canonical walk: every node below some outputs, inputs before users, in an order that depends
// only on the shape of the graph. Iterative, linear, and without marks in the nodes.
#pragma once
#include <span>
#include <vector>

#include "node.h"

namespace tenfold {

struct WalkedNode {
    Ref<Node> node;
    std::vector<uint32_t> inputs; // positions in the walk; empty for leaves and computed nodes
    uint32_t uses = 0;            // how often nodes of the walk read it
    bool held = false;            // somebody outside of the walk can see it
};

std::vector<WalkedNode> walk(std::span<Node* const> outputs);

} // namespace tenfold
