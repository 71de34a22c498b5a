// Derivative walk: from the cotangents of results to those of the nodes that they were made of. It
// goes through the graph once, users before inputs, without Python: what a node contributes to its
// inputs is a recipe, which a rule in Python makes once for operands of equal Types.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "ir/index_map.h"
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

struct DerivativeRecipe {
    OpRecipe recipe;
    bool by_python = false;       // there is none: the rule is called each time
    uint32_t numbers = 0;         // of a form: how many recipes differ in their numbers alone
    std::vector<Ref<Type>> types; // those of the key, which stay at their addresses
    Ref<Params> params;           // likewise
    nb::object op;                // likewise
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

// One node of the history of results.
struct Visited {
    Ref<Node> node;
    uint32_t first_edge = 0, num_inputs = 0;
    bool is_wanted = false, depends = false;
    Ref<Node> cotangent;                         // of the only result; null: nothing
    std::vector<Ref<Node>> several_cotangents{}; // of several ones; empty: nothing
};

class Walk {
  public:
    Walk(const std::vector<Node*>& outputs, const std::vector<Node*>& wanted, uint32_t add,
         nb::handle make_recipe, nb::handle contribute)
        : add_(find_op(add)), make_recipe_(make_recipe), contribute_(contribute) {
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
        order_.resize(visited_.size());
        std::iota(order_.begin(), order_.end(), 0U);
        std::ranges::stable_sort(order_, {},
                                 [&](uint32_t at) { return visited_[at].node->creation_number(); });
        for (uint32_t at : order_) {
            Visited& visited = visited_[at];
            const bool is_reached = std::ranges::any_of(
                inputs(visited), [&](uint32_t input) { return visited_[input].depends; });
            visited.depends = visited.is_wanted || (is_reached && passes_cotangents(*visited.node));
        }
    }

    // The nodes that are computed, and of which the history is forgotten.
    nb::list forgotten() const {
        nb::list nodes;
        for (const Visited& visited : visited_) {
            const Node& node = *visited.node;
            if (node.op && !visited.is_wanted && !visited.num_inputs &&
                value_of(visited.node.get()))
                nodes.append(nb::cast(NodeHandle{visited.node}));
        }
        return nodes;
    }

    void add_to(Node* node, Ref<Node> cotangent) {
        Visited& visited = visited_[position_of(node)];
        if (visited.depends) add_to(visited, 0, std::move(cotangent));
    }

    void run() {
        for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
            Visited& visited = visited_[*at];
            if (visited.is_wanted || (!visited.cotangent && visited.several_cotangents.empty()))
                continue;
            if (!visited.node->op->python) { // one of several results
                const auto index = std::size_t(visited.node->params->axes[0]);
                add_to(visited_[inputs(visited)[0]], index, std::move(visited.cotangent));
                continue;
            }
            contribute(visited);
            visited.cotangent = nullptr;
            visited.several_cotangents.clear();
            for (std::size_t i = 0; i < terms_.size(); ++i)
                if (terms_[i]) add_to(visited_[inputs(visited)[i]], 0, std::move(terms_[i]));
        }
    }

    nb::object cotangent_of(Node* wanted) {
        Visited& visited = visited_[position_of(wanted)];
        if (!visited.cotangent) return nb::none();
        return nb::steal(new_array(visited.cotangent));
    }

  private:
    uint32_t position_of(Node* node) {
        auto [entry, is_new] = positions_.try_emplace(node, uint32_t(visited_.size()));
        if (is_new) visited_.push_back({.node = Ref<Node>(node)});
        return entry->second;
    }

    std::span<const uint32_t> inputs(const Visited& visited) const {
        return {edges_.data() + visited.first_edge, visited.num_inputs};
    }

    // Of one result, or of several.
    static std::span<const Ref<Node>> cotangents(const Visited& visited) {
        if (visited.several_cotangents.empty()) return {&visited.cotangent, 1};
        return visited.several_cotangents;
    }

    void add_to(Visited& visited, std::size_t index, Ref<Node> term) {
        const bool are_several = has_several_results(*visited.node);
        if (are_several) visited.several_cotangents.resize(visited.node->inference->results.size());
        Ref<Node>& sum = are_several ? visited.several_cotangents[index] : visited.cotangent;
        if (sum) {
            std::array<Node*, 2> both{sum.get(), term.get()};
            term = made(make_node(add_, both, {}, &visited.node->origin));
        }
        sum = std::move(term);
    }

    static Ref<Node> made(Ref<Node> node) {
        if (!node) nb::raise_python_error();
        return node;
    }

    // Sets `terms_` to what a node contributes to its inputs; null: nothing.
    void contribute(const Visited& visited) {
        Node* node = visited.node.get();
        const Params* slice = node->op->part != Op::none ? node->params.get() : nullptr;
        bool has_kinds = false, has_numbers = false;
        RecipeWords& words = words_;
        words.clear();
        given_.clear();
        terms_.clear();
        words.push_back(node->op->id << 1 | uint64_t(current_options().strict));
        words.push_back(recipe_word(slice ? starts_of(*slice).pattern : node->params.get()));
        for (uint32_t at : inputs(visited)) {
            Node* input = visited_[at].node.get();
            has_kinds |= input->type->storage != 0;
            words.push_back(recipe_word(input->type.get()) | uint64_t(visited_[at].depends));
            if (!input->is_scalar()) given_.push_back(input);
            has_numbers |= input->is_scalar();
        }
        if (!has_several_results(*node)) given_.push_back(node);
        for (const Ref<Node>& cotangent : cotangents(visited)) {
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
        if (!recipe->recipe.replay(given_, terms_, slice, &node->origin)) nb::raise_python_error();
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
        recipe->params = node.params;
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
        for (const Ref<Node>& cotangent : cotangents(visited)) {
            types.append(cotangent ? type_to_python(cotangent->type) : nb::none());
            if (cotangent) recipe->types.push_back(cotangent->type);
        }
        nb::object made = make_recipe_(nb::cast(NodeHandle{visited.node}), nodes_of(visited),
                                       needs_of(visited), types);
        recipe->by_python = made.is_none();
        if (!recipe->by_python) {
            std::vector<Node*> placeholders, terms;
            for (nb::handle array : made[0]) placeholders.push_back(node_of(array.ptr()));
            for (nb::handle term : made[1])
                terms.push_back(term.is_none() ? nullptr : node_of(term.ptr()));
            recipe->by_python = !record_recipe(recipe->recipe, placeholders, terms, true, slice);
        }
        if (!recipes->find(words)) insert(words, recipe); // Python may have walked meanwhile
        return recipe;
    }

    void contribute_by_python(const Visited& visited) {
        nb::list arrays;
        for (const Ref<Node>& cotangent : cotangents(visited))
            arrays.append(cotangent ? nb::steal(new_array(cotangent)) : nb::none());
        nb::object cotangent =
            has_several_results(*visited.node) ? nb::object(nb::tuple(arrays)) : arrays[0];
        nb::object found = contribute_(nb::cast(NodeHandle{visited.node}), cotangent,
                                       nodes_of(visited), needs_of(visited));
        for (nb::handle term : found)
            terms_.push_back(term.is_none() ? Ref<Node>() : Ref<Node>(node_of(term.ptr())));
    }

    nb::tuple nodes_of(const Visited& visited) const {
        nb::list nodes;
        for (uint32_t at : inputs(visited)) nodes.append(nb::cast(NodeHandle{visited_[at].node}));
        return nb::tuple(nodes);
    }

    nb::tuple needs_of(const Visited& visited) const {
        nb::list needs;
        for (uint32_t at : inputs(visited)) needs.append(visited_[at].depends);
        return nb::tuple(needs);
    }

    const Op* add_;
    nb::handle make_recipe_, contribute_;
    std::vector<Visited> visited_;
    std::vector<uint32_t> order_; // inputs before users
    std::vector<uint32_t> edges_; // positions of inputs
    std::unordered_map<Node*, uint32_t> positions_;
    // Of the node that contributes.
    RecipeWords words_;
    std::vector<Node*> given_;
    std::vector<Ref<Node>> terms_;
};

// pull_back(outputs, cotangents, wanted, add, make_recipe, contribute, check) -> for each wanted
// node its cotangent, or None. A cotangent of None is that of an output that has none. `check`, if
// there is one, gets the computed nodes whose history is forgotten, before anything is made.
nb::list pull_back(nb::handle outputs, const nb::list& cotangents, nb::handle wanted, uint32_t add,
                   nb::handle make_recipe, nb::handle contribute, nb::handle check) {
    const std::vector<Node*> output_nodes = nodes_from(outputs), wanted_nodes = nodes_from(wanted);
    Walk walk(output_nodes, wanted_nodes, add, make_recipe, contribute);
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
    module.def("pull_back", pull_back, "outputs"_a, "cotangents"_a, "wanted"_a, "add"_a,
               "make_recipe"_a, "contribute"_a, "check"_a.none());
}

} // namespace tenfold::bindings
