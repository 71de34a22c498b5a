// Value bindings: Python handles of Values, Nodes and Types.
#pragma once
#include <array>
#include <optional>

#include "exec/tier_policy.h"
#include "ir/linearize.h"
#include "python/python_objects.h"
#include "threads/blas_threads.h"
#include "threads/work.h"

namespace tenfold::bindings {

struct ValueHandle {
    Ref<Value> value;
};

struct NodeHandle {
    Ref<Node> node;
};

// Nodes that Python hands on without looking at them one by one.
struct NodesHandle {
    std::vector<Ref<Node>> nodes;
};

// A function of loaded code, which it holds, or of this library.
struct EntryPoint {
    Ref<Code> code; // null: of this library
    KernelHandle kernel;
};

struct LibraryHandle {
    BlasLibrary* library; // lives for ever
};

// The least and the greatest element, at most the greatest int64, of integers in C order on the
// host; none for other Values, and for no elements. It is computed each time: a Value that only one
// Array reads may be written in place.
std::optional<std::array<int64_t, 2>> range_of_integers(const Value& value);
nb::object type_to_python(Ref<Type> type);
Ref<Type> type_from_python(nb::handle handle);
std::vector<Node*> nodes_from(nb::handle sequence);
// Within the Allocation, where that has known ends.
bool is_within_allocation(const Value& value, std::span<const int64_t> strides);
// A linearized graph without in-place writes in progress; waits for such threads without the GIL.
LinearizedGraph linearize_when_unclaimed(std::span<Node* const> outputs);
// From the numbers of `pipeline.options_key()`; those of rules may be missing.
OptionKey option_key_from(nb::handle numbers);
// The key of a linearized graph for Python, or None.
nb::object make_structure(const LinearizedGraph& graph, const OptionKey& options);
// Computes a graph without a plan by the interpreter, if that is its tier; whether it did.
bool try_interpret(LinearizedGraph& graph, const OptionKey& options, const GraphIdentity& identity,
                   ExecutionContext& context, std::vector<StepTiming>* timings);
// Raises a MemoryError for bytes of a device, or the DeviceError of one that has failed.
[[noreturn]] void raise_no_memory(const Device& device, std::size_t bytes,
                                  const char* what = "an array");
// Runs a Launch without the GIL; a Python error if it was interrupted.
Result launch_without_gil(Work& work);

} // namespace tenfold::bindings
