// Graph batches: Python's batch compiler for batches of a graph, and the plans that it hands over.
#pragma once
#include "exec/dynamic_batching.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {

class GraphBatchCompiler : public BatchCompiler {
  public:
    explicit GraphBatchCompiler(const OptionKey& options);
    std::vector<Ref<Value>> compute(const Batch& batch, std::span<const StackedOperand> operands,
                                    const BatchSignature* signature) override;
    ExecutionContext* python() override;
    bool may_compute_again() override;

  private:
    nb::object compile_in_python(const Batch& batch, std::span<const StackedOperand> operands,
                                 bool wants_plan);

    nb::dict batch_notes_; // notes of Python about batches, to explain batch splits
};

} // namespace tenfold::bindings
