// Derivative walk: from the cotangents of results to those of the nodes that they were made of. It
// goes through the graph once, users before inputs, without Python: what a node contributes to its
// inputs is a recipe, which a rule in Python makes once for operands of equal Types.
#include <algorithm>
#include <memory>
#include <optional>

#include "ir/index_map.h"
#include "ir/position_map.h"
#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "python/contribution_sum.h"

namespace tenfold::bindings {

namespace {

constexpr std::size_t CAPACITY = 2048;
// Numbers that differ from call to call are no constants of a recipe: after so many of one form
// Python's rule is called.
constexpr uint32_t MAX_NUMBERS = 8;
struct DerivativeRecipe {
    OpRecipe recipe; // its results are those of the terms, one or two of each
    std::vector<std::pair<std::size_t, std::shared_ptr<const DeferredForm>>> terms; // with counts
    bool by_python = false;       // there is none: the rule is called each time
    uint32_t numbers = 0;         // of a form: how many recipes differ in their numbers alone
    std::vector<Ref<Type>> types; // those of the key, which stay at their addresses
    std::vector<Ref<Params>> all_params; // likewise
    nb::object op;                       // likewise
};
// All under the GIL.
using Recipes = LruCache<RecipeWords, std::shared_ptr<DerivativeRecipe>, RecipeWordsHash,
                         std::equal_to<RecipeWords>>;
Recipes* const recipes = new Recipes(CAPACITY); // outlives every Node

[[maybe_unused]] Cache& registered = register_cache(
    {"derivatives of operations", "the derivative of a known operation runs no Python", CAPACITY,
     [] { return recipes->size(); },
     [] {
         Recipes::Entries evicted;
         recipes->clear(evicted);
     }});

// Of which inputs of a function the cotangent has been wanted, by the id of its op. Under the GIL.
using FunctionNeeds =
    LruCache<uint64_t, std::vector<bool>, std::hash<uint64_t>, std::equal_to<uint64_t>>;
FunctionNeeds* const function_needs = new FunctionNeeds(CAPACITY);

[[maybe_unused]] Cache& needs_registered = register_cache(
    {"needs of functions", "calls of a function have one derivative, whatever is constant in one",
     CAPACITY, [] { return function_needs->size(); },
     [] {
         FunctionNeeds::Entries evicted;
         function_needs->clear(evicted);
     }});

bool has_several_results(const Node& node) {
    return node.op && node.op->python && node.inference->results.size() > 1;
}

bool is_inexact(const Type& type) {
    const char kind = dtype_of(type.dtype).kind;
    return kind == 'f' || kind == 'c';
}

// Whether a result is floating, and its derivative is not 0 everywhere.
bool passes_cotangents(const Node& node) {
    if (node.op && node.op->zero_derivative) return false;
    if (!has_several_results(node)) return is_inexact(*node.type);
    return std::ranges::any_of(node.inference->results,
                               [](const Ref<Type>& type) { return is_inexact(*type); });
}

constexpr uint32_t NONE = ~uint32_t(0);

// One node of the history of results.
struct Visited {
    Ref<Node> node;
    uint32_t first_edge = 0, num_inputs = 0;
    bool is_wanted = false, depends = false;
    uint32_t first_term = NONE, last_term = NONE; // what its users contribute
};

// The rules in Python.
struct Rules {
    SumRules sums;
    nb::handle make_recipe, contribute;
};

class Walk {
  public:
    Walk(const std::vector<Node*>& outputs, const std::vector<Node*>& wanted, const Rules& rules)
        : rules_(rules) {
        for (Node* node : wanted) position_of(node);
        for (Visited& visited : visited_) visited.is_wanted = true;
        const std::size_t num_wanted = visited_.size();
        for (Node* node : outputs) position_of(node);
        for (std::size_t at = num_wanted; at < visited_.size(); ++at) {
            std::vector<Ref<Node>> inputs = inputs_of(visited_[at].node.get());
            visited_[at].first_edge = uint32_t(edges_.size());
            visited_[at].num_inputs = uint32_t(inputs.size());
            for (const Ref<Node>& input : inputs) edges_.push_back(position_of(input.get()));
        }
        // The number of a node is above those of its inputs.
        std::vector<std::pair<uint64_t, uint32_t>> created;
        created.reserve(visited_.size());
        for (uint32_t at = 0; at < visited_.size(); ++at)
            created.emplace_back(visited_[at].node->creation_number(), at);
        std::ranges::sort(created);
        for (const auto& [_, at] : created) order_.push_back(at);
        for (uint32_t at : order_) {
            Visited& visited = visited_[at];
            const bool is_reached = std::ranges::any_of(
                inputs(visited), [&](uint32_t input) { return visited_[input].depends; });
            visited.depends = visited.is_wanted || (is_reached && passes_cotangents(*visited.node));
        }
        for (const Visited& visited : visited_) {
            if (!visited.node->op || visited.node->op->is_permanent) continue;
            FunctionNeeds::Entries evicted;
            const uint64_t id = visited.node->op->id;
            std::vector<bool>* known = function_needs->find(id);
            std::vector<bool>& needs = known ? *known : function_needs->insert(id, {}, evicted);
            needs.resize(std::max<std::size_t>(needs.size(), visited.num_inputs));
            for (std::size_t input = 0; input < visited.num_inputs; ++input)
                if (visited_[inputs(visited)[input]].depends) needs[input] = true;
        }
    }

    // The nodes that are computed, and of which the history is forgotten.
    nb::list forgotten() const {
        nb::list nodes;
        for (const Visited& visited : visited_) {
            Node* node = visited.node.get();
            if (node->op && !visited.is_wanted && !visited.num_inputs && value_of(node))
                nodes.append(nb::cast(NodeHandle{visited.node}));
        }
        return nodes;
    }

    void add_to(Node* node, Ref<Node> cotangent) {
        Visited& visited = visited_[position_of(node)];
        if (visited.depends) add_term(visited, {.first = std::move(cotangent)});
    }

    void run() {
        for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
            Visited& visited = visited_[*at];
            if (visited.is_wanted || visited.first_term == NONE) continue;
            std::vector<Term> terms = take_terms(visited);
            if (!hands_slices_on(visited, terms)) {
                sum_terms(visited, terms);
                if (visited.node->op->python)
                    contribute(visited);
                else // one of several results
                    add_term(visited_[inputs(visited)[0]],
                             {.first = std::move(cotangents_[0]),
                              .index = std::size_t(visited.node->params->axes[0])});
            }
            terms.clear();
            taken_ = std::move(terms); // the memory serves the next node
        }
    }

    nb::object cotangent_of(Node* wanted) {
        Visited& visited = visited_[position_of(wanted)];
        if (visited.first_term == NONE) return nb::none();
        std::vector<Term> terms = take_terms(visited);
        sum_terms(visited, terms);
        add_term(visited, {.first = cotangents_[0]}); // it may be asked for again
        return nb::steal(new_array(cotangents_[0]));
    }

  private:
    uint32_t position_of(Node* node) {
        uint32_t position = positions_.find(node);
        if (position != PositionMap::NONE) return position;
        position = uint32_t(visited_.size());
        positions_.put(node, position);
        visited_.push_back({.node = Ref<Node>(node)});
        return position;
    }

    void add_term(Visited& to, Term term) {
        const auto at = uint32_t(terms_.size());
        terms_.push_back({std::move(term), NONE});
        (to.last_term == NONE ? to.first_term : terms_[to.last_term].next) = at;
        to.last_term = at;
    }

    std::vector<Term> take_terms(Visited& visited) {
        std::vector<Term> terms = std::move(taken_);
        for (uint32_t at = visited.first_term; at != NONE; at = terms_[at].next)
            terms.push_back(std::move(terms_[at].term));
        visited.first_term = visited.last_term = NONE;
        return terms;
    }

    std::span<const uint32_t> inputs(const Visited& visited) const {
        return {edges_.data() + visited.first_edge, visited.num_inputs};
    }

    // Whether the cotangent of an input is wanted, or that of the same input of another call: calls
    // of a function have one derivative and are batched, whichever of their inputs are constants.
    bool is_needed(const Visited& visited, std::size_t input) const {
        const Visited& source = visited_[inputs(visited)[input]];
        if (source.depends) return true;
        if (visited.node->op->is_permanent || source.node->is_scalar()) return false;
        const std::vector<bool>* needs = function_needs->find(uint64_t(visited.node->op->id));
        return needs && input < needs->size() && (*needs)[input] && is_inexact(*source.node->type);
    }

    // An addition hands few slices on as they are: its operands may have other ones to join them.
    bool hands_slices_on(const Visited& visited, const std::vector<Term>& terms) {
        auto is_slice = [](const Term& term) { return term.form && !term.second; };
        auto is_like = [&](uint32_t at) {
            return !visited_[at].depends ||
                   visited_[at].node->type.get() == visited.node->type.get();
        };
        if (visited.node->op != rules_.sums.add || terms.size() > MAX_CHAIN ||
            !std::ranges::all_of(terms, is_slice) || !std::ranges::all_of(inputs(visited), is_like))
            return false;
        for (uint32_t at : inputs(visited))
            for (const Term& term : terms)
                if (visited_[at].depends) add_term(visited_[at], term);
        return true;
    }

    // Sets `cotangents_` to the sums of the contributions to each result; null: nothing.
    void sum_terms(const Visited& visited, std::vector<Term>& terms) {
        const bool are_several = has_several_results(*visited.node);
        cotangents_.assign(are_several ? visited.node->inference->results.size() : 1, {});
        if (!are_several) {
            cotangents_[0] = sum_of(terms, rules_.sums, visited.node->origin);
            return;
        }
        for (std::size_t index = 0; index < cotangents_.size(); ++index) {
            std::vector<Term> own;
            for (Term& term : terms)
                if (term.index == index) own.push_back(std::move(term));
            if (!own.empty()) cotangents_[index] = sum_of(own, rules_.sums, visited.node->origin);
        }
    }

    // Hands what a node contributes on to those of its inputs that depend on a wanted node.
    void contribute(const Visited& visited) {
        Node* node = visited.node.get();
        const Params* slice = node->op->part != Op::none ? node->params.get() : nullptr;
        bool has_kinds = false, has_numbers = false;
        RecipeWords& words = words_;
        words.clear();
        given_.clear();
        words.push_back(node->op->id << 1 | uint64_t(current_options().strict));
        words.push_back(recipe_word(slice ? starts_of(*slice).pattern : node->params.get()));
        for (std::size_t number = 0; number < visited.num_inputs; ++number) {
            Node* input = visited_[inputs(visited)[number]].node.get();
            has_kinds |= input->type->storage != 0;
            words.push_back(recipe_word(input->type.get()) | uint64_t(is_needed(visited, number)));
            if (!input->is_scalar()) given_.push_back(input);
            has_numbers |= input->is_scalar();
        }
        if (!has_several_results(*node)) given_.push_back(node);
        for (const Ref<Node>& cotangent : cotangents_) {
            words.push_back(cotangent ? recipe_word(cotangent->type.get()) : 0);
            if (!cotangent) continue;
            given_.push_back(cotangent.get());
            has_kinds |= cotangent->type->storage != 0;
        }
        if (has_kinds) return contribute_by_python(visited);
        RecipeWords form;
        if (has_numbers) form = words;
        for (uint32_t at : inputs(visited)) {
            const Scalar& scalar = visited_[at].node->scalar;
            if (!visited_[at].node->is_scalar()) continue;
            words.push_back(scalar.form);
            words.push_back(uint64_t(scalar.integer_bits));
            words.push_back(std::bit_cast<uint64_t>(scalar.real));
            words.push_back(std::bit_cast<uint64_t>(scalar.imaginary));
        }
        std::shared_ptr<DerivativeRecipe> recipe;
        if (auto* found = recipes->find(words)) recipe = *found; // it may be evicted meanwhile
        if (!recipe && has_numbers && !may_record(form, visited))
            return contribute_by_python(visited);
        if (!recipe) recipe = record(visited, slice);
        if (recipe->by_python) return contribute_by_python(visited);
        made_.clear();
        if (!recipe->recipe.replay(given_, made_, slice, &node->origin)) nb::raise_python_error();
        std::size_t at = 0, input = 0;
        for (const auto& [count, deferred] : recipe->terms) {
            Visited& to = visited_[inputs(visited)[input++]];
            Ref<Node> first = to.depends ? std::move(made_[at]) : Ref<Node>();
            if (first && deferred)
                add_term(to, {std::move(first), count > 1 ? std::move(made_[at + 1]) : Ref<Node>(),
                              deferred, node->params});
            else if (first)
                add_term(to, {.first = std::move(first)});
            at += count;
        }
    }

    // Counts the recipes of a form; false where their numbers differ too often.
    static bool may_record(const RecipeWords& form, const Visited& visited) {
        auto* found = recipes->find(form);
        if (!found) found = &insert(form, kept_alive(visited));
        return ++(*found)->numbers <= MAX_NUMBERS;
    }

    static std::shared_ptr<DerivativeRecipe> kept_alive(const Visited& visited) {
        auto recipe = std::make_shared<DerivativeRecipe>();
        const Node& node = *visited.node;
        recipe->all_params.push_back(node.params);
        recipe->op = nb::borrow(static_cast<PyObject*>(node.op->python));
        return recipe;
    }

    static std::shared_ptr<DerivativeRecipe>& insert(RecipeWords words,
                                                     std::shared_ptr<DerivativeRecipe> recipe) {
        Recipes::Entries evicted;
        return recipes->insert(std::move(words), std::move(recipe), evicted);
    }

    std::shared_ptr<DerivativeRecipe> record(const Visited& visited, const Params* slice) {
        auto recipe = kept_alive(visited);
        const RecipeWords words = words_;
        nb::list types;
        for (uint32_t at : inputs(visited)) recipe->types.push_back(visited_[at].node->type);
        for (const Ref<Node>& cotangent : cotangents_) {
            types.append(cotangent ? type_to_python(cotangent->type) : nb::none());
            if (cotangent) recipe->types.push_back(cotangent->type);
        }
        nb::object found = rules_.make_recipe(nb::cast(NodeHandle{visited.node}), nodes_of(visited),
                                              needs_of(visited), types);
        recipe->by_python = found.is_none() || !record_terms(*recipe, found, slice);
        if (!recipes->find(words)) insert(words, recipe); // Python may have walked meanwhile
        return recipe;
    }

    static std::vector<Node*> nodes_of_arrays(nb::handle arrays) {
        std::vector<Node*> nodes;
        for (nb::handle array : arrays) nodes.push_back(node_of(array.ptr()));
        return nodes;
    }

    // `found`: placeholders, and for each input an Array, None, or (make, arrays, placeholders,
    // result, of_stacks) of a deferred contribution.
    static bool record_terms(DerivativeRecipe& recipe, nb::handle found, const Params* slice) {
        std::vector<Node*> results;
        for (nb::handle term : found[1]) {
            std::shared_ptr<DeferredForm> form;
            std::size_t count = 1;
            if (term.is_none()) {
                results.push_back(nullptr);
            } else if (is_array(term.ptr())) {
                results.push_back(node_of(term.ptr()));
            } else {
                std::vector<Node*> arrays = nodes_of_arrays(term[1]);
                Node* result = node_of(nb::object(term[3]).ptr());
                form = std::make_shared<DeferredForm>();
                form->make = term[0];
                form->of_stacks = term[4];
                if (!record_recipe(form->array, nodes_of_arrays(term[2]), {&result, 1}, true,
                                   slice))
                    return false;
                count = arrays.size();
                results.insert(results.end(), arrays.begin(), arrays.end());
            }
            recipe.terms.emplace_back(count, std::move(form));
        }
        return record_recipe(recipe.recipe, nodes_of_arrays(found[0]), results, true, slice);
    }

    void contribute_by_python(const Visited& visited) {
        nb::list arrays;
        for (const Ref<Node>& cotangent : cotangents_)
            arrays.append(cotangent ? nb::steal(new_array(cotangent)) : nb::none());
        nb::object cotangent =
            has_several_results(*visited.node) ? nb::object(nb::tuple(arrays)) : arrays[0];
        nb::object found = rules_.contribute(nb::cast(NodeHandle{visited.node}), cotangent,
                                             nodes_of(visited), needs_of(visited));
        std::size_t input = 0;
        for (nb::handle term : found) {
            Visited& to = visited_[inputs(visited)[input++]];
            if (!term.is_none() && to.depends)
                add_term(to, {.first = Ref<Node>(node_of(term.ptr()))});
        }
    }

    nb::tuple nodes_of(const Visited& visited) const {
        nb::list nodes;
        for (uint32_t at : inputs(visited)) nodes.append(nb::cast(NodeHandle{visited_[at].node}));
        return nb::tuple(nodes);
    }

    nb::tuple needs_of(const Visited& visited) const {
        nb::list needs;
        for (std::size_t input = 0; input < visited.num_inputs; ++input)
            needs.append(is_needed(visited, input));
        return nb::tuple(needs);
    }

    const Rules rules_;
    struct Link {
        Term term;
        uint32_t next;
    };
    std::vector<Visited> visited_;
    std::vector<Link> terms_; // lists: few nodes have more than one
    std::vector<Term> taken_;
    std::vector<uint32_t> order_; // inputs before users
    std::vector<uint32_t> edges_; // positions of inputs
    PositionMap positions_;
    // Of the node that contributes.
    std::vector<Ref<Node>> cotangents_, made_;
    RecipeWords words_;
    std::vector<Node*> given_;
};

// pull_back(outputs, cotangents, wanted, rules, check) -> for each wanted node its cotangent, or
// None. A cotangent of None is that of an output that has none. `rules` are the members of
// Rules. `check`, if there is one, gets the computed nodes whose history is forgotten, before
// anything is made.
nb::list pull_back(nb::handle outputs, const nb::list& cotangents, nb::handle wanted,
                   nb::handle rules, nb::handle check) {
    const std::vector<Node*> output_nodes = nodes_from(outputs), wanted_nodes = nodes_from(wanted);
    auto op = [&](std::size_t at) { return find_op(nb::cast<uint32_t>(nb::object(rules[at]))); };
    Walk walk(output_nodes, wanted_nodes, {{op(0), op(1), rules[4], rules[5]}, rules[2], rules[3]});
    if (!check.is_none()) check(walk.forgotten());
    for (std::size_t i = 0; i < output_nodes.size(); ++i)
        if (!cotangents[i].is_none())
            walk.add_to(output_nodes[i], Ref<Node>(node_of(cotangents[i].ptr())));
    walk.run();
    nb::list found;
    for (Node* node : wanted_nodes) found.append(walk.cotangent_of(node));
    return found;
}

} // namespace

void declare_derivative_walk(nb::module_& module) {
    using namespace nb::literals;
    module.def("pull_back", pull_back, "outputs"_a, "cotangents"_a, "wanted"_a, "rules"_a,
               "check"_a.none());
}

} // namespace tenfold::bindings
