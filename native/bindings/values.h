// Python's handles of Values, Nodes and Types.
#pragma once
#include "../library.h"
#include "../plan.h"
#include "../walk.h"
#include "../workers.h"
#include "python.h"

namespace tenfold::bindings {

struct ValueHandle {
    Ref<Value> value;
};

struct NodeHandle {
    Ref<Node> node;
};

// A function of loaded code, which it holds.
struct EntryPoint {
    Ref<Code> code;
    std::size_t offset; // bytes

    Kernel kernel() const { return reinterpret_cast<Kernel>(code->begin + offset); }
};

struct LibraryHandle {
    Library* library; // lives for ever
};

nb::object type_to_python(Ref<Type> type);
Ref<Type> type_from_python(nb::handle handle);
std::vector<Node*> nodes_from(nb::handle sequence);
// Within the Allocation, where that has known ends; and whether they are those of C order.
bool within(const Value& value, std::span<const int64_t> strides);
bool in_c_order(const Type& type, std::span<const int64_t> strides);
// A walk in which nobody is writing over values; it waits for those who do, without the GIL.
Walked walk_at_rest(std::span<Node* const> outputs);
// The key of a walk as Python keeps it, or None.
nb::object structure_of(const Walked& walked, std::span<const uint64_t> options);
// Of floating-point arithmetic: to nearest, subnormals kept, no trap.
constexpr unsigned USUAL_MODES = 0x1F80;
// Of a graph that has no plan: whether it is to be, or was, computed node by node.
bool goes_singly(const Walked& walked, std::span<const uint64_t> options, const Key& key);
bool computed_singly(const Walked& walked, std::span<const uint64_t> options, const Key& key,
                     Surroundings& surroundings, std::vector<Ran>* ran);
// A Launch with the GIL given away; a Python error where it was interrupted.
Result launch_without_gil(Work& work);

} // namespace tenfold::bindings
