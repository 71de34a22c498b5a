// Op interpreter: runs a cold graph node by node with strided kernels, without a plan. Elementwise
// operations and reductions run by a loop for their dtypes that takes any shape and layout, views
// by their strides, others by plans of one node. So a new graph needs no plan of its own, and no
// loop is compiled twice.
#pragma once
#include "exec/executable.h"
#include "exec/reduction_kernels.h"

namespace tenfold {

// What Python does for it; this one does nothing.
class OpKernelCompiler {
  public:
    virtual ~OpKernelCompiler() = default;
    // A Loop, handed over, where there is none; last its steps, a character for each array. (A node
    // may have been computed by another thread, and its inputs gone.)
    virtual const Loop* make(const Node&, std::span<const Node* const>, const std::string&) {
        return nullptr;
    }
    // How a view reads its input, of this shape; handed over.
    virtual const ViewMap* movement(const Node&, const Type&) { return nullptr; }
    // The same for a reduction along one axis, of elements or partial results of a dtype.
    virtual const ReductionLoop* make_fold(const Node&, uint16_t, ReductionForm) { return nullptr; }
    // Computes a node of another operation, whose inputs have their values; false where it fails.
    virtual bool compute(Node&) { return false; }
};

constexpr std::size_t LONG = 512; // nodes; of more no plan is made as a whole
inline bool is_long(const LinearizedGraph& walked) {
    return (walked.calls > 1 ? walked.weight : walked.nodes.size()) > LONG;
}
// Whether all that is pending are small arrays of this device, made by operations that may be
// computed by themselves, of which one at least has loops or is a view.
bool fits_singly(const LinearizedGraph& walked, uint8_t device);
// Whether arrays are so large that a plan saves more than it takes, if it is used twice.
bool is_large(const LinearizedGraph& walked);
// Whether a part of an array is to be replaced.
bool has_assignments(const LinearizedGraph& walked);
// Whether there are loops for an operation, or it is a view.
bool is_looped(const Node& node);
// The nodes of a walk one by one, in any order in which inputs come before those who read them.
class OpInterpreter {
  public:
    virtual ~OpInterpreter() = default;
    // Computes a node whose inputs are there; false where it fails.
    virtual bool compute_one(uint32_t position) = 0;
    // What has been computed, and is still to be read.
    virtual Ref<Value>& value(uint32_t position) = 0;
    // A node will not be asked for any more: what it read may go.
    virtual void is_done(uint32_t position) = 0;
};
std::unique_ptr<OpInterpreter> one_by_one(const LinearizedGraph& walked, int threads,
                                          OpKernelCompiler& maker, ExecutionContext& surroundings,
                                          std::vector<Ran>* ran);

// Of a walk that fits. False where a node fails, or has no loop: what it was computed from may have
// its value by then.
bool interpret(const LinearizedGraph& walked, int threads, OpKernelCompiler& maker,
               ExecutionContext& surroundings, std::vector<Ran>* ran);

// A graph of operations with loops whose leaves have no values yet: what many pushes share.
struct GraphTemplate {
    LinearizedGraph walked;
    std::vector<uint32_t> leaves; // where the inputs stand in it, or NOWHERE
    uint32_t output = 0;
    void* kept = nullptr; // Python's, owned: it keeps the nodes, which are freed with the GIL

    static constexpr uint32_t NOWHERE = ~uint32_t(0);
    ~GraphTemplate();
    const Ref<Type>& type() const { return walked.nodes[output].node->type; }
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
void compute_pattern(const GraphTemplate& pattern, std::span<const TemplateInput> leaves,
                     std::span<Ref<Value>> made, OpKernelCompiler& maker,
                     ExecutionContext& surroundings);

} // namespace tenfold
