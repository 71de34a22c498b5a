// Op interpreter: runs a cold graph node by node with strided kernels, without a plan. Elementwise
// operations and reductions run by a loop for their dtypes, for any shape and layout. Views run by
// their strides, others by plans of one node. So a new graph needs no plan of its own, and no loop
// is compiled twice.
#pragma once
#include "exec/executable.h"
#include "exec/matrix_product.h"
#include "exec/part_copy.h"
#include "exec/reduction_kernels.h"
#include "memory/target_facts.h"

namespace tenfold {

// Compiles op kernels for one target; Python implements it, this one does nothing.
class OpKernelCompiler {
  public:
    explicit OpKernelCompiler(uint8_t target = 0) : target_(target) {}
    virtual ~OpKernelCompiler() = default;
    uint8_t target() const { return target_; }
    // Compiles a Loop, owned by the caller, if the cache has none. The string is its steps, one
    // character per array. (Another thread may have computed the node and dropped its inputs.)
    virtual const Loop* compile_loop(const Node&, std::span<const Node* const>,
                                     const std::string&) {
        return nullptr;
    }
    // How a view reads its input, of this shape; handed over.
    virtual const IndexMap* index_map(const Node&, const Type&) { return nullptr; }
    // The same for a reduction along one axis, of elements or partial results of a dtype.
    virtual const ReductionLoop* compile_reduction(const Node&, uint16_t, ReductionForm) {
        return nullptr;
    }
    // The launch of a product of such operands; null where Python has failed.
    virtual std::shared_ptr<const ProductLaunch> product_launch(const Node&, const ProductLayout&,
                                                                const ProductLayout&) {
        return {};
    }
    // Writes the element that an operation fills its result with.
    virtual bool fill_element(const Node&, ElementBytes&) { return false; }
    // Computes a node of another operation, whose inputs have their values; false where it fails.
    virtual bool compute_node(Node&) { return false; }

  private:
    uint8_t target_; // target of the kernels that it finds or compiles
};

inline bool is_long(const LinearizedGraph& graph) {
    return (graph.num_calls > 1 ? graph.num_ops : graph.nodes.size()) > MAX_PLANNED_NODES;
}
// Whether all pending nodes are small arrays of this device, by rule-free operations or part
// assignments; beside assignments some may be products. At least one has loops or is a view. A long
// graph may have arrays of usual size if its uses are `counted`, else smaller ones.
bool can_interpret(const LinearizedGraph& graph, uint8_t device, bool counted = false);
// The device that a graph is computed on, by its id, if it runs loops; else an id of none.
uint8_t loop_device(const LinearizedGraph& graph);
// Whether arrays are so large that a plan saves more than it takes, if it is used twice.
bool is_large(const LinearizedGraph& graph);
// The elements that an operation computes or replaces, on average. Views count as none.
int64_t mean_elements(const LinearizedGraph& graph);
// Whether a part of an array is to be replaced.
bool has_assignments(const LinearizedGraph& graph);
inline bool has_loops(const Node& node) {
    return node.op->shapes == Op::broadcast && node.inference->loops;
}
inline bool has_reduction(const Node& node) { return node.op->folding != Op::nothing; }
// Whether a node joins arrays of one Type, its own dtype, along the first axis of its result.
bool is_join(const LinearizedGraph& graph, const LinearizedNode& entry);
// Whether an operation has native loops, is a view, gathers, or fills an array.
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

// Interprets a graph that may be interpreted. False where a node fails, or has no loop; its
// operands may be published by then.
bool interpret(const LinearizedGraph& graph, int threads, OpKernelCompiler& compiler,
               ExecutionContext& context, std::vector<StepTiming>* timings);

// Graph template: operations with native loops, on leaves without values, shared by many pushes.
struct GraphTemplate {
    LinearizedGraph graph;
    std::vector<uint32_t> leaves; // positions of the inputs, or NONE
    uint32_t output = 0;
    void* owner = nullptr; // Python object, owned: it holds the nodes, which are freed with the GIL

    static constexpr uint32_t NONE = ~uint32_t(0);
    ~GraphTemplate();
    const Node& output_node() const { return *graph.nodes[output].node; }
    const Ref<Type>& type() const { return output_node().type; }
    // Whether loops, reductions and views can compute all of it, on arrays of so many elements.
    bool can_run(uint8_t device, int64_t max_elements = INT64_MAX) const;
    // Whether it is made of views alone: it moves nothing.
    bool has_only_views() const;
};
// An input: either a value or a scalar.
struct TemplateInput {
    const Ref<Value>* value;
    const Scalar* scalar;
};
// Computes the template for each of `results`, on so many threads at most; `inputs` holds their
// inputs in succession. A result is empty without a kernel or without memory.
void run_template(const GraphTemplate& graph_template, std::span<const TemplateInput> inputs,
                  std::span<Ref<Value>> results, OpKernelCompiler& compiler,
                  ExecutionContext& context, int threads);

} // namespace tenfold
