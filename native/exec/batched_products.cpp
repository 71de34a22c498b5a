#include "exec/batched_products.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenfold {
namespace {

constexpr std::size_t FEWEST = 8; // members of a panel
constexpr std::size_t MOST = std::size_t(1) << (Products::SIZES - 1);

using Batch = std::span<const Ref<Future>>;

// How members' blocks of rows lie in a whole.
struct Blocks {
    Products::Form form;
    int64_t count, rows;
    std::size_t row; // bytes

    Blocks(Products::Form form, const Type& type, std::size_t count)
        : form(form), count(int64_t(count)), rows(type.shape[0]),
          row(std::size_t(type.shape[1]) * dtype_of(type.dtype).bytes) {}

    // Calls with where each row lies in its block, and in the whole.
    template <class F> void each_row(int64_t block, F&& copied) const {
        for (int64_t i = 0; i < rows; ++i) {
            int64_t at = form == Products::beside ? i * count + block : block * rows + i;
            copied(std::size_t(i) * row, std::size_t(at) * row);
        }
    }
};

char* bytes_of(const Value& value) { return static_cast<char*>(value.buffers[0].address()); }

const Ref<Value>& operand(Future& member, std::size_t position) {
    return member.inputs()[position].input->value;
}

// The operands at one position in one; empty where one does not lie in C's order.
Ref<Value> gathered(Batch members, std::size_t position, Products::Form form,
                    const Ref<Type>& type) {
    Blocks blocks(form, *operand(*members[0], position)->type, members.size());
    Ref<Value> whole = Value::of(type);
    for (std::size_t i = 0; whole && i < members.size(); ++i) {
        const Value& value = *operand(*members[i], position);
        if (!value.strides.empty()) return {};
        blocks.each_row(int64_t(i), [&](std::size_t in_block, std::size_t in_whole) {
            std::memcpy(bytes_of(*whole) + in_whole, bytes_of(value) + in_block, blocks.row);
        });
    }
    return whole;
}

// Each member's block, in memory of its own; who has none is computed alone, or has none then
// either.
void hand_out(const Value& whole, Products::Form form, const Ref<Type>& type,
              std::span<Answer> made) {
    Blocks blocks(form, *type, made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
        Ref<Value> value = Value::of(type);
        if (!value) continue;
        blocks.each_row(int64_t(i), [&](std::size_t in_block, std::size_t in_whole) {
            std::memcpy(bytes_of(*value) + in_block, bytes_of(whole) + in_whole, blocks.row);
        });
        made[i].value = std::move(value);
    }
}

Ref<Value> product(Replaying& replaying, const Ref<Value>& left, const Ref<Value>& right) {
    return replaying.give(0, left) && replaying.give(1, right) ? replaying.run() : Ref<Value>();
}

bool all_share(Batch members, std::size_t position) {
    const Ref<Value>& first = operand(*members[0], position);
    return std::ranges::all_of(
        members, [&](const auto& member) { return operand(*member, position) == first; });
}

// A column is multiplied by itself: it is summed in another order than many.
Products::Form form_of(const Products& products, Batch members) {
    if (members.size() < 2) return Products::each;
    if (products.types[1]->shape[1] > 1 && all_share(members, 0)) return Products::beside;
    return all_share(members, 1) ? Products::below : Products::each;
}

// By one panel.
void multiply(Replaying& multiplying, Products::Form form, const Products& products, Batch members,
              std::span<Answer> made) {
    const Ref<Value>&left = operand(*members[0], 0), &right = operand(*members[0], 1);
    if (form == Products::each) {
        made[0].value = product(multiplying, left, right);
        return;
    }
    std::size_t position = form == Products::below ? 0 : 1;
    if (!(position ? left : right)->strides.empty()) return;
    multiplying.count(Counter::gathers);
    auto count = int64_t(members.size());
    Ref<Value> whole = gathered(members, position, form, products.factor(position, form, count));
    if (whole)
        whole = position ? product(multiplying, left, whole) : product(multiplying, whole, right);
    if (whole) hand_out(*whole, form, products.type, made);
}

const GilFreeCall* panel_of(Products& products, Products::Form form, std::size_t count,
                            PanelCompiler& maker) {
    auto size = std::size_t(std::countr_zero(count));
    return there_or_made(products.panels[form * Products::SIZES + size],
                         [&] { return maker.make(products, form, count); });
}

} // namespace

Products::~Products() {
    for (auto& panel : panels) delete panel.load(std::memory_order_acquire);
}

// Of so many members, as they stand in a Panel.
Ref<Type> Products::factor(std::size_t position, Form form, int64_t count) const {
    std::vector<int64_t> shape = types[position]->shape;
    if (form == below && position == 0) shape[0] *= count;
    if (form == beside && position == 1) shape[1] *= count;
    return intern_type({shape, type->dtype, type->device, type->storage, false});
}

void run_products(Products& products, Batch members, std::span<Answer> made, bool first,
                  PanelCompiler& maker) {
    Products::Form shared = form_of(products, members), form = Products::each;
    const GilFreeCall* panel = nullptr;
    std::optional<Replaying> multiplying;
    for (std::size_t i = 0, size = 0, next = 1; i < members.size(); i += size) {
        if (shared != Products::each) next = std::bit_floor(std::min(members.size() - i, MOST));
        if (next < FEWEST) next = 1;
        if (next != size) {
            form = next == 1 ? Products::each : shared;
            panel = panel_of(products, form, next, maker);
            if (panel && !panel->plan && next > 1) {
                shared = form = Products::each;
                panel = panel_of(products, form, next = 1, maker);
            }
            if (!panel || !panel->plan) return;
            multiplying.emplace(*panel, first);
        }
        size = next;
        multiply(*multiplying, form, products, members.subspan(i, size), made.subspan(i, size));
    }
}

} // namespace tenfold
