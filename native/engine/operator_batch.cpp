#include "engine/operator_batch.h"

#include <algorithm>
#include <bit>

#include "exec/executable.h"
#include "exec/float_env.h"
#include "memory/allocation_pool.h"

namespace tenfold {
namespace {

constexpr int64_t MIN_BLOCK_ELEMENTS = 64,
                  MAX_BLOCK_ELEMENTS = 4096; // elements of a unit of a loop, at least and at most

// One loop over contiguous operands of one length.
class ContiguousLoop {
  public:
    ContiguousLoop(const Loop& loop, std::span<const int64_t> items, int64_t length)
        : kernel_(loop.kernel) {
        int64_t block =
            std::min((length + MIN_BLOCK_ELEMENTS - 1) / MIN_BLOCK_ELEMENTS * MIN_BLOCK_ELEMENTS,
                     MAX_BLOCK_ELEMENTS);
        for (const Loop::Size& size : loop.sizes) {
            switch (size.kind) {
            case Loop::length: sizes_.push_back(size.operand == 1 ? length : 1); break;
            case Loop::stride: sizes_.push_back(size.axis == 0 ? items[size.operand] : 0); break;
            case Loop::block: sizes_.push_back(block); break;
            case Loop::unused: sizes_.push_back(0); break;
            }
        }
        units_ = length == 0 ? 0 : (length + block - 1) / block;
    }

    bool run(void** buffers, const uint64_t* numbers) const {
        if (units_ == 0) return true;
        return kernel_(buffers, sizes_.data(), reinterpret_cast<const double*>(numbers), nullptr, 0,
                       units_) == 0;
    }

  private:
    Kernel kernel_;
    std::vector<int64_t> sizes_;
    int64_t units_;
};

} // namespace

std::size_t SignatureHash::operator()(const Signature& signature) const {
    std::size_t hash = signature.options;
    for (const void* part : signature.parts)
        hash = std::rotl((hash ^ reinterpret_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15ULL, 29);
    return hash;
}

bool Batcher::accepts_scalar(std::size_t position, const Scalar& scalar) const {
    const Inference& inference =
        rows ? *rows->inference
             : *graph_template->graph.nodes[graph_template->output].node->inference;
    const DType& dtype = dtype_of(inference.operands[position]);
    if (dtype.kind == 'c') return scalar.form != Scalar::big_integer;
    if (scalar.form == Scalar::complex_number) return false;
    if (dtype.kind == 'f') return scalar.form != Scalar::big_integer;
    bool whole = scalar.form == Scalar::boolean || scalar.form == Scalar::integer;
    if (!whole || dtype.kind == 'b') return whole && scalar.form == Scalar::boolean;
    if (dtype.bytes == 8) return dtype.kind == 'i' || scalar.integer_bits >= 0;
    int64_t bound = int64_t(1) << (8 * dtype.bytes - (dtype.kind == 'i'));
    return scalar.integer_bits < bound && scalar.integer_bits >= (dtype.kind == 'i' ? -bound : 0);
}

void run_rows(const BatchRows& rows, std::span<const Ref<Future>> members,
              std::vector<OperatorResult>& answers, bool count_launches) {
    const Ref<Type>& type = rows.type;
    std::array<int64_t, Loops::OPERANDS + 1> items{};
    std::size_t arrays = 0;
    for (Edge& edge : members[0]->inputs())
        if (!edge.input->scalar) items[arrays++] = dtype_of(edge.input->type->dtype).bytes;
    items[arrays] = dtype_of(type->dtype).bytes;
    ContiguousLoop line(*rows.loop, items, type->size());
    std::size_t bytes = type->bytes();
    std::vector<void*> memory(members.size());
    pool_allocate(bytes, memory);
    BulkRef types(type, members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
        std::array<void*, Loops::OPERANDS + 1> buffers{};
        std::array<uint64_t, 2 * Loops::OPERANDS> numbers{};
        std::size_t count = 0, next = 0, position = 0;
        bool is_contiguous = true;
        for (Edge& edge : members[i]->inputs()) {
            const Future& input = *edge.input;
            Executable::Number spec{.dtype = rows.inference->operands[position++]};
            if (!input.scalar) {
                is_contiguous &= input.value->strides.empty();
                buffers[next++] = input.value->buffers[0].address();
                continue;
            }
            numbers[count++] = scalar_bits(*input.scalar, spec);
            spec.imaginary = true;
            if (dtype_of(spec.dtype).kind == 'c')
                numbers[count++] = scalar_bits(*input.scalar, spec);
        }
        if (!memory[i]) continue;
        Ref<Value> value =
            Value::in_memory(Allocation::adopt_pool_block(memory[i], bytes), types.take());
        if (!is_contiguous) continue;
        buffers[next] = value->buffers[0].address();
        if (!line.run(buffers.data(), numbers.data())) continue;
        answers[i].value = std::move(value);
        if (!std::exchange(count_launches, false)) continue;
        count_anywhere(Counter::kernels);
        count_anywhere(Counter::launches);
    }
}

std::size_t left_part_length(std::size_t length) { return std::bit_floor(length - 1); }

namespace {

// On this thread alone, without Python.
struct SingleThreadContext : ExecutionContext {
    bool counting = true;
    Result launch(Work& work) override {
        work.threads = 1;
        return Launch(work).run();
    }
    void count(Counter counter) override {
        if (counting) count_anywhere(counter);
    }
};

// The sum of some arrays of one Type, written to new memory; pairwise.
class PairwiseSum {
  public:
    PairwiseSum(const BatchRows& rows, const Type& type)
        : type_(rows.type), items_{dtype_of(type.dtype).bytes, dtype_of(type.dtype).bytes,
                                   dtype_of(type.dtype).bytes},
          line_(*rows.loop, items_, type.size()) {}

    Ref<Value> sum(std::span<const Ref<Value>> values) {
        if (values.size() == 1) return values[0];
        std::size_t half = left_part_length(values.size());
        Ref<Value> left = sum(values.first(half));
        Ref<Value> right = left ? sum(values.subspan(half)) : Ref<Value>();
        return right ? add(left, right) : Ref<Value>();
    }

    // The sum stands where a sum stood before.
    Ref<Value> add(const Ref<Value>& left, const Ref<Value>& right) {
        bool reuses_left = is_temporary(left), reuses_right = !reuses_left && is_temporary(right);
        Ref<Value> sum = reuses_left ? left : reuses_right ? right : Value::uninitialized(type_);
        if (!sum) return {};
        if (!is_temporary(sum)) temporaries_.push_back(sum.get());
        std::array<void*, 3> buffers{left->buffers[0].address(), right->buffers[0].address(),
                                     sum->buffers[0].address()};
        if (!line_.run(buffers.data(), nullptr)) return {};
        return sum;
    }

  private:
    bool is_temporary(const Ref<Value>& value) const {
        return std::find(temporaries_.begin(), temporaries_.end(), value.get()) !=
               temporaries_.end();
    }

    Ref<Type> type_;
    std::array<int64_t, 3> items_;
    ContiguousLoop line_;
    std::vector<const Value*> temporaries_; // here
};

} // namespace

void run_template_batch(const GraphTemplate& graph_template, std::span<const Ref<Future>> members,
                        std::vector<OperatorResult>& answers, bool count_launches,
                        OpKernelCompiler* compiler) {
    OpKernelCompiler no_compiler; // makes no more
    if (!compiler) compiler = &no_compiler;
    std::vector<TemplateInput> inputs;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (!answers[i].empty()) continue;
        indices.push_back(i);
        for (Edge& edge : members[i]->inputs())
            inputs.push_back(
                {edge.input->value ? &edge.input->value : nullptr, edge.input->scalar.get()});
    }
    std::vector<Ref<Value>> values(indices.size());
    SingleThreadContext context;
    context.counting = count_launches;
    run_template(graph_template, inputs, std::span(values).first(1), *compiler, context);
    context.counting = false;
    auto remaining = std::span(inputs).subspan(graph_template.leaves.size());
    run_template(graph_template, remaining, std::span(values).subspan(1), *compiler, context);
    for (std::size_t i = 0; i < indices.size(); ++i)
        answers[indices[i]].value = std::move(values[i]);
}

OperatorResult run_fold(const BatchRows& rows, const Type& type, Future& fold) {
    OperatorResult answer;
    if (rows.type.get() != &type) return answer;
    std::vector<Ref<Value>> values;
    for (Edge& edge : fold.inputs()) {
        const Future& input = *edge.input;
        if (!input.value || input.type != &type || !input.value->strides.empty()) return answer;
        values.push_back(input.value);
    }
    DefaultFloatMode modes;
    PairwiseSum pairwise_sum(rows, type);
    std::size_t leaves = fold.increments ? fold.increments->count : values.size();
    std::size_t num_sums = values.size() - leaves;
    Ref<Value> sum = pairwise_sum.sum(std::span(values).subspan(num_sums));
    while (sum && num_sums-- > 0) sum = pairwise_sum.add(values[num_sums], sum);
    count_anywhere(Counter::kernels);
    count_anywhere(Counter::launches);
    answer.value = std::move(sum);
    return answer;
}

} // namespace tenfold
