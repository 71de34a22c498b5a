#include "exec/stacked_batch.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

constexpr std::size_t CAPACITY = 2048;
constexpr std::size_t MAX_PLANS = 64; // plans of one signature

using Plans = std::vector<Ref<PlannedGraph>>; // each plan is for another number of rows
using Words = std::span<const uint64_t>;
using Table = LruCache<std::vector<uint64_t>, Plans, WordsHash, SameWords>;

struct BatchCache {
    Lock lock; // protects the table
    Table table{CAPACITY};
};

BatchCache& cache() {
    static auto* only = new BatchCache; // outlives every static object
    return *only;
}

std::size_t num_signatures() {
    Guard guard(cache().lock);
    return cache().table.size();
}

void clear_batch_plans() {
    Table::Entries evicted; // freed outside the lock
    Guard guard(cache().lock);
    cache().table.clear(evicted);
}

[[maybe_unused]] Cache& registered =
    register_cache({"batches", "Python takes a millisecond to plan one", CAPACITY, num_signatures,
                    clear_batch_plans});

uint64_t address_word(const void* address) { return reinterpret_cast<uint64_t>(address); }

// The plan for so many rows, or a few more: equal lengths have a plan of their own.
bool serves(BatchPlan& batch, const Ref<PlannedGraph>& planned, const RowRange& range) {
    constexpr std::size_t MAX_TRIES = 3;
    for (std::size_t rows = range.min_rows;
         rows <= std::min(range.max_rows, range.min_rows + MAX_TRIES); ++rows) {
        Ref<Executable> plan = planned->plan_for(rows);
        if (!plan) continue;
        batch = {planned, std::move(plan), rows};
        return true;
    }
    return false;
}

// A result with a row for each member, in C order; empty where memory runs out.
Ref<Value> with_rows(const Ref<Value>& value, bool has_rows, std::size_t rows) {
    if (has_rows) return in_c_order(value);
    const Type& type = *value->type;
    std::vector<int64_t> shape{int64_t(rows)};
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    return repeated_rows(*value,
                         intern_type({shape, type.dtype, type.device, type.storage, false}));
}

} // namespace

std::vector<int64_t> transposed_strides(const Type& type) {
    const auto& shape = type.shape;
    std::vector<int64_t> strides(shape.size() < 2 ? 0 : shape.size());
    if (strides.empty()) return strides;
    int64_t bytes = dtype_of(type.dtype).bytes;
    std::size_t last = shape.size() - 1;
    strides[last - 1] = bytes;
    strides[last] = bytes * shape[last - 1];
    bytes *= shape[last] * shape[last - 1];
    for (std::size_t axis = last - 1; axis-- > 0; bytes *= shape[axis]) strides[axis] = bytes;
    return strides;
}

void MemberOperands::find_scalar_form() {
    bool are_equal = std::ranges::all_of(
        scalars, [&](const Scalar* scalar) { return scalar->has_equal_bits(*scalars[0]); });
    form = are_equal ? OperandForm::number : OperandForm::numbers;
}

void BatchSignature::add(const MemberOperands& operand) {
    words.push_back(address_word(operand.type.get()));
    words.push_back(uint64_t(operand.form) | uint64_t(operand.dtype) << 8);
    if (operand.shared)
        words.insert(words.end(), operand.shared->strides.begin(), operand.shared->strides.end());
}

bool BatchSignature::add_number(const Scalar& scalar) {
    if (scalar.form == Scalar::big_integer) return false;
    words.insert(words.end(),
                 {uint64_t(scalar.form), uint64_t(scalar.integer_bits),
                  std::bit_cast<uint64_t>(scalar.real), std::bit_cast<uint64_t>(scalar.imaginary)});
    return true;
}

BatchPlan find_batch_plan(const BatchSignature& signature, const RowRange& range) {
    BatchPlan batch{{}, {}, range.min_rows};
    Plans plans; // tried outside the lock
    {
        Guard guard(cache().lock);
        if (const Plans* cached = cache().table.find(Words(signature.words))) plans = *cached;
    }
    for (const Ref<PlannedGraph>& planned : plans)
        if (planned->symbolic && serves(batch, planned, range)) return batch;
    const std::size_t wanted = batch.rows, end = std::min(2 * wanted - 1, range.max_rows) + 1;
    std::ranges::sort(plans, {}, [](const Ref<PlannedGraph>& planned) { return planned->rows; });
    for (const Ref<PlannedGraph>& planned : plans) {
        if (planned->rows < wanted || planned->rows >= end) continue;
        Ref<Executable> plan = planned->plan_for(planned->rows);
        if (plan || !planned->plan) return {planned, std::move(plan), planned->rows};
    }
    return batch;
}

void cache_batch_plan(const BatchSignature& signature, Ref<PlannedGraph> planned) {
    Table::Entries evicted; // freed outside the lock, as are these
    Plans replaced;
    Guard guard(cache().lock);
    Plans* cached = cache().table.find(Words(signature.words));
    if (!cached) cached = &cache().table.insert(signature.words, {}, evicted);
    if (cached->size() == MAX_PLANS) replaced.swap(*cached);
    auto is_superseded = [&](const Ref<PlannedGraph>& each) {
        return each->rows == planned->rows ||
               (planned->symbolic && each->symbolic == planned->symbolic);
    };
    std::ranges::copy_if(*cached, std::back_inserter(replaced), is_superseded);
    std::erase_if(*cached, is_superseded);
    cached->push_back(std::move(planned));
}

void forget_batch_plans(uint64_t operation) {
    Table::Entries evicted; // freed outside the lock
    Guard guard(cache().lock);
    cache().table.evict_if([&](const auto& entry) { return entry.key[0] == operation; }, evicted);
}

bool stack_members(std::span<StackedOperand> stacked, std::span<MemberOperands> operands,
                   std::size_t rows, uint8_t device, int threads) {
    for (std::size_t position = 0; position < operands.size(); ++position) {
        StackedOperand& result = stacked[position];
        MemberOperands& operand = operands[position];
        switch (operand.form) {
        case OperandForm::number: result.scalar = operand.scalars[0]; continue;
        case OperandForm::numbers:
            if (!stack_scalars(result, operand.scalars, operand.dtype, device, rows)) return false;
            continue;
        case OperandForm::shared: result.value = operand.shared; continue;
        case OperandForm::transposed: // each is contiguous
            for (StridedRef& row : operand.rows) row.strides = nullptr;
            break;
        case OperandForm::stacked: break;
        }
        if (!stack_operands(result, operand.rows, *operand.type, rows, threads)) return false;
        if (operand.form != OperandForm::transposed) continue;
        // The strides of a member, behind that of the batch axis.
        auto strides = transposed_strides(*result.value->type);
        result.value->strides = std::move(strides);
        result.value->is_view = true;
    }
    return true;
}

std::vector<Ref<Value>> run_batch(const BatchPlan& batch, std::span<const StackedOperand> operands,
                                  OpKernelCompiler& compiler, ExecutionContext* python,
                                  int threads) {
    const PlannedGraph& planned = *batch.planned;
    std::vector<Ref<Value>> results;
    if (batch.plan) {
        PlannedGraphRunner runner(planned, python);
        for (std::size_t i = 0; i < operands.size(); ++i)
            if (!operands[i].scalar && !runner.bind_input(i, operands[i].value)) return {};
        results = runner.run(*batch.plan);
    } else {
        std::vector<TemplateInput> inputs;
        for (const StackedOperand& operand : operands)
            inputs.push_back({operand.value ? &operand.value : nullptr, operand.scalar});
        results.resize(1);
        GilFreeContext context;
        run_template(*planned.graph_template, inputs, results, compiler, context, threads);
    }
    const auto& stacked = planned.stacked_outputs;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i])
            results[i] = with_rows(results[i], stacked.empty() || stacked[i], batch.rows);
        if (!results[i]) return {};
    }
    return results;
}

} // namespace tenfold
