// Executable bindings: Python writes the instructions of an Executable, and its structure.
#include "exec/op_interpreter.h"

#include <algorithm>

#include <nanobind/stl/optional.h>
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

void add_share(PlanHandle& self, Executable::Slot slot, Executable::Slot source,
               const std::vector<uint32_t>& donated) {
    self.append(Executable::Share{slot, source});
    auto& inputs = self.plan->donated_inputs;
    inputs.insert(inputs.end(), donated.begin(), donated.end());
}

uint16_t dtype_from(nb::handle dtype) {
    int id = dtype_id(dtype.ptr());
    if (id < 0) nb::raise_python_error();
    return uint16_t(id);
}

// A number is its 64 bits, or (position, dtype, whether it is the imaginary part).
Executable::Number number_from(nb::handle object) {
    Executable::Number number;
    if (PyLong_Check(object.ptr())) {
        number.bits = uint64_t(nb::cast<int64_t>(object));
        return number;
    }
    number.position = nb::cast<uint32_t>(object[0]);
    number.dtype = dtype_from(object[1]);
    number.imaginary = nb::cast<bool>(object[2]);
    return number;
}

// (element, dtype, whether it is negated, and conjugated, factors)
Executable::Scale scale_from(nb::handle object) {
    Executable::Scale scale{{},
                            dtype_from(object[1]),
                            nb::cast<bool>(object[2]),
                            nb::cast<bool>(object[3]),
                            nb::cast<std::vector<int64_t>>(object[4])};
    auto element = nb::cast<nb::bytes>(object[0]);
    std::memcpy(scale.element.data(), element.c_str(),
                std::min(element.size(), sizeof scale.element));
    return scale;
}

// (slot, offset, stride, count, multiply-adds)
Executable::WorkCounter work_counter_from(const nb::tuple& object) {
    auto number = [&](int index) { return nb::cast<int64_t>(object[index]); };
    return {Executable::Slot(number(0)), number(1), number(2), number(3), number(4)};
}

void add_launch(PlanHandle& self, const EntryPoint& kernel, std::optional<EntryPoint> finish,
                int64_t finish_units, nb::sequence buffers, std::vector<int64_t> sizes,
                std::size_t scratch, int64_t units, int64_t grain, int threads,
                bool uninterruptible, const std::string& label, std::optional<uint32_t> source,
                nb::sequence numbers, std::vector<std::size_t> scratch_tables,
                int64_t multiply_adds, nb::sequence scales, nb::sequence blas_libraries,
                int blas_threads, std::optional<nb::tuple> extra_work, uint64_t written) {
    Executable::Launch run{};
    run.kernel = kernel.kernel;
    if (finish) run.finish = finish->kernel;
    if (kernel.code) self.plan->code.push_back(kernel.code);
    run.finish_units = finish_units;
    for (nb::handle buffer : buffers)
        run.buffers.push_back(
            {nb::cast<Executable::Slot>(buffer[0]), nb::cast<int64_t>(buffer[1])});
    run.scratch_tables = std::move(scratch_tables);
    run.sizes = std::move(sizes);
    for (nb::handle number : numbers) run.numbers.push_back(number_from(number));
    run.scratch = scratch;
    run.units = units;
    run.grain = grain;
    run.threads = threads;
    run.uninterruptible = uninterruptible;
    run.label = label;
    run.source = source.value_or(Executable::NONE);
    run.multiply_adds = multiply_adds;
    for (nb::handle scale : scales) run.scales.push_back(scale_from(scale));
    for (nb::handle library : blas_libraries)
        run.blas_libraries.push_back(nb::cast<LibraryHandle&>(library).library);
    run.blas_threads = blas_threads;
    run.written = written;
    if (extra_work) run.extra_work = work_counter_from(*extra_work);
    self.append(std::move(run));
}

void add_call(PlanHandle& self, nb::object function, std::vector<int64_t> inputs, Slots outputs,
              const std::string& label, int64_t multiply_adds, bool temporary, bool of_user,
              std::optional<uint32_t> source) {
    self.plan->calls_user |= of_user;
    self.append(Executable::Call{function.release().ptr(), std::move(inputs), std::move(outputs),
                                 label, multiply_adds, temporary,
                                 source.value_or(Executable::NONE)});
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

OptionKey option_key_from(nb::handle numbers) {
    const std::size_t count = nb::len(numbers);
    auto number = [&](std::size_t i) { return i < count ? nb::cast<uint64_t>(numbers[i]) : 0; };
    return {number(0), number(1), number(2)};
}

nb::object make_structure(const LinearizedGraph& graph, const OptionKey& options) {
    StructureHandle structure{
        {}, KeyOwners(graph), {}, {}, tenfold::words_ignoring_lengths(graph), false};
    structure.has_form = structure.form.write(graph, options, current_options().rules);
    for (std::size_t exact = 0; exact < structure.keys.size(); ++exact)
        if (!structure.keys[exact].write(graph, options, uint8_t(exact))) return nb::none();
    for (const LinearizedNode& entry : graph.nodes)
        structure.had_value.push_back(bool(entry.value));
    const TierPolicy policy{
        graph,
        options,
        current_options().tiers(),
        {structure.keys[Key::by_form], structure.has_form ? &structure.form : nullptr}};
    structure.is_cold = policy.is_cold();
    structure.is_hot = !structure.is_cold && !is_long(graph) && policy.may_interpret();
    return nb::cast(std::move(structure));
}

void declare_executables(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<StructureHandle> structure(module, "Structure");
    structure.def("is_computed", [](const StructureHandle& self, std::size_t position) -> bool {
        return self.had_value.at(position);
    });
    structure.def_prop_ro("is_cold", [](const StructureHandle& self) { return self.is_cold; });
    structure.def_prop_ro("is_hot", [](const StructureHandle& self) { return self.is_hot; });
    nb::class_<UseCounterHandle>(module, "UseCounter")
        .def(
            "__init__",
            [](UseCounterHandle* self, nb::object request) {
                auto* counter = new UseCounter(TIERS.optimised_launches, request.release().ptr());
                new (self) UseCounterHandle{Ref<UseCounter>::adopt(counter)};
            },
            "request"_a)
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
        .def("share", add_share)
        .def("view", add_view)
        .def("launch", add_launch)
        .def("call", add_call)
        .def("count_use",
             [](PlanHandle& self, const UseCounterHandle& uses) {
                 self.append(Executable::CountUse{uses.counter});
             })
        .def("count_copy",
             [](PlanHandle& self) { self.append(Executable::Count{Counter::copies}); })
        .def("drop", [](PlanHandle& self, Slots slots) { self.append(Executable::Drop{slots}); })
        .def("publish",
             [](PlanHandle& self, uint32_t position, Slots slots) {
                 self.append(Executable::Publish{position, slots});
             })
        .def("mark_passed_through",
             [](PlanHandle& self, uint32_t position) {
                 self.append(Executable::MarkPassedThrough{position});
             })
        .def("cache", cache_plan_of, "structure"_a);
    declare_replay(module);
    module.def("num_cached_plans", num_cached_plans);
    module.def("clear_plan_cache", clear_plan_cache);
    module.def("is_special_value", [](nb::handle number) {
        return is_special_value(Operand(number.ptr(), nullptr).get()->scalar);
    });
}

} // namespace tenfold::bindings
