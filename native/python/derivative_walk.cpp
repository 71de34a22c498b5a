// Derivative walk: from the cotangents of results to those of the nodes that they were made of. It
// goes through the graph once, users before inputs, without Python: what a node contributes to its
// inputs is a recipe, which a rule in Python makes once for operands of equal Types.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "ir/index_map.h"
#include "ir/position_map.h"
#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "python/op_recipe.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {

namespace {

constexpr std::size_t CAPACITY = 2048;
// Numbers that differ from call to call are no constants of a recipe: after so many of one form
// Python's rule is called.
constexpr uint32_t MAX_NUMBERS = 8;
constexpr std::size_t MAX_JOINED = 16;    // deferred contributions whose sum is a recipe
constexpr uint64_t JOINED = ~uint64_t(0); // the first word of such a recipe
constexpr std::size_t MAX_CHAIN = 8;      // contributions that are added one by one
// The elements of an array that is stacked: of larger ones a copy costs more than a launch.
constexpr uint64_t MAX_STACKED_ELEMENTS = 1 << 14;
constexpr uint64_t MAX_SUMMED_ELEMENTS = 1 << 22; // those that are stacked at once

// A contribution that is made later: Python makes one of several.
struct DeferredForm {
    nb::object make; // from its arrays and the parameters of the call to Python's object
    OpRecipe array;  // from its arrays to the contribution
    // From the stacks of the arrays of many to their sum; of slices, which differ in where they
    // begin on the first axis, from that of their values and these starts. Or None.
    nb::object of_stacks;
};

// What a node contributes: an array, or the arrays of a deferred contribution.
struct Term {
    Ref<Node> first, second;
    std::shared_ptr<const DeferredForm> form; // null for an array
    Ref<Params> params;                       // of the call; of a deferred contribution
    std::size_t index = 0;                    // of the result, where there are several
};

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
    const Op *add, *stack;
    nb::handle make_recipe, contribute, total, sum_of_stack;
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

    static Ref<Node> made(Ref<Node> node) {
        if (!node) nb::raise_python_error();
        return node;
    }

    // An addition hands few slices on as they are: its operands may have other ones to join them.
    bool hands_slices_on(const Visited& visited, const std::vector<Term>& terms) {
        auto is_slice = [](const Term& term) { return term.form && !term.second; };
        auto is_like = [&](uint32_t at) {
            return !visited_[at].depends ||
                   visited_[at].node->type.get() == visited.node->type.get();
        };
        if (visited.node->op != rules_.add || terms.size() > MAX_CHAIN ||
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
            cotangents_[0] = sum_of(terms, visited.node->origin);
            return;
        }
        for (std::size_t index = 0; index < cotangents_.size(); ++index) {
            std::vector<Term> own;
            for (Term& term : terms)
                if (term.index == index) own.push_back(std::move(term));
            if (!own.empty()) cotangents_[index] = sum_of(own, visited.node->origin);
        }
    }

    // Few arrays are added one by one, with one product; Python joins products and slices.
    Ref<Node> sum_of(std::vector<Term>& terms, const Ref<Origin>& line) {
        auto is_deferred = [](const Term& term) { return term.form != nullptr; };
        const auto num_deferred = std::ranges::count_if(terms, is_deferred);
        const bool is_product =
            num_deferred == 1 && std::ranges::find_if(terms, is_deferred)->second != nullptr;
        const bool are_few = terms.size() <= MAX_CHAIN && (!num_deferred || is_product);
        if (terms.size() > MAX_JOINED) merge_many(terms, line);
        if (terms.size() > 1 && !are_few) return joined(terms, line);
        std::ranges::stable_partition(terms, [](const Term& term) { return !term.form; });
        Ref<Node> sum;
        for (Term& term : terms) {
            Ref<Node> next = term.form ? array_of(term, line) : std::move(term.first);
            if (sum) {
                std::array<Node*, 2> both{sum.get(), next.get()};
                next = made(make_node(rules_.add, both, {}, &line));
            }
            sum = std::move(next);
        }
        return sum;
    }

    // Replaces those of one form by their sum, if they are many: of stacked arrays, so that Python
    // makes no object for each.
    void merge_many(std::vector<Term>& terms, const Ref<Origin>& line) {
        std::vector<std::vector<Term>> groups;
        std::map<std::array<const void*, 3>, std::size_t> known;
        for (Term& term : terms) {
            const Type* second = term.second ? term.second->type.get() : nullptr;
            auto [group, is_new] =
                known.try_emplace({term.form.get(), term.first->type.get(), second}, groups.size());
            if (is_new) groups.emplace_back();
            groups[group->second].push_back(std::move(term));
        }
        terms.clear();
        for (std::vector<Term>& group : groups) {
            if (group[0].second) merge_common_factors(group, line);
            const Type& type = *group[0].first->type;
            const uint64_t size = std::max<uint64_t>(type.size(), 1);
            const bool may_stack = !group[0].form || !group[0].form->of_stacks.is_none();
            const bool is_dense =
                !type.storage && (!group[0].second || !group[0].second->type->storage);
            if (group.size() <= MAX_CHAIN || size > MAX_STACKED_ELEMENTS || !may_stack ||
                !is_dense) {
                std::ranges::move(group, std::back_inserter(terms));
                continue;
            }
            const std::size_t count = std::max<uint64_t>(2, MAX_SUMMED_ELEMENTS / size);
            for (std::size_t at = 0; at < group.size(); at += count)
                terms.push_back(
                    {.first = sum_of_stacks(
                         std::span(group).subspan(at, std::min(count, group.size() - at)), line)});
        }
    }

    // Products of one factor and several arrays: that of the factor and the sum of these.
    void merge_common_factors(std::vector<Term>& group, const Ref<Origin>& line) {
        PositionMap known;
        std::vector<Term> merged;
        std::vector<std::vector<Term>> others(group.size()); // of the same factor
        for (Term& term : group) {
            const uint32_t at = known.find(term.second.get());
            if (at != PositionMap::NONE) {
                others[at].push_back({.first = std::move(term.first)});
                continue;
            }
            known.put(term.second.get(), uint32_t(merged.size()));
            merged.push_back(std::move(term));
        }
        for (std::size_t at = 0; at < merged.size(); ++at) {
            if (others[at].empty()) continue;
            others[at].insert(others[at].begin(), {.first = std::move(merged[at].first)});
            merged[at].first = sum_of(others[at], line);
        }
        group = std::move(merged);
    }

    Ref<Node> sum_of_stacks(std::span<Term> terms, const Ref<Origin>& line) {
        const DeferredForm* form = terms[0].form.get();
        nb::list starts;
        if (form && !terms[0].second) {
            auto start = [&](const Term& term) { return starts_of(*term.params).starts.span()[0]; };
            std::ranges::stable_sort(terms, {}, start);
            for (const Term& term : terms) starts.append(start(term));
        }
        nb::object first = stack_of(terms, &Term::first, line), sum;
        if (!form)
            sum = rules_.sum_of_stack(first);
        else if (terms[0].second)
            sum = form->of_stacks(first, stack_of(terms, &Term::second, line));
        else
            sum = form->of_stacks(first, starts);
        return Ref<Node>(node_of(sum.ptr()));
    }

    nb::object stack_of(std::span<const Term> terms, Ref<Node> Term::*part,
                        const Ref<Origin>& line) {
        std::vector<Node*> nodes;
        for (const Term& term : terms) nodes.push_back((term.*part).get());
        const nb::tuple axis = nb::make_tuple(0);
        Ref<Params> params = params_of(*rules_.stack, axis.ptr());
        return nb::steal(new_array(made(make_node(rules_.stack, nodes, params, &line))));
    }

    // The sum as Python makes it, of few terms by a recipe.
    Ref<Node> joined(const std::vector<Term>& terms, const Ref<Origin>& line) {
        std::vector<Node*> given;
        std::vector<std::size_t> seconds; // positions in `given`
        RecipeWords words{JOINED};
        bool has_kinds = false;
        for (const Term& term : terms) {
            given.push_back(term.first.get());
            words.push_back(recipe_word(term.form.get()));
            words.push_back(recipe_word(term.first->type.get()));
            has_kinds |= term.first->type->storage != 0;
            if (!term.second) {
                if (term.form && term.params->starts.load())
                    for (int64_t start : starts_of(*term.params).starts.span())
                        words.push_back(uint64_t(start));
                continue;
            }
            const auto known = std::ranges::find(given, term.second.get());
            seconds.push_back(std::size_t(known - given.begin()));
            if (known == given.end()) given.push_back(term.second.get());
            words.push_back(recipe_word(term.second->type.get()));
            words.push_back(seconds.back());
        }
        if (has_kinds || terms.size() > MAX_JOINED) return total_by_python(terms);
        std::shared_ptr<DerivativeRecipe> recipe;
        if (auto* found = recipes->find(words)) recipe = *found; // it may be evicted meanwhile
        if (!recipe) recipe = record_joined(words, terms, given, seconds);
        if (recipe->by_python) return total_by_python(terms);
        std::vector<Ref<Node>> results;
        if (!recipe->recipe.replay(given, results, nullptr, &line)) nb::raise_python_error();
        return std::move(results[0]);
    }

    std::shared_ptr<DerivativeRecipe> record_joined(const RecipeWords& words,
                                                    const std::vector<Term>& terms,
                                                    const std::vector<Node*>& given,
                                                    const std::vector<std::size_t>& seconds) {
        auto recipe = std::make_shared<DerivativeRecipe>();
        std::vector<Ref<Node>> owned;
        std::vector<Node*> placeholders;
        for (Node* node : given) {
            recipe->types.push_back(node->type);
            owned.push_back(placeholder_node(node->type));
            placeholders.push_back(owned.back().get());
        }
        std::vector<Term> replaced = terms;
        std::size_t at = 0, second = 0;
        for (Term& term : replaced) {
            recipe->terms.emplace_back(1, term.form);
            if (term.params) recipe->all_params.push_back(term.params);
            const bool is_new = term.second && seconds[second] == at + 1;
            term.first = owned[at];
            if (term.second) term.second = owned[seconds[second++]];
            at += is_new ? 2 : 1;
        }
        Ref<Node> total = total_by_python(replaced);
        Node* result = total.get();
        recipe->by_python = !record_recipe(recipe->recipe, placeholders, {&result, 1}, true);
        if (!recipes->find(words)) insert(words, recipe); // Python may have walked meanwhile
        return recipe;
    }

    static Ref<Node> array_of(const Term& term, const Ref<Origin>& line) {
        const std::array<Node*, 2> given{term.first.get(), term.second.get()};
        std::vector<Ref<Node>> results;
        const Params* slice =
            term.params && term.params->starts.load() ? term.params.get() : nullptr;
        if (!term.form->array.replay({given.data(), term.second ? 2U : 1U}, results, slice, &line))
            nb::raise_python_error();
        return std::move(results[0]);
    }

    Ref<Node> total_by_python(const std::vector<Term>& terms) {
        nb::list objects;
        for (const Term& term : terms) {
            nb::object first = nb::steal(new_array(term.first));
            if (term.form) {
                nb::object params = nb::steal(params_to_python(term.params.get()));
                first = term.second
                            ? term.form->make(first, nb::steal(new_array(term.second)), params)
                            : term.form->make(first, params);
            }
            objects.append(first);
        }
        nb::object total = rules_.total(objects);
        return Ref<Node>(node_of(total.ptr()));
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
    Walk walk(output_nodes, wanted_nodes, {op(0), op(1), rules[2], rules[3], rules[4], rules[5]});
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
