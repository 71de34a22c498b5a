#include "memory/cache_registry.h"

namespace tenfold {
namespace {

std::list<Cache>& table() {
    static auto* caches = new std::list<Cache>; // never destroyed: functions end after it
    return *caches;
}

} // namespace

Cache& join(const Cache& cache) { return table().emplace_back(cache); }

const std::list<Cache>& known_caches() { return table(); }

void forget_caches() {
    for (const Cache& cache : table()) cache.forget();
}

void cut_hashes(int bits) {
    forget_caches(); // whatever leaves a table is looked for there
    hash_mask.store(bits < 64 ? (std::size_t(1) << bits) - 1 : ~std::size_t(0));
    forget_caches();
}

} // namespace tenfold
