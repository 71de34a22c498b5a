// Part copy: replaces a part of an array by copying, for any lengths, without a kernel of its own.
// The op interpreter runs `update` by it.
#pragma once
#include <array>

#include "ir/linearize.h"
#include "threads/worker_pool.h"

namespace tenfold {

// Whether the bytes of a number of Python's in a dtype are those that a plan would write.
bool is_exact_scalar(const Scalar& scalar, const DType& dtype);

// The bytes of an element that fills a part.
using ElementBytes = std::array<uint64_t, 2>;

// Whether a node replaces a part by an array of its dtype, or by a scalar constant.
bool can_assign(const LinearizedGraph& graph, const LinearizedNode& entry);

// A part of a value in the memory of that, as `update` says it with these Params.
Ref<Value> updated_slice(const Node& update, const Value& whole);

// A Launch that copies to a part. It must outlive the Work.
class Assignment {
  public:
    // `rhs` broadcasts to the part and shares no memory with it; null: the element fills it.
    Assignment(const Value& part, const Value* rhs, const ElementBytes& element, int threads);
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;
    // False if the part has more than MAX_AXES axes. An empty part has a Work of 0 units.
    bool fits() const { return fits_; }
    Work work();

  private:
    static int64_t copy(void** buffers, const int64_t*, const double*, void*, int64_t begin,
                        int64_t end);
    void copy_unit(int64_t unit) const;

    struct Axis {
        int64_t length, to, from; // bytes
    };
    std::array<Axis, 16> axes_; // the innermost first
    std::size_t num_axes_ = 0;
    int64_t itemsize_, span_ = 1; // elements of the innermost axis that a unit takes
    int64_t units_ = 0;
    char* to_;
    const char* from_;
    ElementBytes element_;
    void* buffer_ = nullptr;
    int threads_;
    bool fits_ = true;
};

} // namespace tenfold
