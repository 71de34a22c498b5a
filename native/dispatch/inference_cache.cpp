#include "dispatch/inference_cache.h"

#include <algorithm>
#include <array>

#include "ir/inferred_shapes.h"
#include "ir/intern.h"
#include "memory/cache_registry.h"
#include "memory/direct_mapped.h"
#include "memory/lru_cache.h"

namespace tenfold {
namespace {

constexpr std::size_t CAPACITY = 1 << 16;
// A wider call is inferred anew. Plans know an operation by its inference: it is planned anew, too.
constexpr std::size_t MAX_CACHED_INPUTS = 4096;
constexpr std::size_t MAX_CACHED_TYPES = 1 << 20;

struct InferenceKey {
    const Op* op;
    Ref<Params> params;
    bool strict;
    std::vector<Ref<Type>> types;
    std::size_t hash;

    bool matches(const InferenceQuery& query) const {
        return op == query.op && params.get() == query.params && strict == query.strict &&
               std::equal(types.begin(), types.end(), query.types.begin(), query.types.end(),
                          [](const Ref<Type>& a, Type* b) { return a.get() == b; });
    }
};

struct InferenceHash {
    std::size_t operator()(const InferenceKey& key) const { return key.hash; }
    std::size_t operator()(const InferenceQuery& query) const { return query.hash(); }
};

struct SameInference {
    bool operator()(const InferenceQuery& query, const InferenceKey& key) const {
        return key.matches(query);
    }
};

using Table = LruCache<InferenceKey, Inferred, InferenceHash, SameInference>;

struct InferenceCache {
    Lock lock; // protects the table
    Table table{CAPACITY, MAX_CACHED_TYPES};
};

struct ThreadInference {
    static constexpr std::size_t MAX_INPUTS = 3;
    const Op* op = nullptr;
    Ref<Params> params;
    bool strict = false;
    std::size_t num_inputs = 0;
    std::array<Ref<Type>, MAX_INPUTS> types;
    Inferred inferred;
    std::size_t uses = 0;

    explicit operator bool() const { return op; }

    void put(const InferenceQuery& query, const Inferred& result) {
        op = query.op;
        params = Ref<Params>(const_cast<Params*>(query.params));
        strict = query.strict;
        num_inputs = query.types.size();
        for (std::size_t i = 0; i < num_inputs; ++i) types[i] = Ref<Type>(query.types[i]);
        inferred = result;
    }

    bool matches(const InferenceQuery& query) const {
        if (op != query.op || params.get() != query.params || strict != query.strict ||
            num_inputs != query.types.size())
            return false;
        for (std::size_t i = 0; i < num_inputs; ++i)
            if (types[i].get() != query.types[i]) return false;
        return true;
    }
};

struct ThreadInferenceCache : ThreadCache<ThreadInferenceCache, ThreadInference, 8> {
    ThreadInference& entry_of(const InferenceQuery& query) { return slot_of_low(query.hash()); }
    using ThreadCache::should_revalidate;
};

InferenceCache* const inference_cache_instance =
    new InferenceCache; // made when the library is loaded; outlives every static object

InferenceCache& inference_cache() { return *inference_cache_instance; }

[[maybe_unused]] Cache& registered =
    register_cache({"inferred types", "a rule in Python takes 100 times as long as a node",
                    CAPACITY, num_cached_inferences, clear_inference_cache});

} // namespace

std::size_t InferenceQuery::hash() const {
    // Pointers differ in their middle bits: a multiply per word and one mix at the end spread them.
    std::size_t hash = op->id * 2 + strict + reinterpret_cast<std::size_t>(params);
    for (Type* type : types)
        hash = hash * 0x9e3779b97f4a7c15ULL + reinterpret_cast<std::size_t>(type);
    return truncate_hash(mix(0, hash));
}

namespace {

Inferred find_in_shared_cache(const InferenceQuery& query) {
    Guard guard(inference_cache().lock);
    const Inferred* cached = inference_cache().table.find(query);
    return cached ? *cached : Inferred();
}

void insert(const InferenceQuery& query, const Inferred& inferred) {
    if (query.types.size() > MAX_CACHED_INPUTS && query.op->weight == 1) return;
    InferenceKey key{
        query.op, Ref<Params>(const_cast<Params*>(query.params)), query.strict, {}, query.hash()};
    for (Type* type : query.types) key.types.emplace_back(type);
    const std::size_t num_types = key.types.size();
    Table::Entries evicted; // freed outside the lock
    Guard guard(inference_cache().lock);
    if (inference_cache().table.find(query)) return; // another thread was first
    inference_cache().table.insert(std::move(key), inferred, evicted, num_types);
}

void cache_shapes_and_types(const InferenceQuery& query, const Inferred& inferred) {
    cache_dtypes(query, inferred.inference);
    insert(query, inferred);
}

// A slice has its own inference, whose identity distinguishes it from other slices.
bool is_cached_per_type(const InferenceQuery& query) { return query.op->part == Op::slice; }

Inferred infer_or_find(const InferenceQuery& query) {
    Inferred inferred;
    if (!is_cached_per_type(query)) inferred = infer_shape(query);
    return inferred ? inferred : find_in_shared_cache(query);
}

Inferred infer_or_cache(const InferenceQuery& query) {
    Inferred inferred = infer_or_find(query);
    if (!inferred && is_cached_per_type(query) && (inferred = infer_shape(query)))
        insert(query, inferred);
    return inferred;
}

} // namespace

Inferred find_inference(const InferenceQuery& query) {
    if (query.types.size() > ThreadInference::MAX_INPUTS) return infer_or_cache(query);
    ThreadInference& entry = ThreadInferenceCache::get().entry_of(query);
    if (entry.matches(query)) {
        bool revalidate = ThreadInferenceCache::should_revalidate(entry);
        if (revalidate && !infer_or_find(query)) cache_shapes_and_types(query, entry.inferred);
        return entry.inferred;
    }
    Inferred inferred = infer_same_type(query);
    if (!inferred) inferred = infer_or_cache(query);
    if (inferred) entry.put(query, inferred);
    return inferred;
}

void cache_inference(const InferenceQuery& query, const Ref<Inference>& inference) {
    cache_shapes_and_types(query, {inference, inference->results[0]});
}

void drop_inferences_of(const Op* op) {
    ThreadInferenceCache::invalidate_all();
    Table::Entries evicted; // freed outside the lock
    Guard guard(inference_cache().lock);
    inference_cache().table.evict_if([&](const auto& entry) { return entry.key.op == op; },
                                     evicted);
}

std::size_t num_cached_inferences() {
    Guard guard(inference_cache().lock);
    return inference_cache().table.size();
}

void clear_inference_cache() {
    Table::Entries evicted; // freed outside the lock
    ThreadInferenceCache::invalidate_all();
    Guard guard(inference_cache().lock);
    inference_cache().table.clear(evicted);
}

} // namespace tenfold
