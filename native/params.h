// Params: the interned parameters of an operation (axes, flags, indices). `bytes` is their
// canonical form, on which equality rests; `python` is the object that rules and devices are given.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "reference.h"

namespace tenfold {

struct Params {
    static constexpr bool INTERNED = true;
    std::atomic<uint32_t> references{1};
    std::size_t hash = 0;
    std::string bytes;
    void* python = nullptr; // owned: one Python reference, given back through the release list

    bool same(std::string_view key) const { return bytes == key; }
    static Params* create(std::string_view key, std::size_t hash);
    static void destroy(Params* params);
};

Ref<Params> intern_params(std::string_view bytes);

} // namespace tenfold
