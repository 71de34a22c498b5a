// Node bindings: the Python class of Nodes, and make_node, which infers with a cache.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "ir/index_map.h"
#include "ir/inferred_shapes.h"
#include "ir/linearize.h"
#include "ir/submission.h"
#include "python/kind_rules.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {

namespace {

// All written under the GIL. Whether a block is open, or was when a context was copied. Otherwise
// the variables below have no value in any context.
bool has_option_blocks = false;
int num_internal_blocks = 0; // blocks that are open and that no context keeps
PyObject* options_variable = nullptr;
Options process_options; // the options outside of all `tn.options` blocks
uint64_t process_rules = 0;
PyObject *rules_variable = nullptr, *no_rules = nullptr;

// Runs the op's rules in Python: infer(op, types, params, strict) -> (result types, operand dtypes,
// kind).
Ref<Inference> infer(const InferenceQuery& query, const Params* python_params) {
    nb::list types;
    for (Type* type : query.types) types.append(type_to_python(Ref<Type>(type)));
    nb::object params = nb::steal(params_to_python(python_params));
    nb::object inferred = nb::steal(PyObject_CallFunction(hooks.infer, "OOOO", query.op->python,
                                                          nb::tuple(types).ptr(), params.ptr(),
                                                          query.strict ? Py_True : Py_False));
    if (!inferred.is_valid()) return {};
    auto inference = Ref<Inference>::adopt(new Inference);
    for (nb::handle type : inferred[0]) inference->results.push_back(type_from_python(type));
    for (nb::handle dtype : inferred[1]) {
        int id = dtype_id(dtype.ptr());
        if (id < 0) nb::raise_python_error();
        inference->operands.push_back(uint16_t(id));
    }
    inference->kind = nb::cast<uint8_t>(inferred[2]);
    if (!query.op->is_permanent)
        inference->op_owner = Py_NewRef(static_cast<PyObject*>(query.op->python));
    return inference;
}

// The inference of a join of many arrays of one Type, from that of two of them: its length along
// the axis is in proportion. Null where Python is to be asked.
Ref<Inference> infer_join(const InferenceQuery& query, const Params* python_params) {
    constexpr std::size_t MIN_INPUTS = 16;
    constexpr int64_t MAX_LENGTH = int64_t(1) << 31;
    const std::size_t count = query.types.size();
    Type* const type = query.types[0];
    if (!query.op->joins || count < MIN_INPUTS || type->weak || !query.params->has_axes ||
        std::ranges::any_of(query.types, [&](Type* each) { return each != type; }))
        return {};
    const InferenceQuery pair{query.op, query.params, query.strict, query.types.first(2)};
    Inferred of_pair = find_inference(pair);
    if (!of_pair) {
        Ref<Inference> inference = infer(pair, python_params);
        if (!inference) return {};
        cache_inference(pair, inference);
        of_pair = {inference, inference->results[0]};
    }
    const auto axis = std::size_t(query.params->axes[0]);
    const Type& result = *of_pair.type;
    const int64_t length = result.shape.at(axis);
    if (result.structure || type->size() * length > MAX_LENGTH ||
        int64_t(count) * std::max<int64_t>(type->size(), 1) > MAX_LENGTH)
        return {};
    auto inference = Ref<Inference>::adopt(new Inference);
    inference->kind = of_pair.inference->kind;
    inference->operands.assign(count, of_pair.inference->operands[0]);
    std::vector<int64_t> shape = result.shape;
    shape[axis] = length / 2 * int64_t(count);
    inference->results.push_back(
        intern_type({shape, result.dtype, result.device, result.storage, false, 0}));
    return inference;
}

// Whether parameters are, or hold, an object that counts by identity, such as a traced function. A
// cache entry would keep it alive.
bool holds_identity_object(const Op* op, const Params* params) {
    auto holds = [op](auto&& self, nb::handle object) -> bool {
        std::string bytes;
        if (PyTuple_CheckExact(object.ptr()))
            return std::ranges::any_of(nb::borrow<nb::tuple>(object),
                                       [&](nb::handle item) { return self(self, item); });
        return !append_plain_bytes(bytes, object.ptr()) && !PyType_Check(object.ptr()) &&
               Py_TYPE(object.ptr()) != Py_TYPE(static_cast<PyObject*>(op->python));
    };
    return params && params->python && holds(holds, static_cast<PyObject*>(params->python));
}

// Replaces an operation whose integer scalar does not fit its dtype; most ops raise an error.
Ref<Node> refuse_scalar(const Op* op, std::span<Node* const> inputs, const Inference& inference,
                        std::size_t at) {
    nb::list types;
    for (Node* input : inputs) types.append(type_to_python(Ref<Type>(input->type)));
    nb::object scalar = nb::steal(scalar_to_python(inputs[at]->scalar));
    nb::object result = nb::steal(
        PyObject_CallFunction(hooks.refuse_scalar, "OOnOO", op->python, nb::tuple(types).ptr(),
                              Py_ssize_t(at), scalar.ptr(), dtype_object(inference.operands[at])));
    return result.is_valid() ? Ref<Node>(node_of(result.ptr())) : Ref<Node>();
}

bool is_ours(nb::handle frame) {
    nb::object globals =
        nb::steal(PyFrame_GetGlobals(reinterpret_cast<PyFrameObject*>(frame.ptr())));
    PyObject* name = PyDict_GetItemString(globals.ptr(), "__name__"); // borrowed
    const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
    if (!text) PyErr_Clear();
    return text && std::string_view(text).starts_with("tenfold.");
}

// The innermost line outside of tenfold; for a rewrite, that of the replaced node. None on a thread
// that runs no Python code: a worker of an engine.
Ref<Origin> origin() {
    nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
    if (!frame.is_valid()) return {};
    auto found = Ref<Origin>::adopt(new Origin);
    PyObject* value = nullptr;
    if (PyContextVar_Get(hooks.origin, nullptr, &value) != 0) nb::raise_python_error();
    nb::object inherited = nb::steal(value);
    if (inherited.is_valid() && !inherited.is_none()) {
        found->file = nb::cast<std::string>(inherited[0]);
        found->line = nb::cast<int>(inherited[1]);
        return found;
    }
    auto as_frame = [&] { return reinterpret_cast<PyFrameObject*>(frame.ptr()); };
    while (is_ours(frame)) {
        nb::object caller = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(as_frame())));
        if (!caller.is_valid()) return {}; // an operator of an engine
        frame = std::move(caller);
    }
    nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(as_frame())));
    found->file =
        nb::cast<std::string>(nb::handle(reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename));
    found->line = PyFrame_GetLineNumber(as_frame());
    return found;
}

} // namespace

void set_options_variable(PyObject* variable) { options_variable = Py_NewRef(variable); }

void set_process_options(const Options& options) { process_options = options; }

void enable_option_blocks() { has_option_blocks = true; }

void enter_internal_block(bool entering) { num_internal_blocks += entering ? 1 : -1; }

void set_process_rules(uint64_t number) { process_rules = number; }

void set_rules_variable(PyObject* variable, PyObject* none) {
    rules_variable = Py_NewRef(variable);
    no_rules = Py_NewRef(none);
}

const Options& current_options() {
    PyObject* value = nullptr;
    if ((!has_option_blocks && !num_internal_blocks) || !options_variable ||
        PyContextVar_Get(options_variable, nullptr, &value) != 0 || !value)
        return process_options;
    const Options& options = *nb::inst_ptr<Options>(value);
    Py_DECREF(value); // the context keeps it while this thread runs
    return options;
}

bool current_option_key(OptionKey& key) {
    const Options& options = current_options();
    key = {options.fingerprint, process_rules, 0};
    if (!has_option_blocks && !num_internal_blocks) return true;
    PyObject* rules = nullptr;
    if (options.process_number != process_options.fingerprint || !rules_variable ||
        PyContextVar_Get(rules_variable, nullptr, &rules) != 0)
        return false;
    Py_XDECREF(rules);
    return rules == no_rules;
}

Ref<Node> make_node(const Op* op, std::span<Node* const> inputs, Ref<Params> params,
                    const Ref<Origin>* line) {
    if (!op) {
        PyErr_SetString(PyExc_NotImplementedError, "no operation answers for this operator");
        return {};
    }
    std::array<Type*, 8> inline_types;
    std::vector<Type*> heap_types;
    if (inputs.size() > inline_types.size()) heap_types.resize(inputs.size());
    std::span<Type*> types{heap_types.empty() ? inline_types.data() : heap_types.data(),
                           inputs.size()};
    bool scalars = false, kinds = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        types[i] = inputs[i]->type.get();
        scalars |= inputs[i]->is_scalar();
        kinds |= types[i]->storage != 0;
    }
    if (kinds) return apply_to_kinds(op, inputs, params.get());
    const Options& options = current_options(); // not to be read once Python has run
    bool records_origin = op->can_fail || options.origins;
    // Where a part begins makes no difference to its Type.
    bool is_slice = op->part != Op::none;
    const Params* key_params = is_slice ? starts_of(*params).pattern : params.get();
    InferenceQuery query{op, key_params, options.strict, types};
    Inferred inferred = find_inference(query);
    std::vector<Ref<Node>> owned_inputs; // to the end: Python code may drop an input's last Array
    if (!inferred) {
        for (Node* input : inputs) owned_inputs.emplace_back(input);
        Ref<Inference> inference = infer_join(query, params.get());
        if (!inference && !PyErr_Occurred()) inference = infer(query, params.get());
        if (!inference) return {};
        if (!holds_identity_object(op, params.get())) cache_inference(query, inference);
        inferred = {inference, inference->results[0]};
    }
    if (scalars)
        if (std::size_t out_of_range = first_scalar_out_of_range(*op, *inferred.inference, inputs))
            return refuse_scalar(op, inputs, *inferred.inference, out_of_range - 1);
    Ref<Node> node = operation_node(op, std::move(params), std::move(inferred), inputs);
    if (records_origin || node->has(KEEPS_HISTORY))
        node->origin = line && *line ? Ref<Origin>(*line) : origin();
    return node;
}

std::vector<Node*> nodes_from(nb::handle sequence) {
    std::vector<Node*> nodes;
    if (nb::isinstance<NodesHandle>(sequence)) {
        for (const Ref<Node>& node : nb::cast<NodesHandle&>(sequence).nodes)
            nodes.push_back(node.get());
        return nodes;
    }
    for (nb::handle item : sequence) nodes.push_back(nb::cast<NodeHandle&>(item).node.get());
    return nodes;
}

namespace {

nb::object node_to_python(Ref<Node> node) { return nb::cast(NodeHandle{std::move(node)}); }

nb::object op_of(const NodeHandle& self) {
    const Op* op = self.node->op;
    return op && op->python ? nb::borrow(static_cast<PyObject*>(op->python)) : nb::none();
}

nb::tuple operands_of(const NodeHandle& self) {
    nb::list dtypes;
    if (self.node->inference)
        for (uint16_t id : self.node->inference->operands)
            dtypes.append(nb::borrow(dtype_object(id)));
    return nb::tuple(dtypes);
}

nb::tuple types_of(const NodeHandle& self) {
    nb::list types;
    bool part = !self.node->op || !self.node->op->python;
    if (part || self.node->inference->results.size() == 1)
        return nb::make_tuple(type_to_python(Ref<Type>(self.node->type)));
    for (const Ref<Type>& type : self.node->inference->results) types.append(type_to_python(type));
    return nb::tuple(types);
}

nb::tuple inputs_to_python(const NodeHandle& self) {
    nb::list inputs;
    for (Ref<Node>& input : inputs_of(self.node.get()))
        inputs.append(node_to_python(std::move(input)));
    return nb::tuple(inputs);
}

// linearize(outputs, options) -> (nodes, inputs, uses, live-out, outputs, dead-after-read,
// structure or None). Inputs and outputs are positions. Dead-after-read is empty without options.
// Each scalar is a node of its own there. Keys identify scalars by position, so a plan must not
// learn that two of them are one node.
nb::tuple linearize_to_python(nb::handle outputs, const nb::tuple& options) {
    nb::list nodes, inputs, uses, live_out, dead_after_read;
    LinearizedGraph graph = linearize_when_unclaimed(nodes_from(outputs));
    nb::object structure =
        options.size() == 0 ? nb::none() : make_structure(graph, option_key_from(options));
    for (LinearizedNode& entry : graph.nodes) {
        nb::object positions = nb::steal(PyTuple_New(Py_ssize_t(entry.num_inputs)));
        for (uint32_t i = 0; i < entry.num_inputs; ++i)
            PyTuple_SET_ITEM(positions.ptr(), Py_ssize_t(i),
                             PyLong_FromUnsignedLong(graph.edges[entry.first_edge + i]));
        inputs.append(positions);
        uses.append(entry.num_uses);
        live_out.append(entry.live_out);
        if (options.size() > 0) dead_after_read.append(entry.dead_after_read);
        if (entry.node->is_scalar()) entry.node = scalar_node(entry.node->scalar, entry.node->type);
        nodes.append(node_to_python(std::move(entry.node)));
    }
    nb::tuple output_positions = nb::tuple(nb::cast(graph.outputs));
    return nb::make_tuple(nodes, inputs, uses, live_out, output_positions, dead_after_read,
                          structure);
}

nb::object node_origin(const NodeHandle& self) {
    if (!self.node->origin) return nb::none();
    return nb::make_tuple(self.node->origin->file, self.node->origin->line);
}

// The value of the index-th result, or None.
nb::object node_value(const NodeHandle& self, std::size_t index) {
    Ref<Value> value = value_of(self.node.get());
    for (; value && index > 0; --index) value = value->next;
    return value ? nb::cast(ValueHandle{std::move(value)}) : nb::none();
}

// The slice of an array of this Type, as in the words of a ShapeSignature.
std::vector<int64_t> slice_key_of(const NodeHandle& self, nb::handle array) {
    std::vector<uint64_t> words;
    Ref<Type> type = type_from_python(array);
    append_slice_key(*self.node->params, *type, words);
    return {words.begin(), words.end()};
}

nb::list readers_to_python(const NodeHandle& self) {
    nb::list readers; // under the GIL from here on: no node is made or dies
    for (Ref<Node>& reader : readers_of(self.node.get()))
        readers.append(node_to_python(std::move(reader)));
    return readers;
}

// The nodes whose values a node stands for: itself, or the components of a storage kind.
std::vector<Ref<Node>> stored_nodes_of(Node* node) {
    if (node->type->storage) return inputs_of(node);
    return {Ref<Node>(node)};
}

// pending_of(arrays) -> the pending nodes that are not submitted yet. Returns the position of an
// element that is not an Array, if any.
nb::object pending_of(nb::tuple arrays) {
    NodesHandle pending_nodes;
    std::size_t position = 0;
    for (nb::handle array : arrays) {
        if (!is_array(array.ptr())) return nb::int_(position);
        Node* node = node_of(array.ptr());
        if (!node) nb::raise_python_error();
        for (Ref<Node>& stored : stored_nodes_of(node))
            if (stored->op && !value_of(stored.get()) && !is_submitted(*stored))
                pending_nodes.nodes.push_back(std::move(stored));
        ++position;
    }
    return nb::cast(std::move(pending_nodes));
}

// How often a node is counted, and how often its value and the memory of that, but for its own.
nb::tuple references_of(const NodeHandle& self) {
    Value* value = value_of(self.node.get()).get(); // the node keeps it
    auto other_references = [](auto& counted) { return counted->references.load() - 1; };
    return nb::make_tuple(self.node->references.load(), value ? other_references(value) : 0,
                          value ? other_references(value->buffers[0].allocation) : 0);
}

// The unique identities of a Value and its memory.
nb::tuple identity_of(const ValueHandle& self) {
    auto number = [](const void* object) { return reinterpret_cast<std::size_t>(object); };
    return nb::make_tuple(number(self.value.get()),
                          number(self.value->buffers[0].allocation.get()));
}

void publish_values(const NodeHandle& self, nb::handle values) {
    Ref<Value> first;
    Value* last = nullptr;
    for (nb::handle item : values) {
        Ref<Value> value = nb::cast<ValueHandle&>(item).value;
        Value* current = value.get();
        if (last)
            last->next = std::move(value);
        else
            first = std::move(value);
        last = current;
    }
    if (first) publish(self.node.get(), std::move(first));
}

} // namespace

void declare_nodes(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<NodeHandle>(module, "Node")
        .def_prop_ro("op", op_of)
        .def_prop_ro(
            "name",
            [](const NodeHandle& self) { return self.node->op ? self.node->op->name : "leaf"; })
        .def_prop_ro("params",
                     [](const NodeHandle& self) {
                         return nb::steal(params_to_python(self.node->params.get()));
                     })
        .def_prop_ro("inputs", inputs_to_python)
        .def_prop_ro(
            "type",
            [](const NodeHandle& self) { return type_to_python(Ref<Type>(self.node->type)); })
        .def_prop_ro("types", types_of)
        .def_prop_ro("operands", operands_of)
        .def_prop_ro("kind", [](const NodeHandle& self) { return self.node->kind.load(); })
        .def_prop_ro("depth", [](const NodeHandle& self) { return self.node->depth.load(); })
        .def_prop_ro("assignments",
                     [](const NodeHandle& self) { return self.node->assignments.load(); })
        .def_prop_ro(
            "pending",
            [](const NodeHandle& self) { return self.node->op && !value_of(self.node.get()); })
        .def_prop_ro("is_scalar", [](const NodeHandle& self) { return self.node->is_scalar(); })
        .def_prop_ro(
            "scalar",
            [](const NodeHandle& self) { return nb::steal(scalar_to_python(self.node->scalar)); })
        .def_prop_ro("is_slice",
                     [](const NodeHandle& self) {
                         return self.node->op && self.node->op->part == Op::slice;
                     })
        .def("slice_key", slice_key_of, "array"_a)
        .def_prop_ro("origin", node_origin)
        .def_prop_ro("creation_number",
                     [](const NodeHandle& self) {
                         return self.node->is_scalar() ? 0 : self.node->creation_number();
                     })
        .def_prop_ro("watched", [](const NodeHandle& self) { return self.node->has(WATCHED); })
        .def_prop_ro("is_made_of_watched",
                     [](const NodeHandle& self) { return is_made_of_watched(self.node.get()); })
        .def(
            "watch", [](const NodeHandle& self, bool forget) { watch(self.node.get(), forget); },
            "forget"_a = false)
        .def("stop_watching", [](const NodeHandle& self) { stop_watching(self.node.get()); })
        .def(
            "passed_through",
            [](const NodeHandle& self, bool mark) {
                return mark ? mark_passed_through(self.node.get()) : self.node->has(PASSED_THROUGH);
            },
            "mark"_a = true)
        .def("value", node_value, "index"_a = 0)
        .def("publish", publish_values, "values"_a)
        .def("__eq__",
             [](const NodeHandle& self, nb::handle other) {
                 return nb::isinstance<NodeHandle>(other) &&
                        nb::cast<NodeHandle&>(other).node == self.node;
             })
        .def("__hash__", [](const NodeHandle& self) {
            return reinterpret_cast<std::size_t>(self.node.get()) >> 4;
        });

    module.def("node_of", [](nb::handle array) {
        if (!is_array(array.ptr())) throw nb::type_error("node_of() needs an Array");
        Node* node = node_of(array.ptr());
        if (!node) nb::raise_python_error();
        return NodeHandle{Ref<Node>(node)};
    });
    nb::class_<NodesHandle>(module, "Nodes")
        .def("__len__", [](const NodesHandle& self) { return self.nodes.size(); })
        .def("__getitem__",
             [](const NodesHandle& self, std::size_t at) {
                 if (at >= self.nodes.size()) throw nb::index_error();
                 return NodeHandle{self.nodes[at]};
             })
        .def("clear", [](NodesHandle& self) { std::exchange(self.nodes, {}); });
    module.def("pending_of", pending_of, "arrays"_a);
    module.def("has_kind", [](nb::handle object) {
        return is_array(object.ptr()) && type_of(object.ptr()).storage != 0;
    });
    module.def("stored_node", [](nb::handle array) {
        if (!is_array(array.ptr())) throw nb::type_error("kept_node() needs an Array");
        Node* node = reinterpret_cast<ArrayObject*>(array.ptr())->node;
        return node ? node_to_python(Ref<Node>(node)) : nb::none();
    });
    module.def("readers_of", readers_to_python, "node"_a);
    module.def("forget_history", [](nb::handle nodes) { forget_history(nodes_from(nodes)); });
    module.def("references_of", references_of, "node"_a);
    module.def("identity_of", identity_of, "value"_a);
    module.def("array_of", [](const NodeHandle& node) { return nb::steal(new_array(node.node)); });
    module.def("weak_type", [](nb::handle number) {
        Operand operand(number.ptr(), number.ptr());
        if (!operand.get()) nb::raise_python_error();
        return type_to_python(Ref<Type>(operand.get()->type));
    });
    module.def("value_array", [](const ValueHandle& value) {
        return nb::steal(new_array(value_node(value.value)));
    });
    module.def("placeholder", [](nb::handle type) {
        return nb::steal(new_array(placeholder_node(type_from_python(type))));
    });
    module.def("rebind", [](nb::handle array, const NodeHandle& node) {
        auto* object = reinterpret_cast<ArrayObject*>(array.ptr());
        if (!is_array(array.ptr()) || object->base)
            throw nb::type_error("rebind() needs an Array that is not a view");
        rebind(object, node.node);
    });
    module.def("version_of", [](nb::handle array) -> nb::object {
        if (!is_array(array.ptr())) throw nb::type_error("version_of() needs an Array");
        const ArrayObject* root = reinterpret_cast<ArrayObject*>(array.ptr())->root;
        return root->external ? nb::object(nb::none()) : nb::int_(root->version);
    });
    module.def("take_place_of_view", [](nb::handle array, nb::handle view) {
        auto* object = reinterpret_cast<ArrayObject*>(array.ptr());
        auto* other = reinterpret_cast<ArrayObject*>(view.ptr());
        if (!is_array(array.ptr()) || !is_array(view.ptr()) || other->base != object)
            throw nb::type_error("take_place_of_view() needs an Array and a view of it");
        take_place_of_view(object, other);
    });
    module.def("linearize", linearize_to_python, "outputs"_a, "options"_a = nb::tuple());
}

} // namespace tenfold::bindings
