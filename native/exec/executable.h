// Executable: a plan as instructions that are replayed without Python. It has the plan's sizes,
// program addresses and slots. Python writes it, once it has computed a graph of that key;
// executables are cached by key in LRU order.
#pragma once
#include <array>
#include <atomic>
#include <string>
#include <variant>

#include "dispatch/graph_key.h"
#include "jit/code_loader.h"
#include "memory/indirect.h"
#include "threads/blas_threads.h"
#include "threads/counters.h"
#include "threads/device.h"

namespace tenfold {

// The launches of a program that was compiled without optimisation. Executables with that program
// share it.
struct UseCounter {
    std::atomic<uint32_t> references{1};
    std::atomic<int64_t> uses{1}; // relaxed: a total
    // As soon as there are so many uses, `request` is called. Relaxed: a second call does no harm.
    std::atomic<int64_t> next_request;
    void* request; // Python function that asks for the optimised program, owned

    UseCounter(int64_t hot, void* request) : next_request(hot), request(request) {}
    static void destroy(UseCounter* counter);
};

struct Executable {
    using Slot = uint32_t; // where a Value stands during a run
    static constexpr uint32_t NONE = ~uint32_t(0);

    // The value that a graph node has; of several results the index-th.
    struct Load {
        Slot slot;
        uint32_t position, index;
    };
    struct Allocate {
        Slot slot;
        Ref<Type> type;
        std::size_t bytes;
        std::vector<int64_t> strides; // empty: C order
        bool temporary;
    };
    // `slot` reuses the buffer of `source` in place.
    struct Share {
        Slot slot, source;
    };
    struct View {
        Slot slot, source;
        Ref<Type> type;
        std::vector<int64_t> strides;
        int64_t offset; // bytes
    };
    struct BufferRef {
        static constexpr Slot ADDRESS = ~Slot(0);
        Slot slot;      // or ADDRESS: no value, but a library function
        int64_t offset; // bytes; for ADDRESS, the address
    };
    // A kernel's scalar: of a graph node in some dtype, or `bits` as they are.
    struct Number {
        static constexpr uint32_t CONSTANT = ~uint32_t(0);
        uint32_t position = CONSTANT;
        uint16_t dtype = 0;
        bool imaginary = false;
        uint64_t bits = 0;
    };
    // A scale factor or an addend of a product: an element of up to 16 bytes. With `factors` it is
    // a product, negated if `negative`, of which a complex one may be conjugated. Each factor is a
    // scalar of the linearized graph (~position) or a 0-d array (a slot).
    struct Scale {
        std::array<uint64_t, 2> element;
        uint16_t dtype; // with factors: of floats, complex ones for one factor only
        bool negative, conjugated;
        std::vector<int64_t> factors;
    };
    // Additional multiply-adds, for each nonzero float64 that a launch leaves in a slot.
    struct WorkCounter {
        Slot slot = 0;
        int64_t offset = 0, stride = 0; // bytes
        int64_t count = 0;
        int64_t multiply_adds = 0;
    };
    struct Launch {
        KernelHandle kernel, finish; // finish: after all units, or null
        int64_t finish_units;        // units of `finish`
        std::vector<BufferRef> buffers;
        std::vector<std::size_t>
            scratch_tables; // bytes of memory for this run alone, behind the buffers
        std::vector<int64_t> sizes;
        std::vector<Number> numbers;
        std::size_t scratch;
        int64_t units, grain;
        int threads;
        bool uninterruptible;            // see Work
        uint64_t written = ~uint64_t(0); // see Work
        std::string label;
        int64_t multiply_adds = -1; // of a product, which counts as a call; ~n: n of a kernel
        std::vector<Scale> scales;  // behind the numbers
        std::vector<BlasLibrary*> blas_libraries; // while it runs, to so many threads at most
        int blas_threads = 1;
        WorkCounter extra_work;
        uint32_t source = NONE; // the graph node that it computes, of several the last
    };
    // A function of Python's, owned; an input is a slot, or a scalar by ~position.
    struct Call {
        void* function;
        std::vector<int64_t> inputs;
        std::vector<Slot> outputs;
        std::string label;
        int64_t multiply_adds = 0;
        bool temporary = false; // its result is a temporary
        uint32_t source = NONE; // the graph node that it computes
    };
    // A use of an unoptimised program.
    struct CountUse {
        Ref<UseCounter> counter;
    };
    struct Drop {
        std::vector<Slot> slots;
    };
    // The results of a graph node; one slot, or one for each.
    struct Publish {
        uint32_t position;
        std::vector<Slot> slots;
    };
    struct Count {
        Counter counter;
    };
    // A graph node has been read in part.
    struct MarkPassedThrough {
        uint32_t position;
    };
    // Most instructions are small, and plans have many.
    using Instruction = std::variant<Load, Allocate, Share, View, Indirect<Launch>, Indirect<Call>,
                                     CountUse, Count, Drop, Publish, MarkPassedThrough>;

    std::atomic<uint32_t> references{1};
    std::vector<uint64_t> key;
    std::vector<int64_t> base_offsets; // offsets of the graph that was compiled, as in the key
    KeyOwners key_owners;
    std::vector<Ref<Code>> code; // in which the kernels of its instructions stand
    std::vector<Instruction> instructions;
    std::vector<uint32_t> donated_inputs; // the graph nodes whose values are written over
    const Device* device = &CPU;
    Slot slots = 0;
    bool calls_user = false; // it calls functions of the user, whose errors only Python reports
    uint8_t exact = Key::by_form; // if not: nothing here, the key that is exact in this leads on
    std::atomic<int64_t> remaining_runs{-1}; // how often it may run yet; negative: without end

    explicit Executable(KeyOwners key_owners) : key_owners(std::move(key_owners)) {}
    static void destroy(Executable* plan);
};

// A launch or call of a run: when it began and ended, in nanoseconds of the steady clock.
struct StepTiming {
    std::string label;
    bool kernel;
    int64_t begin, end;
};

// Launches, Python calls and publication, as the caller of a run provides them.
class ExecutionContext : public HostLauncher {
  public:
    // False with a Python error when the function raised.
    virtual bool call(const Executable::Call&, const LinearizedGraph&, std::vector<Ref<Value>>&) {
        return false;
    }
    // Asks for the optimised program. False with a Python error.
    virtual bool request_optimised(UseCounter&) { return true; }
    // Kernels, calls, launches and temporaries.
    virtual void count(Counter counter) { tenfold::count(counter); }
    virtual void publish(Node* node, Ref<Value> value) { tenfold::publish(node, std::move(value)); }
};

// How a run ended: it is done, or an instruction has failed and those behind it have not run.
struct RunResult {
    enum Cause : uint8_t {
        none,
        input,    // a value that it loads is missing
        memory,   // there is no memory
        values,   // a kernel refuses its operands for their values
        exception // Python raised
    };
    Cause cause = none;
    uint32_t instruction = 0;
    std::size_t bytes = 0; // bytes that could not be allocated

    explicit operator bool() const { return cause == none; }
};

// Runs a plan on a linearized graph of its key; records each step in `timings`, if it is not null.
// After a failure the caller recomputes the unpublished results.
RunResult replay(const Executable& plan, const LinearizedGraph& graph, const Key& key,
                 ExecutionContext& context, std::vector<StepTiming>* timings = nullptr);

// A scalar as bits of a dtype, cast like NumPy, for the dtypes that plans pass.
uint64_t scalar_bits(const Scalar& scalar, const Executable::Number& number);

uint32_t this_thread(); // a number of the calling thread, not 0

std::size_t hash_of(std::span<const uint64_t> key);
// For caches by words.
struct WordsHash {
    std::size_t operator()(std::span<const uint64_t> words) const { return hash_of(words); }
};
struct SameWords {
    bool operator()(std::span<const uint64_t> a, std::span<const uint64_t> b) const {
        return std::ranges::equal(a, b);
    }
};
// Empty if no plan is cached. Graphs of different `kind` rarely compete for one slot of the
// thread's cache.
Ref<Executable> find_plan(std::span<const uint64_t> key, std::size_t kind);
// The exactness known for graphs of this key. Counts no run.
uint8_t exactness_of_key(std::span<const uint64_t> key);
// Keeps a plan, by its key; one of the same key that is there already stays, unless it is exact.
void cache_plan(Ref<Executable> plan);
void clear_plan_cache();
void forget_plans_of_call(const void* call); // Python's object of its op
std::size_t num_cached_plans();

} // namespace tenfold
