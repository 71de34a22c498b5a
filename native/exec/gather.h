// Gather and scatter: take the elements of an array at integer indices, or replace them, for any
// lengths. The op interpreter runs them.
#pragma once
#include <array>
#include <span>

#include "ir/linearize.h"
#include "threads/worker_pool.h"

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
    int64_t row_bytes() const { return row_bytes_; }
    int64_t num_rows() const { return rows_; }
    // Scatters one row everywhere.
    void repeat_row() { row_stride_ = 0; }
    Gather(const Gather&) = delete;
    Gather& operator=(const Gather&) = delete;
    // False for several shapes or strides of indices, indices of other dtypes than int32 and int64,
    // and for a source whose other axes are not in C order.
    bool fits() const { return fits_; }
    // The status of its result is not 0 for an index out of bounds.
    Work work();

  private:
    static int64_t run(void** buffers, const int64_t*, const double*, void*, int64_t begin,
                       int64_t end);
    template <std::size_t BYTES> bool copy_rows(int64_t begin, int64_t end) const;
    struct Index {
        const char* first;
        int64_t stride, length, source_stride; // bytes, elements of the axis, bytes
        bool is_short;                         // int32
    };
    bool add_index(const Value& index, int64_t length, int64_t source_stride);
    static int64_t position_of(const Index& index, int64_t row);

    std::array<Index, MAX_INDICES> indices_;
    std::size_t num_indices_ = 0;
    char* array_;
    char* first_row_;
    int64_t rows_ = 0, row_bytes_ = 0, row_stride_ = 0;
    Direction direction_;
    void* buffer_ = nullptr;
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
