// Reduction kernels: run a reduction by itself, axis by axis, for any shape and layout. The order
// of folding depends on lengths alone (docs/decisions/0001).
#pragma once
#include "ir/value.h"
#include "jit/code_loader.h"
#include "threads/worker_pool.h"

namespace tenfold {

class OpKernelCompiler;
class ExecutionContext;
struct Node;

// Which kernel of a reduction along one axis.
struct ReductionForm {
    bool reduce_outer; // packets lie along an axis that stays; else along the folded one
    bool strided;      // what is read is stepped through along that axis
    bool first_pass;   // it reads elements; else what an axis before has been folded to
    bool last_pass;    // it writes results; else what an axis after this one is to fold
};

// A kernel of two outer axes, the folded one and, of a column, that of the columns.
struct ReductionLoop {
    Kernel kernel = nullptr; // null: this operation has none for these dtypes
    Ref<Code> code;
    uint16_t dtype = 0; // the dtype that is written
    uint32_t lanes = 1; // of a column: elements of a packet
    uint32_t parts = 1; // of a column: of a partial result
};

struct ReductionResult {
    bool supported =
        false;        // else an Executable computes it: no kernel here fits, or the input is empty
    Ref<Value> value; // empty where it fits and has failed
};

// What a node of such an operation makes of its input.
ReductionResult run_reduction(const Node& node, const Value& input, int threads,
                              OpKernelCompiler& compiler, ExecutionContext& context);

} // namespace tenfold
