#include "memo.h"

#include <algorithm>
#include <array>

#include "caches.h"
#include "intern.h"
#include "per_thread.h"
#include "recent.h"

namespace tenfold {
namespace {

constexpr std::size_t CAPACITY = 1 << 16;
constexpr std::size_t WIDEST =
    64; // inputs; a wider call is inferred anew, its key would outweigh the rule

struct MemoKey {
    const Op* op;
    Ref<Params> params;
    bool strict;
    std::vector<Ref<Type>> types;
    std::size_t hash;

    bool same(const MemoQuery& query) const {
        return op == query.op && params.get() == query.params && strict == query.strict &&
               std::equal(types.begin(), types.end(), query.types.begin(), query.types.end(),
                          [](const Ref<Type>& a, Type* b) { return a.get() == b; });
    }
};

struct Hash {
    std::size_t operator()(const MemoKey& key) const { return key.hash; }
    std::size_t operator()(const MemoQuery& query) const { return query.hash(); }
};

struct Same {
    bool operator()(const MemoQuery& query, const MemoKey& key) const { return key.same(query); }
};

using Table = Recent<MemoKey, Ref<Inference>, Hash, Same>;

struct Memo {
    Lock lock; // protects the table
    Table table;
};

// In front of the memo each thread has a small direct-mapped table, so that the common case takes
// no lock. Its entries hold their Types: a pointer in it cannot be taken over by another Type.
struct Front {
    static constexpr bool INHERITED = true;
    static constexpr std::size_t PLACES = 256, WIDTH = 3, AGEING = 64;
    struct Entry {
        const Op* op = nullptr;
        Ref<Params> params;
        bool strict = false;
        std::size_t width = 0;
        std::array<Ref<Type>, WIDTH> types;
        Ref<Inference> inference;
        std::size_t uses = 0;
    };
    std::array<Entry, PLACES> entries;
    uint64_t epoch = 0;

    Entry& at(std::size_t hash) {
        // Relaxed: what a thread recalls before it sees a new epoch is still right.
        uint64_t now = current_epoch.load(std::memory_order_relaxed);
        if (epoch != now) {
            entries = {};
            epoch = now;
        }
        return entries[hash % PLACES];
    }

    static bool matches(const Entry& entry, const MemoQuery& query) {
        if (entry.op != query.op || entry.params.get() != query.params ||
            entry.strict != query.strict || entry.width != query.types.size())
            return false;
        for (std::size_t i = 0; i < entry.width; ++i)
            if (entry.types[i].get() != query.types[i]) return false;
        return true;
    }

    void put(std::size_t hash, const MemoQuery& query, const Ref<Inference>& inference) {
        if (query.types.size() > WIDTH) return;
        Entry& entry = at(hash);
        entry.op = query.op;
        entry.params = Ref<Params>(const_cast<Params*>(query.params));
        entry.strict = query.strict;
        entry.width = query.types.size();
        for (std::size_t i = 0; i < entry.width; ++i) entry.types[i] = Ref<Type>(query.types[i]);
        entry.inference = inference;
    }

    static inline std::atomic<uint64_t> current_epoch{0}; // raised when the memo is cleared
};

Memo* const the_memo = new Memo; // made when the library is loaded; outlives every static object

Memo& memo() { return *the_memo; }

[[maybe_unused]] Cache& joined =
    join({"inferred types", CAPACITY, remembered_inferences, clear_memo});

} // namespace

std::size_t MemoQuery::hash() const {
    // Pointers differ in their middle bits: a multiply per word and one mix at the end spread them.
    std::size_t hash = op->id * 2 + strict + reinterpret_cast<std::size_t>(params);
    for (Type* type : types)
        hash = hash * 0x9e3779b97f4a7c15ULL + reinterpret_cast<std::size_t>(type);
    return cut(mix(0, hash));
}

namespace {

Ref<Inference> recall_shared(const MemoQuery& query) {
    Guard guard(memo().lock);
    const Ref<Inference>* found = memo().table.find(query);
    return found ? *found : Ref<Inference>();
}

} // namespace

Ref<Inference> recall(const MemoQuery& query) {
    if (query.types.size() > Front::WIDTH) return recall_shared(query);
    std::size_t hash = query.hash();
    Front& front = PerThread<Front>::get();
    Front::Entry& entry = front.at(hash);
    if (Front::matches(entry, query)) { // the memo is told now and then: there entries age
        bool told = ++entry.uses % Front::AGEING == 0;
        if (told && !recall_shared(query)) remember(query, entry.inference);
        return entry.inference;
    }
    Ref<Inference> inference = recall_shared(query);
    if (inference) front.put(hash, query, inference);
    return inference;
}

void remember(const MemoQuery& query, Ref<Inference> inference) {
    if (query.types.size() > WIDEST) return;
    MemoKey key{
        query.op, Ref<Params>(const_cast<Params*>(query.params)), query.strict, {}, query.hash()};
    for (Type* type : query.types) key.types.emplace_back(type);
    Table::Entries fallen; // freed outside the lock
    Guard guard(memo().lock);
    if (memo().table.find(query)) return; // another thread was first
    memo().table.keep(std::move(key), std::move(inference));
    if (memo().table.size() > CAPACITY) memo().table.drop_last(fallen);
}

std::size_t remembered_inferences() {
    Guard guard(memo().lock);
    return memo().table.size();
}

void clear_memo() {
    Table fallen;
    Front::current_epoch.fetch_add(1, std::memory_order_relaxed);
    Guard guard(memo().lock);
    fallen.swap(memo().table);
}

} // namespace tenfold
