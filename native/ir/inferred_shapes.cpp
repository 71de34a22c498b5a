#include "ir/inferred_shapes.h"

#include <algorithm>
#include <array>
#include <string>

#include "ir/index_map.h"
#include "memory/cache_registry.h"
#include "memory/direct_mapped.h"
#include "memory/lru_cache.h"

namespace tenfold {
namespace {

constexpr std::size_t CAPACITY = 8192, MAX_AXES = 64, MAX_INPUTS = 16;
constexpr int64_t MAX_BYTES = int64_t(1) << 62;

using Shape = std::vector<int64_t>;

struct Example {
    Ref<Inference> inference;
    Ref<Params> params; // hold the objects that count by identity in `bytes`, and so in the key
};
struct ShapeHash {
    std::size_t operator()(const std::string& key) const {
        return truncate_hash(std::hash<std::string>{}(key));
    }
};
using Examples = LruCache<std::string, Example, ShapeHash, std::equal_to<std::string>>;

struct ExampleCache {
    Lock lock; // protects the examples
    Examples examples{CAPACITY};
};

ExampleCache* const example_cache =
    new ExampleCache; // made when the library is loaded; outlives every Node

[[maybe_unused]] Cache& registered =
    register_cache({"result dtypes", "other lengths need no rule in Python", CAPACITY,
                    num_cached_dtypes, clear_dtype_cache});

template <class T> void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Everything but the shape; the number of axes where it matters.
uint64_t kind_of(const Type& type, const Op& op) {
    bool axes = !type.weak && (op.shapes == Op::reduced || op.shapes == Op::permuted);
    return type.kind() | uint64_t(axes ? type.shape.size() : 0) << 40;
}

// The Params in the key; null for a slice, whose Params say no more than the shape.
const Params* cache_params(const InferenceQuery& query) {
    return query.op->part == Op::none ? query.params : nullptr;
}

// Everything but shapes.
std::string key_of(const InferenceQuery& query) {
    std::string bytes;
    append(bytes, query.op->id);
    append(bytes, query.strict);
    for (const Type* type : query.types) append(bytes, kind_of(*type, *query.op));
    if (const Params* params = cache_params(query)) bytes += params->bytes;
    return bytes;
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

bool has_native_rule(const InferenceQuery& query) {
    bool needs_python_rule = query.op->shapes == Op::stated && query.op->part != Op::slice;
    if (needs_python_rule || query.types.empty() || query.types.size() > MAX_INPUTS) return false;
    const Type* first = nullptr; // operands of two devices are an error
    bool has_structure = false;
    for (const Type* type : query.types) {
        if (type->weak) continue;
        if (first && (type->device != first->device || type->storage != first->storage))
            return false;
        first = type;
        has_structure |= type->structure != 0;
    }
    if (has_structure && !common_shape(query.types)) return false; // it may be broadcast
    return first && !(query.params && query.params->has_starts);
}

// False where they do not broadcast.
bool broadcast(std::span<Type* const> types, Shape& shape) {
    for (const Type* type : types) {
        const Shape& operand_shape = type->shape;
        if (operand_shape.size() > shape.size())
            shape.insert(shape.begin(), operand_shape.size() - shape.size(), 1);
        auto dim = shape.end() - std::ptrdiff_t(operand_shape.size());
        for (int64_t length : operand_shape) {
            if (length != 1 && *dim != 1 && length != *dim) return false;
            if (length != 1) *dim = length;
            ++dim;
        }
    }
    return true;
}

bool has_valid_axes(const Params& params, std::size_t rank) {
    return params.has_axes && params.axes.size() <= MAX_AXES && rank <= MAX_AXES &&
           std::ranges::all_of(params.axes,
                               [&](int64_t axis) { return axis >= 0 && axis < int64_t(rank); });
}

bool permuted_shape(const Type& type, const Params& params, Shape& shape) {
    std::size_t rank = type.shape.size();
    if (!has_valid_axes(params, rank) || params.axes.size() != rank) return false;
    for (int64_t axis : params.axes) shape.push_back(type.shape[std::size_t(axis)]);
    return true;
}

bool reduced_shape(const Type& type, const Params& params, Shape& shape) {
    ReducedAxes axes;
    if (!read_axes(params, type.shape.size(), axes)) return false;
    for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
        bool is_reduced = axes.is_reduced(axis);
        if (is_reduced && type.shape[axis] == 0) return false; // a reduction may have no identity
        if (!is_reduced || axes.keepdims) shape.push_back(is_reduced ? 1 : type.shape[axis]);
    }
    return true;
}

bool slice_shape(const Params& params, const Type& array, Shape& shape) {
    const IndexMap& map = pattern_of(params).map;
    shape = map.shape;
    return map.steps.size() == array.shape.size();
}

// False where Python's rule is to be asked.
bool shape_of(const InferenceQuery& query, Shape& shape) {
    if (query.op->shapes == Op::broadcast) return broadcast(query.types, shape);
    if (!query.params) return false;
    const Type& type = *query.types[0];
    switch (query.op->shapes) {
    case Op::reduced: return reduced_shape(type, *query.params, shape);
    case Op::permuted: return permuted_shape(type, *query.params, shape);
    default: return slice_shape(*query.params, type, shape);
    }
}

bool fits(const Shape& shape, uint16_t dtype) {
    int64_t max_elements = MAX_BYTES / std::max<int64_t>(dtype_of(dtype).bytes, 1);
    for (int64_t length : shape) max_elements /= std::max<int64_t>(length, 1);
    return max_elements > 0 && shape.size() <= MAX_AXES;
}

constexpr std::size_t MAX_THREAD_INPUTS = 3;

struct Kinds {
    std::array<uint64_t, MAX_THREAD_INPUTS> words{};
    bool operator==(const Kinds& other) const { // a few words: no call of memcmp
        uint64_t apart = 0;
        for (std::size_t i = 0; i < MAX_THREAD_INPUTS; ++i) apart |= words[i] ^ other.words[i];
        return apart == 0;
    }
};

struct ThreadExample {
    const Op* op = nullptr;
    Ref<Params> params;
    bool strict = false;
    std::size_t num_inputs = 0;
    Kinds kinds;
    Ref<Inference> example;
    std::size_t uses = 0;

    explicit operator bool() const { return op; }
};

// A thread's latest queries with few operands.
class ThreadExamples : public ThreadCache<ThreadExamples, ThreadExample, 7> {
  public:
    // Null where it is not there, and when it is time to ask the table, where examples age.
    const Ref<Inference>* find(const InferenceQuery& query) {
        ThreadExample& entry = slot_of(query);
        bool is_match = cacheable_ && entry.kinds == query_kinds_ && entry.op == query.op &&
                        entry.params.get() == cache_params(query) && entry.strict == query.strict &&
                        entry.num_inputs == query.types.size() && !should_revalidate(entry);
        return is_match ? &entry.example : nullptr;
    }

    void put(const InferenceQuery& query, const Ref<Inference>& example) {
        ThreadExample& entry = slot_of(query);
        Ref<Params> params(const_cast<Params*>(cache_params(query)));
        if (cacheable_)
            entry = {query.op,           std::move(params), query.strict,
                     query.types.size(), query_kinds_,      example};
    }

  private:
    static constexpr std::size_t MAX_INPUTS = MAX_THREAD_INPUTS;

    ThreadExample& slot_of(const InferenceQuery& query) {
        constexpr std::size_t FACTOR = 0x9e3779b97f4a7c15ULL;
        std::size_t width = query.types.size();
        cacheable_ = width <= MAX_INPUTS;
        std::size_t word = query.op->id * 2 + query.strict + std::size_t(cache_params(query));
        for (std::size_t i = 0; i < MAX_INPUTS; ++i) {
            query_kinds_.words[i] =
                cacheable_ && i < width ? kind_of(*query.types[i], *query.op) : 0;
            word += query_kinds_.words[i] << 5 * i;
        }
        return slot(truncate_hash(word * FACTOR));
    }

    Kinds query_kinds_;
    bool cacheable_ = false; // whether the query at hand has few operands
};

Ref<Inference> example_of(const InferenceQuery& query) {
    ThreadExamples& thread_cache = ThreadExamples::get();
    if (const Ref<Inference>* example = thread_cache.find(query)) return *example;
    std::string key = key_of(query);
    Ref<Inference> example;
    {
        Guard guard(example_cache->lock);
        if (const Example* cached = example_cache->examples.find(key)) example = cached->inference;
    }
    if (example) thread_cache.put(query, example);
    return example;
}

// A new Inference, since the identity of its inference distinguishes a slice.
Inferred copy_for_type(const Inference& example, Ref<Type> type) {
    auto inference = Ref<Inference>::adopt(new Inference);
    inference->kind = example.kind;
    inference->operands = example.operands;
    inference->results.push_back(type);
    return {std::move(inference), std::move(type)};
}

} // namespace

bool read_axes(const Params& params, std::size_t rank, ReducedAxes& reduced) {
    if (!has_valid_axes(params, rank)) return false;
    for (int64_t axis : params.axes) reduced.mask |= uint64_t(1) << axis;
    reduced.keepdims = params.keepdims;
    return true;
}

Inferred infer_shape(const InferenceQuery& query) {
    if (!has_native_rule(query)) return {};
    Shape computed_shape;
    const Shape* shape = query.op->shapes == Op::broadcast ? common_shape(query.types) : nullptr;
    if (!shape && !shape_of(query, computed_shape)) return {};
    if (!shape) shape = &computed_shape;
    Ref<Inference> example = example_of(query);
    if (!example || !fits(*shape, example->results[0]->dtype)) return {};
    const Type& type = *example->results[0];
    Ref<Type> result =
        intern_type({*shape, type.dtype, type.device, type.storage, false, type.structure});
    if (query.op->part == Op::slice) return copy_for_type(*example, std::move(result));
    return {std::move(example), std::move(result)};
}

Inferred infer_same_type(const InferenceQuery& query) {
    if (query.op->shapes != Op::broadcast) return {};
    Type* common = nullptr;
    for (Type* type : query.types) {
        if (type->weak) continue;
        if (common && common != type) return {};
        common = type;
    }
    const Ref<Inference>* example = common ? ThreadExamples::get().find(query) : nullptr;
    if (!example || (*example)->results[0]->kind() != common->kind()) return {};
    return {*example, Ref<Type>(common)};
}

void cache_dtypes(const InferenceQuery& query, const Ref<Inference>& inference) {
    if (!has_native_rule(query) || inference->results.size() != 1) return;
    Examples::Entries evicted; // freed outside the lock
    Ref<Params> params(const_cast<Params*>(query.params));
    Examples& examples = example_cache->examples;
    Guard guard(example_cache->lock);
    std::string key = key_of(query);
    const Example* cached = examples.find(key); // another thread's, or of other shapes
    if (!cached) cached = &examples.insert(std::move(key), {inference, std::move(params)}, evicted);
    const Ref<Loops>& loops = cached->inference->loops;
    if (query.op->shapes == Op::broadcast && !inference->loops) // else others may have it already
        inference->loops = loops ? loops : Ref<Loops>::adopt(new Loops);
}

void drop_dtypes_of(const Op* op) {
    std::string prefix;
    append(prefix, op->id);    // as in key_of
    Examples::Entries evicted; // freed outside the lock
    ThreadExamples::invalidate_all();
    Guard guard(example_cache->lock);
    example_cache->examples.evict_if(
        [&](const auto& entry) { return entry.key.starts_with(prefix); }, evicted);
}

std::size_t num_cached_dtypes() {
    Guard guard(example_cache->lock);
    return example_cache->examples.size();
}

void clear_dtype_cache() {
    Examples::Entries evicted; // freed outside the lock
    ThreadExamples::invalidate_all();
    Guard guard(example_cache->lock);
    example_cache->examples.clear(evicted);
}

} // namespace tenfold
