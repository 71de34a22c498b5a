// Call cache: remembers calls of traced functions, so that equal calls need no Python.
#pragma once
#include <memory>

#include "python/engine_bindings.h"

namespace tenfold::bindings {

using Objects = std::vector<nb::object>;

struct Captured {
    Ref<Node> node;    // what it was; of its Type
    nb::object source; // the Array whose present value is read, or none
};

struct Call {
    std::size_t hash = 0;
    std::vector<uint64_t> words;
    Objects kept; // what the addresses in `words` belong to
    std::vector<Ref<Type>> types;
    const Op* op = nullptr;
    Ref<Params> params;
    std::vector<std::size_t> order; // of the arrays among the arguments, as inputs
    std::vector<Captured> captured;
    std::vector<std::pair<nb::object, Ref<Node>>> read; // Arrays that must be what they were
    nb::object form;                                    // of the result
    nb::object run;                     // what gives that for what stands in `order` and captured
    std::vector<Ref<Operation>> pushed; // the last of each set of options
};

struct CallerObject {
    PyObject_HEAD vectorcallfunc call;
    PyObject *python, *attributes;             // owned; what is called where nothing is remembered
    std::vector<std::shared_ptr<Call>>* calls; // the latest first
};

extern PyTypeObject* caller_type;
inline CallerObject* as_caller(PyObject* object) { return reinterpret_cast<CallerObject*>(object); }

// What a call is known by, and its arrays.
struct CallArguments {
    std::vector<uint64_t> words;
    std::vector<Node*> nodes;
    std::vector<PyObject*> others; // borrowed: what counts by its address
    std::vector<PyObject*> arrays; // borrowed: Arrays, and Handles
    bool in_use = false;

    void clear() {
        words.clear();
        nodes.clear();
        others.clear();
        arrays.clear();
    }
};

void declare_pushed_calls(nb::module_& module);

// Writes what a call is known by: false where only Python can tell, or with a Python error.
bool write_all(PyObject* const* given, Py_ssize_t count, PyObject* names, CallArguments& to);
// Shared: while it is used Python may run, and forget it.
std::shared_ptr<Call> find(const CallerObject& self, const CallArguments& given);
// Makes the tree that `form` says, (type, keys, children) or None for a leaf, of the arrays from
// `next` on.
PyObject* tree(PyObject* form, PyObject* arrays, Py_ssize_t& next);

// The thread's Arguments; its own where what runs meanwhile calls a function itself.
class BorrowedArguments {
  public:
    BorrowedArguments();
    ~BorrowedArguments() { given.in_use = false; }

  private:
    CallArguments& shared_;
    CallArguments own_;

  public:
    CallArguments& given;
};

} // namespace tenfold::bindings
