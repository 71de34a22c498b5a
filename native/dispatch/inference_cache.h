// Inference cache, the dispatch cache of Types: memoises Python's inference rules by
// (op, params, input Types), in LRU order. Each rule runs once per combination.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/strided_kernels.h"
#include "ir/op.h"
#include "ir/params.h"
#include "ir/type.h"
#include "ir/view_map.h"
#include "memory/deferred_decref.h"

namespace tenfold {

// The answer of an op's rules. Where ir/inferred_shapes.h knows the shapes of an operation, it is
// that for operands of some dtypes: an example, whose result may have another shape.
struct Inference {
    std::atomic<uint32_t> references{1};
    uint8_t kind = VALUE;           // of the operation itself; a node adds its inputs' kinds
    std::vector<Ref<Type>> results; // one, or several for an op with several results
    std::vector<uint16_t> operands; // the dtype in which each input enters the computation
    // Exactness of the key under which the last graph that ends in this node found its plan.
    std::atomic<uint8_t> last_exactness{0};
    // Of an operation on elements: of all inferences of the same dtypes.
    Ref<Loops> loops;
    // Of a view: owned; null: not asked for yet.
    std::atomic<const ViewMap*> view_map{nullptr};
    // Of a call: Python's object of its op, owned; given back through the release list.
    void* op_owner = nullptr;

    ~Inference() {
        delete view_map.load(std::memory_order_acquire);
        defer_decref(op_owner);
    }
    static void destroy(Inference* inference) { delete inference; }
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
    Ref<Type> type;           // of the only, or first, result

    explicit operator bool() const { return bool(inference); }
};

// What is known without Python's rules: by the same Types, or by the same dtypes
// (ir/inferred_shapes.h).
Inferred find_inference(const InferenceQuery& query);
// What Python's rules have said.
void cache_inference(const InferenceQuery& query, const Ref<Inference>& inference);

// Of an op that is not called any more.
void drop_inferences_of(const Op* op);

std::size_t num_cached_inferences();
void clear_inference_cache();

} // namespace tenfold
