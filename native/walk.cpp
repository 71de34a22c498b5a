#include "walk.h"

#include <unordered_map>

namespace tenfold {
namespace {

struct Frame {
    Ref<Node> node;
    std::vector<Ref<Node>> inputs;
    std::vector<uint32_t> positions;
    std::size_t next = 0;
};

class Walk {
  public:
    void from(Node* output) {
        if (seen_.contains(output)) return;
        push(Ref<Node>(output));
        while (!stack_.empty()) step();
    }

    std::vector<WalkedNode> finish(std::span<Node* const> outputs) {
        for (WalkedNode& walked : order_) {
            // Each use by a pending node of the walk is one count, the walk's own is another.
            // Relaxed: a new holder can only come from one that is counted already.
            uint32_t references = walked.node->references.load(std::memory_order_relaxed);
            walked.held = references > walked.uses + 1;
        }
        for (Node* output : outputs) order_[seen_.at(output)].held = true;
        return std::move(order_);
    }

  private:
    void push(Ref<Node> node) {
        Frame frame;
        frame.inputs = inputs_of(node.get()); // none for a leaf and for a computed node
        frame.positions.reserve(frame.inputs.size());
        frame.node = std::move(node);
        stack_.push_back(std::move(frame));
    }

    void step() {
        Frame& top = stack_.back();
        if (top.next == top.inputs.size()) {
            seen_.emplace(top.node.get(), uint32_t(order_.size()));
            order_.push_back({std::move(top.node), std::move(top.positions)});
            stack_.pop_back();
            return;
        }
        Ref<Node>& input = top.inputs[top.next];
        auto found = seen_.find(input.get());
        if (found == seen_.end()) {
            push(input);
            return;
        }
        ++order_[found->second].uses;
        top.positions.push_back(found->second);
        input = nullptr; // so that only the walk and the using nodes count
        ++top.next;
    }

    std::vector<Frame> stack_;
    std::vector<WalkedNode> order_;
    std::unordered_map<Node*, uint32_t> seen_;
};

} // namespace

std::vector<WalkedNode> walk(std::span<Node* const> outputs) {
    Walk nodes;
    for (Node* output : outputs) nodes.from(output);
    return nodes.finish(outputs);
}

} // namespace tenfold
