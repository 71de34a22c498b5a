#include "python/joined_products.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "exec/batch_policy.h"
#include "exec/stacking.h"
#include "ir/cse.h"
#include "memory/target_facts.h"
#include "python/value_bindings.h"
#include "threads/counters.h"
#include "threads/device.h"

namespace tenfold::bindings {
namespace {

PythonFunction joined_product{"tenfold.transforms.batch_compiler", "joined_product"};

// The operations of a product, in the order from its result; and the params of the gather.
struct ProductOps {
    const Op *sum = nullptr, *multiply = nullptr, *gather = nullptr;
    Ref<Params> by_row;
} ops; // under the GIL

// New memory for one operand of all members, and where the next one goes.
struct JoinedOperand {
    Ref<Value> value;
    char* next = nullptr;

    JoinedOperand(const Type& member, std::vector<int64_t> shape) {
        Ref<Type> type = intern_type({shape, member.dtype, member.device, 0, false});
        auto memory = Allocation::from_pool(std::max<std::size_t>(1, std::size_t(bytes_of(*type))));
        if (!memory) throw std::bad_alloc();
        next = static_cast<char*>(memory->data);
        value = Value::in_memory(std::move(memory), std::move(type));
    }
    void append(const Value& from) {
        const auto bytes = std::size_t(bytes_of(*from.type));
        std::memcpy(next, host_data(from), bytes);
        next += bytes;
    }
    // Integers from `skipped` on, and `shift` more; false where one is not from `least` to `most`,
    // or, in order, less than the one before.
    bool append_shifted(const Value& from, int64_t skipped, int64_t shift, int64_t most,
                        bool in_order) {
        return with_integer_type(dtype_of(from.type->dtype), [&](auto zero) {
            using Index = decltype(zero);
            auto* elements = reinterpret_cast<const Index*>(host_data(from));
            auto* to = reinterpret_cast<Index*>(next);
            int64_t least = 0;
            for (int64_t i = 0; i < from.type->shape[0]; ++i) {
                const auto element = int64_t(elements[i]);
                if (element < least || element > most) return false;
                if (in_order) least = element;
                if (i >= skipped) *to++ = Index(element + shift);
            }
            next = reinterpret_cast<char*>(to);
            return true;
        });
    }
};

} // namespace

JoinedProducts::JoinedProducts(LinearizedGraph& graph, std::size_t max_members) : graph_(graph) {
    if (!ops.sum || current_options().verify || !is_wide(graph)) return;
    std::map<std::vector<uint64_t>, std::vector<Product>> groups;
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
        graph.prefetch(i);
        Product product;
        if (!find(i, product)) continue;
        groups[{reinterpret_cast<uint64_t>(&type(i)),
                reinterpret_cast<uint64_t>(&type(product.operand)), type(product.data).kind(),
                type(product.indices).kind(), type(product.offsets).kind()}]
            .push_back(product);
    }
    for (const auto& [key, products] : groups) {
        const Product& first = products[0];
        const int64_t bytes = bytes_of(type(first.operand)) + 2 * bytes_of(type(first.terms));
        const std::size_t most =
            std::min(max_members, max_batch_members(*graph.nodes[first.sum].node, bytes));
        for (std::size_t begin = 0; begin < products.size(); begin += most) {
            auto batch = std::span(products).subspan(begin);
            join(batch.first(std::min(most, batch.size())));
        }
    }
}

void JoinedProducts::join(std::span<const Product> products) {
    if (products.size() < BATCHES.min_members) return;
    Ref<Value> result = compute(products);
    if (!result) return;
    RowViews rows(*result, graph_.nodes[products[0].sum].node->type, products.size(), false);
    for (std::size_t row = 0; row < products.size(); ++row) {
        const Product& product = products[row];
        Ref<Value> value = rows.row_value(row, {});
        set_value(product.sum, value);
        const uint32_t factor = graph_.inputs(graph_.nodes[product.terms])[0];
        for (uint32_t inner : {product.terms, product.gather, factor}) { // without other readers
            const LinearizedNode& entry = graph_.nodes[inner];
            if (entry.num_uses == 1 && !entry.live_out && !entry.value) set_value(inner, value);
        }
    }
}

void JoinedProducts::set_value(uint32_t position, const Ref<Value>& value) {
    graph_.nodes[position].value = value;
    computed_.push_back(position);
}

void JoinedProducts::publish() {
    for (uint32_t position : computed_) {
        const LinearizedNode& entry = graph_.nodes[position];
        if (entry.live_out) tenfold::publish(entry.node.get(), entry.value);
    }
    if (!is_empty()) publish_common_subexpressions(graph_);
}

void JoinedProducts::take_back() {
    for (uint32_t position : computed_) graph_.nodes[position].value = nullptr;
}

// The value of a small leaf in C order, in the memory of the host.
const Value* JoinedProducts::known(uint32_t position) const {
    const Value* value = graph_.nodes[position].value.get();
    const bool fits = value && value->strides.empty() && device_of(value->type->device).is_host &&
                      has_loops_on(value->type->device) && value->type->size() <= STACKED_ELEMENTS;
    return fits ? value : nullptr;
}

bool JoinedProducts::applies(uint32_t position, const Op* op) const {
    const LinearizedNode& entry = graph_.nodes[position];
    return entry.node->op == op && !entry.value && !graph_.is_merged(position);
}

bool JoinedProducts::find(uint32_t sum, Product& product) const {
    auto inputs = [&](uint32_t position) { return graph_.inputs(graph_.nodes[position]); };
    if (!applies(sum, ops.sum)) return false;
    product.sum = sum;
    product.terms = inputs(sum)[0];
    product.offsets = inputs(sum)[1];
    if (!applies(product.terms, ops.multiply)) return false;
    product.data = inputs(product.terms)[0];
    product.gather = inputs(product.terms)[1];
    if (!applies(product.gather, ops.gather)) return false;
    const LinearizedNode& factor = graph_.nodes[product.data];
    if (!factor.value && factor.node->op && factor.node->op->view) // a column of the data
        product.data = inputs(product.data)[0];
    auto gathered = inputs(product.gather);
    if (gathered.size() != 2 || graph_.nodes[product.gather].node->params.get() != ops.by_row.get())
        return false;
    product.operand = gathered[0];
    product.indices = gathered[1];
    for (uint32_t leaf : {product.data, product.indices, product.offsets, product.operand})
        if (!known(leaf)) return false;
    return type(product.data).shape.size() == 1 &&
           type(product.data).shape == type(product.indices).shape &&
           is_integer(dtype_of(type(product.indices).dtype));
}

Ref<Value> JoinedProducts::compute(std::span<const Product> products) const {
    const auto members = int64_t(products.size());
    const Type& operand_type = type(products[0].operand);
    const int64_t rows = type(products[0].offsets).shape[0] - 1, inner = operand_type.shape[0];
    int64_t entries = 0;
    for (const Product& product : products) entries += type(product.data).shape[0];
    if (std::max({entries, members * inner, members * rows}) > std::numeric_limits<int32_t>::max())
        return {};
    for (uint32_t part : {products[0].indices, products[0].offsets})
        if (dtype_of(type(part).dtype).bytes < 4) return {};
    std::vector<int64_t> shape = operand_type.shape;
    shape[0] = members * inner;
    JoinedOperand data(type(products[0].data), {entries}),
        indices(type(products[0].indices), {entries}),
        offsets(type(products[0].offsets), {members * rows + 1}), operand(operand_type, shape);
    int64_t first = 0;
    for (int64_t i = 0; i < members; ++i) {
        const Product& product = products[std::size_t(i)];
        const int64_t length = type(product.data).shape[0];
        data.append(*known(product.data));
        operand.append(*known(product.operand));
        if (!indices.append_shifted(*known(product.indices), 0, i * inner, inner - 1, false) ||
            !offsets.append_shifted(*known(product.offsets), i > 0, first, length, true))
            return {};
        first += length;
    }
    nb::object result = nb::steal(PyObject_CallFunctionObjArgs(
        joined_product.get().ptr(), nb::cast(ValueHandle{data.value}).ptr(),
        nb::cast(ValueHandle{indices.value}).ptr(), nb::cast(ValueHandle{offsets.value}).ptr(),
        nb::cast(ValueHandle{operand.value}).ptr(), nullptr));
    if (!result.is_valid()) nb::raise_python_error();
    if (result.is_none()) return {};
    count(Counter::batches);
    count(Counter::gathers, 4);
    return nb::cast<ValueHandle&>(result).value;
}

void declare_joined_products(nb::module_& module) {
    using namespace nb::literals;
    module.def(
        "set_sparse_product",
        [](uint32_t sum, uint32_t multiply, uint32_t gather, const nb::object& by_row) {
            ops = {find_op(sum), find_op(multiply), find_op(gather), {}};
            ops.by_row = params_of(*ops.gather, by_row.ptr());
        },
        "sum"_a, "multiply"_a, "gather"_a, "by_row"_a);
}

} // namespace tenfold::bindings
