#include "ir/cse.h"

#include <algorithm>
#include <bit>

namespace tenfold {
namespace {

constexpr int64_t MIN_ELEMENTS = 64; // elements that a node reads and makes

// Only the nearest double of a big integer is known here.
bool is_equal_scalar(const Scalar& one, const Scalar& other) {
    auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
    if (one.form == Scalar::none || one.form == Scalar::big_integer) return false;
    return one.form == other.form && one.integer_bits == other.integer_bits &&
           bits(one.real) == bits(other.real) && bits(one.imaginary) == bits(other.imaginary);
}

class CsePass {
  public:
    explicit CsePass(LinearizedGraph& graph)
        : graph_(graph), may_have_duplicate_(graph.nodes.size()) {}

    void run() {
        for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
            graph_.prefetch(i);
            if (graph_.nodes[i].value || !graph_.nodes[i].node->op) continue;
            redirect_inputs(i);
            may_have_duplicate_[i] = may_have_duplicate(i);
            if (may_have_duplicate_[i]) find_or_insert(i);
        }
    }

  private:
    // A node and its hash, so that others are not fetched to see that they differ.
    struct Slot {
        uint32_t tag = 0, low_hash = 0, position = LinearizedGraph::NONE;
    };

    std::span<uint32_t> inputs(uint32_t position) {
        const LinearizedNode& entry = graph_.nodes[position];
        return {graph_.edges.data() + entry.first_edge, entry.num_inputs};
    }

    void redirect_inputs(uint32_t position) {
        if (graph_.merged_into.empty()) return;
        for (uint32_t& input : inputs(position))
            if (graph_.merged_into[input] != LinearizedGraph::NONE)
                input = graph_.merged_into[input];
    }

    const Node& node(uint32_t position) const { return *graph_.nodes[position].node; }

    // A node has no duplicate if it is the only reader of an input without a duplicate. Small nodes
    // are cheaper to recompute than to compare.
    bool may_have_duplicate(uint32_t position) {
        int64_t elements = node(position).type->size();
        for (uint32_t input : inputs(position)) {
            if (graph_.nodes[input].num_uses < 2 && !may_have_duplicate_[input] &&
                !node(input).is_scalar())
                return false;
            elements += node(input).type->size();
        }
        return elements >= MIN_ELEMENTS && node(position).op->merges;
    }

    // Scalars are nodes of their own wherever they are written.
    std::size_t hash_of_input(uint32_t input) const {
        const Node& input_node = node(input);
        if (!input_node.is_scalar()) return input;
        std::size_t bits = std::size_t(input_node.scalar.integer_bits) + input_node.scalar.form;
        return mix(bits, std::bit_cast<uint64_t>(input_node.scalar.real));
    }

    bool is_same_input(uint32_t one, uint32_t other) const {
        return one == other || (node(one).type.get() == node(other).type.get() &&
                                is_equal_scalar(node(one).scalar, node(other).scalar));
    }

    std::size_t hash_of(uint32_t position) {
        std::size_t hash = hash_of_operation(node(position));
        for (uint32_t input : inputs(position)) hash = mix(hash, hash_of_input(input));
        return hash;
    }

    bool are_equal(uint32_t one, uint32_t other) {
        const Node &first = node(one), &second = node(other);
        auto is_same = [&](uint32_t a, uint32_t b) { return is_same_input(a, b); };
        // The inference stands for the parameters, except of slices, and is cheaper to load.
        bool same_params = first.op->python && first.op->part == Op::none &&
                           first.inference.get() == second.inference.get();
        return first.op == second.op &&
               (same_params || first.params.get() == second.params.get()) &&
               first.type.get() == second.type.get() &&
               std::ranges::equal(inputs(one), inputs(other), is_same);
    }

    void find_or_insert(uint32_t position) {
        if (2 * count_ >= table_.size()) grow();
        std::size_t hash = hash_of(position), mask = table_.size() - 1, slot = hash & mask;
        auto tag = uint32_t(hash >> 32);
        while (table_[slot].position != LinearizedGraph::NONE) {
            if (table_[slot].tag == tag && are_equal(table_[slot].position, position))
                return merge_into(position, table_[slot].position);
            slot = (slot + 1) & mask;
        }
        table_[slot] = {tag, uint32_t(hash), position};
        ++count_;
    }

    void merge_into(uint32_t position, uint32_t first) {
        if (graph_.merged_into.empty())
            graph_.merged_into.assign(graph_.nodes.size(), LinearizedGraph::NONE);
        graph_.merged_into[position] = first;
        LinearizedNode &duplicate = graph_.nodes[position], &original = graph_.nodes[first];
        original.num_uses += std::exchange(duplicate.num_uses, 0);
        original.live_out |= duplicate.live_out;
        for (uint32_t input : inputs(position)) --graph_.nodes[input].num_uses;
    }

    void grow() {
        std::vector<Slot> old_table(std::max<std::size_t>(64, 4 * table_.size()));
        old_table.swap(table_);
        std::size_t mask = table_.size() - 1;
        for (const Slot& entry : old_table) {
            if (entry.position == LinearizedGraph::NONE) continue;
            std::size_t slot = (std::size_t(entry.tag) << 32 | entry.low_hash) & mask;
            while (table_[slot].position != LinearizedGraph::NONE) slot = (slot + 1) & mask;
            table_[slot] = entry;
        }
    }

    LinearizedGraph& graph_;
    std::vector<char> may_have_duplicate_; // whether a node may have equals
    std::vector<Slot> table_;
    std::size_t count_ = 0;
};

} // namespace

void merge_common_subexpressions(LinearizedGraph& graph) { CsePass(graph).run(); }

void publish_common_subexpressions(const LinearizedGraph& graph) {
    for (uint32_t i = 0; i < graph.merged_into.size(); ++i) {
        if (!graph.is_merged(i) || !graph.nodes[i].live_out) continue;
        if (Ref<Value> value = value_of(graph.nodes[graph.merged_into[i]].node.get()))
            publish(graph.nodes[i].node.get(), std::move(value));
    }
}

} // namespace tenfold
