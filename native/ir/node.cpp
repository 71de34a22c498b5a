#include "ir/node.h"

#include <algorithm>

#include "threads/fork_safe_lock.h"

namespace tenfold {
namespace {

static_assert(offsetof(Slab<Node>::Free, references) == offsetof(Node, references));

// Held for a handful of instructions, so spinning is cheaper than sleeping. Acquire and release:
// each holder sees the writes of the one before it. A thread that is alone needs no lock.
class NodeSpinLock {
  public:
    explicit NodeSpinLock(Node* node) : node_(alone() ? nullptr : node) {
        while (node_ && node_->locked.exchange(true, std::memory_order_acquire)) {}
    }
    ~NodeSpinLock() {
        if (node_) node_->locked.store(false, std::memory_order_release);
    }

  private:
    Node* node_;
};

// What it has it keeps. Acquire: with the value, which was there first.
bool is_settled(const Node* node) { return !node->pending.load(std::memory_order_acquire); }

void set_inputs(Node* node, std::span<Node* const> inputs) {
    Node** places = node->few.data();
    if (inputs.size() > node->few.size()) {
        places = new Node*[inputs.size()];
        node->few[0] = reinterpret_cast<Node*>(places);
    }
    node->input_count = uint32_t(inputs.size());
    uint8_t kind = node->kind.load(std::memory_order_relaxed);
    uint32_t depth = 0, assignments = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        retain(inputs[i]);
        places[i] = inputs[i];
        if (is_settled(inputs[i])) continue; // the second line of its memory stays where it is
        kind |= inputs[i]->kind.load(std::memory_order_relaxed);
        depth = std::max(depth, inputs[i]->depth.load(std::memory_order_relaxed));
        assignments = std::max(assignments, inputs[i]->assignments.load(std::memory_order_relaxed));
    }
    if (node->op->assigns) ++assignments;
    node->assignments.store(assignments, std::memory_order_relaxed);
    node->kind.store(kind, std::memory_order_relaxed);
    node->depth.store(depth + 1, std::memory_order_relaxed);
    node->pending.store(true, std::memory_order_relaxed);
}

// Of a node that has them no more.
void free_places(const Node* few, std::size_t count) {
    if (count > std::tuple_size_v<decltype(Node::few)>)
        delete[] reinterpret_cast<Node* const*>(few);
}

// A stack of nodes that allocates only where it is high.
class Nodes {
  public:
    void push(Node* node) {
        if (count_ < few_.size())
            few_[count_++] = node;
        else
            more_.push_back(node);
    }
    Node* pop() {
        if (!more_.empty()) {
            Node* node = more_.back();
            more_.pop_back();
            return node;
        }
        return count_ ? few_[--count_] : nullptr;
    }

  private:
    std::array<Node*, 8> few_;
    std::size_t count_ = 0;
    std::vector<Node*> more_;
};

// Frees a tree of nodes without recursion: a chain of a million must not overflow the stack.
void free_nodes(Node* node) {
    for (Nodes dead; node; node = dead.pop()) {
        for (Node* input : node->inputs()) {
            if (!drop(input)) continue;
            if (input->input_count == 0)
                delete input;
            else
                dead.push(input);
        }
        free_places(node->few[0], node->input_count);
        delete node;
    }
}

bool fits(const Scalar& scalar, const DType& dtype, bool whole_exponent) {
    bool is_integer = scalar.form == Scalar::integer || scalar.form == Scalar::large ||
                      scalar.form == Scalar::huge;
    if (!is_integer || (dtype.kind != 'i' && dtype.kind != 'u')) return true;
    if (scalar.form == Scalar::huge) return false;
    uint32_t bits = 8 * dtype.bytes;
    if (scalar.form == Scalar::large) return dtype.kind == 'u' && bits == 64;
    if (whole_exponent && scalar.whole < 0) return false;
    if (dtype.kind == 'u') return scalar.whole >= 0 && (bits == 64 || scalar.whole >> bits == 0);
    return bits == 64 || (scalar.whole >= -(int64_t(1) << (bits - 1)) &&
                          scalar.whole < (int64_t(1) << (bits - 1)));
}

// Stores the counts it finds; `budget`: how many nodes it may visit. It holds the locks of all
// nodes above the present one, so that they keep their inputs. All threads lock downwards, so they
// cannot deadlock.
void recount(Node* node, int& budget) {
    // One without assignments below was counted right: none below has been computed since.
    if (node->assignments.load(std::memory_order_relaxed) == 0 || --budget < 0) return;
    NodeSpinLock hold(node);
    if (node->value) return; // meanwhile
    uint32_t depth = 0, assignments = 0;
    for (Node* input : node->inputs()) {
        recount(input, budget);
        depth = std::max(depth, input->depth.load(std::memory_order_relaxed));
        assignments = std::max(assignments, input->assignments.load(std::memory_order_relaxed));
    }
    node->depth.store(depth + 1, std::memory_order_relaxed);
    node->assignments.store(assignments + node->op->assigns, std::memory_order_relaxed);
}

} // namespace

void recount(Node* node) {
    int budget = 256;
    recount(node, budget);
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

Ref<Node> part_node(const Op* part, Ref<Params> params, Ref<Node> whole, std::size_t index) {
    auto* node = new Node;
    node->op = part;
    node->type = whole->inference->results[index];
    node->params = std::move(params);
    node->inference = whole->inference;
    Node* input = whole.get();
    set_inputs(node, {&input, 1});
    return Ref<Node>::adopt(node);
}

void publish(Node* node, Ref<Value> value) {
    std::array<Node*, 2> few;
    std::size_t count = 0;
    {
        NodeSpinLock hold(node);
        if (node->value) return;
        node->value = std::move(value);
        few = node->few;
        count = std::exchange(node->input_count, 0);
        node->kind.store(VALUE, std::memory_order_relaxed);
        node->assignments.store(0, std::memory_order_relaxed);
        node->depth.store(0, std::memory_order_relaxed);
        node->pending.store(false, std::memory_order_release); // is_settled
    }
    Node* const* places = count > few.size() ? reinterpret_cast<Node* const*>(few[0]) : few.data();
    for (std::size_t i = 0; i < count; ++i) release(places[i]);
    free_places(few[0], count);
}

std::vector<Ref<Node>> inputs_of(Node* node) {
    NodeSpinLock hold(node);
    std::vector<Ref<Node>> inputs;
    inputs.reserve(node->input_count);
    for (Node* input : node->inputs()) inputs.emplace_back(input);
    return inputs;
}

Ref<Value> look(Node* node, std::vector<Ref<Node>>& inputs) {
    if (is_settled(node)) return node->value;
    NodeSpinLock hold(node);
    for (Node* input : node->inputs()) inputs.emplace_back(input);
    return node->value;
}

Ref<Value> value_of(Node* node) {
    if (is_settled(node)) return node->value;
    NodeSpinLock hold(node);
    return node->value;
}

std::vector<Ref<Node>> readers_of(const Node* node) {
    std::vector<Ref<Node>> readers;
    Slab<Node>::for_each([&](Slab<Node>::Slot* slot) {
        if (slot->free.references == 0) return;
        auto* reader = reinterpret_cast<Node*>(slot);
        NodeSpinLock hold(reader);
        std::span<Node* const> inputs = reader->inputs();
        if (std::find(inputs.begin(), inputs.end(), node) != inputs.end())
            readers.emplace_back(reader);
    });
    return readers;
}

std::size_t first_scalar_out_of_range(const Op& op, const Inference& inference,
                                      std::span<Node* const> inputs) {
    std::size_t known = std::min(inputs.size(), inference.operands.size());
    for (std::size_t i = 0; i < known; ++i) {
        if (!inputs[i]->is_scalar()) continue;
        bool exponent = op.whole_exponent && i == 1;
        if (!fits(inputs[i]->scalar, dtype_of(inference.operands[i]), exponent)) return i + 1;
    }
    return 0;
}

} // namespace tenfold
