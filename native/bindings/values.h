// Python's handle of a Value.
#pragma once
#include "../value.h"
#include "python.h"

namespace tenfold::bindings {

struct ValueHandle {
    Ref<Value> value;
};

} // namespace tenfold::bindings
