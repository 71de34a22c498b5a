#include "memory/cache_registry.h"

namespace tenfold {
namespace {

std::list<Cache>& cache_list() {
    static auto* caches = new std::list<Cache>; // never destroyed: functions end after it
    return *caches;
}

} // namespace

Cache& register_cache(const Cache& cache) { return cache_list().emplace_back(cache); }

const std::list<Cache>& registered_caches() { return cache_list(); }

void clear_caches() {
    for (const Cache& cache : cache_list()) cache.clear();
}

void truncate_hashes(int bits) {
    clear_caches(); // whatever leaves a table is looked for there
    hash_mask.store(bits < 64 ? (std::size_t(1) << bits) - 1 : ~std::size_t(0));
    clear_caches();
}

} // namespace tenfold
