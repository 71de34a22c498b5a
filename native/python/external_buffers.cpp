// External buffers: Arrays on memory that their user can write to, other views of that memory, and
// the lock that orders computations and assignments to it.
#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>

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

Allocation& memory_of(const ValueHandle& self) { return *self.value->buffers[0].allocation; }

// Gives the readers of a window's Value the memory of `copy`, and the window, if its Array lives, a
// new Value that `reader` names: no signal comes between.
void detach_readers(nb::handle window, ValueHandle& copy, nb::handle reader, nb::handle array) {
    Ref<Value> value = nb::cast<ValueHandle&>(window.attr("value")).value;
    if (!array.is_none()) {
        Ref<Node> node(node_of(reader.ptr()));
        window.attr("value") = ValueHandle{value_of(node.get())};
        exchange_memory(*value->buffers[0].allocation, memory_of(copy));
        rebind(array_from(array), std::move(node));
    } else {
        exchange_memory(*value->buffers[0].allocation, memory_of(copy));
    }
}

// Swaps the buffers of two Values. References to either then see the elements of the other.
void exchange_part(ValueHandle& self, ValueHandle& other) {
    std::swap(self.value->buffers, other.value->buffers);
    std::swap(self.value->strides, other.value->strides);
    std::swap(self.value->is_view, other.value->is_view);
}

PyObject* orphans = nullptr; // a dict: of closed windows, those whose memory others still read

// A readers-writer lock. Readers enter together. A writer waits for the readers of other threads,
// unless it is alone with what they could see; further readers wait for it. A thread that reads may
// read again. The GIL protects all fields.
struct ReadersWriterLock {
    bool enabled = false; // whether a window ever existed: before that no reader acquires it
    std::unordered_map<unsigned long, int> reader_depths;
    unsigned long writer = 0; // a thread
    int waiting_writers = 0;
    uint64_t forks = 0; // locks acquired before the last fork are not held in the child

    bool is_reading() const { return reader_depths.contains(PyThread_get_thread_ident()); }

    void reset() {
        reader_depths.clear();
        writer = 0;
        waiting_writers = 0;
        ++forks;
    }
};

// One reader or writer, from the entry of its block to the exit: both are one call, which a signal
// cannot split. A hold that is freed without an exit is released.
class LockHold {
  public:
    LockHold(nb::object lock, nb::object is_alone)
        : owner_(std::move(lock)), lock_(nb::cast<ReadersWriterLock&>(owner_)),
          is_alone_(std::move(is_alone)) {}
    LockHold(LockHold&& other) = delete;
    ~LockHold() { release(); }

    void enter() {
        if (held_) throw nb::value_error("the lock is held by this block already");
        thread_ = PyThread_get_thread_ident();
        is_alone_.is_valid() ? write() : read();
        forks_ = lock_.forks;
        held_ = true;
    }

    void exit(nb::args) { release(); }

  private:
    void read() {
        Pause pause;
        while ((lock_.writer && lock_.writer != thread_) ||
               (lock_.waiting_writers && !lock_.reader_depths.contains(thread_)))
            pause();
        ++lock_.reader_depths[thread_];
    }

    void write() {
        struct Waiting {
            ReadersWriterLock& lock;
            uint64_t forks = lock.forks;
            explicit Waiting(ReadersWriterLock& lock) : lock(lock) { ++lock.waiting_writers; }
            ~Waiting() { lock.waiting_writers -= forks == lock.forks; }
        } waiting(lock_);
        Pause pause;
        // `is_alone` runs Python, and so another writer, perhaps
        while (lock_.writer || !may_write() || lock_.writer) pause();
        lock_.writer = thread_;
    }

    bool may_write() const {
        const auto& readers = lock_.reader_depths;
        return std::ranges::all_of(readers, [&](auto& one) { return one.first == thread_; }) ||
               nb::cast<bool>(is_alone_());
    }

    void release() {
        if (!std::exchange(held_, false) || forks_ != lock_.forks) return;
        if (is_alone_.is_valid())
            lock_.writer = 0;
        else if (auto depth = lock_.reader_depths.find(thread_); --depth->second == 0)
            lock_.reader_depths.erase(depth);
    }

    // A wait without the GIL, longer each time: a holder may be copying, or computing for minutes.
    // Raises what a signal handler raises.
    class Pause {
      public:
        void operator()() {
            {
                nb::gil_scoped_release others_run;
                std::this_thread::sleep_for(length_);
            }
            if (PyErr_CheckSignals() != 0) nb::raise_python_error();
            length_ = std::min(2 * length_, LONGEST);
        }

      private:
        static constexpr std::chrono::microseconds LONGEST{1000};
        std::chrono::microseconds length_{20};
    };

    nb::object owner_;
    ReadersWriterLock& lock_;
    nb::object is_alone_; // tests for a writer whether no other thread can see its change
    unsigned long thread_ = 0;
    uint64_t forks_ = 0;
    bool held_ = false;
};

} // namespace

// Lists a closed window that others read, by a number of its memory. Only C is called, so no
// signal comes between.
void close_window(PyObject* record) {
    nb::object window = nb::steal(record);
    if (!orphans) return;
    nb::error_scope keep_error; // an Array may be freed while one is raised
    try {
        auto& value = nb::cast<ValueHandle&>(window.attr("value"));
        if (is_alone(value, nb::none())) return;
        nb::object orphan = window.attr("orphan");
        orphan.attr("number") = memory_of(value).watch();
        if (PyDict_SetItem(orphans, orphan.attr("memory").ptr(), orphan.ptr()) < 0)
            PyErr_WriteUnraisable(record);
    } catch (nb::python_error& error) { error.discard_as_unraisable(record); }
}

void declare_external_buffers(nb::module_& module) {
    using namespace nb::literals;
    module.def("open_window", open_window, "array"_a, "record"_a);
    module.def(
        "list_orphans", [](nb::dict list) { orphans = list.release().ptr(); }, "orphans"_a);
    module.def("window_of", window_of, "array"_a);
    module.def(
        "invalidate_views", [](nb::handle array) { invalidate_views(array_from(array)); },
        "array"_a);
    module.def("is_unshared", is_alone, "value"_a, "array"_a.none());
    module.def("detach_readers", detach_readers, "window"_a, "copy"_a, "reader"_a,
               "array"_a.none());
    module.def("swap_elements", exchange_part, "value"_a, "other"_a);
    module.def(
        "swap_watched_memory",
        [](uint64_t number, ValueHandle& other) {
            return exchange_watched(number, memory_of(other));
        },
        "number"_a, "other"_a);
    module.def("is_watched", is_watched, "number"_a);
    nb::class_<ReadersWriterLock>(module, "ReadersWriterLock")
        .def(nb::init<>())
        .def_rw("enabled", &ReadersWriterLock::enabled)
        .def("is_reading", &ReadersWriterLock::is_reading)
        .def("reset", &ReadersWriterLock::reset)
        .def("read_lock", [](nb::object lock) { return new LockHold(lock, {}); })
        .def(
            "write_lock",
            [](nb::object lock, nb::object is_alone) { return new LockHold(lock, is_alone); },
            "is_alone"_a);
    nb::class_<LockHold>(module, "LockHold")
        .def("__enter__", &LockHold::enter)
        .def("__exit__", &LockHold::exit);
}

} // namespace tenfold::bindings
