#include "ir/view_map.h"

namespace tenfold {
namespace {

std::vector<int64_t> in_c_order(const Type& type) {
    std::vector<int64_t> strides(type.shape.size());
    int64_t stride = dtype_of(type.dtype).bytes;
    for (std::size_t axis = strides.size(); axis-- > 0; stride *= type.shape[axis])
        strides[axis] = stride;
    return strides;
}

bool is_in_c_order(const Type& type, const std::vector<int64_t>& strides) {
    int64_t stride = dtype_of(type.dtype).bytes;
    for (std::size_t axis = strides.size(); axis-- > 0; stride *= type.shape[axis])
        if (type.shape[axis] > 1 && strides[axis] != stride) return false;
    return true;
}

} // namespace

Ref<Value> viewed(const ViewMap& movement, const Value& input, Ref<Type> type,
                  std::span<const int64_t> starts) {
    bool affine = movement.kind == ViewMap::affine;
    if (!affine && (movement.kind == ViewMap::other || !input.strides.empty())) return {};
    auto made = Ref<Value>::adopt(new Value);
    made->part = true;
    made->buffers[0] = input.buffers[0];
    if (affine) {
        std::vector<int64_t> strides(type->shape.size());
        const auto& own = input.strides.empty() ? in_c_order(*input.type) : input.strides;
        for (std::size_t axis = 0; axis < own.size(); ++axis) {
            const ViewMap::Step& step = movement.steps[axis];
            int64_t start = starts.empty() ? step.start : starts[axis];
            if (type->size() > 0) made->buffers[0].offset += start * own[axis];
            if (step.axis != ViewMap::NO_AXIS)
                strides[std::size_t(step.axis)] += step.coefficient * own[axis];
        }
        if (!is_in_c_order(*type, strides)) made->strides = std::move(strides);
    }
    made->type = std::move(type);
    return made;
}

} // namespace tenfold
