#include "ir/linearize.h"

#include <array>
#include <bit>

#include "engine/submission.h"
#include "ir/intern.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

constexpr uint32_t NOWHERE = ~uint32_t(0);
constexpr std::size_t SMALL = 64;  // nodes of a graph that is in the nearest cache
constexpr std::ptrdiff_t SOON = 8; // from a node of a larger one to that which is fetched

// Positions by node: the first few in a row, since few are shared, more by open addressing.
class Positions {
  public:
    uint32_t find(Node* node) const {
        if (count_ > FEW) return places_[place_of(node)].second;
        for (uint32_t i = 0; i < count_; ++i)
            if (few_[i].first == node) return few_[i].second;
        return NOWHERE;
    }

    void put(Node* node, uint32_t position) {
        if (count_ < FEW) {
            few_[count_++] = {node, position};
            return;
        }
        if (count_++ == FEW) begin();
        if (2 * count_ > places_.size()) grow();
        places_[place_of(node)] = {node, position};
    }

    void clear() { count_ = 0; }
    void expect(std::size_t count) { expected_ = 4 * count; }
    std::size_t room() const { return places_.capacity(); }

  private:
    using Place = std::pair<Node*, uint32_t>;
    static constexpr std::size_t FEW = 12, NEAR = 128, ROW = 64;
    static_assert(sizeof(Node) >= NEAR, "two nodes have two numbers");

    // Nodes that were made one after the other lie so in memory, and here: a row that meets another
    // goes around it in one step.
    std::size_t place_of(Node* node) const {
        std::size_t mask = places_.size() - 1, number = reinterpret_cast<std::size_t>(node) / NEAR;
        std::size_t at = (mix(0, number / ROW) * ROW + number % ROW) & mask;
        while (places_[at].first && places_[at].first != node) at = (at + ROW + 1) & mask;
        return at;
    }

    void begin() {
        places_.assign(std::max<std::size_t>(64, std::bit_ceil(expected_)), {nullptr, NOWHERE});
        for (const Place& place : few_) places_[place_of(place.first)] = place;
    }

    void grow() {
        std::vector<Place> before(2 * places_.size(), {nullptr, NOWHERE});
        before.swap(places_);
        for (const Place& place : before)
            if (place.first) places_[place_of(place.first)] = place;
    }

    std::array<Place, FEW> few_;
    std::vector<Place> places_;
    std::size_t count_ = 0, expected_ = 0;
};

// A node on the way down. Its inputs stand at the end of `inputs_`; there is room for their
// positions in the edges.
struct Frame {
    Ref<Node> node;
    uint32_t inputs, next, first;
    bool shared; // whether the walk may come by again
};

// Whether the node's reference and the walk's are the only ones, to the value and to its memory,
// so that it may be written over.
bool is_alone(const Value& value) {
    const Allocation& memory = *value.buffers[0].allocation;
    return !memory.owner && !value.next && value.references.load(std::memory_order_relaxed) == 2 &&
           memory.references.load(std::memory_order_relaxed) == 1;
}

// What a walk needs memory for; the next one of the thread has it again, but for that of a large
// graph.
struct LinearizerScratch {
    static constexpr std::size_t MOST = 1024;
    std::vector<Frame> stack;
    std::vector<Ref<Node>> inputs;
    Positions seen;
    std::vector<LinearizedNode> nodes;
    std::vector<uint32_t> edges, outputs;
    std::size_t last = 0; // nodes of the last large graph: the next one is often as large
};

class Linearizer {
  public:
    explicit Linearizer(std::size_t outputs) {
        seen_.expect(outputs);
        walked_.nodes = std::move(ground_.nodes);
        walked_.edges = std::move(ground_.edges);
        walked_.outputs = std::move(ground_.outputs);
    }
    ~Linearizer() {
        stack_.clear(); // an error may have left something
        inputs_.clear();
        seen_.clear();
        if (seen_.room() <= LinearizerScratch::MOST) return;
        std::size_t last = ground_.last;
        ground_ = {};
        ground_.last = last;
    }

    // Of many outputs those that come soon, and what they read; unless others may be changing them.
    static void fetch_ahead(std::span<Node* const> outputs) {
        if (outputs.size() <= 2 * SOON || !alone()) return;
        fetch(outputs[2 * SOON]);
        for (Node* input : outputs[SOON]->few) fetch(input);
    }

    void from(Node* output) {
        uint32_t found = seen_.find(output);
        if (found == NOWHERE) {
            found = come_to(Ref<Node>(output), true);
            while (!stack_.empty()) step();
            if (found == NOWHERE) found = uint32_t(walked_.nodes.size() - 1);
        }
        walked_.outputs.push_back(found);
    }

    LinearizedGraph finish() {
        for (std::size_t i = 0; i < walked_.nodes.size(); ++i) {
            if (walked_.nodes.size() > SMALL) walked_.fetch_ahead(i);
            LinearizedNode& walked = walked_.nodes[i];
            // Each use by a pending node of the walk is one count, the walk's own is another.
            // Relaxed: a new holder can only come from one that is counted already.
            uint32_t references = walked.node->references.load(std::memory_order_relaxed);
            walked.held = references > walked.uses + 1;
            walked.dying = !walked.held && walked.value && is_alone(*walked.value);
            const Op* op = walked.value ? nullptr : walked.node->op;
            walked_.weight += op ? op->weight : 1;
            walked_.calls += op && op->weight > 1;
            uint32_t claim = walked.node->claim.load(std::memory_order_acquire);
            if (claim) walked_.busy = claim;
            if (walked.value) continue;
            if (is_submitted(*walked.node)) walked_.submitted = true;
            std::size_t depth = walked.node->depth.load(std::memory_order_relaxed);
            walked_.deepest = std::max(walked_.deepest, depth);
        }
        for (uint32_t output : walked_.outputs) walked_.nodes[output].held = true;
        if (walked_.nodes.size() > LinearizerScratch::MOST) ground_.last = walked_.nodes.size();
        return std::move(walked_);
    }

  private:
    // Of a leaf, or a node that was computed, where it stands now. What was made before and after
    // it lies so in memory.
    [[gnu::always_inline]] uint32_t come_to(Ref<Node> node, bool shared) {
        std::size_t begin = inputs_.size(), first = walked_.edges.size();
        if (walked_.nodes.size() > SMALL) fetch(node.get() - SOON), fetch(node.get() + SOON);
        Ref<Value> value = look(node.get(), inputs_);
        if (inputs_.size() == begin) return add(node, value, uint32_t(first), 0, shared);
        if (!alone())
            for (std::size_t i = begin; i < inputs_.size(); ++i) fetch(inputs_[i].get());
        for (std::size_t i = begin; i < inputs_.size(); ++i) walked_.edges.push_back(NOWHERE);
        stack_.push_back(
            {std::move(node), uint32_t(begin), uint32_t(begin), uint32_t(first), shared});
        return NOWHERE;
    }

    [[gnu::always_inline]] void step() {
        Frame& top = stack_.back();
        if (top.next == inputs_.size()) {
            leave();
            return;
        }
        Ref<Node> input = std::move(inputs_[top.next++]); // only the walk and its readers count
        // A node without other references has one reader: this edge is the only way to it. A scalar
        // has a position for each read, whether its readers share a node or not.
        bool shared = input->references.load(std::memory_order_relaxed) > 2 && !input->is_scalar();
        uint32_t found = shared ? seen_.find(input.get()) : NOWHERE;
        if (found == NOWHERE) found = come_to(std::move(input), shared);
        if (found != NOWHERE) read(found);
    }

    // By the node on top: the input it has come to last.
    void read(uint32_t position) {
        const Frame& top = stack_.back();
        ++walked_.nodes[position].uses;
        walked_.edges[top.first + (top.next - top.inputs) - 1] = position;
    }

    [[gnu::always_inline]] void leave() {
        Frame& top = stack_.back();
        Ref<Value> none;
        uint32_t position = add(top.node, none, top.first, top.next - top.inputs, top.shared);
        while (inputs_.size() > top.inputs) inputs_.pop_back();
        stack_.pop_back();
        if (!stack_.empty()) read(position);
    }

    // Of a large graph.
    void make_room(uint32_t position) {
        if (position == LinearizerScratch::MOST) {
            walked_.nodes.reserve(ground_.last);
            walked_.edges.reserve(2 * ground_.last);
        }
        fetch_to_write(walked_.nodes.data() + position + SOON);
    }

    // Takes over what it is given.
    [[gnu::always_inline]] uint32_t add(Ref<Node>& node, Ref<Value>& value, uint32_t first,
                                        uint32_t width, bool shared) {
        auto position = uint32_t(walked_.nodes.size());
        if (position >= SMALL) make_room(position);
        if (shared) seen_.put(node.get(), position);
        walked_.nodes.push_back({std::move(node), std::move(value), first, width});
        return position;
    }

    LinearizedGraph walked_;
    LinearizerScratch& ground_ =
        ThreadLocal<LinearizerScratch>::get(); // nothing that runs in a walk walks itself
    std::vector<Frame>& stack_ = ground_.stack;
    std::vector<Ref<Node>>& inputs_ = ground_.inputs;
    Positions& seen_ = ground_.seen;
};

} // namespace

LinearizedGraph::~LinearizedGraph() {
    if (nodes.capacity() > LinearizerScratch::MOST)
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            fetch_ahead(i);
            nodes[i].value = nullptr;
            nodes[i].node = nullptr;
        }
    if (nodes.capacity() == 0 || nodes.capacity() > LinearizerScratch::MOST) return;
    nodes.clear(); // this may free arrays, not Python's: nothing walks meanwhile
    edges.clear();
    outputs.clear();
    LinearizerScratch& ground = ThreadLocal<LinearizerScratch>::get();
    ground.nodes = std::move(nodes);
    ground.edges = std::move(edges);
    ground.outputs = std::move(outputs);
}

LinearizedGraph walk(std::span<Node* const> outputs) {
    Linearizer nodes(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        Linearizer::fetch_ahead(outputs.subspan(i));
        nodes.from(outputs[i]);
    }
    return nodes.finish();
}

} // namespace tenfold
