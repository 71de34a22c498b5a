#include "python/batch_cache.h"

#include <algorithm>
#include <bit>

#include <nanobind/stl/vector.h>

#include "exec/batch_policy.h"
#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

using Words = std::span<const uint64_t>;

PythonFunction compute_batch{"tenfold.transforms.batch_compiler", "compute_batch"};

// The expression of batches of one signature, on placeholders for their operands. While a batch is
// computed by it, it has the values of that batch, and no other thread takes it.
struct Expression {
    LinearizedGraph graph;
    std::vector<uint32_t> inputs;  // where the columns that are arrays stand, or NONE
    std::vector<uint32_t> outputs; // where the results stand; a placeholder may be one
    std::vector<char> is_batched;  // whether a result has a row for each member
    OptionKey options;
    bool rules;
    Ref<Params> params; // of the members, and the columns' Types: their addresses are in the key
    std::vector<Ref<Type>> types;
    bool in_use = false;
};
using ExpressionPtr = std::shared_ptr<Expression>; // threads that compute by it own it too

// The expression of a batch, null without one, and the number of times that it had no plan.
struct BatchEntry {
    ExpressionPtr expression;
    uint32_t failures = 0;
};
constexpr std::size_t CAPACITY = 2048;
using Table = LruCache<std::vector<uint64_t>, BatchEntry, WordsHash, SameWords>;

// The GIL protects it. It outlives every static object.
Table& batch_cache() {
    static auto* table = new Table(CAPACITY);
    return *table;
}

std::size_t num_cached_batches() { return batch_cache().size(); }

void clear_batch_cache() {
    Table::Entries evicted;
    batch_cache().clear(evicted);
}

[[maybe_unused]] Cache& registered =
    register_cache({"batches", "Python takes 0.2 ms to compute one by its expression", CAPACITY,
                    num_cached_batches, clear_batch_cache});

uint64_t address_word(const void* address) { return reinterpret_cast<uint64_t>(address); }

// False if the key depends on a value that only Python has.
bool write_key(std::vector<uint64_t>& key, const OptionKey& options, const Batch& batch,
               std::span<const StackedOperand> operands) {
    const Node& representative = *batch.node(0);
    key.assign({representative.op->id, address_word(representative.params.get()), batch.num_rows});
    auto numbers = options.words();
    key.insert(key.end(), numbers.begin(), numbers.end());
    for (const StackedOperand& operand : operands) {
        if (!operand.scalar) {
            key.push_back(address_word(operand.value->type.get()) | uint64_t(operand.stacked));
            continue;
        }
        const Scalar& scalar = *operand.scalar;
        if (scalar.form == Scalar::big_integer) return false; // its digits are not here
        key.insert(key.end(), {uint64_t(scalar.form) << 1, uint64_t(scalar.integer_bits),
                               std::bit_cast<uint64_t>(scalar.real),
                               std::bit_cast<uint64_t>(scalar.imaginary)});
    }
    return true;
}

// A result with a row for each member, in C order; empty where memory runs out.
Ref<Value> to_batched(Ref<Value> value, bool is_batched, std::size_t num_members) {
    if (!value || (is_batched && value->strides.empty())) return value;
    const Type& type = *value->type;
    std::vector<int64_t> shape;
    if (!is_batched) shape.push_back(int64_t(num_members));
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    return repeated_rows(*value,
                         intern_type({shape, type.dtype, type.device, type.storage, false}));
}

// An expression with the values of columns, which others do not take meanwhile.
class BoundExpression {
  public:
    BoundExpression(Expression& expression, std::span<const StackedOperand> operands)
        : expression_(expression) {
        expression_.in_use = true;
        std::size_t next = 0;
        for (const StackedOperand& operand : operands)
            if (!operand.scalar) bind(expression_.inputs[next++], operand.value);
    }
    ~BoundExpression() {
        for (uint32_t position : expression_.inputs) bind(position, {});
        expression_.in_use = false;
    }

  private:
    void bind(uint32_t position, Ref<Value> value) {
        if (position != LinearizedGraph::NONE)
            expression_.graph.nodes[position].value = std::move(value);
    }
    Expression& expression_;
};

// None without a plan, or where the plan fails.
std::vector<Ref<Value>> run_expression(Expression& expression, std::size_t num_members,
                                       std::span<const StackedOperand> operands) {
    const auto& nodes = expression.graph.nodes;
    std::vector<Ref<Value>> values(nodes.size()), results;
    BoundExpression bound(expression, operands);
    bool succeeded =
        replay_if_planned(expression.graph, expression.options, expression.rules, values);
    for (std::size_t i = 0; succeeded && i < expression.outputs.size(); ++i) {
        uint32_t position = expression.outputs[i];
        const Ref<Value>& value = nodes[position].value ? nodes[position].value : values[position];
        results.push_back(to_batched(value, expression.is_batched[i], num_members));
        succeeded = bool(results.back());
    }
    if (!succeeded) results.clear();
    return results;
}

uint32_t position_of(const LinearizedGraph& graph, const Node* node) {
    for (uint32_t i = 0; i < graph.nodes.size(); ++i)
        if (graph.nodes[i].node.get() == node) return i;
    return LinearizedGraph::NONE;
}

// From (outputs, placeholders, rows, options, whether rules apply). Null if the graph lacks one of
// its results.
ExpressionPtr parse_expression(nb::handle spec, const Ref<Params>& params,
                               std::span<const StackedOperand> operands) {
    auto expression = std::make_shared<Expression>();
    std::vector<Node*> outputs = nodes_from(spec[0]), pending = outputs;
    std::erase_if(pending, [](const Node* node) { return !node->op; });
    if (pending.empty()) return {};
    expression->graph = linearize(pending);
    for (Node* input : nodes_from(spec[1]))
        expression->inputs.push_back(position_of(expression->graph, input));
    for (Node* output : outputs) {
        expression->outputs.push_back(position_of(expression->graph, output));
        if (expression->outputs.back() == LinearizedGraph::NONE) return {};
    }
    for (nb::handle row : spec[2]) expression->is_batched.push_back(nb::cast<bool>(row));
    expression->options = option_key_from(spec[3]);
    expression->rules = nb::cast<bool>(spec[4]);
    expression->params = params;
    for (const StackedOperand& operand : operands)
        if (!operand.scalar) expression->types.push_back(operand.value->type);
    return expression;
}

void cache_expression(const std::vector<uint64_t>& key, ExpressionPtr expression) {
    Table::Entries evicted;
    uint32_t failures = 0;
    if (const BatchEntry* previous = batch_cache().find(Words(key))) {
        if (previous->expression && previous->expression->in_use) return;
        failures = previous->failures;
        batch_cache().evict(Words(key), evicted);
    }
    batch_cache().insert(key, {std::move(expression), failures}, evicted);
}

} // namespace

DynamicBatcher::DynamicBatcher(const OptionKey& options) : options_(options) {
    if (current_options().batch_limit) max_members = current_options().batch_limit;
    threads = current_options().threads;
    pads_rows = !current_options().verify;
}

std::vector<Ref<Value>> DynamicBatcher::compute(const Batch& batch,
                                                std::span<const StackedOperand> operands) {
    bool cacheable = !is_timeline_recording() && !current_options().verify &&
                     write_key(key_, options_, batch, operands);
    BatchEntry* entry = cacheable ? batch_cache().find(Words(key_)) : nullptr;
    if (entry && entry->expression && !entry->expression->in_use) {
        // By this pointer alone: while kernels run, others may change the table.
        ExpressionPtr expression = entry->expression;
        std::vector<Ref<Value>> results = run_expression(*expression, batch.num_rows, operands);
        if (!results.empty()) return count(Counter::batches), results;
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();
        if (PyErr_Occurred()) return PyErr_Clear(), results; // the op interpreter reports it better
        entry = batch_cache().find(Words(key_));
        if (entry) ++entry->failures;
    }
    cacheable &= !entry || entry->failures < BATCHES.max_failures;
    nb::object compiled = compile_in_python(batch, operands, cacheable);
    std::vector<Ref<Value>> results;
    if (compiled.is_none()) return results;
    for (nb::handle result : compiled[0]) results.push_back(nb::cast<ValueHandle&>(result).value);
    if (cacheable && !compiled[1].is_none())
        cache_expression(key_, parse_expression(compiled[1], batch.node(0)->params, operands));
    return results;
}

nb::object DynamicBatcher::compile_in_python(const Batch& batch,
                                             std::span<const StackedOperand> operands,
                                             bool cacheable) {
    const Node& representative = *batch.node(0);
    nb::list operand_args;
    for (const StackedOperand& operand : operands) {
        nb::object value = operand.scalar ? nb::steal(scalar_to_python(*operand.scalar))
                                          : nb::cast(ValueHandle{operand.value});
        operand_args.append(nb::make_tuple(value, operand.stacked));
    }
    nb::list nodes; // of all members, where they are to be compared
    for (std::size_t row = 0; current_options().verify && row < batch.size(); ++row)
        nodes.append(nb::cast(NodeHandle{batch.node(row)}));
    nb::object params = nb::steal(params_to_python(representative.params.get()));
    nb::object compiled = nb::steal(PyObject_CallFunction(
        compute_batch.get().ptr(), "OOOnnOnOOOO", representative.op->python, params.ptr(),
        nb::tuple(operand_args).ptr(), Py_ssize_t(batch.size()), Py_ssize_t(batch.num_rows),
        nodes.ptr(), Py_ssize_t(batch.group), batch.is_continuation ? Py_True : Py_False,
        batch_notes_.ptr(), cacheable ? Py_True : Py_False, batch.recurs ? Py_True : Py_False));
    if (!compiled.is_valid()) nb::raise_python_error();
    return compiled;
}

void declare_batch_cache(nb::module_& module) {
    using namespace nb::literals;
    module.def(
        "forget_batches",
        [](uint64_t op) {
            Table::Entries evicted;
            batch_cache().evict_if([&](const auto& entry) { return entry.key[0] == op; }, evicted);
        },
        "op"_a);
}

} // namespace tenfold::bindings
