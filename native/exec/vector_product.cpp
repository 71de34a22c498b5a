#include "exec/vector_product.h"

#include <array>

#include "exec/kernel_table.h"
#include "exec/op_interpreter.h"
#include "exec/work_size.h"

namespace tenfold {
namespace {

KernelTable<VectorProductKernel>* const kernels =
    new KernelTable<VectorProductKernel>; // outlives every thread

int64_t stride_of(const Value& vector) {
    return vector.strides.empty() ? int64_t(dtype_of(vector.type->dtype).bytes) : vector.strides[0];
}

bool is_contiguous(const Value& vector) {
    return vector.type->shape[0] <= 1 || stride_of(vector) == dtype_of(vector.type->dtype).bytes;
}

} // namespace

Ref<Value> run_vector_product(const Node& node, const Value& first, const Value& second,
                              OpKernelCompiler& compiler, ExecutionContext& context) {
    bool contiguous[] = {is_contiguous(first), is_contiguous(second)};
    uint64_t key = (uint64_t(node.op->id) << 16 | node.type->dtype) << 2 |
                   uint64_t(contiguous[0]) << 1 | uint64_t(contiguous[1]);
    const VectorProductKernel* product = kernels->find_or_make(compiler.target(), key, [&] {
        return compiler.compile_product(node, contiguous[0], contiguous[1]);
    });
    if (!product) return {};
    Ref<Value> result = Value::uninitialized(node.type);
    if (!result) return {};
    int64_t length = first.type->shape[0];
    std::array<int64_t, 3> sizes{length, stride_of(first), stride_of(second)};
    std::array<void*, 3> buffers{first.buffers[0].address(), second.buffers[0].address(),
                                 result->buffers[0].address()};
    Work work;
    work.kernel = product->kernel;
    work.sizes = sizes;
    work.buffers = buffers;
    work.units = 1;
    work.threads = threads_for(length, 1);
    context.count(Counter::calls);
    context.count(Counter::launches);
    count(Counter::multiply_adds, length);
    bool succeeded = context.launch_and_wait(device_of(node.type->device), work).succeeded();
    return succeeded ? result : Ref<Value>();
}

} // namespace tenfold
