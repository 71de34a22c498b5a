// Singly: a small graph is computed node by node: operations on elements and reductions each by a
// loop for its dtypes that takes any shape and layout, views by their strides, others by plans of
// one node. So what is seen for the first time needs no plan of its own, and nothing is compiled
// for it that was compiled before.
#pragma once
#include "folds.h"
#include "plan.h"

namespace tenfold {

// What Python does for it.
class LoopMaker {
  public:
    virtual ~LoopMaker() = default;
    // A Loop, handed over, where there is none: `steps` has a character for each operand that is an
    // array. (A node may have been computed by another thread, and its inputs gone.)
    virtual const Loop* make(const Node& node, std::span<const Node* const> inputs,
                             const std::string& steps) = 0;
    // How a view reads its input, of this shape; handed over.
    virtual const Movement* movement(const Node& node, const Type& input) = 0;
    // The same for a reduction along one axis, of elements or partial results of a dtype.
    virtual const FoldLoop* make_fold(const Node& node, uint16_t source, FoldForm form) = 0;
    // Computes a node of another operation, whose inputs have their values; false where it fails.
    virtual bool compute(Node& node) = 0;
};

constexpr std::size_t LONG = 512; // nodes; of more no plan is made as a whole
inline bool is_long(const Walked& walked) { return walked.nodes.size() > LONG; }
// Whether all that is pending are small arrays of this device, made by operations that may be
// computed by themselves, of which one at least has loops or is a view.
bool fits_singly(const Walked& walked, uint8_t device);
// Of a walk that fits. False where a node fails, or has no loop: what it was computed from may have
// its value by then.
bool compute_singly(const Walked& walked, int threads, LoopMaker& maker, Surroundings& surroundings,
                    std::vector<Ran>* ran);

} // namespace tenfold
