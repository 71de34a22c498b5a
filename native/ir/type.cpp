#include "ir/type.h"

#include <algorithm>
#include <array>

#include "ir/intern.h"

namespace tenfold {
namespace {

// Made when the library is loaded; outlives every Type.
Interner<Type, TypeKey>* const type_interner_instance = new Interner<Type, TypeKey>;

Interner<Type, TypeKey>& type_interner() { return *type_interner_instance; }

[[maybe_unused]] Cache& registered =
    register_cache({"types", "interning: equal Types are one object", 0, live_types,
                    [] { type_interner().rehash(); }});

std::array<DType, MAX_DTYPES>& dtypes() {
    static std::array<DType, MAX_DTYPES> table{};
    return table;
}

} // namespace

int64_t Type::size() const {
    int64_t product = 1;
    for (int64_t length : shape) product *= length;
    return product;
}

std::size_t Type::bytes() const { return std::size_t(size()) * dtype_of(dtype).bytes; }

bool Type::equals(const TypeKey& key) const {
    return dtype == key.dtype && device == key.device && storage == key.storage &&
           weak == key.weak && structure == key.structure &&
           std::equal(shape.begin(), shape.end(), key.shape.begin(), key.shape.end());
}

bool Type::has_form(const Type& other) const {
    constexpr uint64_t WITHOUT_STRUCTURE = (uint64_t(1) << 48) - 1;
    return this == &other ||
           (((kind() ^ other.kind()) & WITHOUT_STRUCTURE) == 0 && shape == other.shape);
}

Type* Type::create(const TypeKey& key, std::size_t hash) {
    auto* type = new Type;
    type->dtype = key.dtype;
    type->device = key.device;
    type->storage = key.storage;
    type->weak = key.weak;
    type->structure = key.structure;
    type->hash = hash;
    type->shape.assign(key.shape.begin(), key.shape.end());
    return type;
}

void Type::destroy(Type* type) {
    type_interner().remove(type);
    delete type;
}

std::vector<int64_t> c_order_strides(const Type& type) {
    std::vector<int64_t> strides(type.shape.size());
    int64_t stride = dtype_of(type.dtype).bytes;
    for (std::size_t axis = strides.size(); axis-- > 0; stride *= type.shape[axis])
        strides[axis] = stride;
    return strides;
}

bool is_c_order(const Type& type, std::span<const int64_t> strides, std::size_t first_axis) {
    int64_t stride = dtype_of(type.dtype).bytes;
    for (std::size_t axis = strides.size(); axis-- > first_axis; stride *= type.shape[axis])
        if (type.shape[axis] > 1 && strides[axis] != stride) return false;
    return true;
}

Ref<Type> intern_type(const TypeKey& key) {
    std::size_t hash =
        mix(key.dtype, (std::size_t(key.device) << 16) | (std::size_t(key.storage) << 8) |
                           (std::size_t(key.structure) << 24) | key.weak);
    for (int64_t length : key.shape) hash = mix(hash, std::size_t(length));
    return type_interner().intern(key, hash);
}

std::size_t live_types() { return type_interner().size(); }

void declare_dtype(uint16_t id, DType dtype) { dtypes().at(id) = dtype; }

const DType& dtype_of(uint16_t id) { return dtypes()[id]; }

} // namespace tenfold
