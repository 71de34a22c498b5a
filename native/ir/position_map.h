// Positions of nodes: a map that knows how nodes lie in memory.
#pragma once
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "ir/intern.h"
#include "ir/node.h"

namespace tenfold {

// Positions by node: the first few in a row, since few are shared, more by open addressing.
class PositionMap {
  public:
    static constexpr uint32_t NONE = ~uint32_t(0);

    uint32_t find(Node* node) const {
        if (count_ > INLINE_ENTRIES) return table_[slot_of(node)].second;
        for (uint32_t i = 0; i < count_; ++i)
            if (inline_[i].first == node) return inline_[i].second;
        return NONE;
    }

    void put(Node* node, uint32_t position) {
        if (count_ < INLINE_ENTRIES) {
            inline_[count_++] = {node, position};
            return;
        }
        if (count_++ == INLINE_ENTRIES) build_table();
        if (2 * count_ > table_.size()) grow();
        table_[slot_of(node)] = {node, position};
    }

    void clear() { count_ = 0; }
    void reserve_hint(std::size_t count) { expected_ = 4 * count; }
    std::size_t capacity() const { return table_.capacity(); }

  private:
    using Slot = std::pair<Node*, uint32_t>;
    static constexpr std::size_t INLINE_ENTRIES = 12, NODE_BYTES = 128, NODES_PER_ROW = 64;
    static_assert(sizeof(Node) >= NODE_BYTES, "two nodes have two numbers");

    // Nodes that were created in succession are adjacent in memory, and in the table. A row that
    // collides with another passes it in one step.
    std::size_t slot_of(Node* node) const {
        std::size_t mask = table_.size() - 1,
                    number = reinterpret_cast<std::size_t>(node) / NODE_BYTES;
        std::size_t slot =
            (mix(0, number / NODES_PER_ROW) * NODES_PER_ROW + number % NODES_PER_ROW) & mask;
        while (table_[slot].first && table_[slot].first != node)
            slot = (slot + NODES_PER_ROW + 1) & mask;
        return slot;
    }

    void build_table() {
        table_.assign(std::max<std::size_t>(64, std::bit_ceil(expected_)), {nullptr, NONE});
        for (const Slot& entry : inline_) table_[slot_of(entry.first)] = entry;
    }

    void grow() {
        std::vector<Slot> old_table(2 * table_.size(), {nullptr, NONE});
        old_table.swap(table_);
        for (const Slot& entry : old_table)
            if (entry.first) table_[slot_of(entry.first)] = entry;
    }

    std::array<Slot, INLINE_ENTRIES> inline_;
    std::vector<Slot> table_;
    std::size_t count_ = 0, expected_ = 0;
};

} // namespace tenfold
