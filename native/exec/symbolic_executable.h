// Symbolic executable: an Executable whose numbers are formulas of its leaves' lengths, with guards
// on them. Python compiles it when a structure recurs with other lengths. From then on native code
// instantiates plans for all lengths that satisfy the guards. Symbolic executables are cached by
// their ShapeSignature, the key of a graph without its lengths.
#pragma once
#include "exec/executable.h"

namespace tenfold {

// Shape signature of a graph: its key without lengths. It has dtypes and ranks instead of Types.
// Each axis of a leaf has length 0, 1 or an index into `lengths`. In elementwise graphs only
// lengths of the same axis interact. There lengths of different axes have different indices, even
// if they are equal.
struct ShapeSignature {
    std::vector<uint64_t> words;
    std::vector<int64_t> lengths; // lengths above 1, each once, in order of appearance
    std::vector<uint32_t> axes;   // axis of each length, the last one is 1; 0: any axes

    // Overwrites itself; false for a graph that templates do not support. `rules` are in force:
    // they may depend on lengths.
    bool write(const LinearizedGraph& graph, const OptionKey& options, bool rules = true);
};

struct SymbolicExecutable {
    // A register is the result of an operation on two others. The first ones hold the lengths, the
    // next ones the constants.
    using Register = uint32_t;
    struct Row {
        enum Operation : uint8_t { plus, times, floor, ceil, mod, min, max, bits } operation;
        Register left, right; // `bits`: both are the same
    };
    struct Guard {
        enum Kind : uint8_t { positive, zero, other } kind;
        Register value;
    };
    // A number of an instruction, in the field of that name; the index is that among several.
    struct PatchedField {
        enum Field : uint8_t {
            bytes,
            strides,
            offset,
            buffers,
            scratch_tables,
            sizes,
            numbers,
            scratch,
            units,
            grain,
            threads,
            finish_units,
            multiply_adds
        } field;
        uint32_t instruction, index;
        Register source;
    };
    struct Shape {
        uint32_t instruction;
        std::vector<Register> lengths;
    };

    std::atomic<uint32_t> references{1};
    Ref<Executable> template_plan; // for the lengths of an example; its runs are those of all
    std::size_t num_lengths = 0;
    std::vector<int64_t> constants;
    std::vector<Row> rows;
    std::vector<Guard> guards;
    std::vector<Register>
        inferred_lengths; // the lengths of all pending nodes of the graph, in their order
    std::vector<PatchedField> patches;
    std::vector<Shape> shapes;

    static void destroy(SymbolicExecutable* result) { delete result; }
    // Whether all rows name registers before them, and all numbers are there.
    bool is_valid() const;
};

// The plan for a graph of this form; empty when no template fits. It is cached under `key` on the
// thread's second request. Before that the next plan overwrites it, once it has no references: most
// shapes occur only once.
Ref<Executable> instantiate_plan(const ShapeSignature& form, const LinearizedGraph& graph,
                                 const Key& key);
// The symbolic executable that fits a graph of this form, if there is one.
Ref<SymbolicExecutable> find_template(const ShapeSignature& form, const LinearizedGraph& graph);
// A plan for other lengths of the graph; empty where a guard refuses them, or the runs have ended.
Ref<Executable> instantiate_for(const SymbolicExecutable& symbolic,
                                std::span<const int64_t> lengths);
// Whether Python should compile a template. It can if it has optimized the kernels (`can_compile`).
// It should if other lengths came before, or are expected, no template fits these, and tries
// remain. Records the lengths.
bool should_compile_template(const ShapeSignature& form, bool can_compile = true,
                             bool expects_others = false);
// Returns the number of symbolic executables of the form.
std::size_t cache_template(const ShapeSignature& form, Ref<SymbolicExecutable> result);
void clear_template_cache();
std::size_t num_cached_templates();
std::size_t num_cached_forms();
void set_templates_enabled(bool enabled_now); // whether templates are used; true at start

} // namespace tenfold
