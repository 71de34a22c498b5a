// Part copy: replaces a part of an array by copying, for any lengths, without a kernel of its own.
// The op interpreter runs `update` by it.
#pragma once
#include <array>

#include "ir/linearize.h"
#include "threads/work.h"

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
    struct Axis {
        int64_t length, to, from; // bytes
    };
    // The sizes of the kernel.
    struct Sizes {
        std::array<Axis, 16> axes; // the innermost first
        int64_t num_axes = 0, itemsize = 0;
        int64_t span = 1; // elements of the innermost axis that a unit takes
        ElementBytes element{};
    };
    static int64_t copy(void** buffers, const int64_t* sizes, const double*, void*, int64_t begin,
                        int64_t end);
    static void copy_unit(const Sizes& sizes, char* to, const char* from, int64_t unit);

    Sizes sizes_;
    std::array<void*, 2> buffers_; // addresses of the part, and of the right-hand side or null
    int64_t units_ = 0;
    int threads_;
    bool fits_ = true;
};

} // namespace tenfold
