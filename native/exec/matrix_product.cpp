#include "exec/matrix_product.h"

#include <algorithm>
#include <array>

#include "exec/gather.h"
#include "exec/op_interpreter.h"
#include "exec/work_size.h"
#include "ir/index_map.h"

namespace tenfold {
namespace {

// A value, a slice of one, elements that are gathered from one, or a slice of an update that others
// see, through which no rule looks. Of another update rules forward slices of the part that it
// replaces: none if that is one element.
bool is_plain_operand(const LinearizedGraph& graph, const LinearizedNode& entry) {
    const LinearizedNode* read = &entry;
    while (!read->value) {
        const Op* op = read->node->op;
        if (!op) return false;
        if (op->part == Op::slice_update) {
            if (read->live_out) return true;
            const std::vector<int64_t>& part = pattern_of(*read->node->params).map.shape;
            bool is_element = std::ranges::all_of(part, [](int64_t n) { return n == 1; });
            if (!is_element || entry.node->type->size() < 2) return false;
        } else if (op->part != Op::slice && !op->gathers) {
            return false;
        }
        read = &graph.nodes[graph.inputs(*read)[0]];
    }
    return true;
}

// Bytes between the elements of a vector.
int64_t stride_of(const Value& vector) {
    return vector.strides.empty() ? int64_t(dtype_of(vector.type->dtype).bytes) : vector.strides[0];
}

ProductLayout layout_of(const Node& node, const Value& operand) {
    if (!is_vector_product(node)) return {operand.type->shape, operand.strides};
    int64_t bytes = dtype_of(operand.type->dtype).bytes;
    bool is_contiguous = operand.type->shape[0] <= 1 || stride_of(operand) == bytes;
    return {{2}, {is_contiguous ? bytes : 2 * bytes}};
}

} // namespace

bool is_plain_product(const LinearizedGraph& graph, const LinearizedNode& entry) {
    const Node& node = *entry.node;
    const DType& dtype = dtype_of(node.type->dtype);
    if (!node.op->contracts || node.params || dtype.kind != 'f' || dtype.bytes < 4) return false;
    if (entry.num_inputs != 2) return false;
    return std::ranges::all_of(graph.inputs(entry), [&](uint32_t input) {
        const LinearizedNode& operand = graph.nodes[input];
        if (operand.node->is_scalar() || operand.node->type->dtype != node.type->dtype)
            return false;
        std::size_t axes = operand.node->type->shape.size();
        return (axes == 1 || axes == 2) && is_plain_operand(graph, operand);
    });
}

bool is_only_assigned(const LinearizedGraph& graph, uint32_t position) {
    // Whether an update may be looked through: others see its result, or only updates follow.
    auto is_seen = [&](uint32_t update, auto& self) -> bool {
        if (graph.nodes[update].live_out) return true;
        for (uint32_t i = update + 1; i < graph.nodes.size(); ++i) {
            const LinearizedNode& entry = graph.nodes[i];
            auto inputs = graph.inputs(entry);
            if (entry.value || std::ranges::find(inputs, update) == inputs.end()) continue;
            bool is_target = entry.node->op->part == Op::slice_update && inputs[0] == update &&
                             inputs[1] != update;
            if (!is_target || !self(i, self)) return false;
        }
        return true;
    };
    for (uint32_t i = position + 1; i < graph.nodes.size(); ++i) {
        const LinearizedNode& entry = graph.nodes[i];
        auto inputs = graph.inputs(entry);
        if (entry.value || std::ranges::find(inputs, position) == inputs.end()) continue;
        const Op& op = *entry.node->op;
        bool is_assigned =
            op.part == Op::slice_update && inputs[0] != position && is_seen(i, is_seen);
        if (!is_assigned && !(op.keeps_products && is_only_assigned(graph, i))) return false;
    }
    return true;
}

ProductResult run_matrix_product(const Node& node, const Value& first, const Value& second,
                                 OpKernelCompiler& compiler, ExecutionContext& context) {
    std::shared_ptr<const ProductLaunch> product =
        compiler.product_launch(node, layout_of(node, first), layout_of(node, second));
    if (!product) return {true, {}};
    if (!product->kernel) return {};
    Ref<Value> result = Value::uninitialized(node.type);
    if (!result) return {true, {}};
    const Value *x1 = &first, *x2 = &second;
    if (product->swapped) std::swap(x1, x2);
    std::array<void*, 3> buffers{x1->buffers[0].address(), x2->buffers[0].address(),
                                 result->buffers[0].address()};
    Work work;
    work.kernel = product->kernel;
    work.sizes = product->sizes;
    work.buffers = buffers;
    work.scratch = product->scratch;
    work.units = product->units;
    work.grain = product->grain;
    work.threads = product->threads;
    int64_t multiply_adds = product->multiply_adds;
    std::array<int64_t, 3> lengths_and_strides;
    if (is_vector_product(node)) {
        multiply_adds = first.type->shape[0];
        lengths_and_strides = {multiply_adds, stride_of(first), stride_of(second)};
        work.sizes = lengths_and_strides;
        work.threads = threads_for(multiply_adds, 1);
    }
    context.count(Counter::calls);
    count(Counter::multiply_adds, multiply_adds);
    if (work.units == 0) return {true, std::move(result)};
    context.count(Counter::launches);
    bool succeeded = context.launch_and_wait(device_of(node.type->device), work).succeeded();
    return {true, succeeded ? std::move(result) : Ref<Value>()};
}

} // namespace tenfold
