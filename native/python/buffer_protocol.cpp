// Buffer protocol (PEP 3118): the values of an Array as a read-only buffer, which memoryview,
// bytes, files and hashes take, and its layout, which Pillow takes (`__array_interface__`). NumPy's
// conversions are declined both, so that they take `__array__`.
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <vector>

#include "python/array_transfer.h"

namespace tenfold::bindings {
namespace {

using Address = std::uintptr_t;

struct CodeRange {
    Address begin, end;
    bool contains(Address code) const { return code >= begin && code < end; }
};

// Sets `data`, a CodeRange, to the segment of machine code that has its first address.
int find_segment(dl_phdr_info* object, std::size_t, void* data) {
    auto* code = static_cast<CodeRange*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const auto& segment = object->dlpi_phdr[i];
        Address begin = object->dlpi_addr + segment.p_vaddr;
        CodeRange range{begin, begin + segment.p_memsz};
        if (segment.p_type != PT_LOAD || !range.contains(code->begin)) continue;
        *code = range;
        return 1;
    }
    return 0;
}

const CodeRange& numpy_code() {
    static const CodeRange code = [] {
        CodeRange range{reinterpret_cast<Address>(NumpyApi::get().new_array), 0};
        dl_iterate_phdr(find_segment, &range);
        return range;
    }();
    return code;
}

// NumPy -> PyMemoryView_FromObject -> its buffer -> PyObject_GetBuffer -> lend_buffer -> the walk.
// A Python function that NumPy calls, as in np.frompyfunc(memoryview, 1, 1), is one frame longer.
constexpr int MAX_FRAMES = 6;

// A return address on the stack, and how far above the frame of `lend_buffer` it stands.
struct ReturnAddress {
    std::ptrdiff_t distance;
    Address code;
};

struct StackWalk {
    const char* frame;
    int frames = 0;
    bool has_numpy = false;
    std::vector<ReturnAddress> returns;
};

_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* data) {
    auto* walk = static_cast<StackWalk*>(data);
    Address code = _Unwind_GetIP(context);
    auto* place = reinterpret_cast<const char*>(_Unwind_GetCFA(context)) - sizeof(Address);
    if (walk->frames++ > 1) walk->returns.push_back({place - walk->frame, code});
    walk->has_numpy = numpy_code().contains(code);
    return walk->has_numpy || walk->frames == MAX_FRAMES ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

using CallChain = std::vector<ReturnAddress>;

// Whether NumPy's code asks, by the return addresses on the stack. The walk takes a microsecond, so
// the chain of calls that it found last is compared first: the functions on it have frames of fixed
// size, so that equal addresses mean the same chain.
[[gnu::noinline]] bool asked_by_numpy(const void* frame, CallChain& known) {
    StackWalk walk{static_cast<const char*>(frame), 0, false, {}};
    auto is_on_stack = [&](const ReturnAddress& expected) {
        return *reinterpret_cast<const Address*>(walk.frame + expected.distance) == expected.code;
    };
    if (!known.empty() && std::ranges::all_of(known, is_on_stack)) return true;
    _Unwind_Backtrace(visit_frame, &walk);
    if (walk.has_numpy && std::ranges::all_of(walk.returns, is_on_stack))
        known = std::move(walk.returns);
    return walk.has_numpy;
}

PythonFunction python_values{"tenfold.interop.materialize", "lent_values"};

// The values as a read-only ndarray, computed now.
nb::object values_of(PyObject* array) {
    if (!is_bfloat16(type_of(array).dtype))
        if (Ref<Value> value = readable_value(array))
            return nb::steal(export_value(value, nullptr));
    if (PyErr_Occurred()) nb::raise_python_error();
    return python_values.get()(nb::handle(array));
}

bool needs_contiguous(int flags) {
    return (flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
           (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
           (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
}

} // namespace

[[gnu::noinline]] int lend_buffer(PyObject* array, Py_buffer* view, int flags) {
    view->obj = nullptr;
    static CallChain known; // under the GIL
    if (flags == PyBUF_FULL_RO && asked_by_numpy(__builtin_frame_address(0), known)) {
        PyErr_SetNone(PyExc_BufferError); // NumPy drops it
        return -1;
    }
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError,
                        "memoryview: an Array lends its values for reading only\n"
                        "  remedy: assign to the Array, or take np.array(x), a writeable copy");
        return -1;
    }
    PyObject* values = to_python_error([&] {
        nb::object found = values_of(array);
        if (needs_contiguous(flags) && !as_ndarray(found.ptr()).has(NdArray::C_ORDER)) {
            found = found.attr("copy")();
            as_ndarray(found.ptr()).flags &= ~NdArray::WRITEABLE;
        }
        return found.release().ptr();
    });
    int status = values ? PyObject_GetBuffer(values, view, flags) : -1;
    Py_XDECREF(values);
    return status;
}

namespace {
PythonFunction layout{"tenfold.interop.materialize", "array_interface"};
}

[[gnu::noinline]] PyObject* array_interface(PyObject* array) {
    static CallChain known; // under the GIL
    if (asked_by_numpy(__builtin_frame_address(0), known)) return nullptr;
    return to_python_error([&] { return PyObject_CallOneArg(layout.get().ptr(), array); });
}

} // namespace tenfold::bindings
