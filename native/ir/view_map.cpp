#include "ir/view_map.h"

namespace tenfold {
namespace {

std::vector<int64_t> c_order_strides(const Type& type) {
    std::vector<int64_t> strides(type.shape.size());
    int64_t stride = dtype_of(type.dtype).bytes;
    for (std::size_t axis = strides.size(); axis-- > 0; stride *= type.shape[axis])
        strides[axis] = stride;
    return strides;
}

bool is_c_contiguous(const Type& type, const std::vector<int64_t>& strides) {
    int64_t stride = dtype_of(type.dtype).bytes;
    for (std::size_t axis = strides.size(); axis-- > 0; stride *= type.shape[axis])
        if (type.shape[axis] > 1 && strides[axis] != stride) return false;
    return true;
}

} // namespace

Ref<Value> make_view(const ViewMap& map, const Value& input, Ref<Type> type,
                     std::span<const int64_t> starts) {
    bool affine = map.kind == ViewMap::affine;
    if (!affine && (map.kind == ViewMap::other || !input.strides.empty())) return {};
    auto view = Ref<Value>::adopt(new Value);
    view->is_view = true;
    view->buffers[0] = input.buffers[0];
    if (affine) {
        std::vector<int64_t> strides(type->shape.size());
        const auto& input_strides =
            input.strides.empty() ? c_order_strides(*input.type) : input.strides;
        for (std::size_t axis = 0; axis < input_strides.size(); ++axis) {
            const ViewMap::Step& step = map.steps[axis];
            int64_t start = starts.empty() ? step.start : starts[axis];
            if (type->size() > 0) view->buffers[0].offset += start * input_strides[axis];
            if (step.axis != ViewMap::NO_AXIS)
                strides[std::size_t(step.axis)] += step.coefficient * input_strides[axis];
        }
        if (!is_c_contiguous(*type, strides)) view->strides = std::move(strides);
    }
    view->type = std::move(type);
    return view;
}

} // namespace tenfold
