#include "dispatch/graph_key.h"

#include <bit>
#include <cmath>

#include "ir/slice_params.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

enum Tag : uint64_t { scalar_tag, value_tag, pending_tag };

constexpr double MOST_NOTABLE = 16;

bool is_notable(double number) {
    if (!std::isfinite(number)) return true;
    return std::abs(number) <= MOST_NOTABLE && number * 2 == std::nearbyint(number * 2);
}

uint64_t word(const void* address) { return reinterpret_cast<uint64_t>(address); }

// The arrays of a walk of which parts are taken or replaced, and nothing else is read: the first
// part says from where the others count. An array with a part replaced counts as the array.
class PartAnchors {
  public:
    // Looks at a walk; the memory of the one before is used again.
    void look_at(const LinearizedGraph& walked) {
        walked_ = &walked;
        roots_.clear();
        arrays_.clear();
        for (std::size_t i = 0; i < walked.nodes.size(); ++i) look(i);
    }

    // What the first part of an array is, where the nodes that read it are to count from there.
    const Starts* of(uint32_t position) const {
        if (roots_.empty() || roots_[position] == NONE) return nullptr;
        const Root& root = arrays_[roots_[position]];
        return root.pinned ? nullptr : root.first;
    }

    bool none() const { return roots_.empty(); }

  private:
    static constexpr uint32_t NONE = ~uint32_t(0);
    struct Root {
        const Starts* first = nullptr;
        bool pinned = false;
    };

    void look(std::size_t position) {
        const LinearizedNode& entry = walked_->nodes[position];
        if (entry.value || !entry.node->op) return;
        auto inputs = walked_->inputs(entry);
        Op::Part part = entry.node->op->part;
        if (part == Op::none && roots_.empty()) return; // what it pins is made later, if at all
        if (roots_.empty()) begin(position);            // most walks never get here
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (roots_[inputs[i]] == NONE) continue;
            Root& root = arrays_[roots_[inputs[i]]];
            if (part == Op::none || i > 0)
                root.pinned = true;
            else if (!root.first)
                root.first = &starts_of(*entry.node->op, *entry.node->params);
        }
        if (part == Op::replaced) roots_[position] = roots_[inputs[0]];
    }

    // At the first part: every array has a root from now on; what has read one before pins it.
    void begin(std::size_t end) {
        roots_.assign(walked_->nodes.size(), NONE);
        for (std::size_t i = 0; i < walked_->nodes.size(); ++i) {
            if (!walked_->nodes[i].value) continue;
            roots_[i] = uint32_t(arrays_.size());
            arrays_.emplace_back();
        }
        for (std::size_t i = 0; i < end; ++i) {
            const LinearizedNode& entry = walked_->nodes[i];
            if (entry.value || !entry.node->op) continue;
            for (uint32_t input : walked_->inputs(entry))
                if (roots_[input] != NONE) arrays_[roots_[input]].pinned = true;
        }
    }

    const LinearizedGraph* walked_ = nullptr;
    std::vector<uint32_t> roots_; // by position; empty while no part has been seen
    std::vector<Root> arrays_;
};

// The bytes from the first element of a value to the first of a part.
int64_t distance(const Value& value, const Starts& part) {
    const Type& type = *value.type;
    int64_t bytes = 0, stride = dtype_of(type.dtype).bytes;
    for (std::size_t i = type.shape.size(); i-- > 0;) {
        bytes += part.starts[i] * (value.strides.empty() ? stride : value.strides[i]);
        stride *= type.shape[i];
    }
    return bytes;
}

constexpr int64_t ALIGNMENT = 64; // kernels may rely on it where they write

[[gnu::flatten]] void write_value(const LinearizedNode& entry, int64_t moved,
                                  std::vector<uint64_t>& words) {
    const Value& value = *entry.value;
    words.push_back(value_tag | uint64_t(value.strides.size()) << 8 |
                    uint64_t(bool(value.next)) << 16 | uint64_t(entry.dying) << 17 |
                    uint64_t(moved & (ALIGNMENT - 1)) << 32);
    words.push_back(word(value.type.get()));
    for (int64_t stride : value.strides) words.push_back(uint64_t(stride));
}

// The operation, its parameters and its dtypes are in its inference; so are the Types of its
// inputs, or they follow from those of the values. A result of an operation with several shares
// that of the operation, and has its own parameters. Flat, since a word costs less than a call.
[[gnu::flatten]] void write_pending(const LinearizedGraph& walked, const LinearizedNode& entry,
                                    const Starts* anchor, std::vector<uint64_t>& words) {
    const Node& node = *entry.node;
    bool part = node.op->part != Op::none;
    bool picks = !part && !node.op->python;
    words.push_back(pending_tag | uint64_t(entry.held) << 8 |
                    uint64_t(node.read_in_part.load(std::memory_order_relaxed)) << 9 |
                    uint64_t(bool(anchor)) << 10 | uint64_t(picks) << 11 |
                    uint64_t(entry.width) << 32);
    words.push_back(word(node.inference.get()));
    if (picks) {
        words.push_back(word(node.op));
        words.push_back(word(node.params.get()));
    }
    if (part) {
        const Starts& own = starts_of(*node.op, *node.params);
        for (std::size_t i = 0; i < own.starts.size(); ++i)
            words.push_back(uint64_t(own.starts[i] - (anchor ? anchor->starts[i] : 0)));
    }
    auto inputs = walked.inputs(entry);
    for (std::size_t i = 0; i < inputs.size(); i += 2)
        words.push_back(inputs[i] | uint64_t(i + 1 < inputs.size() ? inputs[i + 1] : 0) << 32);
}

} // namespace

bool is_notable(const Scalar& scalar) {
    switch (scalar.form) {
    case Scalar::integer: return std::abs(double(scalar.whole)) <= MOST_NOTABLE;
    case Scalar::real_number: return is_notable(scalar.real);
    case Scalar::complex_number: return is_notable(scalar.real) && is_notable(scalar.imaginary);
    default: return true;
    }
}

void write_scalar(const Node& node, bool exact, std::vector<uint64_t>& words) {
    const Scalar& scalar = node.scalar;
    bool whole = exact || is_notable(scalar);
    words.push_back(scalar_tag | uint64_t(scalar.form) << 8 | uint64_t(whole) << 16);
    if (!whole) return;
    words.push_back(uint64_t(scalar.whole));
    words.push_back(std::bit_cast<uint64_t>(scalar.real));
    words.push_back(std::bit_cast<uint64_t>(scalar.imaginary));
}

bool Key::write(const LinearizedGraph& walked, std::span<const uint64_t> options, uint8_t exact) {
    words.assign(options.begin(), options.end());
    words.push_back(exact);
    moved.clear();
    PartAnchors& anchors = ThreadLocal<PartAnchors>::get();
    anchors.look_at(walked);
    bool absolute = exact & parts || anchors.none();
    if (!absolute) moved.assign(walked.nodes.size(), 0);
    for (uint32_t i = 0; i < walked.nodes.size(); ++i) {
        const LinearizedNode& entry = walked.nodes[i];
        if (entry.node->is_scalar()) {
            write_scalar(*entry.node, exact & scalars, words);
        } else if (entry.value) {
            const Starts* first = absolute ? nullptr : anchors.of(i);
            if (first) moved[i] = distance(*entry.value, *first);
            write_value(entry, first ? moved[i] : 0, words);
        } else if (const Op* op = entry.node->op) {
            bool part = op->part != Op::none && !absolute;
            write_pending(walked, entry, part ? anchors.of(walked.inputs(entry)[0]) : nullptr,
                          words);
        } else {
            return false;
        }
    }
    for (uint32_t output : walked.outputs) words.push_back(output);
    return true;
}

Owned::Owned(const LinearizedGraph& walked) {
    types.reserve(walked.nodes.size());
    params.reserve(walked.nodes.size());
    inferences.reserve(walked.nodes.size());
    for (const LinearizedNode& entry : walked.nodes) {
        if (entry.node->is_scalar()) continue;
        types.push_back(entry.value ? entry.value->type : entry.node->type);
        if (entry.value) continue;
        params.push_back(entry.node->params);
        inferences.push_back(entry.node->inference);
    }
}

} // namespace tenfold
