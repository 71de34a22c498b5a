// Singly: a small graph of operations on elements is computed node by node, each by a loop for its
// operation and dtypes that takes any shape and layout. So what is seen for the first time needs no
// plan, and nothing is compiled for it that was compiled before.
#pragma once
#include "plan.h"

namespace tenfold {

// What makes a Loop, which it hands over, where there is none: `steps` has a character for each
// operand that is an array. (A node may have been computed by another thread, and its inputs gone.)
class LoopMaker {
  public:
    virtual ~LoopMaker() = default;
    virtual const Loop* make(const Node& node, std::span<const Node* const> inputs,
                             const std::string& steps) = 0;
};

// Whether all that is pending are operations on elements of arrays of this device, and small.
bool fits_singly(const Walked& walked, uint8_t device);
// Of a walk that fits. False where a node fails, or has no loop: nothing has its value then that
// had none before.
bool compute_singly(const Walked& walked, int threads, LoopMaker& maker, Surroundings& surroundings,
                    std::vector<Ran>* ran);

} // namespace tenfold
