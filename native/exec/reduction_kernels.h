// Reduction kernels: run a single reduction, axis by axis, for any shape and layout. The reduction
// order depends on lengths alone (docs/decisions/0001).
#pragma once
#include "ir/value.h"
#include "jit/code_loader.h"
#include "threads/work.h"

namespace tenfold {

class OpKernelCompiler;
class ExecutionContext;
struct Node;

// Which kernel of a reduction along one axis.
struct ReductionForm {
    bool reduce_outer; // SIMD along a kept axis; else along the reduced one
    bool strided;      // the source is strided along the SIMD axis
    bool first_pass;   // reads elements; else partial results of an earlier pass
    bool last_pass;    // writes results; else partial results for a later pass
};

// A kernel of two outer axes, the folded one and, of a column, that of the columns.
struct ReductionLoop {
    KernelHandle kernel; // null: this operation has none for these dtypes
    Ref<Code> code;
    uint16_t dtype = 0; // the dtype that is written
    uint32_t lanes = 1; // column kernel: elements of a packet
    uint32_t parts = 1; // column kernel: parts of a partial result
};

struct ReductionResult {
    bool supported =
        false;        // else an Executable computes it: no kernel here fits, or the input is empty
    Ref<Value> value; // empty where it fits and has failed
};

// Reduces `input` as the node says.
ReductionResult run_reduction(const Node& node, const Value& input, int threads,
                              OpKernelCompiler& compiler, ExecutionContext& context);

} // namespace tenfold
