#include "shapes.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "lock.h"

namespace tenfold {
namespace {

constexpr std::size_t CAPACITY = 8192, MOST_AXES = 64, WIDEST = 16;
constexpr int64_t MOST_BYTES = int64_t(1) << 62;

using Shape = std::vector<int64_t>;

struct Example {
    Ref<Inference> inference;
    Ref<Params> params; // keeps alive what their bytes, which are in the key, have by identity
};
using Examples = std::unordered_map<std::string, Example>;

struct Known {
    Lock lock;           // protects everything here
    Examples young, old; // two generations, as in the memo

    // Returns the generation that falls out, so that it is freed outside the lock.
    Examples age() {
        if (young.size() < CAPACITY / 2) return {};
        return std::exchange(old, std::exchange(young, {}));
    }
};

Known* const the_known = new Known; // made when the library is loaded; outlives every Node

template <class T> void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Everything but shapes.
std::string key_of(const MemoQuery& query) {
    std::string bytes;
    append(bytes, query.op->id);
    append(bytes, query.strict);
    for (const Type* type : query.types) {
        append(bytes, type->dtype);
        append(bytes, type->device);
        append(bytes, type->storage);
        append(bytes, type->weak);
        append(bytes, type->weak || query.op->shapes == Op::broadcast ? std::size_t(0)
                                                                      : type->shape.size());
    }
    if (query.params) bytes += query.params->bytes;
    return bytes;
}

bool covers(const MemoQuery& query) {
    if (query.op->shapes == Op::stated || query.types.empty() || query.types.size() > WIDEST)
        return false;
    const Type* first = nullptr; // operands of two devices are an error
    for (const Type* type : query.types) {
        if (type->weak) continue;
        if (first && (type->device != first->device || type->storage != first->storage))
            return false;
        first = type;
    }
    return first && !(query.params && query.params->moved);
}

// False where they do not broadcast.
bool broadcast(std::span<Type* const> types, Shape& shape) {
    for (const Type* type : types) {
        const Shape& own = type->shape;
        if (own.size() > shape.size()) shape.insert(shape.begin(), own.size() - shape.size(), 1);
        auto place = shape.end() - std::ptrdiff_t(own.size());
        for (int64_t length : own) {
            if (length != 1 && *place != 1 && length != *place) return false;
            if (length != 1) *place = length;
            ++place;
        }
    }
    return true;
}

constexpr std::size_t EACH = 9; // bytes of an integer in Params: a tag, and itself

int64_t integer(std::string_view bytes, std::size_t at) {
    int64_t value = 0;
    std::memcpy(&value, bytes.data() + at + 1, sizeof value);
    return value;
}

bool reduced(const Type& type, std::string_view bytes, Shape& shape) {
    ReducedAxes axes;
    if (!read_axes(bytes, type.shape.size(), axes)) return false;
    for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
        bool folded = axes.folds(axis);
        if (folded && type.shape[axis] == 0) return false; // there may be no identity
        if (!folded || axes.keeps) shape.push_back(folded ? 1 : type.shape[axis]);
    }
    return true;
}

// Params that are the axes in another order: (( axes )).
bool permuted(const Type& type, std::string_view bytes, Shape& shape) {
    std::size_t rank = type.shape.size();
    if (bytes.size() != EACH * (rank + 2)) return false;
    for (std::size_t at = 2 * EACH; at < bytes.size(); at += EACH) {
        int64_t axis = integer(bytes, at);
        if (bytes[at] != 'i' || axis < 0 || axis >= int64_t(rank)) return false;
        shape.push_back(type.shape[std::size_t(axis)]);
    }
    return true;
}

bool shape_of(const MemoQuery& query, Shape& shape) {
    if (query.op->shapes == Op::broadcast) return broadcast(query.types, shape);
    if (!query.params) return false;
    auto follow = query.op->shapes == Op::reduced ? reduced : permuted;
    return follow(*query.types[0], query.params->bytes, shape);
}

bool fits(const Shape& shape, uint16_t dtype) {
    int64_t left = MOST_BYTES / std::max<int64_t>(dtype_of(dtype).bytes, 1);
    for (int64_t length : shape) left /= std::max<int64_t>(length, 1);
    return left > 0 && shape.size() <= MOST_AXES;
}

} // namespace

// Params of reductions begin with the axes, in rising order, and whether they are kept:
// (( axes ) keepdims ...), see native/bindings/tables.cpp.
bool read_axes(std::string_view bytes, std::size_t rank, ReducedAxes& found) {
    if (bytes.size() < 2 * EACH + 1 || bytes[0] != '(' || bytes[EACH] != '(') return false;
    int64_t axes = integer(bytes, EACH);
    if (axes < 0 || std::size_t(axes) > MOST_AXES || rank > MOST_AXES) return false;
    std::size_t end = EACH * std::size_t(axes + 2);
    if (bytes.size() <= end) return false;
    found.keeps = bytes[end] == 'T';
    if (!found.keeps && bytes[end] != 'F') return false;
    for (std::size_t at = 2 * EACH; at < end; at += EACH) {
        int64_t axis = integer(bytes, at);
        if (bytes[at] != 'i' || axis < 0 || axis >= int64_t(rank)) return false;
        found.folded |= uint64_t(1) << axis;
    }
    return true;
}

Ref<Inference> infer_shape(const MemoQuery& query) {
    if (!covers(query)) return {};
    Shape shape;
    if (!shape_of(query, shape)) return {};
    Ref<Inference> like;
    {
        std::string key = key_of(query);
        Examples fallen;
        Guard guard(the_known->lock);
        auto found = the_known->young.find(key);
        if (found != the_known->young.end()) {
            like = found->second.inference;
        } else if ((found = the_known->old.find(key)) != the_known->old.end()) {
            like = found->second.inference;
            the_known->young.insert(the_known->old.extract(found));
            fallen = the_known->age();
        }
    }
    if (!like || !fits(shape, like->results[0]->dtype)) return {};
    const Type& type = *like->results[0];
    auto made = Ref<Inference>::adopt(new Inference);
    made->kind = like->kind;
    made->operands = like->operands;
    made->loops = like->loops;
    made->results.push_back(intern_type({shape, type.dtype, type.device, type.storage, false}));
    return made;
}

void remember_dtypes(const MemoQuery& query, const Ref<Inference>& inference) {
    if (!covers(query) || inference->results.size() != 1) return;
    Examples fallen; // freed outside the lock
    Ref<Params> params(const_cast<Params*>(query.params));
    Guard guard(the_known->lock);
    auto [entry, fresh] =
        the_known->young.try_emplace(key_of(query), Example{inference, std::move(params)});
    if (query.op->shapes == Op::broadcast)
        inference->loops = fresh ? Ref<Loops>::adopt(new Loops) : entry->second.inference->loops;
    fallen = the_known->age();
}

std::size_t remembered_dtypes() {
    Guard guard(the_known->lock);
    return the_known->young.size() + the_known->old.size();
}

void forget_dtypes() {
    Examples young, old;
    Guard guard(the_known->lock);
    young.swap(the_known->young);
    old.swap(the_known->old);
}

} // namespace tenfold
