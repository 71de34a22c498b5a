// Operator registry: stores Python's specification of each pushed operator, once for tenfold's own.
#include "python/engine_bindings.h"

#include <unordered_map>

#include <nanobind/stl/string.h>

namespace tenfold::bindings {
namespace {

constexpr std::size_t MOST_KNOWN = 4096;

// The pushed operations of tenfold. Each key has the address of its Python object, which the
// operation holds, its options and its parameters.
struct KnownOperators {
    std::unordered_map<std::string, Ref<Operation>> all;
    Ref<Operation> last; // without parameters or constants: of tenfold, or a user's that is stacked
};
KnownOperators& known_operations() {
    static auto* known = new KnownOperators;
    return *known;
}

// False for an object without value semantics.
bool write(std::string& key, PyObject* object) {
    if (!PyType_Check(object)) return append_plain_bytes(key, object);
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

// Python's description of an operator: (kind, pure, name, fewest, most, plain run, plain add, op
// id, priority).
Ref<Operation> describe(PyObject* operator_, PyObject* params, const Ref<OptionSet>& options) {
    nb::object description = nb::steal(PyObject_CallFunctionObjArgs(
        engine_hooks.describe, operator_, params ? params : Py_None, nullptr));
    if (!description.is_valid()) return {};
    auto make = [&](Operation::Kind kind) {
        auto operation = Ref<Operation>::adopt(new Operation);
        operation->kind = kind;
        operation->pure = nb::cast<bool>(description[1]);
        operation->name = nb::cast<std::string>(description[2]);
        operation->min_inputs = nb::cast<uint8_t>(description[3]);
        operation->max_inputs = nb::cast<uint8_t>(description[4]);
        operation->identity_increment = nb::cast<bool>(description[5]);
        operation->elementwise_add = nb::cast<bool>(description[6]);
        operation->op = find_op(nb::cast<uint32_t>(description[7]));
        operation->priority = nb::cast<int32_t>(description[8]);
        operation->stacked_number = nb::cast<uint64_t>(description[9]);
        operation->cost_class =
            operation->is_builtin() ? operator_ : static_cast<void*>(Py_TYPE(operator_));
        operation->python = Py_NewRef(operator_);
        operation->params = params ? Py_NewRef(params) : nullptr;
        operation->options = options;
        return operation;
    };
    Ref<Operation> operation = make(Operation::Kind(nb::cast<int>(description[0])));
    if (operation->kind == Operation::elementwise && !options->usual)
        operation->kind = Operation::general;
    if (operation->kind == Operation::cumulative) {
        operation->sum = make(Operation::fold);
        operation->sum->pure = true;
    }
    return operation;
}

void keep(std::string&& key, const Ref<Operation>& operation) {
    auto& known = known_operations().all;
    operation->memoized = operation->pure && operation->options->usual;
    if (known.size() >= MOST_KNOWN) known.clear();
    known.emplace(std::move(key), operation);
}

Ref<Operation> with_constants(const Ref<Operation>& plain, std::string&& key,
                              std::span<PyObject* const>& args) {
    std::size_t first = args.size();
    std::string none;
    while (first > 1 && write(none, args[first - 1])) --first;
    if (first == args.size()) return plain;
    key.push_back('|');
    for (PyObject* item : args.subspan(first)) write(key, item);
    auto found = known_operations().all.find(key);
    Ref<Operation> operation =
        found == known_operations().all.end() ? Ref<Operation>() : found->second;
    if (!operation) {
        operation = describe(static_cast<PyObject*>(plain->python),
                             static_cast<PyObject*>(plain->params), plain->options);
        if (!operation) return operation;
        PyObject* constants = PyTuple_New(Py_ssize_t(args.size() - first));
        for (std::size_t i = first; i < args.size(); ++i)
            PyTuple_SET_ITEM(constants, Py_ssize_t(i - first), Py_NewRef(args[i]));
        operation->constants = constants;
        keep(std::move(key), operation);
    }
    args = args.first(first);
    return operation;
}

} // namespace

// It is there until Python runs.
const Ref<OptionSet>& current_option_set() {
    static auto* last = new Ref<OptionSet>;
    OptionKey numbers;
    bool known = current_option_key(numbers); // else Python knows: settings were changed in a block
    if (known && *last && (*last)->number == numbers.settings) return *last;
    nb::object settings = nb::steal(PyObject_CallNoArgs(engine_hooks.options));
    auto result = Ref<OptionSet>::adopt(settings.is_valid() ? new OptionSet : nullptr);
    if (result) {
        result->number = nb::cast<uint64_t>(settings[0]);
        result->usual = nb::cast<bool>(settings[1]);
        result->target = current_options().target;
        result->context = Py_NewRef(nb::object(settings[2]).ptr());
    }
    return *last = std::move(result);
}

Ref<Operation> make_operation(PyObject* operator_, PyObject* params,
                              std::span<PyObject* const>& args) {
    const Ref<OptionSet>& here = current_option_set();
    if (!here) return {};
    const Ref<Operation>& last = known_operations().last;
    bool may_have_constants = last && last->kind == Operation::general && args.size() > 1 &&
                              !is_handle(args.back()) && !is_array(args.back());
    if (!params && last && last->python == operator_ && !may_have_constants &&
        last->options->number == here->number)
        return last;
    return make_operation_with_options(here, operator_, params, args);
}

Ref<Operation> make_operation_with_options(Ref<OptionSet> options, PyObject* operator_,
                                           PyObject* params, std::span<PyObject* const>& args) {
    std::string key;
    bool plain = write_key(key, operator_, options->number, params);
    KnownOperators& known = known_operations();
    auto before = plain ? known.all.find(key) : known.all.end();
    Ref<Operation> operation =
        before == known.all.end() ? describe(operator_, params, options) : before->second;
    if (operation && operation->stacked_number) known.last = operation;
    if (!operation || !operation->is_builtin() || !plain) return operation;
    if (before == known.all.end()) keep(std::string(key), operation);
    if (!params) known.last = operation;
    return operation->kind == Operation::general ? with_constants(operation, std::move(key), args)
                                                 : operation;
}

} // namespace tenfold::bindings
