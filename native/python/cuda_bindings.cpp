// CUDA bindings: the devices of NVIDIA, modules of PTX, and memory that other libraries share, by
// DLPack's structures, which nanobind makes and reads.
#include "threads/cuda_device.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "python/value_bindings.h"

namespace tenfold::bindings {

namespace {

// The processors of NVIDIA's devices, and what is missing if there are none.
std::pair<std::vector<std::string>, std::string> cuda_processors() {
    std::vector<std::string> processors;
    std::string why;
    while (auto* device = cuda::cuda_device(processors.size(), why))
        processors.push_back(device->processor());
    return {processors, why};
}

// The functions of a module of PTX, and why there are none.
std::pair<std::vector<EntryPoint>, std::string> load_ptx(std::size_t number,
                                                         const std::string& text,
                                                         const std::vector<std::string>& names,
                                                         bool may_fail) {
    std::string why;
    std::vector<EntryPoint> functions;
    cuda::CudaDevice* device = cuda::cuda_device(number, why);
    cuda::Handle module = device ? device->load(text, why) : nullptr;
    if (!module) return {functions, why};
    auto code = Ref<Code>::adopt(new Code([device, module] { device->unload(module); }));
    for (const std::string& name : names)
        functions.push_back({code, device->kernel_of(module, name.c_str(), may_fail)});
    if (!std::ranges::all_of(functions, [](auto& one) { return bool(one.kernel); }))
        return {{}, device->failure()};
    return {functions, why};
}

constexpr auto KEEPS = nb::rv_policy::reference; // of an array, which is not copied

cuda::CudaDevice& device_behind(const Device& table) {
    cuda::CudaDevice* device = cuda::cuda_device_of(table);
    if (!device || device->failure()) raise_no_memory(table, 0);
    return *device;
}

// The stream of the queue to which the calling thread gives work.
std::size_t cuda_stream(nb::handle name) {
    const Device& table = device_of(device_id(name));
    cuda::Handle stream = device_behind(table).stream();
    if (!stream) raise_no_memory(table, 0);
    return reinterpret_cast<std::size_t>(stream);
}

template <class... Options>
nb::object array_of(const ValueHandle& self, nb::dlpack::dtype dtype, int device, int number) {
    const Value& value = *self.value;
    std::vector<std::size_t> shape(value.type->shape.begin(), value.type->shape.end());
    std::vector<int64_t> strides = strides_of(value);
    for (int64_t& stride : strides) stride /= std::max(dtype.bits / 8, 1);
    return nb::cast(nb::ndarray<nb::array_api, Options...>(value.buffers[0].address(), shape.size(),
                                                           shape.data(), nb::cast(self),
                                                           strides.data(), dtype, device, number));
}

// An object with `__dlpack__` on the memory of a Value. What reads it by `stream` comes after what
// writes it; 0: nothing is ordered. `code` is DLPack's of the dtype, `device` and `number` are its
// of the device.
nb::object lend(const ValueHandle& self, uint8_t code, int device, int number, std::size_t stream,
                bool read_only) {
    const Value& value = *self.value;
    const Device& table = device_of(value.type->device);
    if (device == nb::device::cuda::value &&
        !device_behind(table).lend(value.buffers[0].address(),
                                   reinterpret_cast<cuda::Handle>(stream)))
        raise_no_memory(table, 0);
    if (device == nb::device::cpu::value) host_data(value); // waits
    nb::dlpack::dtype dtype{code, uint8_t(8 * dtype_of(value.type->dtype).bytes), 1};
    return read_only ? array_of<nb::ro>(self, dtype, device, number)
                     : array_of<>(self, dtype, device, number);
}

// A Value of an array of another library, which has ordered the stream of the queue: on its memory,
// or a copy, which is done. None: it cannot be shared, since it is misaligned, or overlaps other
// memory that is in use.
std::optional<ValueHandle> borrow_cuda(nb::ndarray<nb::ro> array, nb::handle dtype, nb::handle name,
                                       bool copies) {
    const std::vector<int64_t> shape(array.shape_ptr(), array.shape_ptr() + array.ndim());
    ValueHandle made{Ref<Value>::adopt(new Value)};
    Value& value = *made.value;
    value.type = type_from_python(
        nb::module_::import_("tenfold._native").attr("Type")(nb::cast(shape), dtype, name));
    if (value.type->size() == 0) return ValueHandle{Value::uninitialized(value.type)};
    const Device& table = device_of(value.type->device);
    cuda::CudaDevice& device = device_behind(table);
    const auto bytes = int64_t(array.itemsize());
    int64_t low = 0, high = bytes;
    std::vector<int64_t> strides;
    for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
        strides.push_back(array.stride(axis) * bytes);
        (strides.back() < 0 ? low : high) += strides.back() * (shape[axis] - 1);
    }
    auto* begin = static_cast<char*>(const_cast<void*>(array.data())) + low;
    const auto extent = std::size_t(high - low);
    Ref<Allocation> memory;
    if (copies) {
        memory = Allocation::on_device(table, extent);
        nb::gil_scoped_release release;
        if (memory && (!table.copy(memory->data, begin, extent, Device::within) ||
                       table.wait(table.record()).outcome != Outcome::done))
            memory = {};
    } else if (reinterpret_cast<std::size_t>(begin) % std::size_t(bytes) == 0 &&
               device.borrow(begin, extent)) {
        nb::object owner = nb::cast(nb::ndarray<nb::array_api, nb::ro>(array), KEEPS);
        memory = Allocation::foreign(begin, extent, owner.release().ptr(), table.number);
    } else if (!device.failure()) {
        return {};
    }
    if (!memory) raise_no_memory(table, extent);
    value.buffers[0] = {std::move(memory), -low};
    if (!is_c_order(*value.type, strides)) value.strides = std::move(strides);
    return made;
}

} // namespace

void declare_cuda(nb::module_& module) {
    using namespace nb::literals;
    module.def("cuda_processors", cuda_processors);
    module.def("load_ptx", load_ptx, "number"_a, "text"_a, "names"_a, "may_fail"_a,
               nb::call_guard<nb::gil_scoped_release>());
    module.def("cuda_stream", cuda_stream, "device"_a);
    module.def("lend", lend, "value"_a, "code"_a, "device"_a, "number"_a, "stream"_a,
               "read_only"_a);
    module.def("borrow_cuda", borrow_cuda, "array"_a, "dtype"_a, "device"_a, "copies"_a);
}

} // namespace tenfold::bindings
