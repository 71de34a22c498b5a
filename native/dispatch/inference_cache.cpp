#include "dispatch/inference_cache.h"

#include <algorithm>
#include <array>

#include "ir/inferred_shapes.h"
#include "ir/intern.h"
#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

constexpr std::size_t CAPACITY = 1 << 16;
constexpr std::size_t WIDEST =
    64; // inputs; a wider call is inferred anew, its key would outweigh the rule

struct InferenceKey {
    const Op* op;
    Ref<Params> params;
    bool strict;
    std::vector<Ref<Type>> types;
    std::size_t hash;

    bool same(const InferenceQuery& query) const {
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
        return key.same(query);
    }
};

using Table = LruCache<InferenceKey, Inferred, InferenceHash, SameInference>;

struct InferenceCache {
    Lock lock; // protects the table
    Table table;
};

// In front of the memo each thread has a small direct-mapped table, so that the common case takes
// no lock. Its entries hold their Types: a pointer in it cannot be taken over by another Type.
struct ThreadInferenceCache {
    static constexpr bool INHERITED = true;
    static constexpr std::size_t PLACES = 256, WIDTH = 3, AGEING = 64;
    struct Entry {
        const Op* op = nullptr;
        Ref<Params> params;
        bool strict = false;
        std::size_t width = 0;
        std::array<Ref<Type>, WIDTH> types;
        Inferred inferred;
        std::size_t uses = 0;

        void put(const InferenceQuery& query, const Inferred& found) {
            op = query.op;
            params = Ref<Params>(const_cast<Params*>(query.params));
            strict = query.strict;
            width = query.types.size();
            for (std::size_t i = 0; i < width; ++i) types[i] = Ref<Type>(query.types[i]);
            inferred = found;
        }
    };
    std::array<Entry, PLACES> entries;
    uint64_t epoch = 0;

    Entry& at(std::size_t hash) {
        forget_if_told();
        return entries[hash % PLACES];
    }

    void forget_if_told() {
        // Relaxed: what a thread recalls before it sees a new epoch is still right.
        uint64_t now = current_epoch.load(std::memory_order_relaxed);
        if (std::exchange(epoch, now) != now) entries = {};
    }

    static bool matches(const Entry& entry, const InferenceQuery& query) {
        if (entry.op != query.op || entry.params.get() != query.params ||
            entry.strict != query.strict || entry.width != query.types.size())
            return false;
        for (std::size_t i = 0; i < entry.width; ++i)
            if (entry.types[i].get() != query.types[i]) return false;
        return true;
    }

    static void tell_to_forget() {
        current_epoch.fetch_add(1, std::memory_order_relaxed);
        ThreadLocal<ThreadInferenceCache>::get().forget_if_told(); // this thread's at once
    }

    static inline std::atomic<uint64_t> current_epoch{0}; // raised when the memo loses entries
};

InferenceCache* const the_memo =
    new InferenceCache; // made when the library is loaded; outlives every static object

InferenceCache& memo() { return *the_memo; }

[[maybe_unused]] Cache& joined =
    join({"inferred types", CAPACITY, remembered_inferences, clear_memo});

} // namespace

std::size_t InferenceQuery::hash() const {
    // Pointers differ in their middle bits: a multiply per word and one mix at the end spread them.
    std::size_t hash = op->id * 2 + strict + reinterpret_cast<std::size_t>(params);
    for (Type* type : types)
        hash = hash * 0x9e3779b97f4a7c15ULL + reinterpret_cast<std::size_t>(type);
    return cut(mix(0, hash));
}

namespace {

Inferred recall_shared(const InferenceQuery& query) {
    Guard guard(memo().lock);
    const Inferred* found = memo().table.find(query);
    return found ? *found : Inferred();
}

void keep(const InferenceQuery& query, const Inferred& inferred) {
    if (query.types.size() > WIDEST && query.op->weight == 1) return;
    InferenceKey key{
        query.op, Ref<Params>(const_cast<Params*>(query.params)), query.strict, {}, query.hash()};
    for (Type* type : query.types) key.types.emplace_back(type);
    Table::Entries fallen; // freed outside the lock
    Guard guard(memo().lock);
    if (memo().table.find(query)) return; // another thread was first
    memo().table.keep(std::move(key), inferred);
    if (memo().table.size() > CAPACITY) memo().table.drop_last(fallen);
}

void remember_both(const InferenceQuery& query, const Inferred& inferred) {
    remember_dtypes(query, inferred.inference);
    keep(query, inferred);
}

// What is taken has an inference of its own, by which it is told apart from other picks.
bool has_own(const InferenceQuery& query) { return query.op->part == Op::taken; }

Inferred known(const InferenceQuery& query) {
    Inferred found;
    if (!has_own(query)) found = infer_shape(query);
    return found ? found : recall_shared(query);
}

Inferred ask(const InferenceQuery& query) {
    Inferred found = known(query);
    if (!found && has_own(query) && (found = infer_shape(query))) keep(query, found);
    return found;
}

} // namespace

Inferred recall(const InferenceQuery& query) {
    if (query.types.size() > ThreadInferenceCache::WIDTH) return ask(query);
    ThreadInferenceCache& front = ThreadLocal<ThreadInferenceCache>::get();
    ThreadInferenceCache::Entry& entry = front.at(query.hash());
    if (ThreadInferenceCache::matches(
            entry, query)) { // the tables are told now and then: there entries age
        bool told = ++entry.uses % ThreadInferenceCache::AGEING == 0;
        if (told && !known(query)) remember_both(query, entry.inferred);
        return entry.inferred;
    }
    Inferred found = infer_alike(query);
    if (!found) found = ask(query);
    if (found) entry.put(query, found);
    return found;
}

void remember(const InferenceQuery& query, const Ref<Inference>& inference) {
    remember_both(query, {inference, inference->results[0]});
}

void forget_inferences(const Op* op) {
    ThreadInferenceCache::tell_to_forget();
    Table::Entries fallen; // freed outside the lock
    Guard guard(memo().lock);
    memo().table.drop_all([&](const auto& entry) { return entry.key.op == op; }, fallen);
}

std::size_t remembered_inferences() {
    Guard guard(memo().lock);
    return memo().table.size();
}

void clear_memo() {
    Table fallen;
    ThreadInferenceCache::tell_to_forget();
    Guard guard(memo().lock);
    fallen.swap(memo().table);
}

} // namespace tenfold
