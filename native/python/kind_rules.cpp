// Rules of storage kinds: applies an operation to operands of a kind, by a rule in Python once for
// operands of equal Types, and from then on by the operations that it made.
#include "python/kind_rules.h"

#include <memory>

#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "python/op_recipe.h"

namespace tenfold::bindings {

namespace {

constexpr std::size_t CAPACITY = 1024;

struct KindRule {
    OpRecipe recipe;
    std::vector<Ref<Type>> types; // those of the key, which stay at their addresses
    Ref<Params> params;           // likewise
    nb::object op;                // likewise
};

// All under the GIL.
using Rules =
    LruCache<RecipeWords, std::shared_ptr<KindRule>, RecipeWordsHash, std::equal_to<RecipeWords>>;
Rules* const rules = new Rules(CAPACITY); // outlives every Node

[[maybe_unused]] Cache& registered = register_cache(
    {"rules of storage kinds", "an operation on operands of known Types runs no Python", CAPACITY,
     [] { return rules->size(); },
     [] {
         Rules::Entries evicted;
         rules->clear(evicted);
     }});

// The nodes of operands and components, and what identifies a rule.
struct Operands {
    std::vector<Node*> stored;
    RecipeWords words;

    Operands(const Op* op, std::span<Node* const> inputs, const Params* params) {
        words.reserve(4 + 2 * inputs.size());
        words.push_back(op->id << 1 | uint64_t(current_options().strict));
        words.push_back(recipe_word(params)); // interned, or none
        for (Node* input : inputs) {
            words.push_back(recipe_word(input->type.get()));
            if (!input->type->storage) {
                stored.push_back(input);
                continue;
            }
            for (Node* component : input->inputs()) { // a node of a kind keeps its inputs
                words.push_back(recipe_word(component->type.get()));
                stored.push_back(component);
            }
        }
    }
};

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
    std::vector<Node*> given;
    for (nb::handle placeholder : placeholders) given.push_back(node_of(placeholder.ptr()));
    Node* made = node_of(result.ptr());
    if (given.size() != key.stored.size() || !record_recipe(rule->recipe, given, {&made, 1}))
        return;
    if (rule->recipe.steps.empty()) return;
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
        std::vector<Ref<Node>> made;
        return rule->recipe.replay(operands.stored, made) ? std::move(made[0]) : Ref<Node>();
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
