#include "jit/processor.h"

#include <cpuid.h>
#include <utility>

namespace tenfold {
namespace {

struct Registers {
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// At load: on a virtual machine each question to the processor costs microseconds.
const uint32_t max_leaf = __get_cpuid_max(0, nullptr);
const uint32_t max_extended_leaf = __get_cpuid_max(0x80000000, nullptr);

// Zeros where the processor has no such leaf.
Registers cpuid(uint32_t leaf, uint32_t part = 0) {
    Registers r;
    if (leaf <= (leaf & 0x80000000 ? max_extended_leaf : max_leaf))
        __cpuid_count(leaf, part, r.eax, r.ebx, r.ecx, r.edx);
    return r;
}

// The register sets that the system saves for a thread. Without its support AVX is unusable,
// whatever the processor.
uint64_t enabled_xsave_features() {
    constexpr uint32_t OSXSAVE = 1u << 27;
    if (!(cpuid(1).ecx & OSXSAVE)) return 0;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
}

} // namespace

// The levels of the System V ABI for x86-64. Not by `__builtin_cpu_supports`, which answers no for
// them where the runtime is that of Zig.
int processor_level() {
    auto has = [](uint32_t word, auto... bits) { return (... && (word >> bits & 1)); };
    const Registers model = cpuid(1), features = cpuid(7), extended = cpuid(0x80000001);
    const bool is_v2 = has(model.ecx, 0, 9, 13, 19, 20, 23) && has(extended.ecx, 0);
    if (!is_v2) return 1;
    const uint64_t saved = enabled_xsave_features();
    constexpr uint64_t AVX = 0x6, AVX512 = 0xe6;
    const bool is_v3 = has(model.ecx, 12, 22, 27, 28, 29) && has(features.ebx, 3, 5, 8) &&
                       has(extended.ecx, 5) && (saved & AVX) == AVX;
    if (!is_v3) return 2;
    return has(features.ebx, 16, 17, 28, 30, 31) && (saved & AVX512) == AVX512 ? 4 : 3;
}

std::vector<uint32_t> processor_identity() {
    // Intel, Software Developer's Manual, vol. 2A, CPUID; AMD, manual 24594, appendix E. The
    // identity omits fields that differ per core (leaf 1's ebx) or over time (leaf 0xd's). It also
    // omits the size of otherwise equal machines (leaf 0x80000008's ecx).
    Registers vendor = cpuid(0), model = cpuid(1);
    std::vector<uint32_t> identity{vendor.ebx, vendor.ecx, vendor.edx,
                                   model.eax,  model.ecx,  model.edx};
    for (auto [leaf, part] : {std::pair{7u, 0u},
                              {7u, 1u},
                              {7u, 2u},
                              {0x14u, 0u},
                              {0x19u, 0u},
                              {0x24u, 0u},
                              {0x80000001u, 0u}}) {
        Registers r = cpuid(leaf, part);
        identity.insert(identity.end(), {r.eax, r.ebx, r.ecx, r.edx});
    }
    identity.insert(identity.end(), {cpuid(0xd, 1).eax, cpuid(0x80000008).ebx});
    uint64_t xsave_features = enabled_xsave_features();
    identity.insert(identity.end(), {uint32_t(xsave_features), uint32_t(xsave_features >> 32)});
    return identity;
}

} // namespace tenfold
