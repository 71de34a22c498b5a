#include "python/batch_cache.h"

#include <algorithm>
#include <bit>

#include <nanobind/stl/vector.h>

#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

using Words = std::span<const uint64_t>;

PyObject* make_group = nullptr; // see group in tenfold/transforms/batch_compiler.py

// The expression of batches of one signature, on placeholders for their operands. While a batch is
// computed by it, it has the values of that batch, and no other thread takes it.
struct Expression {
    LinearizedGraph walked;
    std::vector<uint32_t> inputs;  // where the columns that are arrays stand, or NONE
    std::vector<uint32_t> outputs; // where the results stand; a placeholder may be one
    std::vector<char> rows;        // whether a result has a row for each member
    Numbers options;               // by which it is planned
    bool rules;
    Ref<Params> params; // of the members, and the columns' Types: their addresses are in the key
    std::vector<Ref<Type>> types;
    bool taken = false;
};
using Kept = std::shared_ptr<Expression>; // threads that compute by it own it too

// The expression of a batch, null without one, and the number of times that it had no plan.
struct KnownBatches {
    Kept expression;
    uint32_t failures = 0;
};
constexpr uint32_t MOST_FAILURES = 16;
constexpr std::size_t CAPACITY = 2048;

struct BatchHash {
    using is_transparent = void;
    std::size_t operator()(Words key) const { return hash_of(key); }
};
struct SameBatch {
    using is_transparent = void;
    bool operator()(Words a, Words b) const { return std::ranges::equal(a, b); }
};
using Table = LruCache<std::vector<uint64_t>, KnownBatches, BatchHash, SameBatch>;

// The GIL protects it. It outlives every static object.
Table& known() {
    static auto* table = new Table;
    return *table;
}

std::size_t known_groups() { return known().size(); }

void forget_groups() {
    Table fallen;
    fallen.swap(known());
}

[[maybe_unused]] Cache& joined = join({"groups", CAPACITY, known_groups, forget_groups});

uint64_t word(const void* address) { return reinterpret_cast<uint64_t>(address); }

// False for what is known to Python alone.
bool write_key(std::vector<uint64_t>& key, Words options, const Batch& members,
               std::span<const StackedOperand> columns) {
    const Node& like = *members.node(0);
    key.assign({like.op->id, word(like.params.get()), members.rows});
    key.insert(key.end(), options.begin(), options.end());
    for (const StackedOperand& column : columns) {
        if (!column.scalar) {
            key.push_back(word(column.value->type.get()) | uint64_t(column.stacked));
            continue;
        }
        const Scalar& scalar = *column.scalar;
        if (scalar.form == Scalar::huge) return false; // its digits are not here
        key.insert(key.end(), {uint64_t(scalar.form) << 1, uint64_t(scalar.whole),
                               std::bit_cast<uint64_t>(scalar.real),
                               std::bit_cast<uint64_t>(scalar.imaginary)});
    }
    return true;
}

// A result with a row for each member, in C order; empty where memory runs out.
Ref<Value> in_rows(Ref<Value> found, bool rows, std::size_t members) {
    if (!found || (rows && found->strides.empty())) return found;
    const Type& type = *found->type;
    std::size_t copies = rows ? 1 : members, bytes = std::size_t(bytes_of(type));
    std::vector<int64_t> shape;
    if (!rows) shape.push_back(int64_t(members));
    shape.insert(shape.end(), type.shape.begin(), type.shape.end());
    Ref<Value> made = Value::of(intern_type({shape, type.dtype, type.device, type.storage, false}));
    if (!made) return made;
    auto* data = static_cast<char*>(made->buffers[0].address());
    for (std::size_t copy = 0; copy < copies; ++copy) copy_elements(data + copy * bytes, *found);
    return made;
}

// An expression with the values of columns, which others do not take meanwhile.
class Taken {
  public:
    Taken(Expression& expression, std::span<const StackedOperand> columns)
        : expression_(expression) {
        expression_.taken = true;
        std::size_t next = 0;
        for (const StackedOperand& column : columns)
            if (!column.scalar) set(expression_.inputs[next++], column.value);
    }
    ~Taken() {
        for (uint32_t place : expression_.inputs) set(place, {});
        expression_.taken = false;
    }

  private:
    void set(uint32_t place, Ref<Value> value) {
        if (place != LinearizedGraph::NONE)
            expression_.walked.nodes[place].value = std::move(value);
    }
    Expression& expression_;
};

// None without a plan, or where the plan fails.
std::vector<Ref<Value>> computed_by(Expression& expression, std::size_t members,
                                    std::span<const StackedOperand> columns) {
    const auto& nodes = expression.walked.nodes;
    std::vector<Ref<Value>> made(nodes.size()), results;
    Taken taken(expression, columns);
    bool done = replay_known(expression.walked, expression.options, expression.rules, made);
    for (std::size_t i = 0; done && i < expression.outputs.size(); ++i) {
        uint32_t at = expression.outputs[i];
        const Ref<Value>& found = nodes[at].value ? nodes[at].value : made[at];
        results.push_back(in_rows(found, expression.rows[i], members));
        done = bool(results.back());
    }
    if (!done) results.clear();
    return results;
}

uint32_t place_of(const LinearizedGraph& walked, const Node* node) {
    for (uint32_t i = 0; i < walked.nodes.size(); ++i)
        if (walked.nodes[i].node.get() == node) return i;
    return LinearizedGraph::NONE;
}

// From (outputs, placeholders, rows, options, whether there are rules); null where one of its
// results cannot be found in it.
Kept expression_from(nb::handle given, const Ref<Params>& params,
                     std::span<const StackedOperand> columns) {
    auto made = std::make_shared<Expression>();
    std::vector<Node*> outputs = nodes_from(given[0]), pending = outputs;
    std::erase_if(pending, [](const Node* node) { return !node->op; });
    if (pending.empty()) return {};
    made->walked = walk(pending);
    for (Node* input : nodes_from(given[1])) made->inputs.push_back(place_of(made->walked, input));
    for (Node* output : outputs) {
        made->outputs.push_back(place_of(made->walked, output));
        if (made->outputs.back() == LinearizedGraph::NONE) return {};
    }
    for (nb::handle row : given[2]) made->rows.push_back(nb::cast<bool>(row));
    for (std::size_t i = 0; i < made->options.size(); ++i)
        made->options[i] = nb::cast<uint64_t>(given[3][i]);
    made->rules = nb::cast<bool>(given[4]);
    made->params = params;
    for (const StackedOperand& column : columns)
        if (!column.scalar) made->types.push_back(column.value->type);
    return made;
}

void keep(const std::vector<uint64_t>& key, Kept expression) {
    Table::Entries fallen;
    uint32_t failures = 0;
    if (const KnownBatches* before = known().find(Words(key))) {
        if (before->expression && before->expression->taken) return;
        failures = before->failures;
        known().drop(Words(key), fallen);
    }
    known().keep(key, {std::move(expression), failures});
    while (known().size() > CAPACITY) known().drop_last(fallen);
}

} // namespace

DynamicBatcher::DynamicBatcher(std::span<const uint64_t> options) : options_(options) {
    if (current_options().batch_limit) limit = current_options().batch_limit;
    threads = current_options().threads;
}

bool DynamicBatcher::is_ready() { return make_group; }

// From 16 on eight numbers up to the next power of two.
std::size_t DynamicBatcher::rows(std::size_t members) const {
    if (members < 16 || current_options().verify) return members;
    std::size_t step = std::bit_floor(members) / 8;
    return std::max(members, std::min((members + step - 1) / step * step, limit));
}

std::vector<Ref<Value>> DynamicBatcher::compute(const Batch& members,
                                                std::span<const StackedOperand> columns) {
    bool wanted =
        !is_watched() && !current_options().verify && write_key(key_, options_, members, columns);
    KnownBatches* found = wanted ? known().find(Words(key_)) : nullptr;
    if (found && found->expression && !found->expression->taken) {
        // By this pointer alone: while kernels run, others may change the table.
        Kept expression = found->expression;
        std::vector<Ref<Value>> results = computed_by(*expression, members.rows, columns);
        if (!results.empty()) return count(Counter::batches), results;
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) nb::raise_python_error();
        if (PyErr_Occurred()) return PyErr_Clear(), results; // who computes one says it better
        found = known().find(Words(key_));
        if (found) ++found->failures;
    }
    wanted &= !found || found->failures < MOST_FAILURES;
    nb::object made = computed_by_python(members, columns, wanted);
    std::vector<Ref<Value>> results;
    if (made.is_none()) return results;
    for (nb::handle result : made[0]) results.push_back(nb::cast<ValueHandle&>(result).value);
    if (wanted && !made[1].is_none())
        keep(key_, expression_from(made[1], members.node(0)->params, columns));
    return results;
}

nb::object DynamicBatcher::computed_by_python(const Batch& members,
                                              std::span<const StackedOperand> columns,
                                              bool wanted) {
    const Node& like = *members.node(0);
    nb::list given;
    for (const StackedOperand& column : columns) {
        nb::object value = column.scalar ? nb::steal(scalar_to_python(*column.scalar))
                                         : nb::cast(ValueHandle{column.value});
        given.append(nb::make_tuple(value, column.stacked));
    }
    nb::list nodes; // of all members, where they are to be compared
    for (std::size_t row = 0; current_options().verify && row < members.size(); ++row)
        nodes.append(nb::cast(NodeHandle{members.node(row)}));
    nb::object params = nb::steal(params_to_python(like.params.get()));
    nb::object made = nb::steal(PyObject_CallFunction(
        make_group, "OOOnnOnOOO", like.op->python, params.ptr(), nb::tuple(given).ptr(),
        Py_ssize_t(members.size()), Py_ssize_t(members.rows), nodes.ptr(),
        Py_ssize_t(members.group), members.rest ? Py_True : Py_False, earlier_.ptr(),
        wanted ? Py_True : Py_False));
    if (!made.is_valid()) nb::raise_python_error();
    return made;
}

void declare_grouping(nb::module_& module) {
    using namespace nb::literals;
    module.def(
        "set_groups", [](nb::object group) { make_group = group.release().ptr(); }, "group"_a);
    module.def(
        "forget_groups",
        [](uint64_t op) {
            Table::Entries fallen;
            known().drop_all([&](const auto& entry) { return entry.key[0] == op; }, fallen);
        },
        "op"_a);
}

} // namespace tenfold::bindings
