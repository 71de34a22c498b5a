// Matrix product: the product of two matrices or vectors in a graph that the op interpreter runs.
// It launches the kernel that a plan of such operands would launch. That of two vectors takes any
// lengths and strides.
#pragma once
#include <memory>
#include <vector>

#include "ir/linearize.h"
#include "jit/code_loader.h"
#include "threads/work.h"

namespace tenfold {

class ExecutionContext;
class OpKernelCompiler;

// How an operand lies in memory; empty strides: in C order. A vector beside another one stands for
// all that are contiguous, or for all that are not.
struct ProductLayout {
    std::vector<int64_t> shape, strides;
};

// The launch of a product for operands of these layouts.
struct ProductLaunch {
    KernelHandle kernel; // null: a plan of one node computes it
    Ref<Code> code;
    bool swapped = false; // the second operand is the kernel's first
    std::vector<int64_t> sizes;
    std::size_t scratch = 0;
    int64_t units = 0, grain = 1, multiply_adds = 0;
    int threads = 0;
};

struct ProductResult {
    bool supported = false; // else a plan of one node computes it
    Ref<Value> value;       // empty where it is supported and has failed
};

// Whether a node is the product of two arrays of its own real floating dtype and of one or two
// axes, whose operands are values, slices, or gathered.
bool is_plain_product(const LinearizedGraph& graph, const LinearizedNode& entry);

// Whether a plain product is one of two vectors. No rewrite rule changes its bits.
inline bool is_vector_product(const Node& node) { return node.type->shape.empty(); }

// Whether no rewrite rule changes the bits of a plain product: its result is assigned, after
// operations that keep products (OpRewriting.keeps_products), and nothing else reads it.
bool is_only_assigned(const LinearizedGraph& graph, uint32_t position);

// Computes it from its operands.
ProductResult run_matrix_product(const Node& node, const Value& first, const Value& second,
                                 OpKernelCompiler& compiler, ExecutionContext& context);

} // namespace tenfold
