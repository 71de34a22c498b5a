// Which graphs the op interpreter may run: by their operations, the sizes of their arrays, and the
// parts of pending arrays that they read.
#include <algorithm>

#include "exec/gather.h"
#include "exec/op_interpreter.h"

namespace tenfold {
namespace {

// Larger graphs get a plan at once. Long graphs whose uses are not counted never get one.
constexpr int64_t MAX_ELEMENTS = 1 << 17, MAX_ELEMENTS_LONG = 1 << 13;
// Updates of a slice, which have no plan templates.
constexpr int64_t MAX_ELEMENTS_UPDATE = 1 << 21;

// Of each node how many elements are read, by slices and as a whole.
std::vector<int64_t> elements_read(const LinearizedGraph& graph) {
    std::vector<int64_t> elements(graph.nodes.size());
    for (const LinearizedNode& entry : graph.nodes) {
        if (entry.value || !entry.node->op) continue;
        for (uint32_t input : graph.inputs(entry)) {
            const Node& source = *graph.nodes[input].node;
            bool is_slice = entry.node->op->part == Op::slice;
            if (source.type) elements[input] += (is_slice ? *entry.node : source).type->size();
        }
    }
    return elements;
}

// A pending array of which only a small part is read: a plan may then compute that part alone. An
// update is computed in place; beside one, a plan of the part takes longer than the whole.
bool is_read_in_small_part(const LinearizedNode& source, int64_t elements_read, bool has_updates) {
    constexpr int64_t SMALL_SLICE_RATIO = 4;
    int64_t size = source.node->type->size();
    bool may_take_all = source.value || source.node->op->part == Op::slice_update ||
                        (has_updates && size <= MAX_ELEMENTS);
    return !may_take_all && elements_read * SMALL_SLICE_RATIO < size;
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

// For each node whether its elements count: not of a value of which only slices are read.
std::vector<bool> read_whole(const LinearizedGraph& graph) {
    std::vector<bool> whole(graph.nodes.size()), sliced(graph.nodes.size());
    for (const LinearizedNode& entry : graph.nodes) {
        if (entry.value || !entry.node->op) continue;
        std::vector<bool>& how = entry.node->op->part == Op::slice ? sliced : whole;
        for (uint32_t input : graph.inputs(entry)) how[input] = true;
    }
    for (std::size_t i = 0; i < whole.size(); ++i)
        if (!graph.nodes[i].value || !sliced[i]) whole[i] = true;
    return whole;
}

} // namespace

bool has_native_kernel(const Node& node) {
    return has_loops(node) || has_reduction(node) || node.op->view || node.op->fills ||
           is_gather(node);
}

bool is_large(const LinearizedGraph& graph) {
    std::vector<bool> whole = read_whole(graph);
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const Node& node = *graph.nodes[i].node;
        if (whole[i] && !node.is_scalar() && node.type->size() > MAX_ELEMENTS) return true;
    }
    return false;
}

int64_t mean_elements(const LinearizedGraph& graph) {
    int64_t elements = 0, operations = 0;
    for (const LinearizedNode& entry : graph.nodes) {
        const Node& node = *entry.node;
        if (entry.value || !node.op || node.op->view) continue;
        ++operations;
        const Node* computed = &node;
        if (has_reduction(node) || node.op->part == Op::slice_update)
            computed = graph.nodes[graph.inputs(entry).back()].node.get();
        elements += computed->is_scalar() ? 1 : computed->type->size();
    }
    return elements / std::max<int64_t>(operations, 1);
}

bool has_assignments(const LinearizedGraph& graph) {
    return std::ranges::any_of(graph.nodes, [](const LinearizedNode& entry) {
        return !entry.value && entry.node->op && entry.node->op->part == Op::slice_update;
    });
}

bool can_interpret(const LinearizedGraph& graph, uint8_t device, bool counted) {
    bool has_updates = has_assignments(graph), loops = has_updates;
    int64_t max_elements = !counted && is_long(graph) ? MAX_ELEMENTS_LONG
                           : has_updates              ? MAX_ELEMENTS_UPDATE
                                                      : MAX_ELEMENTS;
    std::vector<bool> whole = read_whole(graph);
    std::vector<int64_t> read = elements_read(graph);
    int num_matrix_products = 0; // rules read several of them together
    for (const LinearizedNode& entry : graph.nodes) {
        const Node& node = *entry.node;
        if (node.is_scalar()) continue;
        bool counts = whole[std::size_t(&entry - graph.nodes.data())];
        if (!is_small(*node.type, device, counts ? max_elements : INT64_MAX)) return false;
        if (entry.value) continue;
        if (has_updates && node.op && is_plain_product(graph, entry)) {
            bool is_isolated = is_vector_product(node) ||
                               (++num_matrix_products == 1 && !is_long(graph) &&
                                is_only_assigned(graph, uint32_t(&entry - graph.nodes.data())));
            if (!is_isolated) return false;
            continue;
        }
        if (!is_supported(graph, entry)) return false;
        if (node.op->part == Op::slice) {
            uint32_t source = graph.inputs(entry)[0];
            if (is_read_in_small_part(graph.nodes[source], read[source], has_updates)) return false;
        }
        loops |= has_native_kernel(node);
    }
    return loops;
}

namespace {

bool can_run_nodes(const GraphTemplate& graph_template, uint8_t device, int64_t max_elements) {
    const LinearizedGraph& graph = graph_template.graph;
    std::vector<int64_t> read = elements_read(graph);
    auto is_supported_node = [&](const LinearizedNode& entry) {
        const Node& node = *entry.node;
        if (node.is_scalar() || !is_small(*node.type, device, max_elements))
            return node.is_scalar();
        if (entry.value || !node.op) return true;
        if (node.op->part == Op::slice) {
            uint32_t source = graph.inputs(entry)[0];
            if (graph.nodes[source].node->op &&
                is_read_in_small_part(graph.nodes[source], read[source], false))
                return false;
        }
        return is_supported(graph, entry) && has_native_kernel(node);
    };
    return graph.nodes[graph_template.output].node->op &&
           std::ranges::all_of(graph.nodes, is_supported_node);
}

} // namespace

bool GraphTemplate::fits(uint8_t device) const {
    return can_run_nodes(*this, device, MAX_ELEMENTS);
}

bool GraphTemplate::can_run(uint8_t device) const {
    return can_run_nodes(*this, device, INT64_MAX);
}

bool GraphTemplate::has_only_views() const {
    return std::ranges::all_of(graph.nodes, [](const LinearizedNode& entry) {
        return entry.node->is_scalar() || !entry.node->op || entry.node->op->view;
    });
}

} // namespace tenfold
