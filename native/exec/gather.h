// Gather: takes the elements of an array at integer indices, for any lengths. The op interpreter
// runs it.
#pragma once
#include <array>
#include <span>

#include "ir/linearize.h"
#include "threads/worker_pool.h"

namespace tenfold {

// A Launch that gathers. It must outlive the Work.
class Gather {
  public:
    static constexpr std::size_t MAX_INDICES = 4;

    // `indices` are positions along the first axes of `source`; `result` is in C order.
    Gather(const Value& source, std::span<const Value* const> indices, const Value& result,
           int threads);
    Gather(const Gather&) = delete;
    Gather& operator=(const Gather&) = delete;
    // False for several shapes or strides of indices, indices of other dtypes than int32 and int64,
    // and for a source whose other axes are not in C order.
    bool fits() const { return fits_; }
    // The status of its result is not 0 for an index out of bounds.
    Work work();

  private:
    static int64_t gather(void** buffers, const int64_t*, const double*, void*, int64_t begin,
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
    const char* source_;
    char* result_;
    int64_t rows_ = 0, row_bytes_ = 0;
    void* buffer_ = nullptr;
    int threads_ = 0;
    bool fits_ = true;
};

// Whether a node gathers along the first axes of its source, with the axes of the indices first.
bool is_gather(const Node& node);

} // namespace tenfold
