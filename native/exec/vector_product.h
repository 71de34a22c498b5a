// Vector product: the product of two vectors, for any length and strides. The op interpreter runs
// it by the kernel that plans take, with the same bits.
#pragma once
#include "ir/linearize.h"
#include "jit/code_loader.h"
#include "threads/work.h"

namespace tenfold {

class ExecutionContext;
class OpKernelCompiler;

// The kernel of vectors of a dtype that are contiguous or not.
struct VectorProductKernel {
    KernelHandle kernel;
    Ref<Code> code;
};

// Whether a plain product (exec/matrix_product.h) is one of two vectors. No rewrite rule changes
// its bits.
inline bool is_vector_product(const Node& node) { return node.type->shape.empty(); }

// Computes it from its operands; empty without memory, or if Python has failed.
Ref<Value> run_vector_product(const Node& node, const Value& first, const Value& second,
                              OpKernelCompiler& compiler, ExecutionContext& context);

} // namespace tenfold
