// Engine bindings: the engine's Python objects, and their conversion to values.
#pragma once
#include "engine/engine.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {

// Python functions and types that the engine needs; imported with the first Engine.
struct EngineHooks {
    PyObject *describe, *import, *run, *signature, *copy, *error, *log, *wait, *object, *add,
        *options, *parts, *plan, *run_stacked;
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
// Waits for all pending operators, and for those that they push meanwhile. False with a Python
// error.
bool flush_all(Engine& engine);
void finish_frees(Engine& engine); // frees ended operators, and logs unobserved failures
// Closes it; whether its workers have ended within so many seconds.
bool shut_down_engine(Engine& engine, bool cancel, double seconds);
// At the end of the interpreter: impure operators have so many seconds to end. Returns (name,
// whether it runs) of each that did not.
nb::list shut_down_engines(double seconds);
// The operation of a push, under the options in force here, or under others. Empty with a Python
// error. `params`: a dict, or null. Arguments with value semantics may become constants of the
// operation, and are then removed from `args`.
Ref<Operation> make_operation(PyObject* operator_, PyObject* params,
                              std::span<PyObject* const>& args);
Ref<Operation> make_operation_with_options(Ref<OptionSet> options, PyObject* operator_,
                                           PyObject* params, std::span<PyObject* const>& args);
// The operation of a pushed call of a traced function. Its arguments become its inputs, which
// `call` owns; `names` are the keywords of the last ones. If only a run can determine its graph, it
// is an operator that calls the function.
struct PushedCall {
    std::vector<nb::object> imported;
    std::vector<PyObject*> arguments; // imported, with those of keywords
    std::vector<PyObject*> inputs;    // Arrays and Handles
};
bool is_caller(PyObject* object);
Ref<Operation> make_call_operation(PyObject* caller, std::span<PyObject* const>& args,
                                   PyObject* names, PyObject* params, PushedCall& call);
// A pushed operation of tenfold's as a call of its traced function, from the second push with such
// arguments on; empty for others, and where it is pushed as it is. `any` arguments, or those alone
// that are no inputs of an operation, such as lists.
Ref<Operation> make_repeated_call(PyObject* operator_, std::span<PyObject* const>& args,
                                  PyObject* names, bool any, PushedCall& call);
// The plan for such inputs and captured values; without a plan if it needs Python.
Ref<PlannedGraph> plan_call(const Operation& operation, std::span<Type* const> types);
// The bytes of the results, where the Types of the inputs tell them; else 0.
std::size_t expected_bytes(Engine& engine, const Operation& operation,
                           std::span<PyObject* const> args, std::span<Future* const> inputs);
// A value as a Python object, in the form that the operation states.
PyObject* value_to_python(const Operation* operation, Ref<Value> value);
const Ref<OptionSet>& current_option_set(); // the options in force here; empty with a Python error
// Whether this thread is running an operator.
bool is_inside_operator();

// Converts a Python object to a value; it must need no import. Empty with a Python error.
OperatorResult answer_from_object(PyObject* object);
// A settled Future's value; a new reference. Null with a Python error where it failed.
PyObject* value_to_python(const Future& future);
PyObject* error_to_python(const Future& future); // a new exception of a failed one
// Waits; 1: settled, 0: not in time, -1: a Python error. `seconds` negative: as long as it takes.
int wait_for_future(Future& future, double seconds, const char* what);
double seconds_now();
// Logs unobserved failures.
void log_unobserved();
void log_failure(const Failure& failure);
// A callback that a worker runs once a Future is settled.
void add_callback(Future& future, PyObject* function);
bool has_callbacks(Future& future); // also while they are called
void drop_callbacks(Future& future);

// Makes known how operations of tenfold on such Types are batched.
void prepare_batcher(Engine& engine, Operation& operation, std::span<Type* const> types);
// A loop of one operation for contiguous operands; null without a kernel. In
// op_interpreter_bindings.cpp.
const Loop* contiguous_loop(const GraphTemplate& graph_template);
std::unique_ptr<OpKernelCompiler> make_kernel_compiler(); // for the options here; with the GIL
BatchPlanner& python_batch_planner();                     // with the GIL

} // namespace tenfold::bindings
