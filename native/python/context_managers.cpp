// Context managers whose entry and exit no signal can split. Python raises KeyboardInterrupt
// between two of its instructions, so state that Python code changes, and restores in a `finally`
// or in an
// `__exit__` of its own, may stay changed. Here one call of the C API does either.
#include <optional>
#include <vector>

#include "python/python_objects.h"

namespace tenfold::bindings {
namespace {

// Changes made at the entry and undone at the exit, in reverse: pairs of a context variable and its
// value, or of two functions. Functions that a signal must not split are written in C.
//
// A subclass may override `prepare()`, which returns the value of the block and the changes, and
// `ended(error)`, which is called when all is undone.
class Scope {
  public:
    explicit Scope(nb::args changes) : changes_(std::move(changes)) {}
    Scope(Scope&&) = delete;
    ~Scope() { // leaves blocks that were entered, and never left
        nb::error_scope keep_error;
        while (!entered_.empty()) leave();
    }

    static nb::object enter(nb::handle self) {
        auto& scope = nb::cast<Scope&>(self);
        if (self.type().is(nb::type<Scope>())) return scope.begin(nb::none(), scope.changes_);
        auto prepared =
            nb::cast<nb::tuple>(self.attr("prepare")()); // Python: so far nothing has changed
        return scope.begin(prepared[0], nb::tuple(nb::object(prepared[1])));
    }

    static void exit(nb::handle self, nb::handle, nb::handle error, nb::handle) {
        auto& scope = nb::cast<Scope&>(self);
        if (scope.entered_.empty()) throw nb::value_error("the block has not been entered");
        if (auto failure = scope.leave()) throw *failure;
        if (!self.type().is(nb::type<Scope>())) self.attr("ended")(error);
    }

    nb::tuple prepare() const { return nb::make_tuple(nb::none(), changes_); }

  private:
    struct Undo {
        nb::object variable, token; // or the function to call
    };

    nb::object begin(nb::object value, const nb::tuple& changes) {
        std::vector<Undo> undo;
        undo.reserve(changes.size());
        try {
            for (nb::handle change : changes) undo.push_back(apply(nb::borrow<nb::tuple>(change)));
        } catch (...) {
            restore(undo);
            throw;
        }
        entered_.push_back(std::move(undo));
        return value;
    }

    std::optional<nb::python_error> leave() {
        std::vector<Undo> undo = std::move(entered_.back());
        entered_.pop_back();
        return restore(undo);
    }

    static Undo apply(const nb::tuple& change) {
        nb::object first = change[0], second = change[1];
        if (PyContextVar_CheckExact(first.ptr())) {
            nb::object token = nb::steal(PyContextVar_Set(first.ptr(), second.ptr()));
            if (!token.is_valid()) nb::raise_python_error();
            return {first, token};
        }
        first();
        return {second, {}};
    }

    // All of it, whatever fails; returns the last error.
    static std::optional<nb::python_error> restore(std::vector<Undo>& undo) {
        std::optional<nb::python_error> error;
        for (auto step = undo.rbegin(); step != undo.rend(); ++step) {
            PyObject* first = step->variable.ptr();
            if (step->token.is_valid())
                PyContextVar_Reset(first, step->token.ptr());
            else
                Py_XDECREF(PyObject_CallNoArgs(first));
            if (PyErr_Occurred()) error.emplace();
        }
        return error;
    }

    nb::tuple changes_;
    std::vector<std::vector<Undo>> entered_; // one list per open block, the innermost last
};

} // namespace

void declare_context_managers(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<Scope>(module, "Scope")
        .def(nb::init<nb::args>(), "changes"_a)
        .def("prepare", &Scope::prepare)
        .def(
            "ended", [](Scope&, nb::handle) {}, "error"_a.none())
        .def("__enter__", &Scope::enter)
        .def("__exit__", &Scope::exit, "kind"_a.none(), "error"_a.none(), "traceback"_a.none());
}

} // namespace tenfold::bindings
