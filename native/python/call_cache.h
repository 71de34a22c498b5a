// Call cache: remembers calls of traced functions, so that equal calls need no Python.
#pragma once
#include <memory>

#include "python/engine_bindings.h"

namespace tenfold::bindings {

using Objects = std::vector<nb::object>;

struct CapturedArray {
    Ref<Node> original; // the node at the trace; a later one has the same Type
    nb::object source;  // the Array whose present value is read, or none
};

struct CachedCall {
    std::size_t hash = 0;
    std::vector<uint64_t> words;
    Objects owned_objects; // owners of the addresses in `words`
    std::vector<Ref<Type>> types;
    const Op* op = nullptr;
    Ref<Params> params;
    std::vector<std::size_t> input_order; // indices of array arguments, in input order
    std::vector<CapturedArray> captured;
    std::vector<std::pair<nb::object, Ref<Node>>> read_arrays; // Arrays that must have these nodes
    nb::object result_tree;
    nb::object runner; // returns that result, from the inputs in `input_order` and captured values
    std::vector<Ref<Operation>> pushed_operations; // the last of each set of options
};

struct CallerObject {
    PyObject_HEAD vectorcallfunc call;
    PyObject *python, *attributes;                   // owned; `python` is called on a cache miss
    std::vector<std::shared_ptr<CachedCall>>* calls; // the latest first
    PyObject* weak_references;
};

extern PyTypeObject* caller_type;
inline CallerObject* as_caller(PyObject* object) { return reinterpret_cast<CallerObject*>(object); }

// The key of a call, and its arrays.
struct CallArguments {
    std::vector<uint64_t> words;
    std::vector<Node*> nodes;
    std::vector<PyObject*> identity_objects; // borrowed: objects that count by their address
    std::vector<PyObject*> arrays;           // borrowed: Arrays, and Handles
    bool in_use = false;
    bool has_components = false; // of an Array of a storage kind: among the nodes alone

    void clear() {
        has_components = false;
        words.clear();
        nodes.clear();
        identity_objects.clear();
        arrays.clear();
    }
};

void declare_pushed_calls(nb::module_& module);

// Writes the key of a call. False where only Python can tell, or with a Python error.
bool write_call_key(PyObject* const* args, Py_ssize_t count, PyObject* names,
                    CallArguments& call_args);
// Shared: while it is used Python may run, and forget it.
std::shared_ptr<CachedCall> find(const CallerObject& self, const CallArguments& args);
// Builds the tree that `spec` describes, (type, keys, children) or None for a leaf, from the arrays
// at `next_array`.
PyObject* build_tree(PyObject* spec, PyObject* arrays, Py_ssize_t& next_array);

// The thread's CallArguments; own ones in a nested call.
class BorrowedArguments {
  public:
    BorrowedArguments();
    ~BorrowedArguments() { args.in_use = false; }

  private:
    CallArguments& shared_;
    CallArguments local_;

  public:
    CallArguments& args;
};

} // namespace tenfold::bindings
