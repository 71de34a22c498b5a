// Params: the interned parameters of an operation (axes, flags, indices). `bytes` is their
// canonical form, on which equality rests. A slice with another offset than its pattern is the
// exception: it has Starts in its stead (ir/index_map.h). `python` is the object that rules and
// devices get. What native rules need of it is here as data.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "memory/ref_counted.h"

namespace tenfold {

struct Starts; // see ir/index_map.h

struct Params {
    static constexpr bool INTERNED = true;
    std::atomic<uint32_t> references{1};
    std::size_t hash = 0;
    Params* next = nullptr; // the Interner's
    std::string bytes;
    bool has_starts = false; // a slice that is told by its starts, and not interned
    // Owned: one Python reference, released through the deferred decrefs. Null until Python asks
    // for parameters that native code has made; written under the GIL.
    mutable void* python = nullptr;
    mutable std::atomic<const Starts*> starts{nullptr}; // starts of a slice: owned
    // Axes of a reduction or a permutation, or the number of one of several results. Written
    // under the GIL before a node has them.
    std::vector<int64_t> axes;
    bool has_axes = false, keepdims = false;

    bool equals(std::string_view key) const { return bytes == key; }
    static Params* create(std::string_view key, std::size_t hash);
    [[gnu::noinline]] static void destroy(Params* params);
};

Ref<Params> intern_params(std::string_view bytes);
void destroy_starts(const Starts* starts);
void destroy_offset_params(Params* params);

} // namespace tenfold
