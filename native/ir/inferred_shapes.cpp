#include "ir/inferred_shapes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "ir/slice_params.h"
#include "memory/cache_registry.h"
#include "memory/lru_cache.h"
#include "threads/thread_local.h"

namespace tenfold {
namespace {

constexpr std::size_t CAPACITY = 8192, MOST_AXES = 64, WIDEST = 16;
constexpr int64_t MOST_BYTES = int64_t(1) << 62;

using Shape = std::vector<int64_t>;

struct Example {
    Ref<Inference> inference;
    Ref<Params> params; // keeps alive what their bytes, which are in the key, have by identity
};
struct ShapeHash {
    std::size_t operator()(const std::string& key) const {
        return cut(std::hash<std::string>{}(key));
    }
};
using Examples = LruCache<std::string, Example, ShapeHash, std::equal_to<std::string>>;

struct KnownShapes {
    Lock lock; // protects the examples
    Examples examples;
};

KnownShapes* const the_known =
    new KnownShapes; // made when the library is loaded; outlives every Node

[[maybe_unused]] Cache& joined =
    join({"dtypes of results, and loops", CAPACITY, remembered_dtypes, forget_dtypes});

template <class T> void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Everything but the shape; the number of axes where it matters.
uint64_t kind_of(const Type& type, const Op& op) {
    bool axes = !type.weak && (op.shapes == Op::reduced || op.shapes == Op::permuted);
    return type.kind() | uint64_t(axes ? type.shape.size() : 0) << 40;
}

// Of what is taken the Params say no more than the shape.
const Params* known_by(const InferenceQuery& query) {
    return query.op->part == Op::none ? query.params : nullptr;
}

// Everything but shapes.
std::string key_of(const InferenceQuery& query) {
    std::string bytes;
    append(bytes, query.op->id);
    append(bytes, query.strict);
    for (const Type* type : query.types) append(bytes, kind_of(*type, *query.op));
    if (const Params* params = known_by(query)) bytes += params->bytes;
    return bytes;
}

bool covers(const InferenceQuery& query) {
    bool stated = query.op->shapes == Op::stated && query.op->part != Op::taken;
    if (stated || query.types.empty() || query.types.size() > WIDEST) return false;
    const Type* first = nullptr; // operands of two devices are an error
    for (const Type* type : query.types) {
        if (type->weak) continue;
        if (first && (type->device != first->device || type->storage != first->storage))
            return false;
        first = type;
    }
    return first && !(query.params && query.params->moved);
}

// The shape that all have but scalars; null where they differ.
const Shape* common_shape(std::span<Type* const> types) {
    const Shape* shape = nullptr;
    for (const Type* type : types) {
        if (type->weak) continue;
        if (shape && shape != &type->shape && *shape != type->shape) return nullptr;
        shape = &type->shape;
    }
    return shape;
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

// Params of reductions and permutations begin with axes: (( axes ) ...), see
// native/python/type_tables.cpp. Takes them off the bytes; false where one is not below the rank.
bool take_axes(std::string_view& bytes, std::size_t rank, std::vector<std::size_t>& axes) {
    auto integer = [&](std::size_t at) {
        int64_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        return value;
    };
    constexpr std::size_t EACH = 9; // a tag and eight bytes
    if (bytes.size() < 2 * EACH || bytes[0] != '(' || bytes[EACH] != '(') return false;
    int64_t count = integer(EACH + 1);
    if (count < 0 || std::size_t(count) > MOST_AXES || rank > MOST_AXES) return false;
    std::size_t end = EACH * std::size_t(count + 2);
    if (bytes.size() < end) return false;
    for (std::size_t at = 2 * EACH; at < end; at += EACH) {
        int64_t axis = integer(at + 1);
        if (bytes[at] != 'i' || axis < 0 || axis >= int64_t(rank)) return false;
        axes.push_back(std::size_t(axis));
    }
    bytes.remove_prefix(end);
    return true;
}

bool permuted(const Type& type, std::string_view bytes, Shape& shape) {
    std::vector<std::size_t> axes;
    if (!take_axes(bytes, type.shape.size(), axes) || axes.size() != type.shape.size())
        return false;
    for (std::size_t axis : axes) shape.push_back(type.shape[axis]);
    return true;
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

// False where Python's rule is to be asked.
bool shape_of(const InferenceQuery& query, Shape& shape) {
    if (query.op->shapes == Op::broadcast) return broadcast(query.types, shape);
    if (!query.params) return false;
    const Type& type = *query.types[0];
    switch (query.op->shapes) {
    case Op::reduced: return reduced(type, query.params->bytes, shape);
    case Op::permuted: return permuted(type, query.params->bytes, shape);
    default: return taken_shape(*query.params, type, shape);
    }
}

bool fits(const Shape& shape, uint16_t dtype) {
    int64_t left = MOST_BYTES / std::max<int64_t>(dtype_of(dtype).bytes, 1);
    for (int64_t length : shape) left /= std::max<int64_t>(length, 1);
    return left > 0 && shape.size() <= MOST_AXES;
}

// In front of the table each thread has what it asked for last, for few operands.
class NearbyShapes {
  public:
    static constexpr bool INHERITED = true;

    // Null where it is not there, and when it is time to ask the table, where examples age.
    const Ref<Inference>* find(const InferenceQuery& query) {
        forget_if_told();
        Entry& entry = at(query);
        bool found = asked_ && entry.kinds == kinds_ && entry.op == query.op &&
                     entry.params.get() == known_by(query) && entry.strict == query.strict &&
                     entry.width == query.types.size() && ++entry.uses % AGEING != 0;
        return found ? &entry.like : nullptr;
    }

    void put(const InferenceQuery& query, const Ref<Inference>& like) {
        Entry& entry = at(query);
        Ref<Params> params(const_cast<Params*>(known_by(query)));
        if (asked_)
            entry = {query.op, std::move(params), query.strict, query.types.size(), kinds_, like};
    }

    void forget_if_told() {
        // Relaxed: what is found before the new epoch is seen is still right.
        uint64_t now = current_epoch.load(std::memory_order_relaxed);
        if (std::exchange(epoch_, now) != now) entries_ = {};
    }

    static void tell_to_forget() { current_epoch.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t PLACES_LOG = 7, WIDTH = 3, AGEING = 64;
    struct Kinds {
        std::array<uint64_t, WIDTH> of{};
        bool operator==(const Kinds& other) const { // a few words: no call of memcmp
            uint64_t apart = 0;
            for (std::size_t i = 0; i < WIDTH; ++i) apart |= of[i] ^ other.of[i];
            return apart == 0;
        }
    };
    struct Entry {
        const Op* op = nullptr;
        Ref<Params> params;
        bool strict = false;
        std::size_t width = 0;
        Kinds kinds;
        Ref<Inference> like;
        std::size_t uses = 0;
    };

    Entry& at(const InferenceQuery& query) {
        constexpr std::size_t FACTOR = 0x9e3779b97f4a7c15ULL;
        std::size_t width = query.types.size();
        asked_ = width <= WIDTH;
        std::size_t word = query.op->id * 2 + query.strict + std::size_t(known_by(query));
        for (std::size_t i = 0; i < WIDTH; ++i) {
            kinds_.of[i] = asked_ && i < width ? kind_of(*query.types[i], *query.op) : 0;
            word += kinds_.of[i] << 5 * i;
        }
        return entries_[cut(word * FACTOR) >> (64 - PLACES_LOG)];
    }

    static inline std::atomic<uint64_t> current_epoch{0};
    std::array<Entry, std::size_t(1) << PLACES_LOG> entries_;
    Kinds kinds_;        // of the query at hand,
    bool asked_ = false; // if it is one of few operands
    uint64_t epoch_ = 0;
};

Ref<Inference> example_of(const InferenceQuery& query) {
    NearbyShapes& near = ThreadLocal<NearbyShapes>::get();
    if (const Ref<Inference>* like = near.find(query)) return *like;
    std::string key = key_of(query);
    Ref<Inference> like;
    {
        Guard guard(the_known->lock);
        if (const Example* known = the_known->examples.find(key)) like = known->inference;
    }
    if (like) near.put(query, like);
    return like;
}

// One of its own, as what is taken is told apart by its inference.
Inferred own(const Inference& like, Ref<Type> type) {
    auto made = Ref<Inference>::adopt(new Inference);
    made->kind = like.kind;
    made->operands = like.operands;
    made->results.push_back(type);
    return {std::move(made), std::move(type)};
}

} // namespace

bool read_axes(std::string_view bytes, std::size_t rank, ReducedAxes& found) {
    std::vector<std::size_t> axes;
    if (!take_axes(bytes, rank, axes) || bytes.empty()) return false;
    for (std::size_t axis : axes) found.folded |= uint64_t(1) << axis;
    found.keeps = bytes[0] == 'T';
    return found.keeps || bytes[0] == 'F';
}

Inferred infer_shape(const InferenceQuery& query) {
    if (!covers(query)) return {};
    Shape made;
    const Shape* shape = query.op->shapes == Op::broadcast ? common_shape(query.types) : nullptr;
    if (!shape && !shape_of(query, made)) return {};
    if (!shape) shape = &made;
    Ref<Inference> like = example_of(query);
    if (!like || !fits(*shape, like->results[0]->dtype)) return {};
    const Type& type = *like->results[0];
    Ref<Type> result = intern_type({*shape, type.dtype, type.device, type.storage, false});
    if (query.op->part == Op::taken) return own(*like, std::move(result));
    return {std::move(like), std::move(result)};
}

Inferred infer_alike(const InferenceQuery& query) {
    if (query.op->shapes != Op::broadcast) return {};
    Type* only = nullptr;
    for (Type* type : query.types) {
        if (type->weak) continue;
        if (only && only != type) return {};
        only = type;
    }
    const Ref<Inference>* like = only ? ThreadLocal<NearbyShapes>::get().find(query) : nullptr;
    if (!like || (*like)->results[0]->kind() != only->kind()) return {};
    return {*like, Ref<Type>(only)};
}

void remember_dtypes(const InferenceQuery& query, const Ref<Inference>& inference) {
    if (!covers(query) || inference->results.size() != 1) return;
    Examples::Entries fallen; // freed outside the lock
    Ref<Params> params(const_cast<Params*>(query.params));
    Examples& examples = the_known->examples;
    Guard guard(the_known->lock);
    std::string key = key_of(query);
    const Example* first = examples.find(key); // another thread's, or of other shapes
    if (!first) first = &examples.keep(std::move(key), {inference, std::move(params)});
    if (examples.size() > CAPACITY) examples.drop_last(fallen);
    const Ref<Loops>& loops = first->inference->loops;
    if (query.op->shapes == Op::broadcast && !inference->loops) // else others may have it already
        inference->loops = loops ? loops : Ref<Loops>::adopt(new Loops);
}

void forget_dtypes_of(const Op* op) {
    std::string begin;
    append(begin, op->id);    // as in key_of
    Examples::Entries fallen; // freed outside the lock
    NearbyShapes::tell_to_forget();
    ThreadLocal<NearbyShapes>::get().forget_if_told(); // this thread's at once
    Guard guard(the_known->lock);
    the_known->examples.drop_all([&](const auto& entry) { return entry.key.starts_with(begin); },
                                 fallen);
}

std::size_t remembered_dtypes() {
    Guard guard(the_known->lock);
    return the_known->examples.size();
}

void forget_dtypes() {
    Examples fallen;
    NearbyShapes::tell_to_forget();
    ThreadLocal<NearbyShapes>::get().forget_if_told(); // this thread's at once
    Guard guard(the_known->lock);
    fallen.swap(the_known->examples);
}

} // namespace tenfold
