// Scatter-add: adds rows to the rows of an array that indices name, duplicates in their order.
#pragma once
#include <cstdint>

namespace tenfold {

// The sizes of a launch. The buffers are the sums, the indices, the values, and what the sums begin
// with. There is one unit.
struct ScatterAddSizes {
    int64_t rows, width;          // of the values, in elements
    int64_t length;               // rows of the sums
    int64_t wraps;                // whether negative indices count from the end
    int64_t index_code;           // bytes; negative: signed
    int64_t value_code;           // bytes; negative: floating
    int64_t row_step, width_step; // of the values, in elements; 0: one for all
    int64_t begins_with_zero;     // without the last buffer
};

// A kernel: 0, or 1 + the number of the first index out of range.
int64_t scatter_add(void** buffers, const int64_t* sizes, const double*, void*, int64_t begin,
                    int64_t end);

} // namespace tenfold
