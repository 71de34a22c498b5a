#include "key.h"

#include <bit>
#include <cmath>

namespace tenfold {
namespace {

enum Tag : uint64_t { scalar_tag, value_tag, pending_tag };

constexpr double MOST_NOTABLE = 16;

bool is_notable(double number) {
    if (!std::isfinite(number)) return true;
    return std::abs(number) <= MOST_NOTABLE && number * 2 == std::nearbyint(number * 2);
}

uint64_t word(const void* address) { return reinterpret_cast<uint64_t>(address); }

void write_scalar(const Node& node, bool exact, std::vector<uint64_t>& words) {
    const Scalar& scalar = node.scalar;
    bool whole = exact || is_notable(scalar);
    words.push_back(scalar_tag | uint64_t(scalar.form) << 8 | uint64_t(whole) << 16);
    if (!whole) return;
    words.push_back(uint64_t(scalar.whole));
    words.push_back(std::bit_cast<uint64_t>(scalar.real));
    words.push_back(std::bit_cast<uint64_t>(scalar.imaginary));
}

void write_value(const WalkedNode& entry, std::vector<uint64_t>& words) {
    const Value& value = *entry.value;
    words.push_back(value_tag | uint64_t(value.strides.size()) << 8 |
                    uint64_t(bool(value.next)) << 16 | uint64_t(entry.dying) << 17);
    words.push_back(word(value.type.get()));
    for (int64_t stride : value.strides) words.push_back(uint64_t(stride));
}

void write_pending(const Walked& walked, const WalkedNode& entry, std::vector<uint64_t>& words) {
    const Node& node = *entry.node;
    words.push_back(pending_tag | uint64_t(entry.held) << 8 |
                    uint64_t(node.read_in_part.load(std::memory_order_relaxed)) << 9 |
                    uint64_t(entry.width) << 32);
    words.push_back(word(node.op));
    words.push_back(word(node.params.get()));
    words.push_back(word(node.inference.get()));
    for (uint32_t position : walked.inputs(entry)) words.push_back(position);
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

bool write_key(const Walked& walked, std::span<const uint64_t> options, bool exact,
               std::vector<uint64_t>& words) {
    words.assign(options.begin(), options.end());
    words.push_back(exact);
    for (const WalkedNode& entry : walked.nodes) {
        if (entry.node->is_scalar())
            write_scalar(*entry.node, exact, words);
        else if (entry.value)
            write_value(entry, words);
        else if (entry.node->op)
            write_pending(walked, entry, words);
        else
            return false;
    }
    for (uint32_t output : walked.outputs) words.push_back(output);
    return true;
}

Owned::Owned(const Walked& walked) {
    for (const WalkedNode& entry : walked.nodes) {
        if (entry.node->is_scalar()) continue;
        types.emplace_back(entry.value ? entry.value->type.get() : entry.node->type);
        if (entry.value) continue;
        params.push_back(entry.node->params);
        inferences.push_back(entry.node->inference);
    }
}

} // namespace tenfold
