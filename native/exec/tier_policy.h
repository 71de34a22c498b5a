// Tier policy: decides when a graph is interpreted node by node and when it gets a plan, and when
// a kernel is compiled with optimisation. All tiers give the same bits.
#pragma once
#include "exec/op_interpreter.h"
#include "exec/symbolic_executable.h"

namespace tenfold {

// The numbers of this policy; Python reads them as `_native.TIERS`.
struct TierThresholds {
    // Runs of a small graph after which it is planned: by default; at most, of a long graph, whose
    // plan saves more.
    uint16_t hot_runs = 16, hot_runs_long = 4;
    // After so many attempts at a symbolic executable (two for a plan), hot graphs are planned for
    // their shapes.
    uint16_t max_failed_plans = 64;
    // Patterns of equal inputs of a call that get a plan of their own.
    uint16_t max_compiled_patterns = 4;
    // Graphs that replace a part of an array have no template. A plan takes as long as hundreds of
    // operations on few elements, and saves half of their time: from `few_elements` on average on,
    // fewer than `few_elements_factor` times as many runs are due. Each plan for other lengths
    // doubles them. A graph of large arrays is interpreted once, after `max_new_lengths` plans, and
    // twice as often after as many more.
    int64_t few_elements = 4096, few_elements_factor = 16;
    uint16_t max_new_lengths = 4, max_doublings = 8;
    // Elements up to which a graph is interpreted: of its arrays; of a long graph whose runs are
    // not counted, which never gets a plan; of updates of a slice.
    int64_t max_elements = 1 << 17, max_long_elements = 1 << 13, max_update_elements = 1 << 21;
    // Arrays that are joined by one kernel each: a plan of more of them calls Python.
    std::size_t max_joined_blocks = 16;
    // A plan computes the read part of a pending array alone if it is less than one in so many.
    int64_t small_slice_ratio = 4;
    // Symbolic executables of a form, and attempts at one. After so many of them hotness is reset:
    // lengths that fit none are rare.
    std::size_t max_templates = 12, templates_until_reset = 5;
    int max_template_tries = 16;
    // Elements of a launch from which its kernel is compiled with optimisation at once; launches
    // of others after which it is recompiled in the background.
    int64_t optimised_elements = 1 << 14, optimised_launches = 8;
    // The growth of the launches after which a request that was refused is made again.
    int64_t request_growth = 2;
    // Replays of an executable until it is built again with optimised programs; the growth of that
    // number while they are not ready, and the most growths.
    int64_t replays = 64, replay_growth = 8;
    int max_growths = 2;
};
inline constexpr TierThresholds TIERS;

// The options that the policy reads.
struct TierOptions {
    bool interpret_cold = false; // whether small graphs may be computed node by node at first
    bool verify = false;         // batched results are compared with their members
    uint16_t hot_runs = TIERS.hot_runs;
};

// The keys under which hot graphs are counted.
struct GraphIdentity {
    const Key& key;
    const ShapeSignature* form; // or null
};

// How a graph without a plan is computed.
struct TierChoice {
    enum Tier : uint8_t {
        planned,
        interpreted,
        separate // `number` by a plan, its assignment by the interpreter
    } tier = planned;
    Node* number = nullptr;
};

// The policy for one graph. Counts have no lock: its callers hold the GIL.
struct TierPolicy {
    const LinearizedGraph& graph;
    const OptionKey& key;
    TierOptions options;
    GraphIdentity identity;

    bool may_interpret(bool counted = true) const;
    // Whether a graph without a plan is to be interpreted.
    bool is_cold() const;
    // Whether a graph is interpreted in batches. A long graph is. A short one of several calls runs
    // call by call, until it is hot. Its plan has the same bits.
    bool should_batch() const;
    // Chooses the tier of a graph that is not batched, and counts the run.
    TierChoice choose() const;
    void count_run() const;

  private:
    bool is_enabled() const { return options.interpret_cold && !key.has_user_rules(); }
    Node* separable_number() const;
    uint32_t assignment_threshold() const;
};

// Whether a call is worth a plan of its own; counts the call.
bool is_worth_compiling(Node& call, const TierOptions& options);
// The operations and dtypes of a graph that replaces a part of an array, by which its plans are
// counted; else empty.
std::vector<uint64_t> words_ignoring_lengths(const LinearizedGraph& graph);
void count_plan(std::span<const uint64_t> words);
void reset_hotness(const ShapeSignature& form); // graphs of this form are counted anew

// Replays of an executable until its programs are looked up again, after so many lookups in vain.
int64_t replays_until_lookup(int num_lookups);

// While one is alive, a single node is computed on this thread, and no graph is batched.
struct SingleNodeScope {
    SingleNodeScope();
    ~SingleNodeScope();
};

} // namespace tenfold
