// Batch cache: stores the expression that Python's batch compiler writes once for equal batches.
// From then on such batches are computed by that expression.
#pragma once
#include "exec/dynamic_batching.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {

class DynamicBatcher : public BatchCompiler {
  public:
    explicit DynamicBatcher(const OptionKey& options);
    std::vector<Ref<Value>> compute(const Batch& batch,
                                    std::span<const StackedOperand> operands) override;

  private:
    nb::object compile_in_python(const Batch& batch, std::span<const StackedOperand> operands,
                                 bool cacheable);

    const OptionKey options_; // in force
    std::vector<uint64_t> key_;
    nb::dict batch_notes_; // notes of Python about batches, to explain batch splits
};

} // namespace tenfold::bindings
