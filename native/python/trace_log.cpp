// Trace log: the undo log of a trace; see transforms/tracing_scope.py.
#include "python/trace_log.h"

#include "python/value_bindings.h"

namespace tenfold::bindings {

int watches = 0;

namespace {
thread_local TraceLog* watch = nullptr;
} // namespace

TraceLog* TraceLog::current() { return watch; }

void TraceLog::begin() {
    if (open_) throw nb::value_error("it has begun");
    open_ = true;
    outer_ = std::exchange(watch, this);
    ++watches;
}

nb::list TraceLog::end() {
    if (!std::exchange(open_, false)) return {};
    watch = nullptr; // a restored value is not a change
    --watches;
    nb::list changed = put_back();
    watch = outer_;
    if (outer_) tell_outer();
    own_.clear();
    altered_.clear();
    std::exchange(made_, {});
    std::exchange(changed_, {});
    return changed;
}

nb::list TraceLog::put_back() {
    nb::list changed;
    for (auto& [object, node] : changed_) {
        auto* array = reinterpret_cast<ArrayObject*>(object.ptr());
        if (array->node == node.get()) continue;
        rebind(array, node);
        changed.append(object);
    }
    return changed;
}

void TraceLog::tell_outer() {
    for (const nb::object& each : made_) outer_->note_made(each.ptr());
    for (nb::handle pair : seen_)
        outer_->note_look(nb::handle(pair[0]).ptr(), nb::cast<NodeHandle&>(pair[1]).node.get());
}

void TraceLog::note_made(PyObject* array) {
    made_.push_back(nb::borrow(array));
    own_.insert(array);
}

// What is looked at after a change is not what the next call will find.
void TraceLog::note_look(PyObject* array, Node* node) {
    auto* root = reinterpret_cast<PyObject*>(reinterpret_cast<ArrayObject*>(array)->root);
    if (own_.contains(array) || altered_.contains(root)) return;
    seen_.append(nb::make_tuple(nb::borrow(array), NodeHandle{Ref<Node>(node)}));
}

void TraceLog::note_change(ArrayObject* array) {
    auto* object = reinterpret_cast<PyObject*>(array);
    if (own_.contains(object) || altered_.contains(object)) return;
    note_look(object, array->node);
    changed_.emplace_back(nb::borrow(object), Ref<Node>(array->node));
    altered_.insert(object);
}

void note_made(PyObject* array) {
    if (watch) watch->note_made(array);
}

void note_look(PyObject* array, Node* node) {
    if (watch) watch->note_look(array, node);
}

void note_change(ArrayObject* array) {
    if (watch) watch->note_change(array);
}

void declare_watch(nb::module_& module) {
    nb::class_<TraceLog>(module, "TraceLog")
        .def(nb::init<>())
        .def("begin", &TraceLog::begin)
        .def("end", &TraceLog::end)
        .def_prop_ro("seen", &TraceLog::seen);
}

} // namespace tenfold::bindings
