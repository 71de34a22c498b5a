// Inference cache, the dispatch cache of Types: memoises Python's inference rules by
// (op, params, input Types), in LRU order. Each rule runs once per combination.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/strided_kernels.h"
#include "ir/index_map.h"
#include "ir/op.h"
#include "ir/params.h"
#include "ir/type.h"
#include "memory/deferred_decref.h"

namespace tenfold {

// The result of an op's rules. If ir/inferred_shapes.h knows an operation's shapes, it covers all
// operands of some dtypes. It is then an example, whose result may have another shape.
struct Inference {
    std::atomic<uint32_t> references{1};
    uint8_t kind = VALUE;           // kind of the operation itself; a node adds its inputs' kinds
    std::vector<Ref<Type>> results; // one, or several for an op with several results
    std::vector<uint16_t> operands; // the dtype in which each input enters the computation
    // Exactness of the key under which the last graph that ends in this node found its plan.
    std::atomic<uint8_t> last_exactness{0};
    // Loops of an operation on elements: all inferences of the same dtypes share them.
    Ref<Loops> loops;
    // Index map of a view other than a slice: owned; null: not asked for yet.
    std::atomic<const IndexMap*> index_map{nullptr};
    // The Python object of a call's op: owned; released through the deferred decrefs.
    void* op_owner = nullptr;

    ~Inference() {
        delete index_map.load(std::memory_order_acquire);
        defer_decref(op_owner);
    }
    [[gnu::noinline]] static void destroy(Inference* inference) { delete inference; }
};

struct InferenceQuery {
    const Op* op;
    const Params* params;
    bool strict;
    std::span<Type* const> types;
    std::size_t hash() const;
};

struct Inferred {
    Ref<Inference> inference; // empty when unknown
    Ref<Type> type;           // type of the only, or first, result

    explicit operator bool() const { return bool(inference); }
};

// The inference, if it is known without Python's rules: by equal Types or equal dtypes
// (ir/inferred_shapes.h).
Inferred find_inference(const InferenceQuery& query);
// Caches a result of Python's rules.
void cache_inference(const InferenceQuery& query, const Ref<Inference>& inference);

// Drops the inferences of an op that is not called any more.
void drop_inferences_of(const Op* op);

std::size_t num_cached_inferences();
void clear_inference_cache();

} // namespace tenfold
