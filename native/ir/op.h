// Op: the core's record of an operation declared in Python: number, flags and Python object. The
// record of a permanent op is never freed. That of another goes with its Python object, which nodes
// keep alive by their inferences.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenfold {

// Kinds compose by bitwise or.
enum Kind : uint8_t { VALUE = 0, MAP = 1, VIEW = 3, CONTRACTION = 7 };

struct Op {
    uint32_t id = 0;
    std::string name;
    void* python = nullptr;   // owned if it lasts; else borrowed, and nodes keep it alive
    bool is_permanent = true; // not a call of a traced function, nor declared by a user
    bool view = false;        // its result is a view of its first input
    bool shows_part = false;  // its result is a part of each element of its only input
    uint32_t weight = 1;      // operations that a call of a traced function is made of
    uint32_t num_arguments =
        0; // first inputs of a call without products, which it does not capture
    bool unbounded_time = false; // it may take any time, however small its arrays are
    bool creates = false;        // all its operands may be numbers; Python's rule says the Type
    bool can_fail = false;       // its failure depends on values: nodes remember the user's line
    bool pure = true;            // it may run once for many calls on the same inputs
    bool multiplies = false;     // the expansion of a call has products or solves
    bool merges = true;          // calls on the same inputs are one
    bool contracts = false;      // a product of two arrays
    bool shares_factors = false; // rules let all of them on one matrix share its factors
    bool keeps_products = false; // no rewrite rule matches it with a product that it reads
    bool gathers = false;        // takes elements at integer indices along axes in its Params
    bool scatters = false;       // replaces elements at such indices
    bool joins = false;         // puts its inputs one behind the other along the axis in its Params
    bool constant_fill = false; // all elements of its result are one number of its Params
    bool per_member = false;    // a batch may call it once for each member
    bool updates = false;       // its result is its first input with a part replaced
    bool whole_exponent = false; // a negative integer scalar is refused for integer operands
    // Whether it reads or replaces a part of its first input, described by its Params; see
    // ir/index_map.h.
    enum Part : uint8_t { none, slice, slice_update } part = none;
    // How the shape of its result is inferred. `stated`: by Python's rule. `broadcast`: from its
    // operands. `reduced`: without the axes in its Params. `permuted`: with its axes reordered. See
    // ir/inferred_shapes.h.
    enum Shapes : uint8_t { stated, broadcast, reduced, permuted } shapes = stated;
    // How it reduces axes, if it does: one by one, all as one in row-major order, or in any order.
    // All orders of the last kind yield the same bits; see exec/reduction_kernels.h.
    enum Folding : uint8_t { nothing, each, as_one, any_order } folding = nothing;
    // Whether it may be computed before its readers are known: no rule that changes bits matches it
    // with them.
    bool rule_free = false;
    bool zero_derivative = false; // no derivative goes through it: it keeps no history
};

Op& declare_op(std::string name);
Op* find_op(uint32_t id); // null where it is freed
void free_op(uint32_t id);
std::size_t declared_ops();

} // namespace tenfold
