// Op interpreter: runs a cold graph node by node with strided kernels, without a plan. Elementwise
// operations and reductions run by a loop for their dtypes that takes any shape and layout, views
// by their strides, others by plans of one node. So a new graph needs no plan of its own, and no
// loop is compiled twice.
#pragma once
#include "exec/executable.h"
#include "exec/reduction_kernels.h"

namespace tenfold {

// Compiles op kernels; Python implements it, this one does nothing.
class OpKernelCompiler {
  public:
    virtual ~OpKernelCompiler() = default;
    // A Loop, handed over, where there is none; last its steps, a character for each array. (A node
    // may have been computed by another thread, and its inputs gone.)
    virtual const Loop* compile_loop(const Node&, std::span<const Node* const>,
                                     const std::string&) {
        return nullptr;
    }
    // How a view reads its input, of this shape; handed over.
    virtual const ViewMap* view_map(const Node&, const Type&) { return nullptr; }
    // The same for a reduction along one axis, of elements or partial results of a dtype.
    virtual const ReductionLoop* compile_reduction(const Node&, uint16_t, ReductionForm) {
        return nullptr;
    }
    // Computes a node of another operation, whose inputs have their values; false where it fails.
    virtual bool compute_node(Node&) { return false; }
};

constexpr std::size_t LONG_GRAPH_NODES = 512; // nodes; of more no plan is made as a whole
inline bool is_long(const LinearizedGraph& graph) {
    return (graph.num_calls > 1 ? graph.num_ops : graph.nodes.size()) > LONG_GRAPH_NODES;
}
// Whether all that is pending are small arrays of this device, made by operations that may be
// computed by themselves, of which one at least has loops or is a view.
bool can_interpret(const LinearizedGraph& graph, uint8_t device);
// Whether arrays are so large that a plan saves more than it takes, if it is used twice.
bool is_large(const LinearizedGraph& graph);
// Whether a part of an array is to be replaced.
bool has_assignments(const LinearizedGraph& graph);
// Whether there are loops for an operation, or it is a view.
bool has_native_kernel(const Node& node);
// Computes the nodes of a graph one by one, in any topological order.
class OpInterpreter {
  public:
    virtual ~OpInterpreter() = default;
    // Computes a node whose inputs are computed; false where it fails.
    virtual bool compute_node(uint32_t position) = 0;
    // The computed value that still has readers.
    virtual Ref<Value>& value(uint32_t position) = 0;
    // Drops the inputs of a computed node after their last reader.
    virtual void release_inputs(uint32_t position) = 0;
};
std::unique_ptr<OpInterpreter> make_op_interpreter(const LinearizedGraph& graph, int threads,
                                                   OpKernelCompiler& compiler,
                                                   ExecutionContext& context,
                                                   std::vector<StepTiming>* timings);

// Of a walk that fits. False where a node fails, or has no loop: what it was computed from may have
// its value by then.
bool interpret(const LinearizedGraph& graph, int threads, OpKernelCompiler& compiler,
               ExecutionContext& context, std::vector<StepTiming>* timings);

// A graph of operations with loops whose leaves have no values yet: what many pushes share.
struct GraphTemplate {
    LinearizedGraph graph;
    std::vector<uint32_t> leaves; // where the inputs stand in it, or NOWHERE
    uint32_t output = 0;
    void* owner = nullptr; // Python's, owned: it keeps the nodes, which are freed with the GIL

    static constexpr uint32_t NONE = ~uint32_t(0);
    ~GraphTemplate();
    const Ref<Type>& type() const { return graph.nodes[output].node->type; }
    // Whether all of it can be computed by loops, reductions and views.
    bool fits(uint8_t device) const;
};
// What stands for an input: one of both.
struct TemplateInput {
    const Ref<Value>* value;
    const Scalar* scalar;
};
// Computes the template for each result in `made`, whose inputs follow each other in `leaves`. A
// result is empty without a kernel or without memory.
void run_template(const GraphTemplate& graph_template, std::span<const TemplateInput> inputs,
                  std::span<Ref<Value>> results, OpKernelCompiler& compiler,
                  ExecutionContext& context);

} // namespace tenfold
