#include "exec/tier_policy.h"

#include <algorithm>
#include <unordered_map>

#include "memory/cache_registry.h"

namespace tenfold {
namespace {

constexpr std::size_t NUM_SLOTS = 4096, NUM_WAYS = 8;

// Hotness of a graph, by hash: equal hashes only compile a plan earlier. Forms also count attempts
// at a symbolic executable.
struct HotnessCount {
    uint64_t hash = 0;
    uint16_t count = 0, num_failed_plans = 0;

    void add() { count += count < UINT16_MAX; }
};
using HotnessTable = std::array<HotnessCount, NUM_SLOTS>;
// Structures and graphs have separate tables: many shapes of one structure must not evict its
// count.
HotnessTable structure_hotness, graph_hotness;

thread_local int single_node_depth = 0;

// Valid until the next call. The graphs of a loop that share a slot would reset each other's count
// for ever: a new one replaces the least recently used of several.
HotnessCount& hotness_of(std::span<const uint64_t> words, HotnessTable& table) {
    uint64_t hash = hash_of(words);
    std::span<HotnessCount> ways(&table[hash % (NUM_SLOTS / NUM_WAYS) * NUM_WAYS], NUM_WAYS);
    auto found = std::ranges::find(ways, hash, &HotnessCount::hash);
    if (found == ways.end()) *--found = {hash, 0, 0};
    std::rotate(ways.begin(), found, found + 1);
    return ways.front();
}

// Counts by form, so that a structure with ever new shapes gets a symbolic executable.
HotnessCount& hotness_of(const GraphIdentity& identity) {
    if (identity.form) {
        HotnessCount& hotness = hotness_of(identity.form->words, structure_hotness);
        if (hotness.num_failed_plans < TIERS.max_failed_plans) return hotness;
    }
    return hotness_of(identity.key.words, graph_hotness);
}

[[maybe_unused]] Cache& registered = register_cache(
    {"hotness counts", "only graphs that come often are worth compiling", 2 * NUM_SLOTS,
     [] {
         auto is_used = [](const HotnessCount& hotness) { return hotness.count > 0; };
         return std::size_t(std::ranges::count_if(structure_hotness, is_used) +
                            std::ranges::count_if(graph_hotness, is_used));
     },
     [] { structure_hotness = graph_hotness = {}; }});

bool is_call(const Op& op) { return op.weight > 1; }

// A graph of calls of traced functions, with nothing beside them that rules could look at together:
// a product reads values and results of calls, and calls alone read it.
bool consists_of_calls(const LinearizedGraph& graph) {
    auto is_pending = [](const LinearizedNode& entry) {
        return !entry.value && entry.node->op && entry.node->op->python;
    };
    auto fits = [&](const LinearizedNode& entry) {
        if (!is_pending(entry) || is_call(*entry.node->op)) return true;
        const bool is_product = entry.node->op->contracts;
        if (!is_product && !entry.node->op->rule_free) return false;
        return std::ranges::none_of(graph.inputs(entry), [&](uint32_t input) {
            const LinearizedNode& operand = graph.nodes[input];
            if (!is_pending(operand) || is_call(*operand.node->op)) return false;
            return is_product || operand.node->op->contracts;
        });
    };
    return graph.num_calls > 1 && std::ranges::all_of(graph.nodes, fits);
}

bool joins_many(const LinearizedGraph& graph) {
    return std::ranges::any_of(graph.nodes, [&](const LinearizedNode& entry) {
        return !entry.value && entry.node->op && entry.num_inputs > TIERS.max_joined_blocks &&
               is_join(graph, entry);
    });
}

} // namespace

bool TierPolicy::may_interpret(bool counted) const {
    return is_enabled() && can_interpret(graph, loop_device(graph), counted);
}

// The runs after which a plan of an assignment pays.
uint32_t TierPolicy::assignment_threshold() const {
    const int64_t hot_runs = options.hot_runs;
    int64_t runs = hot_runs * TIERS.few_elements_factor * TIERS.few_elements /
                   (TIERS.few_elements + mean_elements(graph));
    return uint32_t(std::max(runs, hot_runs));
}

bool TierPolicy::is_cold() const {
    if (is_long(graph) && may_interpret(false)) return true;
    if (identity.key.words.empty() || !may_interpret()) return false;
    if (joins_many(graph)) return true;
    const uint16_t count = hotness_of(identity).count, threshold = options.hot_runs;
    if (!has_assignments(graph))
        return count < (is_long(graph) ? std::min(TIERS.hot_runs_long, threshold) : threshold);
    uint16_t num_plans = hotness_of(words_ignoring_lengths(graph), structure_hotness).count;
    const int doublings = num_plans / TIERS.max_new_lengths - 1;
    if (is_large(graph))
        return doublings >= 0 && count < 1 << std::min(doublings, int(TIERS.max_doublings));
    return count < assignment_threshold() << std::min(num_plans, TIERS.max_doublings);
}

bool TierPolicy::should_batch() const {
    bool may_batch = options.interpret_cold || options.verify;
    if (single_node_depth || !may_batch || key.has_user_rules()) return false;
    if (is_long(graph))
        return identity.key.words.empty() && (graph.num_calls > 0 || !has_assignments(graph));
    return hotness_of(identity).count < options.hot_runs && consists_of_calls(graph);
}

// The pending number that a graph assigns to a computed array, if the interpreter takes the
// assignment but not what computes the number; else null. No rule reads both of them together.
Node* TierPolicy::separable_number() const {
    if (!is_enabled()) return nullptr;
    const LinearizedNode& update = graph.nodes[graph.outputs[0]];
    bool is_single_update = graph.outputs.size() == 1 && !is_long(graph) && !update.value &&
                            update.node->op->part == Op::slice_update && can_assign(graph, update);
    if (!is_single_update) return nullptr;
    auto inputs = graph.inputs(update);
    const LinearizedNode& number = graph.nodes[inputs[1]];
    bool is_number = !number.value && number.node->op && number.node->type->size() == 1;
    if (!is_number || !graph.nodes[inputs[0]].value) return nullptr;
    bool may_run_twice = std::ranges::all_of(graph.nodes, [](const LinearizedNode& entry) {
        const Op* op = entry.node->op;
        return entry.value || !op || (op->python && op->is_permanent && op->pure);
    });
    return may_run_twice && !may_interpret() ? number.node.get() : nullptr;
}

TierChoice TierPolicy::choose() const {
    const bool counted = !identity.key.words.empty();
    if (is_cold()) {
        if (counted) count_run();
        return {TierChoice::interpreted};
    }
    if (!counted) return {};
    HotnessCount& hotness = hotness_of(identity);
    Node* number = separable_number();
    if (number && hotness.count < assignment_threshold()) {
        hotness.add();
        return {TierChoice::separate, number};
    }
    hotness.num_failed_plans += hotness.count >= options.hot_runs;
    return {};
}

void TierPolicy::count_run() const { hotness_of(identity).add(); }

// Each pattern of equal inputs needs a plan: a batch of one has the plan of all batches of the op.
// So only patterns that come often are compiled, and few.
bool is_worth_compiling(Node& call, const TierOptions& options) {
    std::vector<Ref<Node>> inputs;
    load_value_or_inputs(&call, inputs);
    std::vector<uint64_t> words{call.op->id};
    std::unordered_map<const Node*, uint64_t> first_positions;
    for (const Ref<Node>& input : inputs)
        words.push_back(first_positions.emplace(input.get(), words.size()).first->second);
    HotnessCount& pattern = hotness_of(words, structure_hotness);
    if (pattern.count < options.hot_runs) {
        pattern.add();
        return false;
    }
    HotnessCount& compiled = hotness_of(std::array{uint64_t(call.op->id)}, structure_hotness);
    return compiled.count < TIERS.max_compiled_patterns && ++compiled.count;
}

std::vector<uint64_t> words_ignoring_lengths(const LinearizedGraph& graph) {
    std::vector<uint64_t> words;
    if (!has_assignments(graph)) return words;
    for (const LinearizedNode& entry : graph.nodes) {
        const Node& node = *entry.node;
        bool pending = !entry.value && node.op;
        words.push_back(pending ? 2 * node.op->id + 1 : 0);
        words.push_back(node.is_scalar() ? 0 : node.type->kind() | node.type->shape.size() << 40);
        for (uint32_t input : graph.inputs(entry)) words.push_back(input);
    }
    return words;
}

void count_plan(std::span<const uint64_t> words) {
    HotnessCount& plans = hotness_of(words, structure_hotness);
    if (!words.empty()) plans.add();
}

void reset_hotness(const ShapeSignature& form) {
    hotness_of(form.words, structure_hotness).count = 0;
}

int64_t replays_until_lookup(int num_lookups) {
    int64_t replays = TIERS.replays;
    for (int i = std::min(num_lookups, TIERS.max_growths); i > 0; --i)
        replays *= TIERS.replay_growth;
    return replays;
}

SingleNodeScope::SingleNodeScope() { ++single_node_depth; }
SingleNodeScope::~SingleNodeScope() { --single_node_depth; }

} // namespace tenfold
