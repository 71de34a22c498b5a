// Batched products: runs matrix products of one signature without Python, merged where they share a
// factor. With one right factor, the left ones are stacked below each other and multiplied as one
// product. With one left factor, the right ones are stacked beside each other. Others run one by
// one.
#pragma once
#include <optional>

#include "dispatch/gil_free_call.h"

namespace tenfold {

struct Products {
    enum Form : uint8_t { single, stacked_rows, stacked_columns };

    static constexpr std::size_t FORMS = 3, SIZES = 7;
    Ref<Operation> operation;
    std::array<Ref<Type>, 2> types; // of a member's factors
    Ref<Type> type;                 // of its product
    // The product of two leaves, of one member's or of 2, 4, ... members'; owned; null: not asked
    // for yet.
    std::array<std::atomic<const GilFreeCall*>, FORMS * SIZES> panels{};

    ~Products();
    Ref<Type> factor(std::size_t position, Form form, int64_t count) const;
};

// Compiles panels; Python implements it, this one does nothing.
class PanelCompiler {
  public:
    virtual ~PanelCompiler() = default;
    // Handed over.
    virtual const GilFreeCall* compile(const Products&, Products::Form, std::size_t) {
        return nullptr;
    }
};

// Computes the products. An Answer stays empty if a panel is missing, or an operand is not in C
// order. `count_launches`: launches are counted once per batch.
void run_products(Products& products, std::span<const Ref<Future>> members,
                  std::span<OperatorResult> answers, bool count_launches, PanelCompiler& compiler);

} // namespace tenfold
