// Launch bindings: unpack a launch's arguments, release the GIL while it runs, and handle Ctrl-C.
#include "threads/worker_pool.h"

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

#include "exec/float_env.h"
#include "memory/allocation_pool.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {
namespace {

PyTypeObject *value_type = nullptr, *entry_type = nullptr;
bool ending = false; // the interpreter is; written under the GIL

struct LaunchArguments {
    static constexpr std::size_t FEW = 16;
    Work work;
    const Device* device = &CPU; // of the memory of its Values
    PyObject* buffers = nullptr; // a tuple: its items live on while the GIL is released
    std::array<void*, FEW> few;
    std::vector<void*> many;
};

bool take_integer(PyObject* object, int64_t& number) {
    number = PyLong_AsLongLong(object);
    return number != -1 || !PyErr_Occurred();
}

bool take_address(PyObject* object, void*& address, const Device*& device) {
    if (Py_TYPE(object) == value_type) {
        const Buffer& buffer = nb::inst_ptr<ValueHandle>(object)->value->buffers[0];
        if (buffer.allocation->device) device = &device_at(buffer.allocation->device);
        address = buffer.address();
        return true;
    }
    address = PyLong_AsVoidPtr(object);
    return address || !PyErr_Occurred();
}

// Of loaded code, which the argument holds; or of code that the caller keeps.
KernelHandle kernel_of(PyObject* kernel) {
    if (Py_TYPE(kernel) != entry_type) return KernelHandle(PyLong_AsVoidPtr(kernel));
    return nb::inst_ptr<EntryPoint>(kernel)->kernel;
}

bool take_buffers(PyObject* object, LaunchArguments& arguments) {
    arguments.buffers = PySequence_Tuple(object); // a tuple is its own
    if (!arguments.buffers) return false;
    Py_ssize_t length = PyTuple_GET_SIZE(arguments.buffers);
    void** table = arguments.few.data();
    if (std::size_t(length) > LaunchArguments::FEW) {
        arguments.many.resize(std::size_t(length));
        table = arguments.many.data();
    }
    arguments.work.buffers = {table, std::size_t(length)};
    for (Py_ssize_t i = 0; i < length; ++i)
        if (!take_address(PyTuple_GET_ITEM(arguments.buffers, i), table[i], arguments.device))
            return false;
    return true;
}

// The items of a bytes object, 8 bytes each.
template <class T> bool take_items(PyObject* object, std::span<const T>& items) {
    if (!PyBytes_Check(object) || PyBytes_GET_SIZE(object) % 8 != 0) {
        PyErr_SetString(PyExc_TypeError, "sizes and scalars are bytes, 8 for each item");
        return false;
    }
    items = {reinterpret_cast<const T*>(PyBytes_AS_STRING(object)),
             std::size_t(PyBytes_GET_SIZE(object) / 8)};
    return true;
}

bool take_arguments(PyObject* const* args, Py_ssize_t count, LaunchArguments& arguments) {
    if (count != 8) {
        PyErr_SetString(PyExc_TypeError, "launch() takes 8 arguments");
        return false;
    }
    Work& work = arguments.work;
    int64_t scratch = 0, threads = 0;
    work.kernel = kernel_of(args[0]);
    if (PyErr_Occurred() || !take_buffers(args[1], arguments) || !take_items(args[2], work.sizes) ||
        !take_items(args[3], work.scalars) || !take_integer(args[4], scratch) ||
        !take_integer(args[5], work.units) || !take_integer(args[6], work.grain) ||
        !take_integer(args[7], threads))
        return false;
    if (!work.kernel || scratch < 0 || work.units < 0 || work.grain < 1 || threads < 0) {
        PyErr_SetString(PyExc_ValueError, "launch() needs a kernel, scratch, units and threads of "
                                          "at least 0, and a grain of at least 1");
        return false;
    }
    work.scratch = std::size_t(scratch);
    work.threads = int(std::min<int64_t>(threads, 1 << 20));
    return true;
}

// The error of a Launch that ended early.
PyObject* cut_short(const Result& result, const Work& work) {
    if (PyErr_Occurred()) return nullptr; // raised by a signal handler
    if (result.outcome == Outcome::no_memory)
        return PyErr_Format(PyExc_MemoryError, "no memory for %zu bytes of scratch", work.scratch);
    if (ending) // a daemon thread ends without a word, as where it waits for the GIL
        PyErr_SetNone(PyExc_SystemExit);
    else
        PyErr_SetString(PyExc_RuntimeError, "a signal handler forked in the middle of a launch; "
                                            "only the parent has its result");
    return nullptr;
}

// Python runs signal handlers on its main thread only, which is the process's.
bool interrupted(void* context) {
    if (gettid() != getpid()) return false;
    auto*& state = *static_cast<PyThreadState**>(context);
    PyEval_RestoreThread(state);
    bool raised = PyErr_CheckSignals() != 0;
    state = PyEval_SaveThread();
    return raised;
}

Result run_without_gil(Work& work) {
    Launch launch(work); // counted under the GIL: cancel_launches() misses none
    PyThreadState* state = PyEval_SaveThread();
    work.interrupted = work.uninterruptible ? nullptr : interrupted;
    work.context = &state;
    Result result = launch.run();
    launch.unregister();
    PyEval_RestoreThread(state);
    return result;
}

// At the end of the interpreter a launch keeps the GIL, and so kernels and memory alive.
Result run(Work& work) {
    bool keeps_gil = work.threads == 0 || ending;
    return keeps_gil ? DirectLauncher().run_on_host(work) : run_without_gil(work);
}

class PythonLauncher : public HostLauncher {
  public:
    Result run_on_host(Work& work) override { return run(work); }
};

PyObject* status_of(const Device& device, Work& work) {
    Result result = PythonLauncher().launch_and_wait(device, work);
    if (result.outcome != Outcome::done) return cut_short(result, work);
    return PyLong_FromLongLong(result.status);
}

PyObject* launch(PyObject*, PyObject* const* args, Py_ssize_t count) {
    return to_python_error([&]() -> PyObject* {
        LaunchArguments arguments;
        PyObject* status = take_arguments(args, count, arguments)
                               ? status_of(*arguments.device, arguments.work)
                               : nullptr;
        Py_XDECREF(arguments.buffers);
        return status;
    });
}

PyObject* end(PyObject*, PyObject*) {
    ending = true;
    disable_unloading();
    cancel_launches();
    Py_RETURN_NONE;
}

// Calls of BLAS and LAPACK on daemon threads. While one runs, the process exits without
// destructors. OpenBLAS's destructor waits for its threads, which the call may occupy forever.
std::atomic<int> library_calls{0}; // relaxed: a number

void leave_library_calls(int status, void*) {
    if (library_calls.load(std::memory_order_relaxed) <= 0) return;
    std::fflush(nullptr);
    _exit(status);
}

void declare_library_calls(nb::module_& module) {
    pthread_atfork(nullptr, nullptr, [] { library_calls = 0; });
    on_exit(leave_library_calls, nullptr);
    module.def("begin_library_call", [] { ++library_calls; });
    module.def("end_library_call", [] { --library_calls; });
}

PyMethodDef functions[] = {
    {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(launch)), METH_FASTCALL,
     "Run a kernel; the smallest status of its ranges that is not 0, or 0."},
    {"_end", end, METH_NOARGS, "Cancel all launches: the interpreter ends."},
    {nullptr, nullptr, 0, nullptr},
};

} // namespace

Result launch_without_gil(Work& work) {
    Result result = run(work);
    if (result.outcome == Outcome::cancelled) cut_short(result, work);
    return result;
}

void declare_launch(nb::module_& module) {
    using namespace nb::literals;
    value_type = reinterpret_cast<PyTypeObject*>(nb::type<ValueHandle>().ptr());
    entry_type = reinterpret_cast<PyTypeObject*>(nb::type<EntryPoint>().ptr());
    if (PyModule_AddFunctions(module.ptr(), functions) != 0) nb::raise_python_error();
    nb::module_::import_("atexit").attr("register")(module.attr("_end"));
    declare_library_calls(module);
    nb::class_<LibraryHandle>(module, "BlasLibrary")
        .def("__init__",
             [](LibraryHandle* self, std::size_t get, std::size_t set) {
                 new (self)
                     LibraryHandle{&BlasLibrary::of(reinterpret_cast<BlasLibrary::Get>(get),
                                                    reinterpret_cast<BlasLibrary::Set>(set))};
             })
        .def_prop_ro("threads", [](LibraryHandle& self) { return self.library->threads(); })
        .def("limit_threads",
             [](LibraryHandle& self, int threads) { self.library->limit_threads(threads); })
        .def("unlimit_threads", [](LibraryHandle& self) { self.library->unlimit_threads(); })
        .def_static("forget_holders", BlasLibrary::forget_holders);
    module.def("set_threads", set_threads, "threads"_a);
    module.def("threads", threads);
    module.def("fail_allocation", fail_allocation, "n"_a);
    module.def("reset_float_modes", [] {
        unsigned before = _mm_getcsr();
        _mm_setcsr(DEFAULT_MXCSR);
        return before;
    });
    module.def(
        "restore_float_modes", [](unsigned modes) { _mm_setcsr(modes); }, "modes"_a);
    module.def("live_bytes", [] { return pool_statistics().live_bytes; });
}

} // namespace tenfold::bindings
