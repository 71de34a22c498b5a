// Python objects: the Array object, the registered hooks, and the conversion of objects to Nodes.
// All binding files share them. Only files of this folder include Python.h.
#pragma once
#include <Python.h>
#include <nanobind/nanobind.h>

#include <array>
#include <span>
#include <vector>

#include "exec/tier_policy.h"
#include "memory/deferred_decref.h"

namespace tenfold::bindings {

namespace nb = nanobind;

// A user's Array: a rebindable name for a Node, or for a view (an op applied to a base Array). A
// view caches its node. The cache is valid while the root Array, which alone can be rebound, has
// the same version. A view that shows a part of each element borrows its base where it is the first
// view of a root: without another name for the base, it becomes a root itself, and the elements go.
struct ExternalBuffer;

struct ArrayObject {
    PyObject_HEAD Node* node; // owned; null for a view whose root was rebound since
    ArrayObject* base;        // null when this is not a view; owned unless `borrows_base`
    ArrayObject* root;        // borrowed through base; this object itself when it is not a view
    const Op* view_op;
    Params* view_params; // owned
    Type* view_type;     // owned
    uint64_t version;    // a root's rebind count; in a view: the root's when node was made
    ArrayObject *views, *next, *prev; // a root's views; a view's neighbours among them
    ExternalBuffer* external;         // for a root whose memory is the user's; owned
    bool borrows_base;
    PyObject* weak_references;
};

// The Python record of an Array on external memory, which its user can write to.
struct ExternalBuffer {
    PyObject* record; // owned
};

extern PyTypeObject* array_type;
inline bool is_array(PyObject* object) { return Py_TYPE(object) == array_type; }

bool make_array_type(PyObject* module);
PyObject* new_array(Ref<Node> node); // a new reference
// The arrays of a node's results: one Array, or a tuple of them. They are views of `base` if the op
// makes views.
PyObject* wrap_results(Ref<Node> node, PyObject* base);
// The results of a node with several, one by one.
std::vector<Ref<Node>> results_of(const Ref<Node>& node);
// The node an Array names now, borrowed; brings a view up to date; null with a Python error on
// failure.
Node* checked_node_of(PyObject* array);
Type& type_of(PyObject* array); // it cannot change, so no view is brought up to date for it
// Invalidates the cached nodes of all views; each is recreated on use.
void invalidate_views(ArrayObject* root);
void rebind(ArrayObject* array, Ref<Node> node);
// Exchanges an array and a view of it: the array becomes the view, and the view the array, of which
// all other views are views then.
void take_place_of_view(ArrayObject* array, ArrayObject* view);
// Number of functions being traced, by all threads (trace_log.h). This thread's trace, if any,
// records each Array that is created, read with its node, or about to be rebound.
extern int num_active_traces;
void trace_created(PyObject* array);
void trace_read(PyObject* array, Node* node);
void trace_rebind(ArrayObject* array);

inline Node* node_of(PyObject* object) {
    auto* array = reinterpret_cast<ArrayObject*>(object);
    return !array->base && !num_active_traces ? array->node : checked_node_of(object);
}

// A function of a module of tenfold that native code calls. The module is imported at the first
// call; later calls look the name up in it.
class PythonFunction {
  public:
    constexpr PythonFunction(const char* module, const char* name) : module_(module), name_(name) {}
    // Throws the error of the import.
    nb::object get() {
        if (!names_) {
            nb::object module = nb::module_::import_(module_);
            names_ = Py_NewRef(PyModule_GetDict(module.ptr())); // for good, as the module
            key_ = PyUnicode_InternFromString(name_);
        }
        PyObject* function = PyDict_GetItemWithError(names_, key_);
        if (!function) nb::raise_type_error("%s has no %s", module_, name_);
        return nb::borrow(function);
    }

  private:
    const char *module_, *name_;
    PyObject *names_ = nullptr, *key_ = nullptr; // written under the GIL
};

// Python functions that the core calls; named in `set_hooks`.
struct Hooks {
    PyObject *infer, *convert, *refuse_scalar, *evaluate, *get_item, *set_item, *assign, *advance,
        *scalar_of, *origin, *format, *refuse_operand, *wait, *evaluate_all, *apply_to_kinds;
    PyObject* missing_attribute; // set by the public namespace, later than the others
};
extern Hooks hooks;
extern PyMethodDef array_methods[];

struct Options {
    bool strict = false;
    uint8_t device = 0;
    uint32_t pending_depth = 100'000;
    bool origins = false; // whether every node remembers where it was written
    // Number of all settings. A block's number holds while the process's is `process_number`.
    uint64_t fingerprint = 0;
    uint64_t process_number = 0;
    bool interpret_cold = false; // whether small graphs may be computed node by node at first
    uint8_t target = 0;
    int threads = 1;
    uint32_t batch_limit = 0;           // members of a batch at most; 0: any number, 1: no batching
    bool rules = true;                  // whether any rewrites
    bool verify = false;                // batched results are compared with their members
    bool strict_sync = false;           // whether an implicit wait is refused
    uint16_t hot_runs = TIERS.hot_runs; // runs after which a small graph is planned

    TierOptions tiers() const { return {interpret_cold, verify, hot_runs}; }
};
const Options& current_options();
void set_process_options(const Options& options);
void set_options_variable(PyObject* context_variable);
void enable_option_blocks(); // for options or rules: from now on the variables may have values
// The same for an internal block, in which the context is never copied: until it ends.
void enter_internal_block(bool entering);
// The state of rewrite rules: a number for the process, and a context variable. The variable has
// its default while no block is open.
void set_process_rules(uint64_t number);
void set_rules_variable(PyObject* context_variable, PyObject* none);
// The options and rules in force. False where only Python can tell.
bool current_option_key(OptionKey& key);

// Applies an op; empty with a Python error set when its rules refuse. `line`: where it is written,
// unless that is to be found.
Ref<Node> make_node(const Op* op, std::span<Node* const> inputs, Ref<Params> params,
                    const Ref<Origin>* line = nullptr);
// The Array, or Arrays, of a node that was just made; null with a Python error.
PyObject* wrap_node(Ref<Node> node, PyObject* base);

// Whether an object becomes an operand without running Python: not a foreign one, nor a stale view.
inline bool is_immediate(PyObject* object) {
    if (!is_array(object))
        return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object);
    auto* array = reinterpret_cast<ArrayObject*>(object);
    return !array->base || (array->version == array->root->version && !array->root->external);
}

// A Python scalar, an Array, or an object that the `convert` hook accepts, as a Node. The Node is
// borrowed from an Array, or owned here. `get()` is null with a Python error, or without one if the
// object is not supported.
class Operand {
  public:
    Operand(PyObject* object, PyObject* peer) {
        if (is_array(object))
            node_ = node_of(object);
        else
            convert(object, peer);
    }
    Node* get() const { return node_; }
    // Counts a borrowed Node too: needed where Python runs later, which may rebind its Array.
    void retain() { owned_ = Ref<Node>(node_); }

  private:
    void convert(PyObject* object, PyObject* peer);

    Node* node_ = nullptr;
    Ref<Node> owned_;
};
PyObject* scalar_to_python(const Scalar& scalar);

// Empty with a Python error for parameters that have no canonical form.
Ref<Params> params_of(const Op& op, PyObject* tuple);
std::vector<IndexMap::Step> index_steps(nb::handle tuple); // steps of Python's index map
// Appends the canonical bytes of an object with value semantics: numbers, strings, None, dtypes,
// static types, and tuples of them. False for anything else.
bool append_plain_bytes(std::string& bytes, PyObject* object);

PyObject* params_to_python(const Params* params); // a new reference

// x[key] where that needs no Python; null without an error where it does.
PyObject* get_basic_item(PyObject* self, PyObject* key);
// x[key] = value where that needs no Python: false without an error where it does, with no effect.
// `update_view` does the same for `part op= e`, for a part of an array.
bool set_basic_item(PyObject* self, PyObject* key, PyObject* value);
bool update_view(ArrayObject* part, PyObject* value);
void set_slice_ops(Op& index, Op& update, Op& gather);

// Small numbers for dtypes, devices and storage kinds, and their Python objects.
void declare_weak_types(std::array<uint16_t, 4> dtypes); // bool, int, float, complex
int dtype_id(PyObject* dtype);                           // -1 with an error when unknown
int declared_dtype(PyObject* dtype); // the same for the very object that was declared; else -1
uint16_t dtype_of_numbers(int form); // dtype of Python's bools (0), ints, floats, complex
bool is_bfloat16(uint16_t id);
PyObject* dtype_object(uint16_t id); // borrowed
PyObject* device_name(uint8_t id);   // borrowed
uint8_t device_id(nb::handle name);
PyObject* shape_tuple(const Type& type);
// Computes a node by a cached plan. False without a plan, after a failed step, while a timeline is
// recorded, or with windows: then Python computes. Throws the exception of a signal.
bool compute_by_plan(Ref<Node> node);
bool compute_by_plan(std::span<Node* const> pending);
// The same for a value that is waited for.
bool compute_and_wait(Ref<Node> node);
void close_window(PyObject* record); // its Array is freed; steals the record
void enable_external_buffers();      // from now on an Array may use external memory
bool may_have_external_buffers();

void declare_type_tables(nb::module_& module);
void declare_nodes(nb::module_& module);
void declare_derivative_walk(nb::module_& module);
void declare_kind_rules(nb::module_& module);
void declare_csr_patterns(nb::module_& module);
void declare_trace_log(nb::module_& module);
void declare_values(nb::module_& module);
void declare_launch(nb::module_& module);
void declare_executables(nb::module_& module);
void declare_external_buffers(nb::module_& module);
void declare_context_managers(nb::module_& module);
void declare_functions(nb::module_& module);
void declare_op_interpreter(nb::module_& module);
void declare_policies(nb::module_& module);
void declare_graph_batches(nb::module_& module);
void declare_submissions(nb::module_& module);
void declare_call_cache(nb::module_& module);
void declare_code(nb::module_& module);
void declare_cuda(nb::module_& module);
void declare_scan_loop(nb::module_& module);
void declare_engine(nb::module_& module);

inline void drain_decrefs() {
    if (has_deferred_decrefs())
        drain_deferred_decrefs([](void* object) { Py_DECREF(static_cast<PyObject*>(object)); });
}

// A C exception on its way out of a C slot becomes a Python error.
template <class F> PyObject* to_python_error(F&& function) {
    try {
        return function();
    } catch (nb::python_error& error) {
        error.restore();
        return nullptr;
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

} // namespace tenfold::bindings
