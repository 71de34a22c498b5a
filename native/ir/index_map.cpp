#include "ir/index_map.h"

#include <cstring>

namespace tenfold {
namespace {

// Params that are told by their starts.
struct OffsetParams : Params {
    Starts starts_data;
};

// All of a pattern that distinguishes it; no tuple begins like it.
std::string bytes_of(const IndexMap& map) {
    std::string bytes = "[";
    auto append = [&](int64_t number) {
        bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    append(int64_t(map.steps.size()));
    for (const IndexMap::Step& step : map.steps) append(step.axis), append(step.coefficient);
    for (int64_t length : map.shape) append(length);
    return bytes;
}

Ref<Params> pattern_params(IndexMap map) {
    Ref<Params> params = intern_params(bytes_of(map));
    if (params->starts.load(std::memory_order_acquire)) return params;
    auto created = std::make_unique<Starts>();
    created->starts = AxisVector(std::vector<int64_t>(map.steps.size()));
    created->pattern = params.get();
    created->map = std::move(map);
    const Starts* expected = nullptr;
    if (params->starts.compare_exchange_strong(expected, created.get(), std::memory_order_acq_rel))
        created.release();
    return params;
}

// Axes of length 1 may be added.
bool takes_all(const IndexMap& map, const Type& array) {
    for (std::size_t axis = 0; axis < map.steps.size(); ++axis) {
        const IndexMap::Step& step = map.steps[axis];
        if (step.axis == IndexMap::NO_AXIS || step.coefficient != 1 ||
            map.shape[std::size_t(step.axis)] != array.shape[axis])
            return false;
    }
    return true;
}

// The extent of a slice from its start on, as a kind and a number.
enum ExtentKind : uint64_t { to_end, all_but_last, exact_count };

std::pair<ExtentKind, int64_t> extent_of(int64_t count, int64_t coefficient, int64_t start,
                                         int64_t length) {
    int64_t step = std::abs(coefficient);
    int64_t available = coefficient > 0 ? length - start : start + 1;
    int64_t remaining = available - 1 - (count - 1) * step;
    if (count > 0 && remaining < step) return {to_end, 0};
    if (count > 0 && step == 1 && remaining < count) return {all_but_last, remaining};
    return {exact_count, count};
}

} // namespace

Ref<Params> slice_params(IndexMap map) {
    std::vector<int64_t> starts;
    for (IndexMap::Step& step : map.steps) starts.push_back(std::exchange(step.start, 0));
    return params_with_starts(*pattern_params(std::move(map)), AxisVector(starts));
}

Ref<Params> params_with_starts(const Params& pattern, const AxisVector& starts) {
    auto& pattern_params = const_cast<Params&>(pattern);
    if (std::ranges::all_of(starts.span(), [](int64_t start) { return start == 0; }))
        return Ref<Params>(&pattern_params);
    auto* result = new OffsetParams;
    static_cast<Params*>(result)->has_starts = true;
    retain(&pattern_params);
    result->starts_data.starts = starts;
    result->starts_data.pattern = &pattern;
    result->starts.store(&result->starts_data, std::memory_order_release);
    return Ref<Params>::adopt(result);
}

void destroy_starts(const Starts* starts) { delete starts; }

void destroy_offset_params(Params* params) {
    auto* offset_params = static_cast<OffsetParams*>(params);
    release(const_cast<Params*>(offset_params->starts_data.pattern));
    delete offset_params;
}

Ref<Params> update_params(const Params& slice) {
    const Starts& pattern = pattern_of(slice);
    auto is_fixed = [&](const IndexMap::Step& step) {
        return step.axis != IndexMap::NO_AXIS && pattern.map.shape[std::size_t(step.axis)] == 1;
    };
    if (std::ranges::none_of(pattern.map.steps, is_fixed))
        return Ref<Params>(const_cast<Params*>(&slice));
    if (!pattern.update_pattern) {
        IndexMap map = pattern.map;
        for (IndexMap::Step& step : map.steps)
            if (is_fixed(step)) step = {IndexMap::NO_AXIS, 0, 0};
        pattern.update_pattern = pattern_params(std::move(map));
    }
    return params_with_starts(*pattern.update_pattern, starts_of(slice).starts);
}

bool is_full_slice(const Params& params, const Type& array) {
    const IndexMap& map = pattern_of(params).map;
    return !params.has_starts && map.shape.size() == map.steps.size() && takes_all(map, array);
}

// Appends for each axis whether it begins nearer to the end, how far from there, and its extent.
bool append_slice_key(const Params& params, const Type& array, std::vector<uint64_t>& words) {
    const AxisVector& starts = starts_of(params).starts;
    const IndexMap& map = pattern_of(params).map;
    for (std::size_t axis = 0; axis < map.steps.size(); ++axis) {
        const IndexMap::Step& step = map.steps[axis];
        int64_t start = starts[axis], length = array.shape[axis];
        bool backwards = start > length - 1 - start;
        bool has_axis = step.axis != IndexMap::NO_AXIS;
        int64_t count = has_axis ? map.shape[std::size_t(step.axis)] : 1;
        auto [kind, number] = extent_of(count, has_axis ? step.coefficient : 1, start, length);
        words.push_back(uint64_t(backwards) | kind << 1);
        words.push_back(uint64_t(backwards ? length - start : start));
        words.push_back(uint64_t(step.coefficient));
        words.push_back(uint64_t(number));
    }
    words.push_back(map.shape.size());
    for (const IndexMap::Step& step : map.steps) words.push_back(uint64_t(step.axis));
    return !params.has_starts && takes_all(map, array);
}

Ref<Value> make_view(const IndexMap& map, const Value& input, Ref<Type> type,
                     std::span<const int64_t> starts) {
    bool affine = map.kind == IndexMap::affine;
    if (!affine && (map.kind == IndexMap::other || !input.strides.empty())) return {};
    auto view = Ref<Value>::adopt(new Value);
    view->is_view = true;
    view->buffers[0] = input.buffers[0];
    if (affine) {
        std::vector<int64_t> strides(type->shape.size());
        const std::vector<int64_t> input_strides = strides_of(input);
        for (std::size_t axis = 0; axis < input_strides.size(); ++axis) {
            const IndexMap::Step& step = map.steps[axis];
            int64_t start = starts.empty() ? step.start : starts[axis];
            if (type->size() > 0) view->buffers[0].offset += start * input_strides[axis];
            if (step.axis != IndexMap::NO_AXIS)
                strides[std::size_t(step.axis)] += step.coefficient * input_strides[axis];
        }
        if (!is_c_order(*type, strides)) view->strides = std::move(strides);
    }
    view->type = std::move(type);
    return view;
}

Ref<Value> make_slice(const Params& params, const Value& input, Ref<Type> type) {
    return make_view(pattern_of(params).map, input, std::move(type),
                     starts_of(params).starts.span());
}

} // namespace tenfold
