#include "ir/linearize.h"

#include <array>
#include <bit>

#include "ir/position_map.h"
#include "ir/submission.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

constexpr uint32_t NONE = ~uint32_t(0);
constexpr std::size_t SMALL_GRAPH_NODES = 64; // nodes of a graph that is in the nearest cache
// From a node of a larger one to that which is fetched.
constexpr std::ptrdiff_t PREFETCH_DISTANCE = 8;

// A stack frame of the traversal. Its inputs are at the end of `inputs_`; the edges have space for
// their positions.
struct Frame {
    Ref<Node> node;
    uint32_t first_input, next_input, first_edge;
    bool shared; // whether the traversal may reach it again
};

// Whether only the node and the linearized graph reference the value and its memory, so that it may
// be overwritten.
bool is_unaliased(const Value& value) {
    const Allocation& memory = *value.buffers[0].allocation;
    return !memory.owner && !value.next && value.references.load(std::memory_order_relaxed) == 2 &&
           memory.references.load(std::memory_order_relaxed) == 1 && !may_overlap_itself(value);
}

// Memory of a linearization, reused by the thread's next one, except that of a large graph.
struct LinearizerScratch {
    static constexpr std::size_t MAX_KEPT_NODES = 1024;
    std::vector<Frame> stack;
    std::vector<Ref<Node>> inputs;
    PositionMap positions;
    std::vector<LinearizedNode> nodes;
    std::vector<uint32_t> edges, outputs;
    std::size_t last_large_size =
        0; // nodes of the last large graph: the next one is often as large
};

class Linearizer {
  public:
    explicit Linearizer(std::size_t outputs) {
        positions_.reserve_hint(outputs);
        graph_.nodes = std::move(scratch_.nodes);
        graph_.edges = std::move(scratch_.edges);
        graph_.outputs = std::move(scratch_.outputs);
    }
    ~Linearizer() {
        stack_.clear(); // an error may have left something
        inputs_.clear();
        positions_.clear();
        if (positions_.capacity() <= LinearizerScratch::MAX_KEPT_NODES) return;
        std::size_t last_large_size = scratch_.last_large_size;
        scratch_ = {};
        scratch_.last_large_size = last_large_size;
    }

    // Prefetches upcoming outputs and their inputs, unless other threads may be changing them.
    static void prefetch(std::span<Node* const> outputs) {
        if (outputs.size() <= 2 * PREFETCH_DISTANCE || !no_gil_free_threads()) return;
        prefetch_node(outputs[2 * PREFETCH_DISTANCE]);
        for (Node* input : outputs[PREFETCH_DISTANCE]->inline_inputs) prefetch_node(input);
    }

    void add_output(Node* output) {
        uint32_t position = positions_.find(output);
        if (position == NONE) {
            position = visit(Ref<Node>(output), true);
            while (!stack_.empty()) step();
            if (position == NONE) position = uint32_t(graph_.nodes.size() - 1);
        }
        graph_.outputs.push_back(position);
    }

    LinearizedGraph finish() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            if (graph_.nodes.size() > SMALL_GRAPH_NODES) graph_.prefetch(i);
            LinearizedNode& entry = graph_.nodes[i];
            // Each use by a pending node of the graph is one count, the graph's own is another.
            // Relaxed: a new holder can only come from one that is counted already.
            uint32_t references = entry.node->references.load(std::memory_order_relaxed);
            entry.live_out = references > entry.num_uses + 1;
            entry.dead_after_read = !entry.live_out && entry.value && is_unaliased(*entry.value);
            const Op* op = entry.value ? nullptr : entry.node->op;
            graph_.num_ops += op ? op->weight : 1;
            graph_.num_calls += op && op->weight > 1;
            uint32_t claim = entry.node->claimed_by.load(std::memory_order_acquire);
            if (claim) graph_.claimed_by = claim;
            if (entry.value) continue;
            keeps_history_ |= entry.node->has(KEEPS_HISTORY);
            if (is_submitted(*entry.node)) graph_.has_submitted = true;
            std::size_t depth = entry.node->depth.load(std::memory_order_relaxed);
            graph_.depth = std::max(graph_.depth, depth);
        }
        for (uint32_t output : graph_.outputs) graph_.nodes[output].live_out = true;
        if (keeps_history_) keep_history();
        if (graph_.nodes.size() > LinearizerScratch::MAX_KEPT_NODES)
            scratch_.last_large_size = graph_.nodes.size();
        return std::move(graph_);
    }

  private:
    // A node that keeps its history may be computed again, and all below it: so nothing overwrites
    // the values that it is made of.
    void keep_history() {
        std::vector<bool> needed(graph_.nodes.size());
        for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
            const LinearizedNode& entry = graph_.nodes[i];
            if (entry.value || !(needed[i] || entry.node->has(KEEPS_HISTORY))) continue;
            for (uint32_t input : graph_.inputs(entry)) {
                needed[input] = true;
                graph_.nodes[input].dead_after_read = false;
                if (entry.node->op->updates) graph_.nodes[input].live_out = true;
            }
        }
    }

    // Visits a node and returns its position if it is a leaf or computed. Nodes created before and
    // after it are adjacent in memory.
    [[gnu::always_inline]] uint32_t visit(Ref<Node> node, bool shared) {
        std::size_t begin = inputs_.size(), first = graph_.edges.size();
        if (graph_.nodes.size() > SMALL_GRAPH_NODES)
            prefetch_node(node.get() - PREFETCH_DISTANCE),
                prefetch_node(node.get() + PREFETCH_DISTANCE);
        Ref<Value> value = load_value_or_inputs(node.get(), inputs_);
        if (inputs_.size() == begin) return add(node, value, uint32_t(first), 0, shared);
        if (!no_gil_free_threads())
            for (std::size_t i = begin; i < inputs_.size(); ++i) prefetch_node(inputs_[i].get());
        for (std::size_t i = begin; i < inputs_.size(); ++i) graph_.edges.push_back(NONE);
        stack_.push_back(
            {std::move(node), uint32_t(begin), uint32_t(begin), uint32_t(first), shared});
        return NONE;
    }

    [[gnu::always_inline]] void step() {
        Frame& frame = stack_.back();
        if (frame.next_input == inputs_.size()) {
            finish_node();
            return;
        }
        Ref<Node> input =
            std::move(inputs_[frame.next_input++]); // only the graph and its readers count
        // A node without other references has one reader: this edge is the only way to it. A scalar
        // has a position for each read, whether its readers share a node or not.
        bool shared = input->references.load(std::memory_order_relaxed) > 2 && !input->is_scalar();
        uint32_t position = shared ? positions_.find(input.get()) : NONE;
        if (position == NONE) position = visit(std::move(input), shared);
        if (position != NONE) connect(position);
    }

    // Links the node on top to the input that it has come to last.
    void connect(uint32_t position) {
        const Frame& frame = stack_.back();
        ++graph_.nodes[position].num_uses;
        graph_.edges[frame.first_edge + (frame.next_input - frame.first_input) - 1] = position;
    }

    [[gnu::always_inline]] void finish_node() {
        Frame& frame = stack_.back();
        Ref<Value> no_value;
        uint32_t position = add(frame.node, no_value, frame.first_edge,
                                frame.next_input - frame.first_input, frame.shared);
        while (inputs_.size() > frame.first_input) inputs_.pop_back();
        stack_.pop_back();
        if (!stack_.empty()) connect(position);
    }

    // Reserves memory for a large graph.
    void reserve(uint32_t position) {
        if (position == LinearizerScratch::MAX_KEPT_NODES) {
            graph_.nodes.reserve(scratch_.last_large_size);
            graph_.edges.reserve(2 * scratch_.last_large_size);
        }
        prefetch_for_write(graph_.nodes.data() + position + PREFETCH_DISTANCE);
    }

    // Takes ownership of its arguments.
    [[gnu::always_inline]] uint32_t add(Ref<Node>& node, Ref<Value>& value, uint32_t first,
                                        uint32_t width, bool shared) {
        auto position = uint32_t(graph_.nodes.size());
        if (position >= SMALL_GRAPH_NODES) reserve(position);
        if (shared) positions_.put(node.get(), position);
        graph_.nodes.push_back({std::move(node), std::move(value), first, width});
        return position;
    }

    LinearizedGraph graph_;
    bool keeps_history_ = false;
    LinearizerScratch& scratch_ =
        ThreadLocal<LinearizerScratch>::get(); // linearization never calls itself
    std::vector<Frame>& stack_ = scratch_.stack;
    std::vector<Ref<Node>>& inputs_ = scratch_.inputs;
    PositionMap& positions_ = scratch_.positions;
};

} // namespace

LinearizedGraph::~LinearizedGraph() {
    if (nodes.capacity() > LinearizerScratch::MAX_KEPT_NODES)
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            prefetch(i);
            nodes[i].value = nullptr;
            nodes[i].node = nullptr;
        }
    if (nodes.capacity() == 0 || nodes.capacity() > LinearizerScratch::MAX_KEPT_NODES) return;
    nodes.clear(); // this may free arrays, but runs no Python: no linearization starts meanwhile
    edges.clear();
    outputs.clear();
    LinearizerScratch& scratch = ThreadLocal<LinearizerScratch>::get();
    scratch.nodes = std::move(nodes);
    scratch.edges = std::move(edges);
    scratch.outputs = std::move(outputs);
}

LinearizedGraph linearize(std::span<Node* const> outputs) {
    Linearizer nodes(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        Linearizer::prefetch(outputs.subspan(i));
        nodes.add_output(outputs[i]);
    }
    return nodes.finish();
}

} // namespace tenfold
