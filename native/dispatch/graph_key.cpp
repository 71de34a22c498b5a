#include "dispatch/graph_key.h"

#include <bit>
#include <cmath>

#include "ir/index_map.h"
#include "memory/target_facts.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

enum Tag : uint64_t { scalar_tag, value_tag, pending_tag };

constexpr double MAX_NOTABLE = 16;

bool is_special_value(double number) {
    if (!std::isfinite(number)) return true;
    return std::abs(number) <= MAX_NOTABLE && number * 2 == std::nearbyint(number * 2);
}

uint64_t address_word(const void* address) { return reinterpret_cast<uint64_t>(address); }

// Arrays of a linearized graph that are read or replaced in parts only. The first part anchors the
// offsets of the others. An array with a replaced part counts as the array.
class PartAnchors {
  public:
    // Analyzes a linearized graph; reuses the memory of the previous one.
    void analyze(const LinearizedGraph& graph) {
        graph_ = &graph;
        root_of_.clear();
        roots_.clear();
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) visit(i);
    }

    // The first part of an array, if its readers count their offsets from there; else null.
    const Starts* anchor(uint32_t position) const {
        if (root_of_.empty() || root_of_[position] == NONE) return nullptr;
        const Root& root = roots_[root_of_[position]];
        return root.pinned ? nullptr : root.first_slice;
    }

    bool empty() const { return root_of_.empty(); }

    // Whether a part of it is replaced.
    bool is_updated(uint32_t position) const {
        return root_of_[position] != NONE && roots_[root_of_[position]].updated;
    }

  private:
    static constexpr uint32_t NONE = ~uint32_t(0);
    struct Root {
        const Starts* first_slice = nullptr;
        bool pinned = false;
        bool updated = false;
    };

    void visit(std::size_t position) {
        const LinearizedNode& entry = graph_->nodes[position];
        if (entry.value || !entry.node->op) return;
        auto inputs = graph_->inputs(entry);
        Op::Part slice_kind = entry.node->op->part;
        if (slice_kind == Op::none && root_of_.empty())
            return; // start_tracking() handles these nodes later, if at all
        if (root_of_.empty()) start_tracking(position); // most graphs have no parts
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (root_of_[inputs[i]] == NONE) continue;
            Root& root = roots_[root_of_[inputs[i]]];
            if (slice_kind == Op::none || i > 0)
                root.pinned = true;
            else if (!root.first_slice)
                root.first_slice = &starts_of(*entry.node->params);
        }
        if (slice_kind != Op::slice_update) return;
        root_of_[position] = root_of_[inputs[0]];
        if (root_of_[position] != NONE) roots_[root_of_[position]].updated = true;
    }

    // Runs at the first part. It gives every array a root; earlier readers pin their roots.
    void start_tracking(std::size_t end) {
        root_of_.assign(graph_->nodes.size(), NONE);
        for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
            if (!graph_->nodes[i].value) continue;
            root_of_[i] = uint32_t(roots_.size());
            roots_.emplace_back();
        }
        for (std::size_t i = 0; i < end; ++i) {
            const LinearizedNode& entry = graph_->nodes[i];
            if (entry.value || !entry.node->op) continue;
            for (uint32_t input : graph_->inputs(entry))
                if (root_of_[input] != NONE) roots_[root_of_[input]].pinned = true;
        }
    }

    const LinearizedGraph* graph_ = nullptr;
    std::vector<uint32_t> root_of_; // root indices; empty while no part has been seen
    std::vector<Root> roots_;
};

// The bytes from the first element of a value to the first of a part.
int64_t offset_of_slice(const Value& value, const Starts& slice) {
    const Type& type = *value.type;
    int64_t bytes = 0, stride = dtype_of(type.dtype).bytes;
    for (std::size_t i = type.shape.size(); i-- > 0;) {
        bytes += slice.starts[i] * (value.strides.empty() ? stride : value.strides[i]);
        stride *= type.shape[i];
    }
    return bytes;
}

[[gnu::flatten]] void write_value(const LinearizedNode& entry, int64_t base_offset,
                                  std::vector<uint64_t>& words) {
    const Value& value = *entry.value;
    words.push_back(value_tag | uint64_t(value.strides.size()) << 8 |
                    uint64_t(bool(value.next)) << 16 | uint64_t(entry.dead_after_read) << 17 |
                    uint64_t(base_offset & (ALIGNMENT_BYTES - 1)) << 32);
    words.push_back(address_word(entry.leaf_type().get()));
    for (int64_t stride : value.strides) words.push_back(uint64_t(stride));
}

// The inference determines the operation, its parameters and its dtypes. It also determines the
// Types of its inputs, or they follow from those of the values. A result of an operation with
// several shares that of the operation, and has its own parameters. Flat, since a word costs less
// than a call.
[[gnu::flatten]] void write_pending(const LinearizedGraph& graph, const LinearizedNode& entry,
                                    const Starts* anchor, std::vector<uint64_t>& words) {
    const Node& node = *entry.node;
    bool is_slice = node.op->part != Op::none;
    bool is_result_selector = !is_slice && !node.op->python;
    words.push_back(pending_tag | uint64_t(entry.live_out) << 8 |
                    uint64_t(node.has(PASSED_THROUGH)) << 9 | uint64_t(bool(anchor)) << 10 |
                    uint64_t(is_result_selector) << 11 | uint64_t(entry.num_inputs) << 32);
    words.push_back(address_word(node.inference.get()));
    if (is_result_selector) {
        words.push_back(address_word(node.op));
        words.push_back(address_word(node.params.get()));
    }
    if (is_slice) {
        const Starts& starts = starts_of(*node.params);
        for (std::size_t i = 0; i < starts.starts.size(); ++i)
            words.push_back(uint64_t(starts.starts[i] - (anchor ? anchor->starts[i] : 0)));
    }
    auto inputs = graph.inputs(entry);
    for (std::size_t i = 0; i < inputs.size(); i += 2)
        words.push_back(inputs[i] | uint64_t(i + 1 < inputs.size() ? inputs[i + 1] : 0) << 32);
}

} // namespace

bool is_special_value(const Scalar& scalar) {
    switch (scalar.form) {
    case Scalar::integer: return std::abs(double(scalar.integer_bits)) <= MAX_NOTABLE;
    case Scalar::real_number: return is_special_value(scalar.real);
    case Scalar::complex_number:
        return is_special_value(scalar.real) && is_special_value(scalar.imaginary);
    default: return true;
    }
}

void write_scalar(const Node& node, bool exact, std::vector<uint64_t>& words) {
    const Scalar& scalar = node.scalar;
    bool writes_value = exact || is_special_value(scalar);
    words.push_back(scalar_tag | uint64_t(scalar.form) << 8 | uint64_t(writes_value) << 16);
    if (!writes_value) return;
    words.push_back(uint64_t(scalar.integer_bits));
    words.push_back(std::bit_cast<uint64_t>(scalar.real));
    words.push_back(std::bit_cast<uint64_t>(scalar.imaginary));
}

bool Key::write(const LinearizedGraph& graph, const OptionKey& options, uint8_t exact) {
    auto numbers = options.words();
    words.assign(numbers.begin(), numbers.end());
    words.push_back(exact);
    base_offsets.clear();
    PartAnchors& anchors = ThreadLocal<PartAnchors>::get();
    anchors.analyze(graph);
    bool absolute = exact & parts || anchors.empty();
    if (!absolute) base_offsets.assign(graph.nodes.size(), 0);
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
        const LinearizedNode& entry = graph.nodes[i];
        if (entry.node->is_scalar()) {
            write_scalar(*entry.node, exact & scalars, words);
        } else if (entry.value) {
            const Starts* anchor = absolute ? nullptr : anchors.anchor(i);
            if (anchor) base_offsets[i] = offset_of_slice(*entry.value, *anchor);
            bool is_written = anchor && (anchors.is_updated(i) || entry.dead_after_read);
            write_value(entry, is_written ? base_offsets[i] : 0, words);
        } else if (const Op* op = entry.node->op) {
            bool is_slice = op->part != Op::none && !absolute;
            write_pending(graph, entry, is_slice ? anchors.anchor(graph.inputs(entry)[0]) : nullptr,
                          words);
        } else {
            return false;
        }
    }
    for (uint32_t output : graph.outputs) words.push_back(output);
    return true;
}

KeyOwners::KeyOwners(const LinearizedGraph& graph) {
    types.reserve(graph.nodes.size());
    params.reserve(graph.nodes.size());
    inferences.reserve(graph.nodes.size());
    for (const LinearizedNode& entry : graph.nodes) {
        if (entry.node->is_scalar()) continue;
        types.push_back(entry.value ? entry.leaf_type() : entry.node->type);
        if (entry.value) continue;
        params.push_back(entry.node->params);
        inferences.push_back(entry.node->inference);
    }
}

} // namespace tenfold
