#include "ir/params.h"

#include <functional>

#include "ir/intern.h"
#include "memory/deferred_decref.h"

namespace tenfold {
namespace {

// Made when the library is loaded; outlives every Params.
Interner<Params, std::string_view>* const the_interner = new Interner<Params, std::string_view>;

Interner<Params, std::string_view>& interner() { return *the_interner; }

[[maybe_unused]] Cache& joined =
    join({"parameters", 0, [] { return interner().size(); }, [] { interner().rehash(); }});

} // namespace

Params* Params::create(std::string_view key, std::size_t hash) {
    auto* params = new Params;
    params->hash = hash;
    params->bytes = key;
    return params;
}

void Params::destroy(Params* params) {
    release_later(params->python);
    if (params->moved) return destroy_moved(params);
    interner().remove(params);
    destroy_starts(params->starts.load(std::memory_order_acquire), *params);
    delete params;
}

Ref<Params> intern_params(std::string_view bytes) {
    return interner().intern(bytes, std::hash<std::string_view>{}(bytes));
}

} // namespace tenfold
