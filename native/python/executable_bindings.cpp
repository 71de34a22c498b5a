// Executable bindings: Python writes the instructions of an Executable, and its structure.
#include "exec/op_interpreter.h"

#include <algorithm>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

using Slots = std::vector<Executable::Slot>;

struct UseCounterHandle {
    Ref<UseCounter> counter;
};

// The strides, or none where they are those of C order.
std::vector<int64_t> normalize_strides(const Type& type, std::vector<int64_t> strides) {
    return is_c_order(type, strides) ? std::vector<int64_t>() : std::move(strides);
}

void add_allocation(PlanHandle& self, Executable::Slot slot, nb::handle type, std::size_t bytes,
                    std::vector<int64_t> strides, bool temporary) {
    Ref<Type> result_type = type_from_python(type);
    strides = normalize_strides(*result_type, std::move(strides));
    self.append(
        Executable::Allocate{slot, std::move(result_type), bytes, std::move(strides), temporary});
}

void add_view(PlanHandle& self, Executable::Slot slot, Executable::Slot source, nb::handle type,
              std::vector<int64_t> strides, int64_t offset) {
    Ref<Type> result_type = type_from_python(type);
    strides = normalize_strides(*result_type, std::move(strides));
    self.append(Executable::View{slot, source, std::move(result_type), std::move(strides), offset});
}

// A number is 8 bytes, or (position, dtype, whether it is the imaginary part).
Executable::Number number_from(nb::handle object) {
    Executable::Number number;
    if (PyBytes_Check(object.ptr()) && PyBytes_GET_SIZE(object.ptr()) == 8) {
        std::memcpy(&number.bits, PyBytes_AS_STRING(object.ptr()), 8);
        return number;
    }
    nb::tuple fields = nb::cast<nb::tuple>(object);
    int id = dtype_id(fields[1].ptr());
    if (id < 0) nb::raise_python_error();
    number.position = nb::cast<uint32_t>(fields[0]);
    number.dtype = uint16_t(id);
    number.imaginary = nb::cast<bool>(fields[2]);
    return number;
}

// Programs: the kernel, and the code to run after all units, or None, of the same code object.
void add_launch(PlanHandle& self, nb::tuple programs, int64_t finished, nb::list buffers,
                std::vector<std::size_t> tables, nb::bytes sizes, nb::list numbers,
                std::size_t scratch, int64_t units, int64_t grain, int threads, bool whole,
                const std::string& label) {
    Executable::Run run{};
    const auto& kernel = nb::cast<EntryPoint&>(programs[0]);
    run.kernel = kernel.kernel;
    if (!programs[1].is_none()) run.finish = nb::cast<EntryPoint&>(programs[1]).kernel;
    if (kernel.code) self.plan->code.push_back(kernel.code);
    run.finish_units = finished;
    for (nb::handle place : buffers)
        run.buffers.push_back({nb::cast<Executable::Slot>(place[0]), nb::cast<int64_t>(place[1])});
    run.scratch_tables = std::move(tables);
    run.sizes.assign(sizes.c_str(), sizes.size());
    for (nb::handle number : numbers) run.numbers.push_back(number_from(number));
    run.scratch = scratch;
    run.units = units;
    run.grain = grain;
    run.threads = threads;
    run.uninterruptible = whole;
    run.label = label;
    self.append(std::move(run));
}

// Of the last launch, a product.
void add_scale(PlanHandle& self, nb::bytes element, nb::handle dtype, bool negative,
               bool conjugated, std::vector<int64_t> factors) {
    Executable::Scale scale{{}, 0, negative, conjugated, std::move(factors)};
    std::memcpy(scale.element.data(), element.c_str(),
                std::min(element.size(), sizeof scale.element));
    int id = dtype_id(dtype.ptr());
    if (id < 0) nb::raise_python_error();
    scale.dtype = uint16_t(id);
    self.plan->last_run().scales.push_back(std::move(scale));
}

// Of the last launch.
void add_blas_limit(PlanHandle& self, nb::iterable libraries, int threads) {
    auto& run = self.plan->last_run();
    for (nb::handle library : libraries)
        run.blas_libraries.push_back(nb::cast<LibraryHandle&>(library).library);
    run.blas_threads = threads;
}

void add_call(PlanHandle& self, nb::object function, std::vector<int64_t> inputs, Slots outputs,
              const std::string& label, int64_t multiply_adds, bool temporary, bool of_user) {
    self.plan->calls_user |= of_user;
    self.append(Executable::Call{function.release().ptr(), std::move(inputs), std::move(outputs),
                                 label, multiply_adds, temporary});
}

// The graph node that the last launch or call computes.
void set_source(PlanHandle& self, uint32_t position) {
    auto& last = self.plan->instructions.back();
    if (auto* run = std::get_if<Indirect<Executable::Run>>(&last)) (**run).source = position;
    if (auto* call = std::get_if<Indirect<Executable::Call>>(&last)) (**call).source = position;
}

PlanHandle make_plan(const StructureHandle& structure, nb::handle device, Executable::Slot slots,
                     bool scalars, bool parts, int64_t runs) {
    auto plan = Ref<Executable>::adopt(new Executable(structure.owned));
    plan->device = &device_of(device_id(device));
    int exact =
        exactness_of_key(structure) | (scalars ? Key::scalars : 0) | (parts ? Key::parts : 0);
    plan->key = structure.keys[std::size_t(exact)].words;
    plan->base_offsets = structure.keys[std::size_t(exact)].base_offsets;
    plan->slots = slots;
    plan->remaining_runs = runs;
    return {std::move(plan)};
}

// Keeps the plan. One of an exact key is found by way of one for all scalars.
void cache_plan_of(const PlanHandle& self, const StructureHandle& structure) {
    count_plan(structure.words_ignoring_lengths);
    cache_plan(self.plan);
    const auto& keys = structure.keys;
    auto exact_key = std::find_if(keys.begin(), keys.end(),
                                  [&](const Key& key) { return key.words == self.plan->key; });
    if (exact_key == keys.begin()) return;
    auto redirect = Ref<Executable>::adopt(new Executable(structure.owned));
    redirect->key = keys[Key::by_form].words;
    redirect->exact = uint8_t(exact_key - keys.begin());
    cache_plan(std::move(redirect));
}

} // namespace

// The new structure starts with the known exactness of its key.
uint8_t exactness_of_key(const StructureHandle& structure) {
    return tenfold::exactness_of_key(structure.keys[Key::by_form].words);
}

nb::object make_structure(const LinearizedGraph& graph, std::span<const uint64_t> options) {
    StructureHandle structure{
        {}, KeyOwners(graph), {}, {}, tenfold::bindings::words_ignoring_lengths(graph), false};
    structure.has_form = structure.form.write(graph, options, current_options().rules);
    for (std::size_t exact = 0; exact < structure.keys.size(); ++exact)
        if (!structure.keys[exact].write(graph, options, uint8_t(exact))) return nb::none();
    for (const LinearizedNode& entry : graph.nodes)
        structure.had_value.push_back(bool(entry.value));
    structure.is_cold =
        is_cold(graph, options,
                {structure.keys[Key::by_form], structure.has_form ? &structure.form : nullptr});
    structure.is_hot = !structure.is_cold && !is_long(graph) && may_interpret(graph, options);
    return nb::cast(std::move(structure));
}

void declare_executables(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<StructureHandle> structure(module, "Structure");
    structure.def("is_computed", [](const StructureHandle& self, std::size_t position) {
        return self.had_value.at(position);
    });
    structure.def_prop_ro("is_cold", [](const StructureHandle& self) { return self.is_cold; });
    structure.def_prop_ro("is_hot", [](const StructureHandle& self) { return self.is_hot; });
    nb::class_<UseCounterHandle>(module, "UseCounter")
        .def(
            "__init__",
            [](UseCounterHandle* self, int64_t hot, nb::object request) {
                auto* counter = new UseCounter(hot, request.release().ptr());
                new (self) UseCounterHandle{Ref<UseCounter>::adopt(counter)};
            },
            "hot"_a, "request"_a)
        .def("add", [](UseCounterHandle& self) { self.counter->uses.fetch_add(1); })
        .def_prop_ro("uses",
                     [](const UseCounterHandle& self) { return self.counter->uses.load(); });
    nb::class_<PlanHandle> plan(module, "Executable");
    declare_templates(module, structure, plan);
    plan.attr("ADDRESS") = Executable::BufferRef::ADDRESS;
    plan.def_static("create", make_plan, "structure"_a, "device"_a, "slots"_a, "scalars"_a,
                    "parts"_a, "runs"_a)
        .def("load",
             [](PlanHandle& self, Executable::Slot slot, uint32_t position, uint32_t index) {
                 self.append(Executable::Load{slot, position, index});
             })
        .def("allocate", add_allocation)
        .def("share",
             [](PlanHandle& self, Executable::Slot slot, Executable::Slot source) {
                 self.append(Executable::Share{slot, source});
             })
        .def("view", add_view)
        .def("launch", add_launch)
        .def("set_multiply_adds",
             [](PlanHandle& self, int64_t multiply_adds) {
                 self.plan->last_run().multiply_adds = multiply_adds;
             })
        .def("add_scale", add_scale)
        .def("add_blas_limit", add_blas_limit)
        .def("set_extra_work",
             [](PlanHandle& self, Executable::Slot slot, int64_t first, int64_t apart,
                int64_t numbers, int64_t multiply_adds) {
                 self.plan->last_run().extra_work = {slot, first, apart, numbers, multiply_adds};
             })
        .def("call", add_call)
        .def("set_source", set_source)
        .def("count_use",
             [](PlanHandle& self, const UseCounterHandle& uses) {
                 self.append(Executable::CountUse{uses.counter});
             })
        .def("count_copy",
             [](PlanHandle& self) { self.append(Executable::Raise{Counter::copies}); })
        .def("donate", [](PlanHandle& self,
                          uint32_t position) { self.plan->donated_inputs.push_back(position); })
        .def("drop", [](PlanHandle& self, Slots slots) { self.append(Executable::Drop{slots}); })
        .def("publish",
             [](PlanHandle& self, uint32_t position, Slots slots) {
                 self.append(Executable::Publish{position, slots});
             })
        .def("mark_passed_through",
             [](PlanHandle& self, uint32_t position) { self.append(Executable::Mark{position}); })
        .def("cache", cache_plan_of, "structure"_a);
    declare_replay(module);
    module.def(
        "disable_deferral", [](const NodeHandle& node) { disable_deferral(*node.node); }, "node"_a);
    module.def("num_cached_plans", num_cached_plans);
    module.def("clear_plan_cache", clear_plan_cache);
    module.def("is_special_value", [](nb::handle number) {
        return is_special_value(Operand(number.ptr(), nullptr).get()->scalar);
    });
}

} // namespace tenfold::bindings
