// External buffers: Arrays on memory that their user can write to, and other views of that memory.
#include "python/value_bindings.h"

namespace tenfold::bindings {
namespace {

ArrayObject* array_from(nb::handle object) {
    if (!is_array(object.ptr())) throw nb::type_error("a window is an Array");
    return reinterpret_cast<ArrayObject*>(object.ptr());
}

void open_window(nb::handle array, nb::object record) {
    ArrayObject* object = array_from(array);
    if (object->base || object->external) throw nb::type_error("a view, or a window, is none anew");
    object->external = new ExternalBuffer{record.release().ptr()};
    enable_external_buffers();
}

nb::object window_of(nb::handle array) {
    ExternalBuffer* window = array_from(array)->root->external;
    return window ? nb::borrow(window->record) : nb::none();
}

// Whether only this handle and `array`, if it is not None, can read a Value's memory. Relaxed: a
// new holder can only come from one that is counted already, and the caller holds the GIL.
bool is_alone(const ValueHandle& self, nb::handle array) {
    const Value& value = *self.value;
    uint32_t known = 1;
    if (!array.is_none()) {
        Node* node = array_from(array)->node;
        if (node->references.load(std::memory_order_relaxed) != 1) return false;
        known += value_of(node).get() == &value;
    }
    return value.references.load(std::memory_order_relaxed) == known &&
           value.buffers[0].allocation->references.load(std::memory_order_relaxed) == 1;
}

// Swaps the memory of two Values: references to one see the memory of the other from now on.
void exchange_memory(ValueHandle& self, ValueHandle& other) {
    Allocation& mine = *self.value->buffers[0].allocation;
    Allocation& theirs = *other.value->buffers[0].allocation;
    std::swap(mine.data, theirs.data);
    std::swap(mine.bytes, theirs.bytes);
    std::swap(mine.owner, theirs.owner);
}

// Swaps the buffers of two Values. References to either then see the elements of the other.
void exchange_part(ValueHandle& self, ValueHandle& other) {
    std::swap(self.value->buffers, other.value->buffers);
    std::swap(self.value->strides, other.value->strides);
    std::swap(self.value->is_view, other.value->is_view);
}

} // namespace

void declare_external_buffers(nb::module_& module) {
    using namespace nb::literals;
    module.def("open_window", open_window, "array"_a, "record"_a);
    module.def("window_of", window_of, "array"_a);
    module.def(
        "invalidate_views", [](nb::handle array) { invalidate_views(array_from(array)); },
        "array"_a);
    module.def("is_unshared", is_alone, "value"_a, "array"_a.none());
    module.def("swap_memory", exchange_memory, "value"_a, "other"_a);
    module.def("swap_elements", exchange_part, "value"_a, "other"_a);
    module.def("drain_decrefs",
               drain_decrefs); // the memory's former owner may be used: a bytearray resized
}

} // namespace tenfold::bindings
