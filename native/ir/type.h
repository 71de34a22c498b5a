// Type: the interned (shape, dtype, device, storage kind, structure) of a value. Dtypes, devices,
// storage kinds and structures are small numbers here; Python's tables define them. A weak Type is
// a Python scalar's. A structure says what is known of the elements of a matrix
// (core/structure.py); the Value is dense, and its own Type has none.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/ref_counted.h"

namespace tenfold {

struct DType {
    char kind = 0; // 'b' bool, 'i' signed, 'u' unsigned, 'f' float, 'c' complex
    uint32_t bytes = 0;
};

inline bool is_integer(const DType& dtype) { return dtype.kind == 'i' || dtype.kind == 'u'; }
// Calls a function with a 0 of the C++ type of an integer dtype.
template <class F> auto with_integer_type(const DType& dtype, F&& function) {
    const bool is_signed = dtype.kind == 'i';
    switch (dtype.bytes) {
    case 1: return is_signed ? function(int8_t()) : function(uint8_t());
    case 2: return is_signed ? function(int16_t()) : function(uint16_t());
    case 4: return is_signed ? function(int32_t()) : function(uint32_t());
    default: return is_signed ? function(int64_t()) : function(uint64_t());
    }
}

struct TypeKey {
    std::span<const int64_t> shape;
    uint16_t dtype = 0;
    uint8_t device = 0;
    uint8_t storage = 0;
    bool weak = false;
    uint16_t structure = 0;
};

struct Type {
    static constexpr bool INTERNED = true;
    std::atomic<uint32_t> references{1};
    uint16_t dtype = 0;
    uint8_t device = 0;
    uint8_t storage = 0;
    bool weak = false;
    uint16_t structure = 0;
    std::size_t hash = 0;
    Type* next = nullptr; // the Interner's
    std::vector<int64_t> shape;

    int64_t size() const; // elements
    std::size_t bytes() const;
    // All but the shape.
    uint64_t kind() const {
        return uint64_t(dtype) | uint64_t(device) << 16 | uint64_t(storage) << 24 |
               uint64_t(weak) << 32 | uint64_t(structure) << 48;
    }
    bool has_form(const Type& other) const; // equal but for the structure
    bool equals(const TypeKey& key) const;
    static Type* create(const TypeKey& key, std::size_t hash);
    static void destroy(Type* type);
};

// The strides of C order, in bytes; and whether those of the axes from `first_axis` on are such.
std::vector<int64_t> c_order_strides(const Type& type);
bool is_c_order(const Type& type, std::span<const int64_t> strides, std::size_t first_axis = 0);

Ref<Type> intern_type(const TypeKey& key);
std::size_t live_types();

constexpr std::size_t MAX_DTYPES = 64;
void declare_dtype(uint16_t id, DType dtype);
const DType& dtype_of(uint16_t id);

} // namespace tenfold
