// Launch bindings: unpack a launch's arguments, release the GIL while it runs, and handle Ctrl-C.
#include "threads/worker_pool.h"

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

#include "exec/float_env.h"
#include "memory/allocation_pool.h"
#include "memory/pooled_vector.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {
namespace {

bool ending = false; // the interpreter is; written under the GIL

// The kernel of loaded code, which the argument holds, or of code that the caller keeps.
KernelHandle kernel_of(nb::handle kernel) {
    if (nb::isinstance<EntryPoint>(kernel)) return nb::cast<EntryPoint&>(kernel).kernel;
    return KernelHandle(PyLong_AsVoidPtr(kernel.ptr()));
}

// The address of a Value, whose device it notes; or an address as it is.
void* address_of(nb::handle object, const Device*& device) {
    if (!nb::isinstance<ValueHandle>(object)) return PyLong_AsVoidPtr(object.ptr());
    const Buffer& buffer = nb::cast<ValueHandle&>(object).value->buffers[0];
    if (buffer.allocation->device) device = &device_at(buffer.allocation->device);
    return buffer.address();
}

// The items of a bytes object, 8 bytes each.
template <class T> std::span<const T> items_of(const nb::bytes& bytes) {
    if (bytes.size() % 8 != 0) throw nb::type_error("sizes and scalars have 8 bytes for each item");
    return {reinterpret_cast<const T*>(bytes.c_str()), bytes.size() / 8};
}

// The error of a Launch that ended early.
void cut_short(const Result& result, const Work& work, const Device& device = CPU) {
    if (PyErr_Occurred()) return; // raised by a signal handler
    if (result.outcome == Outcome::no_memory)
        raise_no_memory(device, work.scratch, "scratch");
    else if (ending) // a daemon thread ends without a word, as where it waits for the GIL
        PyErr_SetNone(PyExc_SystemExit);
    else
        PyErr_SetString(PyExc_RuntimeError, "a signal handler forked in the middle of a launch; "
                                            "only the parent has its result");
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

// launch(kernel, buffers, sizes, scalars, scratch, units, grain, threads) -> the status
int64_t launch(nb::handle kernel, nb::object buffers, const nb::bytes& sizes,
               const nb::bytes& scalars, int64_t scratch, int64_t units, int64_t grain,
               int64_t threads) {
    nb::tuple held(buffers);     // its items live on while the GIL is released
    const Device* device = &CPU; // device of the Values' memory
    PooledVector<void*> addresses;
    for (nb::handle item : held) addresses.push_back(address_of(item, device));
    Work work;
    work.kernel = kernel_of(kernel);
    if (PyErr_Occurred()) nb::raise_python_error();
    if (!work.kernel || scratch < 0 || units < 0 || grain < 1 || threads < 0)
        throw nb::value_error("launch() needs a kernel, scratch, units and threads of at least 0, "
                              "and a grain of at least 1");
    work.buffers = addresses;
    work.sizes = items_of<int64_t>(sizes);
    work.scalars = items_of<uint64_t>(scalars);
    work.scratch = std::size_t(scratch);
    work.units = units;
    work.grain = grain;
    work.threads = int(std::min<int64_t>(threads, 1 << 20));
    Result result = PythonLauncher().launch_and_wait(*device, work);
    if (result.outcome == Outcome::done) return result.status;
    cut_short(result, work, *device);
    nb::raise_python_error();
}

// Cancels all launches: the interpreter ends.
void end() {
    ending = true;
    disable_unloading();
    cancel_launches();
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

} // namespace

Result launch_without_gil(Work& work) {
    Result result = run(work);
    if (result.outcome == Outcome::cancelled) cut_short(result, work);
    return result;
}

void declare_launch(nb::module_& module) {
    using namespace nb::literals;
    module.def("launch", launch);
    module.def("_end", end);
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
