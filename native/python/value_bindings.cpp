// Value bindings: make Values of foreign memory, of the pool's, or of a part of another Value.
#include "python/value_bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "ir/intern.h"
#include "python/array_transfer.h"
#include "threads/device.h"

namespace tenfold::bindings {

// Foreign memory has no known ends: a Value of it may begin at its last element.
bool is_within_allocation(const Value& value, std::span<const int64_t> strides) {
    const Buffer& buffer = value.buffers[0];
    if (buffer.allocation->owner || value.type->size() == 0) return true;
    __int128 first = buffer.offset, last = first + dtype_of(value.type->dtype).bytes;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
        __int128 reach = __int128(strides[axis]) * (value.type->shape[axis] - 1);
        (reach < 0 ? first : last) += reach;
    }
    return first >= 0 && last <= __int128(buffer.allocation->bytes);
}

void raise_no_memory(const Device& device, std::size_t bytes, const char* what) {
    if (device.failure()) // Python words it
        nb::module_::import_("tenfold.runtime.failures")
            .attr("raise_device_failure")(std::string(device.name));
    PyErr_Format(PyExc_MemoryError, "no memory for %zu bytes of %s", bytes, what);
    nb::raise_python_error();
}

namespace {

ValueHandle foreign_value(nb::handle type, std::size_t address, std::size_t bytes,
                          const std::vector<int64_t>& strides, nb::object owner, int64_t offset) {
    auto* value = new Value;
    value->type = type_from_python(type);
    value->strides = strides;
    value->buffers[0].allocation =
        Allocation::foreign(reinterpret_cast<void*>(address), bytes, owner.release().ptr());
    value->buffers[0].offset = offset;
    return {Ref<Value>::adopt(value)};
}

ValueHandle pool_value(nb::handle type, std::size_t bytes) {
    Ref<Type> value_type = type_from_python(type);
    const Device& device = device_of(value_type->device);
    Ref<Allocation> allocation = Allocation::on_device(device, bytes);
    if (!allocation) raise_no_memory(device, bytes);
    auto* value = new Value;
    value->type = std::move(value_type);
    value->buffers[0].allocation = std::move(allocation);
    return {Ref<Value>::adopt(value)};
}

ValueHandle view_of(const ValueHandle& self, nb::handle type, std::vector<int64_t> strides,
                    int64_t offset) {
    Ref<Value> view = Value::view_of(*self.value, type_from_python(type), offset);
    if (strides.size() != view->type->shape.size())
        throw nb::value_error("a view needs a stride for each axis");
    if (!is_within_allocation(*view, strides))
        throw nb::value_error("a view leaves the memory of its Value");
    if (!is_c_order(*view->type, strides)) view->strides = std::move(strides);
    return {std::move(view)};
}

bool is_on_host(const ValueHandle& self) { return device_of(self.value->type->device).is_host; }

// The bytes from the first to behind the last element that a Value has in its memory.
std::array<int64_t, 2> extent_of(const Value& value) {
    const Buffer& buffer = value.buffers[0];
    if (!value.is_view) return {0, int64_t(buffer.allocation->bytes)};
    int64_t first = buffer.offset, last = first + dtype_of(value.type->dtype).bytes;
    if (value.type->size() == 0) return {first, first};
    const std::vector<int64_t> strides = strides_of(value);
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
        int64_t reach = strides[axis] * (value.type->shape[axis] - 1);
        (reach < 0 ? first : last) += reach;
    }
    return {first, last};
}

// The same elements in other memory, of the same device or, if one of the two is the host's, of
// another one. The GIL is free meanwhile, unless the owner of the memory may write to it.
ValueHandle copied_to(const ValueHandle& self, nb::handle device) {
    const Ref<Value> held = self.value;
    const Value& from = *held;
    const Allocation& memory = *from.buffers[0].allocation;
    const Device &source = device_of(from.type->device), &target = device_of(device_id(device));
    const auto [first, last] = extent_of(from);
    const auto bytes = std::size_t(last - first);
    Ref<Allocation> copy = Allocation::on_device(target, bytes);
    if (!copy) raise_no_memory(target, bytes);
    const Device& copier = target.is_host ? source : target;
    current_queue(copier.number); // that of the task, before the GIL goes
    bool done = false;
    {
        std::optional<nb::gil_scoped_release> released;
        if (!source.is_host || !memory.owner) released.emplace();
        auto way = target.is_host ? Device::to_host : Device::from_host;
        done = copier.copy(copy->data, static_cast<char*>(memory.data) + first, bytes,
                           &source == &target ? Device::within : way);
    }
    if (!done) raise_no_memory(copier, bytes);
    const Type& type = *from.type;
    auto value = Ref<Value>::adopt(new Value);
    value->type = intern_type({type.shape, type.dtype, device_id(device), type.storage, type.weak});
    value->strides = from.strides;
    value->is_view = from.is_view;
    value->buffers[0] = {std::move(copy), from.buffers[0].offset - first};
    return {std::move(value)};
}

// The least and the greatest element, at most the greatest int64.
template <class T> std::array<int64_t, 2> range_of(const void* memory, int64_t count) {
    const T* elements = static_cast<const T*>(memory);
    T least = elements[0], most = elements[0];
    for (int64_t i = 1; i < count; ++i) {
        least = std::min(least, elements[i]);
        most = std::max(most, elements[i]);
    }
    constexpr auto LIMIT = std::numeric_limits<int64_t>::max();
    auto limited = [](T x) { return std::cmp_less(LIMIT, x) ? LIMIT : int64_t(x); };
    return {limited(least), limited(most)};
}

std::array<int64_t, 2> range_of(const DType& dtype, const void* memory, int64_t count) {
    const bool is_signed = dtype.kind == 'i';
    switch (dtype.bytes) {
    case 1: return is_signed ? range_of<int8_t>(memory, count) : range_of<uint8_t>(memory, count);
    case 2: return is_signed ? range_of<int16_t>(memory, count) : range_of<uint16_t>(memory, count);
    case 4: return is_signed ? range_of<int32_t>(memory, count) : range_of<uint32_t>(memory, count);
    default:
        return is_signed ? range_of<int64_t>(memory, count) : range_of<uint64_t>(memory, count);
    }
}

nb::object integer_range(const ValueHandle& self) {
    auto range = range_of_integers(*self.value);
    return range ? nb::object(nb::make_tuple((*range)[0], (*range)[1])) : nb::none();
}

nb::object owner_of(const ValueHandle& self) {
    void* owner = self.value->buffers[0].allocation->owner;
    return owner ? nb::borrow(static_cast<PyObject*>(owner)) : nb::none();
}

int value_buffer(PyObject* self, Py_buffer* view, int flags) {
    // The ValueHandle keeps the Value, and the view keeps the handle: memory lives as long as the
    // view. Only the owner of foreign memory may write to it.
    const Value& value = *nb::inst_ptr<ValueHandle>(self)->value;
    if (!device_of(value.type->device).is_host) {
        view->obj = nullptr;
        PyErr_SetString(PyExc_BufferError, "the host cannot read the memory of another device");
        return -1;
    }
    if (value.is_view) {
        view->obj = nullptr;
        PyErr_SetString(PyExc_BufferError, "a part of a Value lends no bytes");
        return -1;
    }
    host_data(value); // waits
    Allocation& allocation = *value.buffers[0].allocation;
    return PyBuffer_FillInfo(view, self, allocation.data, Py_ssize_t(allocation.bytes),
                             allocation.owner != nullptr, flags);
}

PyType_Slot value_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(value_buffer)},
                             {0, nullptr}};

} // namespace

std::optional<std::array<int64_t, 2>> range_of_integers(const Value& value) {
    const DType& dtype = dtype_of(value.type->dtype);
    const int64_t count = value.type->size();
    const bool has_range = (dtype.kind == 'i' || dtype.kind == 'u') && value.strides.empty();
    if (!has_range || count == 0 || !device_of(value.type->device).is_host) return {};
    return range_of(dtype, host_data(value), count);
}

void declare_values(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<ValueHandle>(module, "Value", nb::type_slots(value_slots))
        .def_prop_ro("type",
                     [](const ValueHandle& self) { return type_to_python(self.value->type); })
        .def_prop_ro(
            "strides",
            [](const ValueHandle& self) { return nb::tuple(nb::cast(self.value->strides)); })
        .def_prop_ro(
            "nbytes",
            [](const ValueHandle& self) { return self.value->buffers[0].allocation->bytes; })
        .def_prop_ro("address",
                     [](const ValueHandle& self) {
                         return reinterpret_cast<std::size_t>(self.value->buffers[0].address());
                     })
        .def_prop_ro("is_view", [](const ValueHandle& self) { return self.value->is_view; })
        .def_prop_ro("owner", owner_of)
        .def_prop_ro("integer_range", integer_range)
        .def_prop_ro("is_on_host", is_on_host)
        .def("copied_to", copied_to, "device"_a)
        .def("view", view_of, "type"_a, "strides"_a, "offset_bytes"_a)
        .def_static("foreign", foreign_value, "type"_a, "address"_a, "nbytes"_a, "strides"_a,
                    "owner"_a, "offset"_a = 0)
        .def_static("allocate", pool_value, "type"_a, "nbytes"_a);
    module.def(
        "adopt",
        [](nb::handle values, nb::handle device) -> std::optional<ValueHandle> {
            Ref<Value> value = adopt_ndarray(values.ptr(), device_id(device));
            return value ? std::optional(ValueHandle{std::move(value)}) : std::nullopt;
        },
        "values"_a, "device"_a);
}

} // namespace tenfold::bindings
