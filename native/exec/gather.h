// Gather and scatter: take the elements of an array at integer indices, or replace them, for any
// lengths. The op interpreter runs them.
#pragma once
#include <array>
#include <span>

#include "exec/part_copy.h"

namespace tenfold {

// A Launch that gathers or scatters. It must outlive the Work.
class Gather {
  public:
    static constexpr std::size_t MAX_INDICES = 4;
    enum Direction : bool { gather, scatter };

    // `indices` are positions along the first axes of `array`; `rows` are in C order, one for each
    // index, `row_stride` bytes apart. A scatter goes through them in order: the last one stays.
    Gather(const Value& array, std::span<const Value* const> indices, void* rows,
           Direction direction, int threads);
    int64_t row_bytes() const { return sizes_.row_bytes; }
    int64_t num_rows() const { return sizes_.rows; }
    // Scatters one row everywhere, an element.
    void repeat(const ElementBytes& element) {
        buffers_[1] = nullptr;
        sizes_.element = element;
        sizes_.row_stride = 0;
    }
    Gather(const Gather&) = delete;
    Gather& operator=(const Gather&) = delete;
    // False for several shapes or strides of indices, indices of other dtypes than int32 and int64,
    // and for a source whose other axes are not in C order.
    bool fits() const { return fits_; }
    // The status of its result is not 0 for an index out of bounds.
    Work work();

  private:
    struct Index {
        int64_t stride, length, source_stride; // bytes, elements of the axis, bytes
        bool is_short;                         // int32
    };
    // The sizes of the kernel.
    struct Sizes {
        std::array<Index, MAX_INDICES> indices;
        std::size_t num_indices = 0;
        int64_t rows = 0, row_bytes = 0, row_stride = 0;
        ElementBytes element{}; // the row, where `repeat` has given one
        int64_t direction;
    };
    static int64_t run(void** buffers, const int64_t* sizes, const double*, void*, int64_t begin,
                       int64_t end);
    template <std::size_t BYTES>
    static bool copy_rows(void** buffers, const Sizes& sizes, int64_t begin, int64_t end);
    bool add_index(const Value& index, int64_t length, int64_t source_stride);
    static int64_t position_of(const Index& index, const void* first, int64_t row);

    Sizes sizes_;
    std::array<void*, 2 + MAX_INDICES> buffers_{}; // the array, its rows, the indices
    int threads_ = 0;
    bool fits_ = true;
};

// Whether a node gathers along the first axes of its source, with the axes of the indices first.
bool is_gather(const Node& node);
// Whether a value is a row of the array for each index, in C order and the array's dtype.
bool are_rows(const Value& rows, const Value& index, const Value& array, std::size_t indexed_axes);
// Whether a node replaces such elements.
bool is_scatter(const Node& node);

} // namespace tenfold
