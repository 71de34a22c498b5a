#include "walk.h"

#include <array>

#include "intern.h"

namespace tenfold {
namespace {

constexpr uint32_t NOWHERE = ~uint32_t(0);

// Positions by node: the first few in a row, since most graphs are small, more by open addressing.
class Positions {
  public:
    uint32_t find(Node* node) const {
        if (!places_.empty()) return places_[place_of(node)].second;
        for (uint32_t i = 0; i < count_; ++i)
            if (few_[i] == node) return i;
        return NOWHERE;
    }

    // Positions are given one after the other.
    void put(Node* node, uint32_t position) {
        if (count_ < FEW) {
            few_[count_++] = node;
            return;
        }
        if (count_++ == FEW) begin();
        if (2 * count_ > places_.size()) grow();
        places_[place_of(node)] = {node, position};
    }

  private:
    using Place = std::pair<Node*, uint32_t>;
    static constexpr std::size_t FEW = 12;

    std::size_t place_of(Node* node) const {
        std::size_t mask = places_.size() - 1;
        std::size_t at = mix(0, reinterpret_cast<std::size_t>(node)) & mask;
        while (places_[at].first && places_[at].first != node) at = (at + 1) & mask;
        return at;
    }

    void begin() {
        places_.assign(64, {nullptr, NOWHERE});
        for (std::size_t i = 0; i < FEW; ++i) places_[place_of(few_[i])] = {few_[i], uint32_t(i)};
    }

    void grow() {
        std::vector<Place> before(2 * places_.size(), {nullptr, NOWHERE});
        before.swap(places_);
        for (const Place& place : before)
            if (place.first) places_[place_of(place.first)] = place;
    }

    std::array<Node*, FEW> few_;
    std::vector<Place> places_;
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
    Walk() { // at once what most graphs need
        walked_.nodes.reserve(USUAL);
        walked_.edges.reserve(USUAL);
        stack_.reserve(USUAL);
        inputs_.reserve(USUAL);
        below_.reserve(USUAL);
    }

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
    static constexpr std::size_t USUAL = 12;

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
