#include "ir/loop_rerolling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace tenfold {
namespace {

constexpr uint32_t NONE = LinearizedGraph::NONE;
constexpr uint32_t MIN_STEPS = 3, MAX_STEP_OPERATIONS = 512;
// Operations without repetition have one plan up to so many, else one for each chunk.
constexpr uint32_t MAX_PLAN_OPERATIONS = 768, CHUNK_OPERATIONS = 192;
constexpr uint32_t MAX_GROUP_OPERATIONS = 192; // operations of steps that are computed at once
constexpr uint32_t MAX_JOINED_OPERATIONS = 16; // per such step: a larger one is worth a launch
constexpr uint32_t MIN_LOOP_OPERATIONS = 96;
// One plan is best for fewer steps that may be computed at once, such as the terms of a sum, and
// for a graph of which less than three quarters repeat.
constexpr std::size_t MIN_JOINING_STEPS = 64, MAX_WHOLE_NODES = 1024, MAX_JOINED_NODES = 512;
constexpr int MAX_NESTED_LOOPS = 32; // and loops in turn: each look takes linear time
constexpr int64_t NODE_BYTES = 64;   // cost of a result beside its elements

// Twice the number of steps side by side from which a graph is one of batches: 2 calls or 4
// operations. The first and the last steps may be cut otherwise: half a step less counts as enough.
std::size_t max_width(const LinearizedGraph& graph) { return graph.num_calls > 0 ? 3 : 7; }

struct Step {
    uint32_t begin, end; // numbers of operations
    std::size_t hash = 0;
    bool joins = false; // see may_join
    std::size_t size() const { return end - begin; }
};

// Operations have numbers in the order in which the program made them.
class LoopRerolling {
  public:
    explicit LoopRerolling(const LinearizedGraph& graph) : graph_(graph) {
        number_operations();
        if (valid_) describe_operations();
    }

    LoopSteps run() {
        LoopSteps parts;
        if (!valid_ || operations_.size() < 2) return parts;
        split(0, uint32_t(operations_.size()), MAX_NESTED_LOOPS);
        for (Step& step : steps_) describe(step);
        if (steps_.size() >= 2 && !is_best_whole() && is_sequential()) write_groups(parts);
        return parts;
    }

  private:
    struct Operation {
        uint32_t position;
        std::size_t role = 0; // equal for the same operation of each step
        uint32_t last_reader = 0;
        bool is_output = false;
        int64_t crossing_bytes = 0; // bytes of results that are read after the operation
    };

    const LinearizedNode& entry(uint32_t position) const { return graph_.nodes[position]; }
    bool is_pending(uint32_t position) const {
        return !entry(position).value && entry(position).node->op;
    }

    void number_operations() {
        std::vector<std::pair<uint64_t, uint32_t>> created;
        created.reserve(graph_.nodes.size());
        for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
            graph_.prefetch(i);
            if (is_pending(i)) created.emplace_back(entry(i).node->creation_number(), i);
        }
        if (!std::ranges::is_sorted(created)) std::ranges::sort(created);
        number_of_.assign(graph_.nodes.size(), NONE);
        operations_.reserve(created.size());
        for (const auto& [_, position] : created) {
            number_of_[position] = uint32_t(operations_.size());
            operations_.push_back({position});
            for (uint32_t input : graph_.inputs(entry(position)))
                valid_ &= !is_pending(input) || number_of_[input] != NONE;
        }
    }

    static std::size_t kind_of(const Node& node) {
        return mix(reinterpret_cast<std::size_t>(node.op),
                   reinterpret_cast<std::size_t>(node.type.get()));
    }

    void describe_operations() {
        std::vector<int64_t> freed(operations_.size());
        for (uint32_t i = 0; i < operations_.size(); ++i) {
            Operation& operation = operations_[i];
            const LinearizedNode& current = entry(operation.position);
            operation.role = kind_of(*current.node);
            operation.last_reader = i;
            for (uint32_t input : graph_.inputs(current)) {
                const Node& node = *entry(input).node;
                operation.role = mix(3 * operation.role, node.is_scalar() ? 1 : kind_of(node));
                if (number_of_[input] != NONE) operations_[number_of_[input]].last_reader = i;
            }
        }
        for (uint32_t output : graph_.outputs)
            if (number_of_[output] != NONE) operations_[number_of_[output]].is_output = true;
        int64_t bytes = 0;
        for (uint32_t i = 0; i < operations_.size(); ++i) {
            const Type& type = *entry(operations_[i].position).node->type;
            int64_t own = NODE_BYTES + type.size() * dtype_of(type.dtype).bytes;
            bytes += own;
            freed[operations_[i].last_reader] += own;
            bytes -= freed[i];
            operations_[i].crossing_bytes = bytes;
        }
    }

    // Occurrences of a role in a range of operations.
    struct Occurrences {
        uint32_t count = 0, first = 0, last = 0;
        int64_t crossing_bytes = 0; // after all but the last: few need what that leaves
        uint32_t span() const { return last - first; }
    };

    // A role after whose operations steps end: few bytes cross there, and the last one has a name
    // or is the result. The bytes are a mean: in a few steps results were computed before. 0
    // without steps.
    std::size_t find_step_end(uint32_t begin, uint32_t end) const {
        std::unordered_map<std::size_t, Occurrences> roles;
        for (uint32_t i = begin; i < end; ++i) {
            Occurrences& role = roles[operations_[i].role];
            if (role.count++ == 0)
                role.first = i;
            else
                role.crossing_bytes += operations_[role.last].crossing_bytes;
            role.last = i;
        }
        auto repeats = [&](const Occurrences& role) {
            return role.count >= MIN_STEPS &&
                   role.span() <= uint64_t(MAX_STEP_OPERATIONS) * (role.count - 1);
        };
        uint32_t longest = 0;
        for (const auto& [_, role] : roles)
            if (repeats(role)) longest = std::max(longest, role.span());
        const Occurrences* best = nullptr;
        auto rank = [&](const Occurrences& role) {
            const LinearizedNode& last = entry(operations_[role.last].position);
            return std::tuple(-role.crossing_bytes / (role.count - 1), last.live_out, role.last);
        };
        for (const auto& [_, role] : roles)
            if (repeats(role) && role.span() >= longest - longest / 4 &&
                (!best || rank(role) > rank(*best)))
                best = &role;
        return best ? operations_[best->last].role : 0;
    }

    // Appends the steps of a range; those of loops in it, so many deep.
    void split(uint32_t begin, uint32_t end, int depth) {
        if (end - begin <= MIN_LOOP_OPERATIONS) return steps_.push_back({begin, end});
        std::size_t role = depth ? find_step_end(begin, end) : 0;
        if (!role) return split_evenly(begin, end);
        std::vector<uint32_t> ends;
        for (uint32_t i = begin; i < end; ++i)
            if (operations_[i].role == role) ends.push_back(i + 1);
        add_first_end(begin, ends);
        if (ends.back() != end) ends.push_back(end);
        std::vector<uint32_t> lengths(ends.size());
        std::adjacent_difference(ends.begin(), ends.end(), lengths.begin());
        lengths[0] -= begin;
        std::vector<uint32_t> sorted = lengths;
        std::ranges::nth_element(sorted, sorted.begin() + std::ptrdiff_t(sorted.size() / 2));
        uint32_t usual = std::max(MIN_LOOP_OPERATIONS, 2 * sorted[sorted.size() / 2]);
        for (std::size_t k = 0; k < ends.size(); ++k) {
            if (lengths[k] > usual && lengths[k] < end - begin)
                split(ends[k] - lengths[k], ends[k], depth - 1);
            else
                steps_.push_back({ends[k] - lengths[k], ends[k]});
        }
    }

    // The operation that ends the first step reads no other step, so that it has another role.
    void add_first_end(uint32_t begin, std::vector<uint32_t>& ends) const {
        uint32_t second = ends[0] - 1, length = ends[1] - ends[0];
        if (second < begin + length) return;
        const Node& last = *entry(operations_[second].position).node;
        const Node& same_of_first = *entry(operations_[second - length].position).node;
        if (kind_of(last) == kind_of(same_of_first)) ends.insert(ends.begin(), second - length + 1);
    }

    void split_evenly(uint32_t begin, uint32_t end) {
        uint32_t length = end - begin > MAX_PLAN_OPERATIONS ? CHUNK_OPERATIONS : end - begin;
        for (; begin < end; begin += length)
            steps_.push_back({begin, std::min(begin + length, end)});
    }

    bool is_best_whole() const {
        if (graph_.nodes.size() > MAX_WHOLE_NODES) return false;
        std::unordered_map<std::size_t, uint32_t> num_equal;
        for (const Step& step : steps_) ++num_equal[step.hash];
        std::size_t repeated = 0;
        for (const Step& step : steps_)
            if (num_equal[step.hash] >= MIN_STEPS) repeated += step.size();
        if (4 * repeated < 3 * operations_.size()) return true;
        return steps_.size() < MIN_JOINING_STEPS && graph_.nodes.size() <= MAX_JOINED_NODES &&
               std::ranges::all_of(steps_, [](const Step& step) { return step.joins; });
    }

    // Whether a way down leads through most steps. It follows operations, not steps: one step may
    // have parts of two programs that do not need each other.
    bool is_sequential() const {
        std::vector<uint32_t> depth(operations_.size());
        uint32_t deepest = 0;
        for (const Step& step : steps_)
            for (uint32_t i = step.begin; i < step.end; ++i) {
                for (uint32_t input : graph_.inputs(entry(operations_[i].position)))
                    if (uint32_t number = number_of_[input]; number != NONE)
                        depth[i] = std::max(depth[i], depth[number] + (number < step.begin));
                deepest = std::max(deepest, depth[i] + 1);
            }
        return 2 * steps_.size() < max_width(graph_) * deepest;
    }

    // Steps with it may be computed at once: the rules that look at it and at another step change
    // no bit, or save the factorisation of one matrix in each step. Not with a reduction: its
    // operand may be computed again for another reader, with all joined steps before it.
    bool may_join(const LinearizedNode& current) const {
        const Op& op = *current.node->op;
        bool has_loops = current.node->inference->kind == CONTRACTION;
        return (op.rule_free && !has_loops) ||
               (op.shares_factors && entry(graph_.inputs(current)[0]).value);
    }

    void describe(Step& step) const {
        step.joins = true;
        for (uint32_t i = step.begin; i < step.end; ++i) {
            const Operation& operation = operations_[i];
            bool is_kept = operation.last_reader >= step.end + step.size();
            step.hash = mix(3 * step.hash, operation.role + is_kept);
            step.joins &= may_join(entry(operation.position));
        }
        step.hash = mix(step.hash, step.size());
    }

    // A run of equal small steps is computed one, some and many at a time, so that runs of all
    // lengths share three plans; each that is long has all of them. At its ends steps have
    // neighbours of other kinds.
    void write_groups(LoopSteps& parts) const {
        for (std::size_t first = 0; first < steps_.size();) {
            std::size_t last = first + 1;
            while (last < steps_.size() && steps_[first].joins && steps_[last].joins &&
                   steps_[last].hash == steps_[first].hash)
                ++last;
            std::size_t many = 1;
            if (steps_[first].size() <= MAX_JOINED_OPERATIONS)
                many = MAX_GROUP_OPERATIONS / steps_[first].size();
            auto some = std::size_t(std::sqrt(double(many)));
            for (std::size_t at = first; at < last;) {
                std::size_t remaining = last - at - 1, size = 1;
                if (at >= first + 2 && remaining >= some)
                    size = at > first + 2 && remaining >= many ? many : some;
                write_part(at, at + size, parts);
                at += size;
            }
            first = last;
        }
    }

    void write_part(std::size_t first_step, std::size_t end_step, LoopSteps& parts) const {
        std::vector<Ref<Node>>& outputs = parts.outputs.emplace_back();
        uint32_t end = steps_[end_step - 1].end;
        for (uint32_t i = steps_[first_step].begin; i < end; ++i) {
            const Operation& operation = operations_[i];
            if (operation.is_output || operation.last_reader >= end)
                outputs.push_back(entry(operation.position).node);
        }
        if (outputs.empty()) return parts.outputs.pop_back();
        parts.counts.push_back(uint32_t(end_step - first_step));
        parts.kinds.push_back(uint32_t(steps_[first_step].hash));
    }

    const LinearizedGraph& graph_;
    bool valid_ = true; // inputs have smaller numbers than their readers
    std::vector<Operation> operations_;
    std::vector<uint32_t> number_of_; // the number of an operation, by its position
    std::vector<Step> steps_;
};

// Whether steps cannot need one another: even the longest would be too many for the way down, or
// calls lie side by side all the way.
bool is_wide(const LinearizedGraph& graph) {
    constexpr std::size_t LONGEST_STEP = 2 * MAX_STEP_OPERATIONS;
    return graph.num_calls > 2 * graph.depth ||
           2 * graph.nodes.size() > max_width(graph) * LONGEST_STEP * graph.depth;
}

} // namespace

LoopSteps steps_of(const LinearizedGraph& graph) {
    if (graph.nodes.size() <= MAX_UNDIVIDED_NODES || is_wide(graph)) return {};
    return LoopRerolling(graph).run();
}

} // namespace tenfold
