#include "exec/batched_products.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenfold {
namespace {

constexpr std::size_t MIN_MEMBERS = 8; // members of a panel
constexpr std::size_t MAX_MEMBERS = std::size_t(1) << (Products::SIZES - 1);

using Batch = std::span<const Ref<Future>>;

// The layout of the members' row blocks in the stacked matrix.
struct Blocks {
    Products::Form form;
    int64_t count, rows;
    std::size_t row; // bytes

    Blocks(Products::Form form, const Type& type, std::size_t count)
        : form(form), count(int64_t(count)), rows(type.shape[0]),
          row(std::size_t(type.shape[1]) * dtype_of(type.dtype).bytes) {}

    // Calls with the byte offset of each row in its block, and in the stacked matrix.
    template <class F> void for_each_row(int64_t block, F&& copy_row) const {
        for (int64_t i = 0; i < rows; ++i) {
            int64_t at = form == Products::stacked_columns ? i * count + block : block * rows + i;
            copy_row(std::size_t(i) * row, std::size_t(at) * row);
        }
    }
};

char* bytes_of(const Value& value) { return static_cast<char*>(value.buffers[0].address()); }

const Ref<Value>& operand(Future& member, std::size_t position) {
    return member.inputs()[position].input->value;
}

// Stacks the operands at one position; empty if one of them is not in C order.
Ref<Value> stack_factors(Batch members, std::size_t position, Products::Form form,
                         const Ref<Type>& type) {
    Blocks blocks(form, *operand(*members[0], position)->type, members.size());
    Ref<Value> whole = Value::uninitialized(type);
    for (std::size_t i = 0; whole && i < members.size(); ++i) {
        const Value& value = *operand(*members[i], position);
        if (!value.strides.empty()) return {};
        blocks.for_each_row(int64_t(i), [&](std::size_t in_block, std::size_t in_whole) {
            std::memcpy(bytes_of(*whole) + in_whole, bytes_of(value) + in_block, blocks.row);
        });
    }
    return whole;
}

// Copies each member's block to memory of its own. Members without memory are computed alone later.
void split_product(const Value& whole, Products::Form form, const Ref<Type>& type,
                   std::span<OperatorResult> answers) {
    Blocks blocks(form, *type, answers.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
        Ref<Value> value = Value::uninitialized(type);
        if (!value) continue;
        blocks.for_each_row(int64_t(i), [&](std::size_t in_block, std::size_t in_whole) {
            std::memcpy(bytes_of(*value) + in_block, bytes_of(whole) + in_whole, blocks.row);
        });
        answers[i].value = std::move(value);
    }
}

Ref<Value> product(GilFreeRunner& runner, const Ref<Value>& left, const Ref<Value>& right) {
    return runner.bind_input(0, left) && runner.bind_input(1, right) ? runner.run() : Ref<Value>();
}

bool all_share(Batch members, std::size_t position) {
    const Ref<Value>& first = operand(*members[0], position);
    return std::ranges::all_of(
        members, [&](const auto& member) { return operand(*member, position) == first; });
}

// A single column is a matrix-vector product, whose summation order differs from that of several
// columns.
Products::Form form_of(const Products& products, Batch members) {
    if (members.size() < 2) return Products::single;
    if (products.types[1]->shape[1] > 1 && all_share(members, 0)) return Products::stacked_columns;
    return all_share(members, 1) ? Products::stacked_rows : Products::single;
}

// By one panel.
void multiply(GilFreeRunner& runner, Products::Form form, const Products& products, Batch members,
              std::span<OperatorResult> answers) {
    const Ref<Value>&left = operand(*members[0], 0), &right = operand(*members[0], 1);
    if (form == Products::single) {
        answers[0].value = product(runner, left, right);
        return;
    }
    std::size_t position = form == Products::stacked_rows ? 0 : 1;
    if (!(position ? left : right)->strides.empty()) return;
    runner.count(Counter::gathers);
    auto count = int64_t(members.size());
    Ref<Value> whole =
        stack_factors(members, position, form, products.factor(position, form, count));
    if (whole) whole = position ? product(runner, left, whole) : product(runner, whole, right);
    if (whole) split_product(*whole, form, products.type, answers);
}

const GilFreeCall* panel_of(Products& products, Products::Form form, std::size_t count,
                            PanelCompiler& compiler) {
    auto size = std::size_t(std::countr_zero(count));
    return get_or_create(products.panels[form * Products::SIZES + size],
                         [&] { return compiler.compile(products, form, count); });
}

} // namespace

Products::~Products() {
    for (auto& panel : panels) delete panel.load(std::memory_order_acquire);
}

// Of so many members, as they stand in a Panel.
Ref<Type> Products::factor(std::size_t position, Form form, int64_t count) const {
    std::vector<int64_t> shape = types[position]->shape;
    if (form == stacked_rows && position == 0) shape[0] *= count;
    if (form == stacked_columns && position == 1) shape[1] *= count;
    return intern_type({shape, type->dtype, type->device, type->storage, false});
}

void run_products(Products& products, Batch members, std::span<OperatorResult> answers,
                  bool count_launches, PanelCompiler& compiler) {
    Products::Form shared = form_of(products, members), form = Products::single;
    const GilFreeCall* panel = nullptr;
    std::optional<GilFreeRunner> runner;
    for (std::size_t i = 0, size = 0, next = 1; i < members.size(); i += size) {
        if (shared != Products::single)
            next = std::bit_floor(std::min(members.size() - i, MAX_MEMBERS));
        if (next < MIN_MEMBERS) next = 1;
        if (next != size) {
            form = next == 1 ? Products::single : shared;
            panel = panel_of(products, form, next, compiler);
            if (panel && !panel->plan && next > 1) {
                shared = form = Products::single;
                panel = panel_of(products, form, next = 1, compiler);
            }
            if (!panel || !panel->plan) return;
            runner.emplace(*panel, count_launches);
        }
        size = next;
        multiply(*runner, form, products, members.subspan(i, size), answers.subspan(i, size));
    }
}

} // namespace tenfold
