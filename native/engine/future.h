// Future: the pending or completed result of a pushed operator. It has its inputs while it is
// pending, its value or its failure from then on. A Python Handle names one.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ir/node.h"
#include "threads/futex.h"

namespace tenfold {

class Engine;
struct Batcher;
struct Future;
struct PlannedGraph;

// The options that were in force where something was pushed.
struct OptionSet {
    std::atomic<uint32_t> references{1};
    uint64_t number = 0;     // equal options have equal numbers
    bool usual = true;       // whether elements may be computed by rows
    uint8_t target = 0;      // target of the kernels
    void* context = nullptr; // Python's, in which they are in force; owned
    static void destroy(OptionSet* submitted);
};

// A pushed operation: one of tenfold's, or a user's operator.
struct Operation {
    enum Kind : uint8_t {
        value,       // put: nothing runs
        elementwise, // an operation of tenfold on elements, without parameters
        general,     // any other operation of tenfold, also one made of others
        user,        // an operator's `run`
        batched,     // an operator's `run_batch`
        in_place,    // owns its first input
        cumulative,  // makes increments of its first input
        fold         // adds increments
    };
    std::atomic<uint32_t> references{1};
    Kind kind = value;
    bool pure = true;
    bool identity_increment = false;  // cumulative: an increment is the one input
    bool elementwise_add = false;     // cumulative, fold: increments are added by tenfold's `add`
    uint64_t stacked_number = 0;      // batched: `run_batch` takes stacked arrays; equal operators
                                      // have equal numbers
    bool memoized = false;            // pure operation of tenfold: one object for all equal pushes
    bool has_several_results = false; // tenfold's operation, once known; written under the GIL
    Ref<Operation> sum;               // cumulative: the fold of its increments
    uint8_t min_inputs = 0, max_inputs = 255;
    int32_t priority = 0; // the user's, among ready operators that are not batched
    std::string name;
    const Op* op = nullptr;
    const void* cost_class = nullptr;          // the operator's class, by which sizes are guessed
    void *python = nullptr, *params = nullptr; // owned; params: a dict, or null
    void* constants = nullptr; // owned: a tuple of the constants behind the inputs, or null
    Ref<OptionSet> options;
    // A call of a traced function has parameters, a GIL-free call and captured values. The
    // GIL-free call may lack a plan. `result_tree` is how its results form one object: owned, null
    // for one Array.
    Ref<Params> call;
    Ref<PlannedGraph> planned_graph;
    std::vector<Ref<Value>> captured;
    void* result_tree = nullptr;

    bool is_builtin() const { return kind >= elementwise && kind <= general; }
    // Whether many of a user's are run by one call of Python.
    bool is_users_batch() const { return kind == batched || kind == cumulative; }
    uint64_t options_number() const { return options ? options->number : 0; }
    uint8_t target() const { return options ? options->target : 0; }
    static void destroy(Operation* operation);
};

// Where in the user's program something was pushed: a code object, owned, and where in it.
struct PushSite {
    std::atomic<uint32_t> references{1};
    void* code = nullptr;
    int offset = 0;
    static void destroy(PushSite* site);
};

// The reason for a missing value: an error of an operator, or a cancellation.
struct Failure {
    std::atomic<uint32_t> references{1};
    void* error = nullptr; // Python's, owned; null: cancelled
    Ref<Operation> operation;
    Ref<PushSite> site;
    std::atomic<bool> observed{false};
    Engine* engine = nullptr; // the engine that lists the failure until its destruction

    static void destroy(Failure* failure);
    // Called for an unobserved failure, by any thread; it takes over `error`.
    static inline void (*on_unobserved)(void* error, const std::string& operation,
                                        Ref<PushSite> site) = nullptr;
};

// Result of an operator: a value of tenfold's, a Python object, or a failure.
struct OperatorResult {
    Ref<Value> value;
    void* object = nullptr;         // owned
    std::unique_ptr<Scalar> scalar; // value of an object that is a Python number
    Ref<Type> type;                 // type of the scalar
    Ref<Failure> failure;
    std::size_t bytes = 0; // size of the object

    bool empty() const { return !value && !object && !failure; }
};

// One input of a pending Future, in the list of those that wait for that input.
struct Edge {
    Future* input;  // counted
    Future* reader; // counted while the edge is in the list
    Edge* next;
};

// Increments of one run, and sums of full runs: shared by versions, which are counted here. All of
// it is the engine's Lock's.
struct Leaves {
    uint32_t users = 0;
    std::vector<Future*> futures; // counted, and read
};
struct Block {
    uint32_t users = 0;
    Future* sum = nullptr;                // counted, and read
    uint32_t level = 0, num_at_level = 0; // how many of its level stand in a row
    Block* next = nullptr;                // counted
};

// The increments of a version. They live until they are summed, and while the version is the
// newest.
struct Increments {
    Future* base = nullptr; // counted, and read
    Leaves* leaves = nullptr;
    uint32_t count = 0; // number of leaves
    Block* blocks = nullptr;
    Ref<Operation> operation;
    bool is_input = false; // the last of the leaves was an input itself
};

// The versions of one object. The engine's Lock's.
struct VersionChain {
    std::atomic<uint32_t> references{1};
    uint32_t handles = 0;   // handles of all versions
    Future* head = nullptr; // counted, and read; null once no handle is left
    static void destroy(VersionChain* versions) { delete versions; }
};

struct Future {
    enum State : uint8_t { lazy, waiting, ready, running, done, failed, dropped };
    enum Settled : uint32_t { pending = 0, settled = 1, awaited = 2 };
    static constexpr std::size_t INLINE_INPUTS = 3;

    // The first cache line has all that readers of it look at, the second one what its own run
    // needs: a batch of thousands is larger than the cache.
    alignas(64) std::atomic<uint32_t> references{1};
    Word settlement{pending}; // acquire, release: a reader that sees it settled sees its value
    // From here on the engine's Lock protects each field that changes after publication.
    State state = waiting;
    bool urgent = false, impure = false;
    bool has_callback = false;  // Host::call is due when it is settled
    bool size_is_guess = false; // its bytes are only guessed
    bool type_is_known =
        false; // its Type is known beforehand; written before it is known to others
    uint32_t handles = 0, readers = 0, depth = 0, num_missing = 0;
    Engine* engine = nullptr;       // counted
    Type* type = nullptr;           // counted; known beforehand, or from the value; null of several
                                    // results
    Ref<Value> value;               // or values, chained
    std::unique_ptr<Scalar> scalar; // value of an object that is a Python number
    Ref<Operation> operation;
    Batcher* batcher = nullptr; // whose member it will be, or is
    Edge* waiters = nullptr;    // its readers
    uint32_t input_count = 0, height = 0;
    uint64_t number = 0, arrival = 0;        // arrival: among the pending ones
    Future *prev = nullptr, *next = nullptr; // among the pending ones
    std::unique_ptr<Edge[]> heap_edges;
    std::array<Edge, INLINE_INPUTS> inline_edges;
    std::size_t bytes = 0;      // while it is pending, those that are expected
    void* object = nullptr;     // owned
    Ref<VersionChain> versions; // versions of an object that was changed
    std::unique_ptr<Increments> increments;
    Ref<Failure> failure;
    Ref<PushSite> push_site;

    std::span<Edge> inputs() {
        return {heap_edges ? heap_edges.get() : inline_edges.data(), input_count};
    }
    // To be read without the Lock; null where it is not known yet.
    Type* known_type() const { return type_is_known || is_settled() ? type : nullptr; }
    bool is_settled() const { return settlement.load(std::memory_order_acquire) == settled; }
    bool is_pending() const { return state <= running; }
    bool is_newest() const { return versions && versions->head == this; }
    static void destroy(Future* future);
    static void* operator new(std::size_t) { return Slab<Future>::allocate(); }
    static void operator delete(void* memory) { Slab<Future>::deallocate(memory); }
};

} // namespace tenfold
