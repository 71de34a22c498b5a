// Rules of storage kinds: applies an operation to operands of a kind, by a rule in Python once for
// operands of equal Types, and from then on by the operations that it made.
#include "python/kind_rules.h"

#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "memory/cache_registry.h"
#include "memory/lru_cache.h"

namespace tenfold::bindings {

namespace {

constexpr std::size_t CAPACITY = 1024;

// One operation of a rule. An input is one of the stored operands, or, counted from them on, the
// result of an earlier step; null is a constant.
struct RuleStep {
    const Op* op;
    Ref<Params> params;
    std::vector<std::pair<std::size_t, Ref<Node>>> inputs;
};

struct KindRule {
    std::vector<RuleStep> steps;
    std::vector<Ref<Type>> types; // those of the key, which stay at their addresses
    Ref<Params> params;           // likewise
    nb::object op;                // likewise
};

using Words = std::vector<uint64_t>;
struct RuleKeyHash {
    std::size_t operator()(const Words& words) const {
        uint64_t hash = 0;
        for (uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        return truncate_hash(hash ^ hash >> 32);
    }
};
// All under the GIL.
using Rules = LruCache<Words, std::shared_ptr<KindRule>, RuleKeyHash, std::equal_to<Words>>;
Rules* const rules = new Rules(CAPACITY); // outlives every Node

[[maybe_unused]] Cache& registered = register_cache(
    {"rules of storage kinds", "an operation on operands of known Types runs no Python", CAPACITY,
     [] { return rules->size(); },
     [] {
         Rules::Entries evicted;
         rules->clear(evicted);
     }});

uint64_t number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// The nodes of operands and components, and what identifies a rule.
struct Operands {
    std::vector<Node*> stored;
    Words words;

    Operands(const Op* op, std::span<Node* const> inputs, const Params* params) {
        words.reserve(4 + 2 * inputs.size());
        words.push_back(op->id << 1 | uint64_t(current_options().strict));
        words.push_back(number(params)); // interned, or none
        for (Node* input : inputs) {
            words.push_back(number(input->type.get()));
            if (!input->type->storage) {
                stored.push_back(input);
                continue;
            }
            for (Node* component : input->inputs()) { // a node of a kind keeps its inputs
                words.push_back(number(component->type.get()));
                stored.push_back(component);
            }
        }
    }
};

Ref<Node> replayed(const KindRule& rule, const std::vector<Node*>& stored) {
    std::vector<Ref<Node>> made;
    std::vector<Node*> inputs;
    for (const RuleStep& step : rule.steps) {
        inputs.clear();
        for (const auto& [at, constant] : step.inputs)
            inputs.push_back(constant             ? constant.get()
                             : at < stored.size() ? stored[at]
                                                  : made[at - stored.size()].get());
        Ref<Node> node = make_node(step.op, inputs, step.params);
        if (!node) return {};
        made.push_back(std::move(node));
    }
    return made.back();
}

// Appends the steps that make a node of the known ones, and returns its position. Throws
// std::out_of_range for a value that is none of these, which other operands would not have.
std::size_t append_steps(Node* node, std::unordered_map<Node*, std::size_t>& positions,
                         KindRule& rule, std::size_t num_stored) {
    auto known = positions.find(node);
    if (known != positions.end()) return known->second;
    if (!node->op || !node->op->python || node->inference->results.size() != 1)
        throw std::out_of_range("a constant");
    RuleStep step{node->op, node->params, {}};
    for (Node* input : node->inputs()) {
        if (input->is_scalar())
            step.inputs.emplace_back(0, Ref<Node>(input));
        else
            step.inputs.emplace_back(append_steps(input, positions, rule, num_stored), Ref<Node>());
    }
    rule.steps.push_back(std::move(step));
    return positions[node] = num_stored + rule.steps.size() - 1;
}

// cache_kind_rule(op, operands, params, placeholders, result): what the rule made of placeholders
// is made of all operands of these Types.
void cache_kind_rule(uint32_t op_id, const nb::tuple& operands, const nb::object& params_object,
                     const nb::list& placeholders, nb::handle result) {
    Op* op = find_op(op_id);
    Ref<Params> params = params_of(*op, params_object.ptr());
    if (PyErr_Occurred()) nb::raise_python_error();
    std::vector<Operand> owned;
    std::vector<Node*> inputs;
    owned.reserve(operands.size());
    for (nb::handle operand : operands) {
        owned.emplace_back(operand.ptr(), operands.ptr());
        inputs.push_back(owned.back().get());
        if (!inputs.back()) return PyErr_Clear();
    }
    Operands key(op, inputs, params.get());
    auto rule = std::make_shared<KindRule>();
    std::unordered_map<Node*, std::size_t> positions;
    for (nb::handle placeholder : placeholders)
        positions.emplace(node_of(placeholder.ptr()), positions.size());
    try {
        append_steps(node_of(result.ptr()), positions, *rule, key.stored.size());
    } catch (const std::out_of_range&) { return; }
    if (rule->steps.empty() || positions.size() < key.stored.size()) return;
    for (Node* input : inputs) {
        rule->types.emplace_back(input->type);
        if (input->type->storage)
            for (Node* component : input->inputs()) rule->types.emplace_back(component->type);
    }
    rule->params = std::move(params);
    rule->op = nb::borrow(static_cast<PyObject*>(op->python));
    Rules::Entries evicted;
    if (!rules->find(key.words)) rules->insert(std::move(key.words), std::move(rule), evicted);
}

} // namespace

void declare_kind_rules(nb::module_& module) {
    using namespace nb::literals;
    module.def("cache_kind_rule", cache_kind_rule, "op"_a, "operands"_a, "params"_a,
               "placeholders"_a, "result"_a);
}

Ref<Node> apply_to_kinds(const Op* op, std::span<Node* const> inputs, const Params* params) {
    Operands operands(op, inputs, params);
    if (auto* found = rules->find(operands.words)) {
        std::shared_ptr<KindRule> rule = *found; // it may be evicted meanwhile
        return replayed(*rule, operands.stored);
    }
    nb::list arrays;
    for (Node* input : inputs)
        arrays.append(nb::steal(input->is_scalar() ? scalar_to_python(input->scalar)
                                                   : new_array(Ref<Node>(input))));
    nb::object params_object = nb::steal(params_to_python(params));
    nb::object result = nb::steal(
        PyObject_CallFunctionObjArgs(hooks.apply_to_kinds, static_cast<PyObject*>(op->python),
                                     nb::tuple(arrays).ptr(), params_object.ptr(), nullptr));
    return result.is_valid() ? Ref<Node>(node_of(result.ptr())) : Ref<Node>();
}

} // namespace tenfold::bindings
