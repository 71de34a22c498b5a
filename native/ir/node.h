// Node: one operation applied to inputs, or a leaf that holds a value or a Python scalar. It is
// immutable but for one step: once computed it stores its value and drops its inputs.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dispatch/inference_cache.h"
#include "ir/value.h"
#include "memory/prefetch.h"

namespace tenfold {

// A Python scalar. `integer_bits` holds a bool or an int, and the low 64 bits of a
// `uint64_integer`. `real` and `imaginary` hold the floating values; `real` of a `big_integer` is
// its nearest double.
struct Scalar {
    enum Form : uint8_t {
        none,
        boolean,
        integer,
        uint64_integer,
        big_integer,
        real_number,
        complex_number
    };
    Form form = none; // uint64_integer: 2^63 <= x < 2^64; big_integer: outside of both
    int64_t integer_bits = 0;
    double real = 0, imaginary = 0;

    bool has_equal_bits(const Scalar& other) const {
        auto bits = [](double number) { return std::bit_cast<uint64_t>(number); };
        return form == other.form && integer_bits == other.integer_bits &&
               bits(real) == bits(other.real) && bits(imaginary) == bits(other.imaginary);
    }
};

// Where in the user's program an operation was written.
struct Origin {
    std::atomic<uint32_t> references{1};
    std::string file;
    int line = 0;
    static void destroy(Origin* origin) { delete origin; }
};

// Where an assignment to a part of an Array stands in a run of successive ones.
struct UpdateRun {
    uint16_t stride_hash = 0; // hash of the distance from the previous assignment; 0: begins a run
    // How many wrote similar parts before any value was read, and how many wait to be computed
    // together; this one included.
    uint8_t num_similar = 0, num_deferred = 0;

    bool is_deferred() const { return num_deferred > 1; }
};

// What is true of a node; relaxed: a thread that does not see it yet does work once more.
enum NodeFlag : uint8_t {
    PASSED_THROUGH = 1, // an evaluation did; the next one stores the value
    WATCHED = 2,        // what is made of this node keeps its history
    KEEPS_HISTORY = 4,  // the inputs stay after the node is computed
};

// Two cache lines; most accesses need only the first.
struct alignas(64) Node {
    std::atomic<uint32_t> references{1};
    std::atomic<uint8_t> kind{VALUE}; // kind and depth fall to 0 once; a reader may see either
    std::atomic<bool> locked{
        false}; // a spin lock: protects value and inputs when the node is computed
    std::atomic<uint8_t> flags{0};    // a bit for each NodeFlag
    std::atomic<bool> pending{false}; // until it has been computed
    // The number of the thread that overwrites the value of this node in place; 0: none. No Array
    // names the node. A thread that reaches it by another path waits.
    std::atomic<uint32_t> claimed_by{0};
    uint32_t input_count = 0;
    const Op* op = nullptr;   // null for a leaf
    Ref<Type> type;           // type of the only, or first, result
    Ref<Inference> inference; // null for a leaf
    Ref<Value> value;
    std::array<Node*, 2> inline_inputs{}; // up to two inputs; of more the first is where they stand

    Ref<Params> params;
    Ref<Origin> origin;
    std::atomic<uint32_t> depth{0};       // operations pending below and including this one
    std::atomic<uint32_t> assignments{0}; // the most on a way down that are pending
    std::atomic<uint32_t> submission{0};  // the number of its submission; 0: none
    UpdateRun run; // run of an assignment; written before the node is published
    Scalar scalar; // value of a leaf that is a Python scalar; an operation has its number here

    bool has(NodeFlag flag) const { return flags.load(std::memory_order_relaxed) & flag; }
    // Whether the flag was set before.
    bool set(NodeFlag flag) { return flags.fetch_or(flag, std::memory_order_relaxed) & flag; }
    void clear(NodeFlag flag) { flags.fetch_and(uint8_t(~flag), std::memory_order_relaxed); }
    // Nodes that were made later have larger numbers; 0 for a scalar and a placeholder.
    uint64_t creation_number() const { return uint64_t(scalar.integer_bits); }
    Node* const* input_slots() const {
        return input_count > inline_inputs.size() ? reinterpret_cast<Node* const*>(inline_inputs[0])
                                                  : inline_inputs.data();
    }
    std::span<Node* const> inputs() const { return {input_slots(), input_count}; }
    bool is_scalar() const { return !op && !value && scalar.form != Scalar::none; }
    static void destroy(Node* node);
    static void* operator new(std::size_t) { return Slab<Node>::allocate(); }
    static void operator delete(void* memory) { Slab<Node>::deallocate(memory); }
};
static_assert(sizeof(Node) == 128);

// Prefetches a node that is soon counted or written. A large graph is only in the cache of the core
// that wrote it. Nothing is read, so the node may already be freed.
inline void prefetch_node(const Node* node) {
    prefetch_for_write(node);
    prefetch_for_write(reinterpret_cast<const char*>(node) + sizeof(Node) / 2);
}

Ref<Node> value_node(Ref<Value> value);
Ref<Node> scalar_node(const Scalar& scalar, Ref<Type> type);
Ref<Node> operation_node(const Op* op, Ref<Params> params, Inferred&& inferred,
                         std::span<Node* const> inputs);
// An input that has a Type but no value, for tracing rules.
Ref<Node> placeholder_node(Ref<Type> type);
// Whether an integer is one of a dtype, as which it is read; `whole_exponent`: and not negative.
bool is_in_range(const Scalar& scalar, const DType& dtype, bool whole_exponent = false);
// Recounts the pending operations near a node. Its stored counts date from its creation.
void recompute_depth(Node* node);
// The i-th result of an operation with several: `part` is the op that picks.
Ref<Node> result_node(const Op* selector, Ref<Params> params, Ref<Node> tuple, std::size_t index);

// Marks a node that an evaluation has passed through, unless its value has more than the storable
// bytes; returns whether it was marked before.
bool mark_passed_through(Node* node);
void set_storable_bytes(uint64_t bytes);

// Gives a pending node its value; its inputs are dropped, unless it keeps its history. A node that
// has one keeps it.
void publish(Node* node, Ref<Value> value);
// From now on nodes that are made of this one keep their history; `forget`: it keeps none itself.
void watch(Node* node, bool forget);
void stop_watching(Node* node);
// Whether a node was made of one that is watched.
bool is_made_of_watched(Node* node);
// From now on no node below keeps its history, unless one of them is watched.
void forget_history(std::span<Node* const> roots);

// The inputs as counted references, safe against a publish by another thread.
std::vector<Ref<Node>> inputs_of(Node* node);
// The value, if it is known; else appends the inputs to `inputs`. Both are read atomically.
Ref<Value> load_value_or_inputs(Node* node, std::vector<Ref<Node>>& inputs);
Ref<Value> value_of(Node* node);
// The pending nodes that read a node, found among all nodes. No node may be made or freed
// meanwhile. So the caller holds the GIL, as does each thread that makes and frees nodes.
std::vector<Ref<Node>> readers_of(const Node* node);

// 0 if every scalar input is in the range of its dtype in the operation. Else 1 + the position of
// the first that is not.
std::size_t first_scalar_out_of_range(const Op& op, const Inference& inference,
                                      std::span<Node* const> inputs);

} // namespace tenfold
