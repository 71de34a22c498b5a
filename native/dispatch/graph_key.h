// Graph key: everything that a plan may depend on, as words that are compared in full. Types,
// parameters and inferences count by identity. A cached Key holds them, so their addresses are
// never reused. A Python scalar counts by its form alone, unless rules know its value. Parts of an
// array that are read or replaced count by their offset from the first one. That holds if nothing
// else reads the array: a moved array then has the same key. A key may be exact in both.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "ir/linearize.h"

namespace tenfold {

// Numbers that rewrite rules may treat specially: halves of integers up to 16, and non-finite
// numbers.
bool is_special_value(const Scalar& scalar);

// The word or words of a Python scalar; with its value where it is notable, or `exact`.
void write_scalar(const Node& node, bool exact, std::vector<uint64_t>& words);

// The options and rules that a plan depends on, as numbers: equal numbers mean equal ones.
struct OptionKey {
    uint64_t settings = 0, process_rules = 0, block_rules = 0;

    // Rules of ours change no bits of operations on elements; a user's have a number.
    bool has_user_rules() const { return process_rules || block_rules; }
    std::array<uint64_t, 3> words() const { return {settings, process_rules, block_rules}; }
};

struct Key {
    enum Exactness : uint8_t { by_form = 0, scalars = 1, parts = 2 };

    std::vector<uint64_t> words;
    // For each graph node the bytes by which its memory counts as moved; empty when none is.
    std::vector<int64_t> base_offsets;

    // Overwrites the key. False for a graph with a placeholder, which cannot be planned.
    bool write(const LinearizedGraph& graph, const OptionKey& options, uint8_t exact);
};

// Owners of the addresses in a key.
struct KeyOwners {
    std::vector<Ref<Type>> types;
    std::vector<Ref<Params>> params;
    std::vector<Ref<Inference>> inferences;

    KeyOwners() = default;
    explicit KeyOwners(const LinearizedGraph& graph);
};

} // namespace tenfold
