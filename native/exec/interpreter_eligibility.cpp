// Which graphs the op interpreter may run: by their operations, the sizes of their arrays, and the
// parts of pending arrays that they read.
#include <algorithm>
#include <functional>
#include <numeric>

#include "exec/gather.h"
#include "exec/tier_policy.h"
#include "ir/index_map.h"
#include "threads/device.h"

namespace tenfold {
namespace {

int64_t product_of(const std::vector<int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

// Elements of the nodes of a graph.
struct ElementCounts {
    // Elements that a node computes. An update counts its slice; a value counts all elements, but
    // none if only slices and elements of it are read or replaced.
    std::vector<int64_t> computed;
    std::vector<int64_t> read; // elements read by the readers; a slice reads its own

    explicit ElementCounts(const LinearizedGraph& graph)
        : computed(graph.nodes.size()), read(graph.nodes.size()) {
        for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
            const LinearizedNode& entry = graph.nodes[i];
            const Node& node = *entry.node;
            if (node.is_scalar() || entry.value) continue;
            computed[i] = node.op && node.op->part == Op::slice_update
                              ? product_of(pattern_of(*node.params).map.shape)
                              : node.type->size();
            if (node.op) add_reads(graph, entry);
        }
        for (uint32_t output : graph.outputs) add_whole(graph, output);
    }

  private:
    void add_reads(const LinearizedGraph& graph, const LinearizedNode& entry) {
        const Op& op = *entry.node->op;
        auto inputs = graph.inputs(entry);
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            bool is_part = k == 0 && (op.part != Op::none || op.gathers);
            if (!is_part)
                add_whole(graph, inputs[k]);
            else if (op.part != Op::slice_update)
                read[inputs[k]] += entry.node->type->size();
        }
    }

    void add_whole(const LinearizedGraph& graph, uint32_t position) {
        const LinearizedNode& entry = graph.nodes[position];
        if (entry.node->is_scalar()) return;
        int64_t size = entry.node->type->size();
        read[position] += size;
        if (entry.value) computed[position] = size;
    }
};

// A pending array of which only a small part is read: a plan may then compute that part alone. An
// update is computed in place; beside one, a plan of the part takes longer than the whole.
bool is_read_in_small_part(const LinearizedNode& source, int64_t elements_read, bool has_updates) {
    int64_t size = source.node->type->size();
    bool may_take_all = source.value || source.node->op->part == Op::slice_update ||
                        (has_updates && size <= TIERS.max_elements);
    return !may_take_all && elements_read * TIERS.small_slice_ratio < size;
}

bool is_small(const Type& type, uint8_t device, int64_t max_elements) {
    return type.device == device && type.storage == 0 && type.size() <= max_elements;
}

// An update of a pending node that others read: its plan need not store the old value.
bool passes_through_target(const LinearizedGraph& graph, const LinearizedNode& update) {
    uint32_t target = graph.inputs(update)[0];
    const LinearizedNode& old = graph.nodes[target];
    return !old.value && old.live_out && old.node->op->part != Op::slice_update &&
           std::ranges::find(graph.outputs, target) == graph.outputs.end();
}

bool is_supported(const LinearizedGraph& graph, const LinearizedNode& entry) {
    const Node& node = *entry.node;
    if (node.op && node.op->part == Op::slice_update)
        return can_assign(graph, entry) && !passes_through_target(graph, entry);
    return node.op && node.op->rule_free && node.inference->results.size() == 1;
}

} // namespace

bool is_join(const LinearizedGraph& graph, const LinearizedNode& entry) {
    const Node& node = *entry.node;
    if (!node.op->joins || !node.params || node.params->axes[0] != 0) return false;
    const Node& first = *graph.nodes[graph.inputs(entry)[0]].node;
    auto is_row = [&](uint32_t input) {
        const Node& row = *graph.nodes[input].node;
        return !row.is_scalar() && row.type == first.type;
    };
    return !first.is_scalar() && first.type->dtype == node.type->dtype &&
           std::ranges::all_of(graph.inputs(entry), is_row);
}

bool has_native_kernel(const Node& node) {
    return has_loops(node) || has_reduction(node) || node.op->view || node.op->constant_fill ||
           is_gather(node) || is_scatter(node);
}

uint8_t loop_device(const LinearizedGraph& graph) {
    uint8_t device = graph.nodes[graph.outputs[0]].node->type->device;
    return has_loops_on(device) ? device : UINT8_MAX;
}

bool is_large(const LinearizedGraph& graph) {
    return std::ranges::any_of(ElementCounts(graph).computed,
                               [](int64_t elements) { return elements > TIERS.max_elements; });
}

int64_t mean_elements(const LinearizedGraph& graph) {
    const ElementCounts counts(graph);
    int64_t elements = 0, operations = 0;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const LinearizedNode& entry = graph.nodes[i];
        if (entry.value || !entry.node->op || entry.node->op->view) continue;
        ++operations;
        elements += counts.computed[has_reduction(*entry.node) ? graph.inputs(entry)[0] : i];
    }
    return elements / std::max<int64_t>(operations, 1);
}

bool has_assignments(const LinearizedGraph& graph) {
    return std::ranges::any_of(graph.nodes, [](const LinearizedNode& entry) {
        return !entry.value && entry.node->op && entry.node->op->part == Op::slice_update;
    });
}

bool can_interpret(const LinearizedGraph& graph, uint8_t device, bool counted) {
    if (device == UINT8_MAX || !device_of(device).is_host)
        return false; // its kernels are the CPU's
    const bool has_updates = has_assignments(graph);
    bool loops = has_updates;
    const int64_t max_elements = !counted && is_long(graph) ? TIERS.max_long_elements
                                 : has_updates              ? TIERS.max_update_elements
                                                            : TIERS.max_elements;
    const ElementCounts counts(graph);
    int num_matrix_products = 0; // rules read several of them together
    int64_t excess = 0;          // elements of larger arrays
    for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
        const LinearizedNode& entry = graph.nodes[i];
        const Node& node = *entry.node;
        if (node.is_scalar()) continue;
        if (node.type->device != device || node.type->storage != 0) return false;
        if (counts.computed[i] > max_elements) excess += counts.computed[i];
        if (entry.value) continue;
        bool is_update = node.op && node.op->part == Op::slice_update;
        if (is_update && node.type->size() > TIERS.max_update_elements)
            return false; // it may be copied
        if (has_updates && node.op && is_plain_product(graph, entry)) {
            bool is_isolated =
                is_vector_product(node) ||
                (++num_matrix_products == 1 && !is_long(graph) && is_only_assigned(graph, i));
            if (!is_isolated) return false;
            continue;
        }
        if (!is_supported(graph, entry)) return false;
        if (node.op->part == Op::slice) {
            uint32_t source = graph.inputs(entry)[0];
            if (is_read_in_small_part(graph.nodes[source], counts.read[source], has_updates))
                return false;
        }
        loops |= has_native_kernel(node) || is_join(graph, entry);
    }
    // A long graph may have few large arrays: planning all of it takes longer.
    bool may_exceed =
        is_long(graph) && excess <= TIERS.max_long_elements * int64_t(graph.nodes.size());
    return loops && (excess == 0 || may_exceed);
}

bool GraphTemplate::can_run(uint8_t device, int64_t max_elements) const {
    if (!device_of(device).is_host) return false;
    const ElementCounts counts(graph);
    auto is_supported_node = [&](const LinearizedNode& entry) {
        const Node& node = *entry.node;
        if (node.is_scalar() || !is_small(*node.type, device, max_elements))
            return node.is_scalar();
        if (entry.value || !node.op) return true;
        if (node.op->part == Op::slice) {
            uint32_t source = graph.inputs(entry)[0];
            if (graph.nodes[source].node->op &&
                is_read_in_small_part(graph.nodes[source], counts.read[source], false))
                return false;
        }
        return is_supported(graph, entry) && has_native_kernel(node);
    };
    return output_node().op && std::ranges::all_of(graph.nodes, is_supported_node);
}

bool GraphTemplate::has_only_views() const {
    return std::ranges::all_of(graph.nodes, [](const LinearizedNode& entry) {
        return entry.node->is_scalar() || !entry.node->op || entry.node->op->view;
    });
}

} // namespace tenfold
