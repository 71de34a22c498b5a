// Module tenfold._native: registers ops and hooks, options, counters, caches and fork handlers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "engine/future.h"
#include "exec/executable.h"
#include "ir/inferred_shapes.h"
#include "memory/allocation_pool.h"
#include "memory/cache_registry.h"
#include "memory/guard_pages.h"
#include "python/array_transfer.h"
#include "python/joined_products.h"
#include "threads/counters.h"
#include "threads/device.h"
#include "threads/fork_safe_lock.h"

namespace tenfold::bindings {

bool bind_symbol(const char* text, const Op* op);
PyObject* apply(const Op* op, PyObject* inputs, PyObject* params);

namespace {

// Memory that is kept free while this lives.
struct Headroom {
    std::size_t bytes;
    ~Headroom() { release_headroom(bytes); }
};

Op& known_op(uint32_t id) {
    Op* op = find_op(id);
    if (!op) throw nb::index_error("no such op");
    return *op;
}

// The fields of an operation that Python names as it declares it.
constexpr std::pair<const char*, bool Op::*> FLAGS[] = {
    {"view", &Op::view},
    {"shows_part", &Op::shows_part},
    {"can_fail", &Op::can_fail},
    {"whole_exponent", &Op::whole_exponent},
    {"updates", &Op::updates},
    {"rule_free", &Op::rule_free},
    {"zero_derivative", &Op::zero_derivative},
    {"pure", &Op::pure},
    {"merges", &Op::merges},
    {"unbounded_time", &Op::unbounded_time},
    {"multiplies", &Op::multiplies},
    {"contracts", &Op::contracts},
    {"creates", &Op::creates},
    {"constant_fill", &Op::constant_fill},
    {"gathers", &Op::gathers},
    {"scatters", &Op::scatters},
    {"joins", &Op::joins},
    {"keeps_products", &Op::keeps_products},
    {"shares_factors", &Op::shares_factors},
    {"per_member", &Op::per_member},
    {"is_permanent", &Op::is_permanent},
};

uint32_t declare_python_op(nb::object python, const std::string& name, const std::string& shapes,
                           const std::string& folding, uint32_t weight, uint32_t num_arguments,
                           const nb::kwargs& flags) {
    Op& op = declare_op(name);
    op.python = python.ptr();
    for (const auto& [flag, field] : FLAGS) op.*field = nb::cast<bool>(flags[flag]);
    if (op.is_permanent) python.release(); // else its readers and its calls keep it alive
    if (shapes == "broadcast") op.shapes = Op::broadcast;
    if (shapes == "reduced") op.shapes = Op::reduced;
    if (shapes == "permuted") op.shapes = Op::permuted;
    op.weight = weight;
    op.num_arguments = op.multiplies ? 0 : num_arguments;
    if (folding == "each") op.folding = Op::each;
    if (folding == "as one") op.folding = Op::as_one;
    if (folding == "any order") op.folding = Op::any_order;
    return op.id;
}

void set_hooks(nb::kwargs functions) {
    auto take = [&](const char* name) { return Py_NewRef(nb::object(functions[name]).ptr()); };
    hooks = {
        take("infer"),     take("convert"),      take("refuse_scalar"),  take("evaluate"),
        take("get_item"),  take("set_item"),     take("assign"),         take("advance"),
        take("scalar_of"), take("origin"),       take("format"),         take("refuse_operand"),
        take("wait"),      take("evaluate_all"), take("apply_to_kinds"), hooks.missing_attribute};
}

nb::dict read_counters() {
    nb::dict totals;
    for (std::size_t i = 0; i < COUNTERS; ++i)
        totals[counter_names[i]] = counters[i].load(std::memory_order_relaxed);
    return totals;
}

void count_by_name(const std::string& name, int64_t by) {
    for (std::size_t i = 0; i < COUNTERS; ++i)
        if (name == counter_names[i]) return count(Counter(i), by);
    throw nb::key_error(name.c_str());
}

} // namespace
} // namespace tenfold::bindings

NB_MODULE(_native_once, module) {
    using namespace tenfold;
    using namespace tenfold::bindings;
    using namespace nb::literals;

    // Arrays may live until the interpreter ends: the rest is then not a leak worth a report.
    nb::set_leak_warnings(false);
    register_fork_handlers();
#ifndef Py_GIL_DISABLED
    gil_free_threads.store(0); // kernels that run without the GIL count nothing
#endif
    if (!make_array_type(module.ptr())) nb::raise_python_error();
    declare_type_tables(module);
    declare_values(module);
    declare_nodes(module);
    declare_derivative_walk(module);
    declare_kind_rules(module);
    declare_csr_patterns(module);
    declare_joined_products(module);
    declare_trace_log(module);
    declare_code(module);
    declare_cuda(module);
    declare_launch(module);
    declare_executables(module);
    declare_external_buffers(module);
    declare_functions(module);
    declare_export(module);
    declare_op_interpreter(module);
    declare_policies(module);
    declare_graph_batches(module);
    declare_submissions(module);
    declare_context_managers(module);
    declare_call_cache(module);
    declare_engine(module);
    declare_scan_loop(module);

    nb::class_<Options>(module, "Options")
        .def(nb::init<bool, uint8_t, uint32_t, bool, uint64_t, uint64_t, bool, uint8_t, int,
                      uint32_t, bool, bool, bool, uint16_t>(),
             "strict"_a, "device"_a, "pending_depth"_a, "origins"_a, "number"_a, "process_number"_a,
             "interprets"_a, "target"_a, "threads"_a, "batch_limit"_a, "rules"_a, "verify"_a,
             "strict_sync"_a, "hot_threshold"_a);
    module.def("set_options_variable",
               [](nb::handle variable) { set_options_variable(variable.ptr()); });
    module.def("set_process_options", set_process_options);
    module.def("enable_option_blocks", enable_option_blocks);
    module.def("enter_internal_block", enter_internal_block, "begins"_a);
    module.def("set_process_rules", set_process_rules, "number"_a);
    module.def("set_storable_bytes", set_storable_bytes, "storable"_a);
    module.def("set_rules_variable", [](nb::handle variable, nb::handle none) {
        set_rules_variable(variable.ptr(), none.ptr());
    });
    module.def("set_hooks", set_hooks);
    module.def("set_missing_attribute",
               [](nb::object function) { hooks.missing_attribute = function.release().ptr(); });

    module.def(
        "forget_op",
        [](uint32_t id) {
            Op* op = find_op(id);
            if (!op) return;
            drop_inferences_of(op);
            drop_dtypes_of(op);
            forget_plans_of_call(op->python);
        },
        "id"_a);
    module.def(
        "op_record",
        [](uint32_t id) {
            known_op(id);
            // Offset by one: a capsule's pointer is not null.
            return nb::capsule(reinterpret_cast<void*>(std::uintptr_t(id) + 1),
                               [](void* at) noexcept {
                                   free_op(uint32_t(reinterpret_cast<std::uintptr_t>(at) - 1));
                               });
        },
        "id"_a);
    module.def("declared_ops", declared_ops);
    module.def("declare_op", declare_python_op, "op"_a, "name"_a, nb::kw_only(), "shapes"_a,
               "folding"_a, "weight"_a, "num_arguments"_a, "flags"_a);
    module.def("bind_symbol", [](const std::string& symbol, uint32_t op) {
        if (!bind_symbol(symbol.c_str(), &known_op(op)))
            throw nb::value_error("no such operator symbol");
    });
    module.def(
        "set_slice_ops",
        [](uint32_t index, uint32_t update, uint32_t gather) {
            set_slice_ops(known_op(index), known_op(update), known_op(gather));
        },
        "index"_a, "update"_a, "gather"_a);
    module.def("apply", [](uint32_t op, nb::tuple inputs, std::optional<nb::tuple> params_tuple) {
        nb::object params = params_tuple ? nb::object(*params_tuple) : nb::none();
        PyObject* result = apply(&known_op(op), inputs.ptr(), params.ptr());
        if (!result) nb::raise_python_error();
        return nb::steal(result);
    });

    module.def("read_counters", read_counters);
    module.def("count", count_by_name, "name"_a, "by"_a = 1);
    module.def("caches", [] {
        nb::list found;
        for (const Cache& cache : registered_caches())
            if (cache.capacity)
                found.append(nb::make_tuple(
                    cache.name, cache.num_entries(), cache.capacity, cache.reason,
                    cache.num_bytes ? nb::object(nb::int_(cache.num_bytes())) : nb::none()));
        return found;
    });
    module.def("truncate_hashes", truncate_hashes, "bits"_a);
    module.def("pool_bytes", [] {
        AllocationPoolStatistics statistics = pool_statistics();
        return nb::make_tuple(statistics.cached_bytes, statistics.cap_bytes);
    });
    nb::class_<Headroom>(module, "Headroom");
    module.def(
        "reserve_headroom",
        [](std::size_t bytes) { return reserve_headroom(bytes) ? new Headroom{bytes} : nullptr; },
        "num_bytes"_a, nb::rv_policy::take_ownership);
    module.def("guard_pages", guard_pages);
    module.def("trim", [] {
        clear_caches();
        drain_decrefs(); // the former objects of the caches
        Slab<Node>::trim();
        Slab<Value>::trim();
        Slab<Allocation>::trim();
        Slab<Future>::trim();
        nb::gil_scoped_release released; // a device waits for what it has queued
        return trim_pool() + trim_devices();
    });
    // The last translator is asked first: no other can read an object that is not an exception.
}

namespace {

int refuse_import(PyObject*) {
    PyErr_SetString(PyExc_ImportError,
                    "tenfold: it is imported in this process, by this or another interpreter\n"
                    "  remedy: leave the modules of tenfold in sys.modules; compute in the "
                    "interpreter that imported it, or in another process");
    return -1;
}

// It fails when it is executed: Python 3.13.0 corrupts memory where another interpreter's PyInit
// fails.
PyModuleDef_Slot refusing_slots[] = {{Py_mod_exec, reinterpret_cast<void*>(refuse_import)},
                                     {0, nullptr}};
PyModuleDef refusing_module{PyModuleDef_HEAD_INIT, "_native", nullptr, 0,      nullptr,
                            refusing_slots,        nullptr,   nullptr, nullptr};

} // namespace

// nanobind's state, the Array type and the hooks belong to the first interpreter that imports this.
extern "C" NB_EXPORT PyObject* PyInit__native() {
    static std::atomic<bool> is_imported{false};
    return is_imported.exchange(true) ? PyModuleDef_Init(&refusing_module) : PyInit__native_once();
}
