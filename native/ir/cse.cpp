#include "ir/cse.h"

#include <algorithm>
#include <bit>

namespace tenfold {
namespace {

constexpr int64_t WORTH_IT = 64; // elements that a node reads and makes

// Of a huge integer only the nearest double is known here.
bool is_equal_scalar(const Scalar& one, const Scalar& other) {
    auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
    if (one.form == Scalar::none || one.form == Scalar::huge) return false;
    return one.form == other.form && one.whole == other.whole &&
           bits(one.real) == bits(other.real) && bits(one.imaginary) == bits(other.imaginary);
}

class Merging {
  public:
    explicit Merging(LinearizedGraph& walked) : walked_(walked), may_(walked.nodes.size()) {}

    void run() {
        for (uint32_t i = 0; i < walked_.nodes.size(); ++i) {
            walked_.fetch_ahead(i);
            if (walked_.nodes[i].value || !walked_.nodes[i].node->op) continue;
            redirect(i);
            may_[i] = may_have_equals(i);
            if (may_[i]) find(i);
        }
    }

  private:
    // A node and its hash, so that others are not fetched to see that they differ.
    struct Place {
        uint32_t tag = 0, rest = 0, position = LinearizedGraph::NONE;
    };

    std::span<uint32_t> inputs(uint32_t position) {
        const LinearizedNode& entry = walked_.nodes[position];
        return {walked_.edges.data() + entry.first, entry.width};
    }

    void redirect(uint32_t position) {
        if (walked_.same.empty()) return;
        for (uint32_t& input : inputs(position))
            if (walked_.same[input] != LinearizedGraph::NONE) input = walked_.same[input];
    }

    const Node& node(uint32_t position) const { return *walked_.nodes[position].node; }

    // What reads something that equals nothing, and that nothing else reads, equals nothing; and to
    // look for what equals a few elements takes longer than to compute them.
    bool may_have_equals(uint32_t position) {
        int64_t elements = node(position).type->size();
        for (uint32_t input : inputs(position)) {
            if (walked_.nodes[input].uses < 2 && !may_[input] && !node(input).is_scalar())
                return false;
            elements += node(input).type->size();
        }
        return elements >= WORTH_IT && node(position).op->merges;
    }

    // Scalars are nodes of their own wherever they are written.
    std::size_t hash_of_input(uint32_t input) const {
        const Node& own = node(input);
        if (!own.is_scalar()) return input;
        std::size_t whole = std::size_t(own.scalar.whole) + own.scalar.form;
        return mix(whole, std::bit_cast<uint64_t>(own.scalar.real));
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
        auto same = [&](uint32_t a, uint32_t b) { return is_same_input(a, b); };
        // What was inferred stands for the parameters, but of picks, and lies nearer.
        bool told = first.op->python && first.op->part == Op::none &&
                    first.inference.get() == second.inference.get();
        return first.op == second.op && (told || first.params.get() == second.params.get()) &&
               first.type.get() == second.type.get() &&
               std::ranges::equal(inputs(one), inputs(other), same);
    }

    void find(uint32_t position) {
        if (2 * count_ >= table_.size()) grow();
        std::size_t hash = hash_of(position), mask = table_.size() - 1, at = hash & mask;
        auto tag = uint32_t(hash >> 32);
        while (table_[at].position != LinearizedGraph::NONE) {
            if (table_[at].tag == tag && are_equal(table_[at].position, position))
                return merge(position, table_[at].position);
            at = (at + 1) & mask;
        }
        table_[at] = {tag, uint32_t(hash), position};
        ++count_;
    }

    void merge(uint32_t position, uint32_t first) {
        if (walked_.same.empty()) walked_.same.assign(walked_.nodes.size(), LinearizedGraph::NONE);
        walked_.same[position] = first;
        LinearizedNode &own = walked_.nodes[position], &kept = walked_.nodes[first];
        kept.uses += std::exchange(own.uses, 0);
        kept.held |= own.held;
        for (uint32_t input : inputs(position)) --walked_.nodes[input].uses;
    }

    void grow() {
        std::vector<Place> before(std::max<std::size_t>(64, 4 * table_.size()));
        before.swap(table_);
        std::size_t mask = table_.size() - 1;
        for (const Place& place : before) {
            if (place.position == LinearizedGraph::NONE) continue;
            std::size_t at = (std::size_t(place.tag) << 32 | place.rest) & mask;
            while (table_[at].position != LinearizedGraph::NONE) at = (at + 1) & mask;
            table_[at] = place;
        }
    }

    LinearizedGraph& walked_;
    std::vector<char> may_;    // whether a node may have equals
    std::vector<Place> table_; // by hash, open addressing
    std::size_t count_ = 0;
};

} // namespace

void merge_common_subexpressions(LinearizedGraph& walked) { Merging(walked).run(); }

void publish_common_subexpressions(const LinearizedGraph& walked) {
    for (uint32_t i = 0; i < walked.same.size(); ++i) {
        if (!walked.is_merged(i) || !walked.nodes[i].held) continue;
        if (Ref<Value> value = value_of(walked.nodes[walked.same[i]].node.get()))
            publish(walked.nodes[i].node.get(), std::move(value));
    }
}

} // namespace tenfold
