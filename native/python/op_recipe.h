// Op recipe: operations that a rule in Python made once of placeholders, and that native code makes
// again of other nodes.
#pragma once
#include <utility>
#include <vector>

#include "python/python_objects.h"

namespace tenfold::bindings {

using RecipeWords = std::vector<uint64_t>; // what identifies a recipe
struct RecipeWordsHash {
    std::size_t operator()(const RecipeWords& words) const {
        uint64_t hash = 0;
        for (uint64_t word : words) hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        return truncate_hash(hash ^ hash >> 32);
    }
};
inline uint64_t recipe_word(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

struct OpRecipe {
    static constexpr std::size_t NOTHING = std::size_t(-1);
    // An input is one of the given nodes, or, counted from them on, the result of an earlier step.
    // A node in its stead is a constant. `follows`: the slice begins where that of the call does.
    struct Step {
        const Op* op;
        Ref<Params> params;
        bool follows;
        std::vector<std::pair<std::size_t, Ref<Node>>> inputs;
    };
    std::vector<Step> steps;
    std::vector<std::size_t> results; // positions as those of inputs; NOTHING: none
    std::vector<nb::object> owners;   // of operations that are not permanent

    // Makes the results; false with a Python error. `slice` are the Params of the call, `line` is
    // what the new nodes get.
    bool replay(std::span<Node* const> given, std::vector<Ref<Node>>& made,
                const Params* slice = nullptr, const Ref<Origin>* line = nullptr) const;
};

// Records how results were made of placeholders; null results are none. False where one depends on
// another value, which other nodes would not have; `constants`: unless it is computed already.
bool record_recipe(OpRecipe& recipe, std::span<Node* const> placeholders,
                   std::span<Node* const> results, bool constants = false,
                   const Params* slice = nullptr);

} // namespace tenfold::bindings
