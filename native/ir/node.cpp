#include "ir/node.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

static_assert(offsetof(Slab<Node>::Free, references) == offsetof(Node, references));

// Held for a handful of instructions, so spinning is cheaper than sleeping. Acquire and release:
// each holder sees the writes of the one before it. A thread that is alone needs no lock.
class NodeSpinLock {
  public:
    explicit NodeSpinLock(Node* node) : node_(no_gil_free_threads() ? nullptr : node) {
        while (node_ && node_->locked.exchange(true, std::memory_order_acquire)) {}
    }
    ~NodeSpinLock() {
        if (node_) node_->locked.store(false, std::memory_order_release);
    }

  private:
    Node* node_;
};

std::atomic<uint64_t> storable_bytes{UINT64_MAX};

// A computed node stays so. Acquire: the value was written before.
bool is_computed(const Node* node) { return !node->pending.load(std::memory_order_acquire); }

// Relaxed, not added at once: nodes of two threads may have one number, but none that of an input.
uint64_t next_creation_number() {
    static std::atomic<uint64_t> last{0};
    uint64_t number = last.load(std::memory_order_relaxed) + 1;
    last.store(number, std::memory_order_relaxed);
    return number;
}

void set_inputs(Node* node, std::span<Node* const> inputs) {
    node->scalar.integer_bits = int64_t(next_creation_number());
    Node** slots = node->inline_inputs.data();
    if (inputs.size() > node->inline_inputs.size()) {
        slots = new Node*[inputs.size()];
        node->inline_inputs[0] = reinterpret_cast<Node*>(slots);
    }
    node->input_count = uint32_t(inputs.size());
    uint8_t kind = node->kind.load(std::memory_order_relaxed);
    uint32_t depth = 0, assignments = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        retain(inputs[i]);
        slots[i] = inputs[i];
        if (!node->op->zero_derivative &&
            (inputs[i]->has(WATCHED) || inputs[i]->has(KEEPS_HISTORY)))
            node->set(KEEPS_HISTORY);
        if (is_computed(inputs[i])) continue; // the second line of its memory stays where it is
        kind |= inputs[i]->kind.load(std::memory_order_relaxed);
        depth = std::max(depth, inputs[i]->depth.load(std::memory_order_relaxed));
        assignments = std::max(assignments, inputs[i]->assignments.load(std::memory_order_relaxed));
    }
    if (node->op->updates) ++assignments;
    node->assignments.store(assignments, std::memory_order_relaxed);
    node->kind.store(kind, std::memory_order_relaxed);
    node->depth.store(depth + 1, std::memory_order_relaxed);
    node->pending.store(true, std::memory_order_relaxed);
}

// Frees the input slots of a computed node.
void free_input_slots(const Node* first_slot, std::size_t count) {
    if (count > std::tuple_size_v<decltype(Node::inline_inputs)>)
        delete[] reinterpret_cast<Node* const*>(first_slot);
}

// A stack of nodes that allocates only where it is high.
class NodeStack {
  public:
    void push(Node* node) {
        if (count_ < inline_.size())
            inline_[count_++] = node;
        else
            overflow_.push_back(node);
    }
    Node* pop() {
        if (!overflow_.empty()) {
            Node* node = overflow_.back();
            overflow_.pop_back();
            return node;
        }
        return count_ ? inline_[--count_] : nullptr;
    }

  private:
    std::array<Node*, 8> inline_;
    std::size_t count_ = 0;
    std::vector<Node*> overflow_;
};

// Frees a tree of nodes without recursion: a chain of a million must not overflow the stack.
void free_nodes(Node* node) {
    for (NodeStack pending; node; node = pending.pop()) {
        for (Node* input : node->inputs()) {
            if (!drop(input)) continue;
            if (input->input_count == 0)
                delete input;
            else
                pending.push(input);
        }
        free_input_slots(node->inline_inputs[0], node->input_count);
        delete node;
    }
}

// The inputs of a computed node, which are released where this ends.
class DroppedInputs {
  public:
    DroppedInputs() = default;
    DroppedInputs(const DroppedInputs&) = delete;
    DroppedInputs& operator=(const DroppedInputs&) = delete;
    void take(Node& node) {
        inline_ = node.inline_inputs;
        count_ = node.input_count;
        node.input_count = 0;
    }
    ~DroppedInputs() {
        Node* const* slots =
            count_ > inline_.size() ? reinterpret_cast<Node* const*>(inline_[0]) : inline_.data();
        for (std::size_t i = 0; i < count_; ++i) release(slots[i]);
        free_input_slots(inline_[0], count_);
    }

  private:
    std::array<Node*, 2> inline_{};
    std::size_t count_ = 0;
};

// The nodes below and including the roots that keep their history; nothing if one is watched.
std::optional<std::vector<Ref<Node>>> nodes_with_history(std::span<Node* const> roots) {
    std::vector<Ref<Node>> nodes, stack;
    std::unordered_set<Node*> visited;
    for (Node* root : roots) stack.emplace_back(root);
    while (!stack.empty()) {
        Ref<Node> node = std::move(stack.back());
        stack.pop_back();
        if (node->has(WATCHED)) return {};
        if (!node->has(KEEPS_HISTORY) || !visited.insert(node.get()).second) continue;
        for (Ref<Node>& input : inputs_of(node.get())) stack.push_back(std::move(input));
        nodes.push_back(std::move(node));
    }
    return nodes;
}

// Stores the counts it finds; `budget`: how many nodes it may visit. It holds the locks of all
// nodes above the present one, so that they keep their inputs. All threads lock downwards, so they
// cannot deadlock.
void recompute_depth(Node* node, int& budget) {
    // One without assignments below was counted right: none below has been computed since.
    if (node->assignments.load(std::memory_order_relaxed) == 0 || --budget < 0) return;
    NodeSpinLock lock(node);
    if (node->value) return; // meanwhile
    uint32_t depth = 0, assignments = 0;
    for (Node* input : node->inputs()) {
        recompute_depth(input, budget);
        depth = std::max(depth, input->depth.load(std::memory_order_relaxed));
        assignments = std::max(assignments, input->assignments.load(std::memory_order_relaxed));
    }
    node->depth.store(depth + 1, std::memory_order_relaxed);
    node->assignments.store(assignments + node->op->updates, std::memory_order_relaxed);
}

} // namespace

bool is_in_range(const Scalar& scalar, const DType& dtype, bool whole_exponent) {
    bool is_integer = scalar.form == Scalar::integer || scalar.form == Scalar::uint64_integer ||
                      scalar.form == Scalar::big_integer;
    if (!is_integer || (dtype.kind != 'i' && dtype.kind != 'u')) return true;
    if (scalar.form == Scalar::big_integer) return false;
    uint32_t num_bits = 8 * dtype.bytes;
    if (scalar.form == Scalar::uint64_integer) return dtype.kind == 'u' && num_bits == 64;
    if (whole_exponent && scalar.integer_bits < 0) return false;
    if (dtype.kind == 'u')
        return scalar.integer_bits >= 0 && (num_bits == 64 || scalar.integer_bits >> num_bits == 0);
    return num_bits == 64 || (scalar.integer_bits >= -(int64_t(1) << (num_bits - 1)) &&
                              scalar.integer_bits < (int64_t(1) << (num_bits - 1)));
}

void recompute_depth(Node* node) {
    int budget = 256;
    recompute_depth(node, budget);
}

// Not inlined, so that a count that is not the last is taken off without a frame on the stack.
[[gnu::noinline]] void Node::destroy(Node* node) {
    if (node->input_count == 0)
        delete node;
    else
        free_nodes(node);
}

Ref<Node> value_node(Ref<Value> value) {
    auto* node = new Node;
    node->type = value->type;
    node->value = std::move(value);
    node->scalar.integer_bits = int64_t(next_creation_number());
    return Ref<Node>::adopt(node);
}

Ref<Node> scalar_node(const Scalar& scalar, Ref<Type> type) {
    auto* node = new Node;
    node->type = std::move(type);
    node->scalar = scalar;
    return Ref<Node>::adopt(node);
}

Ref<Node> operation_node(const Op* op, Ref<Params> params, Inferred&& inferred,
                         std::span<Node* const> inputs) {
    auto* node = new Node;
    node->op = op;
    node->kind.store(inferred.inference->kind, std::memory_order_relaxed);
    node->type = std::move(inferred.type);
    node->params = std::move(params);
    node->inference = std::move(inferred.inference);
    set_inputs(node, inputs);
    return Ref<Node>::adopt(node);
}

Ref<Node> placeholder_node(Ref<Type> type) {
    auto* node = new Node;
    node->inference = Ref<Inference>::adopt(new Inference);
    node->type = type;
    node->inference->results.push_back(std::move(type));
    return Ref<Node>::adopt(node);
}

Ref<Node> result_node(const Op* selector, Ref<Params> params, Ref<Node> tuple, std::size_t index) {
    auto* node = new Node;
    node->op = selector;
    node->type = tuple->inference->results[index];
    node->params = std::move(params);
    node->inference = tuple->inference;
    Node* input = tuple.get();
    set_inputs(node, {&input, 1});
    return Ref<Node>::adopt(node);
}

bool mark_passed_through(Node* node) {
    const Type& type = *node->type;
    uint64_t most = storable_bytes.load(std::memory_order_relaxed);
    bool fits = uint64_t(type.size()) <= most / std::max(dtype_of(type.dtype).bytes, 1U);
    // Relaxed: a thread that does not see it computes it once more.
    return fits ? node->set(PASSED_THROUGH) : node->has(PASSED_THROUGH);
}

void set_storable_bytes(uint64_t bytes) { storable_bytes.store(bytes, std::memory_order_relaxed); }

void watch(Node* node, bool forget) {
    NodeSpinLock lock(node);
    node->set(WATCHED);
    if (forget) node->clear(KEEPS_HISTORY);
}

void stop_watching(Node* node) {
    NodeSpinLock lock(node);
    node->clear(WATCHED);
}

bool is_made_of_watched(Node* node) { return !nodes_with_history({&node, 1}).has_value(); }

void forget_history(std::span<Node* const> roots) {
    std::optional<std::vector<Ref<Node>>> nodes = nodes_with_history(roots);
    if (!nodes) return;
    for (Ref<Node>& node : *nodes) {
        DroppedInputs dropped;
        NodeSpinLock lock(node.get());
        node->clear(KEEPS_HISTORY);
        if (node->value) dropped.take(*node);
    }
}

void publish(Node* node, Ref<Value> value) {
    DroppedInputs dropped;
    {
        NodeSpinLock lock(node);
        if (node->value) return;
        node->value = std::move(value);
        if (!node->has(KEEPS_HISTORY)) dropped.take(*node);
        node->kind.store(VALUE, std::memory_order_relaxed);
        node->assignments.store(0, std::memory_order_relaxed);
        node->depth.store(0, std::memory_order_relaxed);
        node->pending.store(false, std::memory_order_release); // is_settled
    }
}

std::vector<Ref<Node>> inputs_of(Node* node) {
    NodeSpinLock lock(node);
    std::vector<Ref<Node>> inputs;
    inputs.reserve(node->input_count);
    for (Node* input : node->inputs()) inputs.emplace_back(input);
    return inputs;
}

Ref<Value> load_value_or_inputs(Node* node, std::vector<Ref<Node>>& inputs) {
    if (is_computed(node)) return node->value;
    NodeSpinLock lock(node);
    for (Node* input : node->inputs()) inputs.emplace_back(input);
    return node->value;
}

Ref<Value> value_of(Node* node) {
    if (is_computed(node)) return node->value;
    NodeSpinLock lock(node);
    return node->value;
}

std::vector<Ref<Node>> readers_of(const Node* node) {
    std::vector<Ref<Node>> readers;
    Slab<Node>::for_each([&](Slab<Node>::Slot* slot) {
        if (slot->free.references == 0) return;
        auto* reader = reinterpret_cast<Node*>(slot);
        NodeSpinLock lock(reader);
        std::span<Node* const> inputs = reader->inputs();
        if (std::find(inputs.begin(), inputs.end(), node) != inputs.end())
            readers.emplace_back(reader);
    });
    return readers;
}

std::size_t first_scalar_out_of_range(const Op& op, const Inference& inference,
                                      std::span<Node* const> inputs) {
    std::size_t num_typed = std::min(inputs.size(), inference.operands.size());
    for (std::size_t i = 0; i < num_typed; ++i) {
        if (!inputs[i]->is_scalar()) continue;
        bool is_exponent = op.whole_exponent && i == 1;
        if (!is_in_range(inputs[i]->scalar, dtype_of(inference.operands[i]), is_exponent))
            return i + 1;
    }
    return 0;
}

} // namespace tenfold
