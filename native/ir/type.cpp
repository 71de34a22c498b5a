#include "ir/type.h"

#include <algorithm>
#include <array>

#include "ir/intern.h"

namespace tenfold {
namespace {

// Made when the library is loaded; outlives every Type.
Interner<Type, TypeKey>* const the_types = new Interner<Type, TypeKey>;

Interner<Type, TypeKey>& types() { return *the_types; }

[[maybe_unused]] Cache& joined = join({"types", 0, live_types, [] { types().rehash(); }});

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

bool Type::same(const TypeKey& key) const {
    return dtype == key.dtype && device == key.device && storage == key.storage &&
           weak == key.weak &&
           std::equal(shape.begin(), shape.end(), key.shape.begin(), key.shape.end());
}

Type* Type::create(const TypeKey& key, std::size_t hash) {
    auto* type = new Type;
    type->dtype = key.dtype;
    type->device = key.device;
    type->storage = key.storage;
    type->weak = key.weak;
    type->hash = hash;
    type->shape.assign(key.shape.begin(), key.shape.end());
    return type;
}

void Type::destroy(Type* type) {
    types().remove(type);
    delete type;
}

Ref<Type> intern_type(const TypeKey& key) {
    std::size_t hash = mix(key.dtype, (std::size_t(key.device) << 16) |
                                          (std::size_t(key.storage) << 8) | key.weak);
    for (int64_t length : key.shape) hash = mix(hash, std::size_t(length));
    return types().intern(key, hash);
}

std::size_t live_types() { return types().size(); }

void declare_dtype(uint16_t id, DType dtype) { dtypes().at(id) = dtype; }

const DType& dtype_of(uint16_t id) { return dtypes()[id]; }

} // namespace tenfold
