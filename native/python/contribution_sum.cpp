#include "python/contribution_sum.h"

#include <algorithm>
#include <map>

#include "ir/index_map.h"
#include "ir/position_map.h"
#include "memory/cache_registry.h"
#include "memory/lru_cache.h"

namespace tenfold::bindings {

namespace {

constexpr std::size_t CAPACITY = 1024;
constexpr std::size_t MAX_JOINED = 16; // deferred contributions whose sum is a recipe
// The elements of an array that is stacked: of larger ones a copy costs more than a launch.
constexpr uint64_t MAX_STACKED_ELEMENTS = 1 << 14;
constexpr uint64_t MAX_SUMMED_ELEMENTS = 1 << 22; // those that are stacked at once

struct SumRecipe {
    OpRecipe recipe;
    bool by_python = false; // there is none: Python adds each time
    // Those of the key, which stay at their addresses.
    std::vector<Ref<Type>> types;
    std::vector<Ref<Params>> all_params;
    std::vector<std::shared_ptr<const DeferredForm>> forms;
};
// All under the GIL.
using SumRecipes =
    LruCache<RecipeWords, std::shared_ptr<SumRecipe>, RecipeWordsHash, std::equal_to<RecipeWords>>;
SumRecipes* const sum_recipes = new SumRecipes(CAPACITY); // outlives every Node

[[maybe_unused]] Cache& registered = register_cache(
    {"sums of contributions", "the sum of known kinds of contributions runs no Python", CAPACITY,
     [] { return sum_recipes->size(); },
     [] {
         SumRecipes::Entries evicted;
         sum_recipes->clear(evicted);
     }});

// Adds what is contributed to one node.
class ContributionSum {
  public:
    ContributionSum(const SumRules& rules, const Ref<Origin>& line) : rules_(rules), line_(line) {}

    // Few arrays are added one by one, with one product; Python joins products and slices.
    Ref<Node> of(std::vector<Term>& terms) {
        auto is_deferred = [](const Term& term) { return term.form != nullptr; };
        const auto num_deferred = std::ranges::count_if(terms, is_deferred);
        const bool is_product =
            num_deferred == 1 && std::ranges::find_if(terms, is_deferred)->second != nullptr;
        const bool are_few = terms.size() <= MAX_CHAIN && (!num_deferred || is_product);
        if (terms.size() > MAX_JOINED) merge_many(terms);
        if (terms.size() > 1 && !are_few) return joined(terms);
        std::ranges::stable_partition(terms, [](const Term& term) { return !term.form; });
        Ref<Node> sum;
        for (Term& term : terms) {
            Ref<Node> next = term.form ? array_of(term) : std::move(term.first);
            if (sum) {
                std::array<Node*, 2> both{sum.get(), next.get()};
                next = made(make_node(rules_.add, both, {}, &line_));
            }
            sum = std::move(next);
        }
        return sum;
    }

  private:
    // Replaces those of one form by their sum, if they are many: of stacked arrays, so that Python
    // makes no object for each.
    void merge_many(std::vector<Term>& terms) {
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
            if (group[0].second) merge_common_factors(group);
            const Type& type = *group[0].first->type;
            const uint64_t size = std::max<uint64_t>(type.size(), 1);
            const bool may_stack =
                !group[0].form || (!group[0].form->of_stacks.is_none() &&
                                   (group[0].second || group[0].params->starts.load()));
            const bool is_dense =
                !type.storage && (!group[0].second || !group[0].second->type->storage);
            if (group.size() <= MAX_CHAIN || size > MAX_STACKED_ELEMENTS || !may_stack ||
                !is_dense) {
                std::ranges::move(group, std::back_inserter(terms));
                continue;
            }
            const std::size_t count = std::max<uint64_t>(2, MAX_SUMMED_ELEMENTS / size);
            for (std::size_t at = 0; at < group.size(); at += count)
                terms.push_back({.first = sum_of_stacks(std::span(group).subspan(
                                     at, std::min(count, group.size() - at)))});
        }
    }

    // Products of one factor and several arrays: that of the factor and the sum of these.
    void merge_common_factors(std::vector<Term>& group) {
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
            merged[at].first = of(others[at]);
        }
        group = std::move(merged);
    }

    Ref<Node> sum_of_stacks(std::span<Term> terms) {
        const DeferredForm* form = terms[0].form.get();
        nb::list starts;
        if (form && !terms[0].second) {
            auto start = [&](const Term& term) { return starts_of(*term.params).starts.span()[0]; };
            std::ranges::stable_sort(terms, {}, start);
            for (const Term& term : terms) starts.append(start(term));
        }
        nb::object first = stack_of(terms, &Term::first), sum;
        if (!form)
            sum = rules_.sum_of_stack(first);
        else if (terms[0].second)
            sum = form->of_stacks(first, stack_of(terms, &Term::second));
        else
            sum = form->of_stacks(first, starts);
        return Ref<Node>(node_of(sum.ptr()));
    }

    nb::object stack_of(std::span<const Term> terms, Ref<Node> Term::*part) {
        std::vector<Node*> nodes;
        for (const Term& term : terms) nodes.push_back((term.*part).get());
        const nb::tuple axis = nb::make_tuple(0);
        Ref<Params> params = params_of(*rules_.stack, axis.ptr());
        return nb::steal(new_array(made(make_node(rules_.stack, nodes, params, &line_))));
    }

    // The sum as Python makes it, of few terms by a recipe.
    Ref<Node> joined(const std::vector<Term>& terms) {
        std::vector<Node*> given;
        std::vector<std::size_t> seconds; // positions in `given`
        RecipeWords words;
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
        std::shared_ptr<SumRecipe> recipe;
        if (auto* found = sum_recipes->find(words)) recipe = *found; // it may be evicted meanwhile
        if (!recipe) recipe = record_joined(words, terms, given, seconds);
        if (recipe->by_python) return total_by_python(terms);
        std::vector<Ref<Node>> results;
        if (!recipe->recipe.replay(given, results, nullptr, &line_)) nb::raise_python_error();
        return std::move(results[0]);
    }

    std::shared_ptr<SumRecipe> record_joined(const RecipeWords& words,
                                             const std::vector<Term>& terms,
                                             const std::vector<Node*>& given,
                                             const std::vector<std::size_t>& seconds) {
        auto recipe = std::make_shared<SumRecipe>();
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
            recipe->forms.push_back(term.form);
            if (term.params) recipe->all_params.push_back(term.params);
            const bool is_new = term.second && seconds[second] == at + 1;
            term.first = owned[at];
            if (term.second) term.second = owned[seconds[second++]];
            at += is_new ? 2 : 1;
        }
        Ref<Node> total = total_by_python(replaced);
        Node* result = total.get();
        recipe->by_python = !record_recipe(recipe->recipe, placeholders, {&result, 1}, true);
        SumRecipes::Entries evicted;
        if (!sum_recipes->find(words)) // Python may have walked meanwhile
            sum_recipes->insert(words, recipe, evicted);
        return recipe;
    }

    Ref<Node> array_of(const Term& term) const {
        const std::array<Node*, 2> given{term.first.get(), term.second.get()};
        std::vector<Ref<Node>> results;
        const Params* slice =
            term.params && term.params->starts.load() ? term.params.get() : nullptr;
        if (!term.form->array.replay({given.data(), term.second ? 2U : 1U}, results, slice, &line_))
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

    const SumRules& rules_;
    const Ref<Origin>& line_;
};

} // namespace

Ref<Node> sum_of(std::vector<Term>& terms, const SumRules& rules, const Ref<Origin>& line) {
    return ContributionSum(rules, line).of(terms);
}

} // namespace tenfold::bindings
