// Operator registry: stores Python's specification of each pushed operator, once for tenfold's own.
#include "python/engine_bindings.h"

#include <unordered_map>

#include <nanobind/stl/string.h>

namespace tenfold::bindings {
namespace {

constexpr std::size_t MOST_KNOWN = 4096;

// The operations of tenfold that were pushed, by their addresses, as they keep their Python
// objects, their options and the bytes of their parameters.
struct KnownOperators {
    std::unordered_map<std::string, Ref<Operation>> all;
    Ref<Operation> last; // without parameters or constants
};
KnownOperators& known_operations() {
    static auto* known = new KnownOperators;
    return *known;
}

// False for what does not count by its value alone.
bool write(std::string& key, PyObject* object) {
    if (!PyType_Check(object)) return plain_bytes(key, object);
    key.push_back('y');
    key.append(reinterpret_cast<const char*>(&object), sizeof object);
    return true;
}

bool write_key(std::string& key, PyObject* operator_, uint64_t options, PyObject* params) {
    key.assign(reinterpret_cast<const char*>(&operator_), sizeof operator_);
    key.append(reinterpret_cast<const char*>(&options), sizeof options);
    PyObject *name, *value;
    for (Py_ssize_t at = 0; params && PyDict_Next(params, &at, &name, &value);)
        if (!write(key, name) || !write(key, value)) return false;
    return true;
}

// What Python says of an operator: (kind, pure, name, fewest, most, plain run, plain add, op id).
Ref<Operation> describe(PyObject* operator_, PyObject* params, const Ref<Submitted>& options) {
    nb::object said = nb::steal(PyObject_CallFunctionObjArgs(engine_hooks.describe, operator_,
                                                             params ? params : Py_None, nullptr));
    if (!said.is_valid()) return {};
    auto make = [&](Operation::Kind kind) {
        auto made = Ref<Operation>::adopt(new Operation);
        made->kind = kind;
        made->pure = nb::cast<bool>(said[1]);
        made->name = nb::cast<std::string>(said[2]);
        made->fewest = nb::cast<uint8_t>(said[3]);
        made->most = nb::cast<uint8_t>(said[4]);
        made->plain_run = nb::cast<bool>(said[5]);
        made->plain_add = nb::cast<bool>(said[6]);
        made->op = find_op(nb::cast<uint32_t>(said[7]));
        made->family = made->is_ours() ? operator_ : static_cast<void*>(Py_TYPE(operator_));
        made->python = Py_NewRef(operator_);
        made->params = params ? Py_NewRef(params) : nullptr;
        made->options = options;
        return made;
    };
    Ref<Operation> made = make(Operation::Kind(nb::cast<int>(said[0])));
    if (made->kind == Operation::elements && !options->usual) made->kind = Operation::general;
    if (made->kind == Operation::cumulative) {
        made->sum = make(Operation::fold);
        made->sum->pure = true;
    }
    return made;
}

void keep(std::string&& key, const Ref<Operation>& made) {
    auto& known = known_operations().all;
    made->kept = made->pure && made->options->usual;
    if (known.size() >= MOST_KNOWN) known.clear();
    known.emplace(std::move(key), made);
}

Ref<Operation> with_constants(const Ref<Operation>& plain, std::string&& key,
                              std::span<PyObject* const>& given) {
    std::size_t first = given.size();
    std::string none;
    while (first > 1 && write(none, given[first - 1])) --first;
    if (first == given.size()) return plain;
    key.push_back('|');
    for (PyObject* each : given.subspan(first)) write(key, each);
    auto found = known_operations().all.find(key);
    Ref<Operation> made = found == known_operations().all.end() ? Ref<Operation>() : found->second;
    if (!made) {
        made = describe(static_cast<PyObject*>(plain->python),
                        static_cast<PyObject*>(plain->params), plain->options);
        if (!made) return made;
        PyObject* constants = PyTuple_New(Py_ssize_t(given.size() - first));
        for (std::size_t i = first; i < given.size(); ++i)
            PyTuple_SET_ITEM(constants, Py_ssize_t(i - first), Py_NewRef(given[i]));
        made->constants = constants;
        keep(std::move(key), made);
    }
    given = given.first(first);
    return made;
}

} // namespace

// It is there until Python runs.
const Ref<Submitted>& submitted_here() {
    static auto* last = new Ref<Submitted>;
    Numbers numbers;
    bool known = numbers_in_force(numbers); // else Python knows: settings were changed in a block
    if (known && *last && (*last)->number == numbers[0]) return *last;
    nb::object said = nb::steal(PyObject_CallNoArgs(engine_hooks.options));
    auto made = Ref<Submitted>::adopt(said.is_valid() ? new Submitted : nullptr);
    if (made) {
        made->number = nb::cast<uint64_t>(said[0]);
        made->usual = nb::cast<bool>(said[1]);
        made->context = Py_NewRef(nb::object(said[2]).ptr());
    }
    return *last = std::move(made);
}

Ref<Operation> operation_of(PyObject* operator_, PyObject* params,
                            std::span<PyObject* const>& given) {
    const Ref<Submitted>& here = submitted_here();
    if (!here) return {};
    const Ref<Operation>& last = known_operations().last;
    if (!params && last && last->python == operator_ && last->options->number == here->number)
        return last;
    return operation_under(here, operator_, params, given);
}

Ref<Operation> operation_under(Ref<Submitted> options, PyObject* operator_, PyObject* params,
                               std::span<PyObject* const>& given) {
    std::string key;
    bool plain = write_key(key, operator_, options->number, params);
    KnownOperators& known = known_operations();
    auto before = plain ? known.all.find(key) : known.all.end();
    Ref<Operation> made =
        before == known.all.end() ? describe(operator_, params, options) : before->second;
    if (!made || !made->is_ours() || !plain) return made;
    if (before == known.all.end()) keep(std::string(key), made);
    if (made->kind == Operation::general) return with_constants(made, std::move(key), given);
    return known.last = made;
}

} // namespace tenfold::bindings
