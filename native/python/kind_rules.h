// Rules of storage kinds: applies an operation to operands of which one has a kind.
#pragma once
#include "python/python_objects.h"

namespace tenfold::bindings {

// Empty with a Python error where no rule answers.
Ref<Node> apply_to_kinds(const Op* op, std::span<Node* const> inputs, const Params* params);

} // namespace tenfold::bindings
