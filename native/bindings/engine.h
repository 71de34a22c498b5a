// What the files of the engine share: its Python objects, and the way from them to values.
#pragma once
#include "../engine.h"
#include "values.h"

namespace tenfold::bindings {

// Python functions and types that the engine needs; named in `set_engine_hooks`.
struct EngineHooks {
    PyObject *describe, *import, *run, *signature, *copy, *error, *log, *wait, *object, *op, *add;
};
extern EngineHooks engine_hooks;

struct HandleObject {
    PyObject_HEAD Future* future; // counted; null once it is cleared
    PyObject* weak_references;
};
extern PyTypeObject* handle_type;
inline bool is_handle(PyObject* object) { return Py_TYPE(object) == handle_type; }
bool make_handle_type(PyObject* module);
PyObject* new_handle(Ref<Future> future); // a new reference; it counts as a handle by now

Host& host();
// What is pushed; empty with a Python error. `params`: a dict, or null.
Ref<Operation> operation_of(PyObject* operator_, PyObject* params);
// Whether this thread is running an operator.
bool inside_operator();

// What a Python object is as a value; it must need no import. Empty with a Python error.
Answer answer_of(PyObject* object);
// A settled Future's value; a new reference. Null with a Python error where it failed.
PyObject* value_to_python(const Future& future);
PyObject* error_to_python(const Future& future); // a new exception of a failed one
// Waits; 1: settled, 0: not in time, -1: a Python error. `seconds` negative: as long as it takes.
int wait_for(Future& future, double seconds, const char* what);
// What nobody observed is logged.
void log_lost();
void log_failure(const Failure& failure);
// What a worker calls once a Future is settled.
void remember_call(Future& future, PyObject* function);
void forget_calls(Future& future);

// Products of matrices of equal Types, as one. False where each is to be computed alone.
bool run_products(Job& job);
// Makes known how operations of tenfold on such Types are batched.
void prepare(Engine& engine, const Operation& operation, std::span<Type* const> types);
// A loop for contiguous operands; null where there is none. In singly.cpp.
const Loop* contiguous_loop(const Node& node, std::span<const Node* const> inputs);
bool has_loops_on(uint8_t device_of_type);

} // namespace tenfold::bindings
