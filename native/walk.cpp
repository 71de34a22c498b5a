#include "walk.h"

#include "intern.h"

namespace tenfold {
namespace {

constexpr uint32_t NOWHERE = ~uint32_t(0);

// Positions by node: open addressing, since most graphs are small and die at once.
class Positions {
  public:
    uint32_t find(Node* node) const { return places_[place_of(node)].second; }

    void put(Node* node, uint32_t position) {
        if (2 * ++count_ > places_.size()) grow();
        places_[place_of(node)] = {node, position};
    }

  private:
    using Place = std::pair<Node*, uint32_t>;

    std::size_t place_of(Node* node) const {
        std::size_t mask = places_.size() - 1;
        std::size_t at = mix(0, reinterpret_cast<std::size_t>(node)) & mask;
        while (places_[at].first && places_[at].first != node) at = (at + 1) & mask;
        return at;
    }

    void grow() {
        std::vector<Place> before(2 * places_.size(), {nullptr, NOWHERE});
        before.swap(places_);
        for (const Place& place : before)
            if (place.first) places_[place_of(place.first)] = place;
    }

    std::vector<Place> places_{64, {nullptr, NOWHERE}};
    std::size_t count_ = 0;
};

// A node on the way down. Its inputs stand at the end of `inputs_`, the positions of those that
// were left behind at the end of `below_`.
struct Frame {
    Ref<Node> node;
    Ref<Value> value;
    std::size_t inputs, next, below;
};

// Whether the node's reference and the walk's are the only ones, to the value and to its memory,
// so that it may be written over.
bool is_alone(const Value& value) {
    const Allocation& memory = *value.buffers[0].allocation;
    return !memory.owner && !value.next && value.references.load(std::memory_order_relaxed) == 2 &&
           memory.references.load(std::memory_order_relaxed) == 1;
}

class Walk {
  public:
    void from(Node* output) {
        if (seen_.find(output) != NOWHERE) return;
        push(Ref<Node>(output));
        while (!stack_.empty()) step();
    }

    Walked finish(std::span<Node* const> outputs) {
        for (WalkedNode& walked : walked_.nodes) {
            // Each use by a pending node of the walk is one count, the walk's own is another.
            // Relaxed: a new holder can only come from one that is counted already.
            uint32_t references = walked.node->references.load(std::memory_order_relaxed);
            walked.held = references > walked.uses + 1;
            walked.dying = !walked.held && walked.value && is_alone(*walked.value);
            uint32_t claim = walked.node->claim.load(std::memory_order_acquire);
            if (claim) walked_.busy = claim;
        }
        for (Node* output : outputs) {
            walked_.outputs.push_back(seen_.find(output));
            walked_.nodes[walked_.outputs.back()].held = true;
        }
        return std::move(walked_);
    }

  private:
    void push(Ref<Node> node) {
        std::size_t begin = inputs_.size();
        Ref<Value> value = look(node.get(), inputs_); // no inputs: a leaf, or computed
        stack_.push_back({std::move(node), std::move(value), begin, begin, below_.size()});
    }

    void step() {
        Frame& top = stack_.back();
        if (top.next == inputs_.size()) {
            leave(top);
            return;
        }
        Ref<Node>& input = inputs_[top.next];
        uint32_t found = seen_.find(input.get());
        if (found == NOWHERE) {
            push(Ref<Node>(input));
            return;
        }
        ++walked_.nodes[found].uses;
        below_.push_back(found);
        input = nullptr; // so that only the walk and the using nodes count
        ++top.next;
    }

    void leave(Frame& top) {
        seen_.put(top.node.get(), uint32_t(walked_.nodes.size()));
        auto begin = below_.begin() + std::ptrdiff_t(top.below);
        auto width = uint32_t(below_.end() - begin);
        walked_.nodes.push_back(
            {std::move(top.node), std::move(top.value), uint32_t(walked_.edges.size()), width});
        walked_.edges.insert(walked_.edges.end(), begin, below_.end());
        below_.erase(begin, below_.end());
        inputs_.resize(top.inputs);
        stack_.pop_back();
    }

    Walked walked_;
    std::vector<Frame> stack_;
    std::vector<Ref<Node>> inputs_;
    std::vector<uint32_t> below_;
    Positions seen_;
};

} // namespace

Walked walk(std::span<Node* const> outputs) {
    Walk nodes;
    for (Node* output : outputs) nodes.from(output);
    return nodes.finish(outputs);
}

} // namespace tenfold
