// Graph key: everything that a plan may depend on, as words that are compared in full. Types,
// parameters and inferences count by identity, so a cached Key holds them: their addresses are
// never reused. A Python scalar counts by its form alone, unless its value is one that rules know.
// The parts taken of an array, or replaced, count by their offset from the first of them, if
// nothing else reads the array: then it is as if the array were moved. A key may be exact in both.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/linearize.h"

namespace tenfold {

// Numbers that rewrite rules may tell from others: halves of whole numbers up to 16, and what is
// not finite.
bool is_special_value(const Scalar& scalar);

// The word or words of a Python scalar; with its value where it is notable, or `exact`.
void write_scalar(const Node& node, bool exact, std::vector<uint64_t>& words);

struct Key {
    enum Exactness : uint8_t { by_form = 0, scalars = 1, parts = 2 };

    std::vector<uint64_t> words;
    // For each graph node the bytes by which its memory counts as moved; empty when none is.
    std::vector<int64_t> base_offsets;

    // Writes over what it has; false for a walk that cannot be planned: it holds a placeholder.
    bool write(const LinearizedGraph& graph, std::span<const uint64_t> options, uint8_t exact);
};

// What the addresses in a key belong to.
struct KeyOwners {
    std::vector<Ref<Type>> types;
    std::vector<Ref<Params>> params;
    std::vector<Ref<Inference>> inferences;

    KeyOwners() = default;
    explicit KeyOwners(const LinearizedGraph& graph);
};

} // namespace tenfold
