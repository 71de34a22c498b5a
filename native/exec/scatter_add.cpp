#include "exec/scatter_add.h"

#include <cstring>
#include <type_traits>

namespace tenfold {
namespace {

// The row that an index names; negative where there is none.
template <class Index> int64_t row_of(Index index, const ScatterAddSizes& sizes) {
    if constexpr (std::is_unsigned_v<Index>) {
        return uint64_t(index) < uint64_t(sizes.length) ? int64_t(index) : -1;
    } else {
        int64_t row = index < 0 && sizes.wraps ? int64_t(index) + sizes.length : int64_t(index);
        return row < sizes.length ? row : -1;
    }
}

// Rows of one element. A run of equal indices is summed in a register.
template <class T, class Index>
int64_t add_elements(T* sums, const Index* indices, const T* values, const ScatterAddSizes& sizes) {
    for (int64_t i = 0; i < sizes.rows;) {
        const Index index = indices[i];
        const int64_t row = row_of(index, sizes);
        if (row < 0) return i + 1;
        T sum = sums[row];
        do sum = T(sum + values[i * sizes.row_step]);
        while (++i < sizes.rows && indices[i] == index);
        sums[row] = sum;
    }
    return 0;
}

template <class T, class Index>
int64_t add_rows(T* sums, const Index* indices, const T* values, const ScatterAddSizes& sizes) {
    for (int64_t i = 0; i < sizes.rows; ++i) {
        const int64_t row = row_of(indices[i], sizes);
        if (row < 0) return i + 1;
        T* sum = sums + row * sizes.width;
        const T* value = values + i * sizes.row_step;
        for (int64_t j = 0; j < sizes.width; ++j) sum[j] = T(sum[j] + value[j * sizes.width_step]);
    }
    return 0;
}

template <class T, class Index> int64_t add(void** buffers, const ScatterAddSizes& sizes) {
    auto* sums = static_cast<T*>(buffers[0]);
    auto* indices = static_cast<const Index*>(buffers[1]);
    auto* values = static_cast<const T*>(buffers[2]);
    const auto num_bytes = std::size_t(sizes.length * sizes.width) * sizeof(T);
    if (sizes.begins_with_zero)
        std::memset(sums, 0, num_bytes);
    else
        std::memcpy(sums, buffers[3], num_bytes);
    return sizes.width == 1 ? add_elements(sums, indices, values, sizes)
                            : add_rows(sums, indices, values, sizes);
}

template <class T> int64_t add_by_index(void** buffers, const ScatterAddSizes& sizes) {
    switch (sizes.index_code) {
    case -1: return add<T, int8_t>(buffers, sizes);
    case -2: return add<T, int16_t>(buffers, sizes);
    case -4: return add<T, int32_t>(buffers, sizes);
    case -8: return add<T, int64_t>(buffers, sizes);
    case 1: return add<T, uint8_t>(buffers, sizes);
    case 2: return add<T, uint16_t>(buffers, sizes);
    case 4: return add<T, uint32_t>(buffers, sizes);
    default: return add<T, uint64_t>(buffers, sizes);
    }
}

} // namespace

int64_t scatter_add(void** buffers, const int64_t* sizes, const double*, void*, int64_t, int64_t) {
    static_assert(std::is_trivially_copyable_v<ScatterAddSizes>);
    ScatterAddSizes read;
    std::memcpy(&read, sizes, sizeof read);
    switch (read.value_code) { // integers wrap, so their sign does not matter
    case 1: return add_by_index<uint8_t>(buffers, read);
    case 2: return add_by_index<uint16_t>(buffers, read);
    case 4: return add_by_index<uint32_t>(buffers, read);
    case 8: return add_by_index<uint64_t>(buffers, read);
    case -4: return add_by_index<float>(buffers, read);
    default: return add_by_index<double>(buffers, read);
    }
}

} // namespace tenfold
