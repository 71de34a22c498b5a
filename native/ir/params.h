// Params: the interned parameters of an operation (axes, flags, indices). `bytes` is their
// canonical form, on which equality rests. A part with another offset than its pattern is the
// exception: it has Starts in its stead (ir/slice_params.h). `python` is the object that rules and
// devices get.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "memory/ref_counted.h"

namespace tenfold {

struct Starts; // see ir/slice_params.h

struct Params {
    static constexpr bool INTERNED = true;
    std::atomic<uint32_t> references{1};
    std::size_t hash = 0;
    Params* next = nullptr; // the Interner's
    std::string bytes;
    bool has_starts = false; // a part that is told by its starts, and not interned
    // Owned: one Python reference, released through the deferred decrefs. Null until Python asks
    // for parameters that native code has made; written under the GIL.
    mutable void* python = nullptr;
    mutable std::atomic<const Starts*> starts{nullptr}; // owned

    bool equals(std::string_view key) const { return bytes == key; }
    static Params* create(std::string_view key, std::size_t hash);
    static void destroy(Params* params);
};

Ref<Params> intern_params(std::string_view bytes);
void destroy_starts(const Starts* starts, const Params& owner);
void destroy_offset_params(Params* params);

} // namespace tenfold
