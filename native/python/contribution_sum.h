// Sum of contributions: adds together what users of a node contribute to its cotangent. A
// contribution is an array, or it is deferred: many products become one, slices are joined.
#pragma once
#include <memory>
#include <vector>

#include "python/op_recipe.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {

constexpr std::size_t MAX_CHAIN = 8; // contributions that are added one by one

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

// The operations and the rules in Python that sums need.
struct SumRules {
    const Op *add, *stack;
    nb::handle total, sum_of_stack;
};

// The sum of at least one contribution; `line` is what the new nodes get.
Ref<Node> sum_of(std::vector<Term>& terms, const SumRules& rules, const Ref<Origin>& line);

inline Ref<Node> made(Ref<Node> node) {
    if (!node) nb::raise_python_error();
    return node;
}

} // namespace tenfold::bindings
