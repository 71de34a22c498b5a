#include "ir/params.h"

#include <functional>

#include "ir/intern.h"
#include "memory/deferred_decref.h"

namespace tenfold {
namespace {

// Made when the library is loaded; outlives every Params.
Interner<Params, std::string_view>* const interner_instance =
    new Interner<Params, std::string_view>;

Interner<Params, std::string_view>& interner() { return *interner_instance; }

[[maybe_unused]] Cache& registered =
    register_cache({"parameters", "interning: equal Params are one object", 0,
                    [] { return interner().size(); }, [] { interner().rehash(); }});

} // namespace

Params* Params::create(std::string_view key, std::size_t hash) {
    auto* params = new Params;
    params->hash = hash;
    params->bytes = key;
    return params;
}

void Params::destroy(Params* params) {
    defer_decref(params->python);
    if (params->has_starts) return destroy_offset_params(params);
    interner().remove(params);
    destroy_starts(params->starts.load(std::memory_order_acquire));
    delete params;
}

Ref<Params> intern_params(std::string_view bytes) {
    return interner().intern(bytes, std::hash<std::string_view>{}(bytes));
}

} // namespace tenfold
