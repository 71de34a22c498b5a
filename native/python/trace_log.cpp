// Trace log: the undo log of a trace; see transforms/tracer.py.
#include "python/trace_log.h"

#include "python/value_bindings.h"

namespace tenfold::bindings {

int num_active_traces = 0;

namespace {
thread_local TraceLog* watch = nullptr;
} // namespace

TraceLog* TraceLog::current() { return watch; }

void TraceLog::begin() {
    if (is_open_) throw nb::value_error("it has begun");
    is_open_ = true;
    outer_ = std::exchange(watch, this);
    ++num_active_traces;
}

void TraceLog::end() {
    if (!std::exchange(is_open_, false)) return;
    watch = nullptr; // a restored value is not a change
    --num_active_traces;
    restore_arrays();
    watch = outer_;
    if (outer_) forward_to_outer();
    created_set_.clear();
    rebound_set_.clear();
    std::exchange(created_, {});
    std::exchange(rebound_, {});
}

void TraceLog::restore_arrays() {
    for (auto& [object, node] : rebound_) {
        auto* array = reinterpret_cast<ArrayObject*>(object.ptr());
        if (array->node == node.get()) continue;
        rebind(array, node);
        changed_.append(object);
    }
}

void TraceLog::forward_to_outer() {
    for (const nb::object& item : created_) outer_->record_created(item.ptr());
    for (nb::handle pair : reads_)
        outer_->record_read(nb::handle(pair[0]).ptr(), nb::cast<NodeHandle&>(pair[1]).node.get());
}

void TraceLog::record_created(PyObject* array) {
    created_.push_back(nb::borrow(array));
    created_set_.insert(array);
}

// Ignores reads after a change in the trace: the next call finds another value there.
void TraceLog::record_read(PyObject* array, Node* node) {
    auto* root = reinterpret_cast<PyObject*>(reinterpret_cast<ArrayObject*>(array)->root);
    if (created_set_.contains(array) || rebound_set_.contains(root)) return;
    reads_.append(nb::make_tuple(nb::borrow(array), NodeHandle{Ref<Node>(node)}));
}

void TraceLog::record_rebind(ArrayObject* array) {
    auto* object = reinterpret_cast<PyObject*>(array);
    if (created_set_.contains(object) || rebound_set_.contains(object)) return;
    record_read(object, array->node);
    rebound_.emplace_back(nb::borrow(object), Ref<Node>(array->node));
    rebound_set_.insert(object);
}

void trace_created(PyObject* array) {
    if (watch) watch->record_created(array);
}

void trace_read(PyObject* array, Node* node) {
    if (watch) watch->record_read(array, node);
}

void trace_rebind(ArrayObject* array) {
    if (watch) watch->record_rebind(array);
}

void declare_trace_log(nb::module_& module) {
    nb::class_<TraceLog>(module, "TraceLog")
        .def(nb::init<>())
        .def("begin", &TraceLog::begin)
        .def("end", &TraceLog::end)
        .def_prop_ro("reads", &TraceLog::reads)
        .def_prop_ro("changed", &TraceLog::changed);
}

} // namespace tenfold::bindings
