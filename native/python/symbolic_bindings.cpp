// Symbolic bindings: the Python class by which a symbolic executable is written.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>

#include "python/executable_bindings.h"

namespace tenfold::bindings {
namespace {

using Registers = std::vector<SymbolicExecutable::Register>;

template <std::size_t N>
std::size_t number_of(const std::array<const char*, N>& names, const std::string& name) {
    auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw nb::value_error("a template has no such thing");
    return std::size_t(found - names.begin());
}

SymbolicExecutable::Row row_from(const std::tuple<std::string, SymbolicExecutable::Register,
                                                  SymbolicExecutable::Register>& row) {
    static constexpr std::array OPERATIONS{"plus", "times", "floor", "ceil",
                                           "mod",  "min",   "max",   "bits"};
    auto operation = number_of(OPERATIONS, std::get<0>(row));
    return {SymbolicExecutable::Row::Operation(operation), std::get<1>(row), std::get<2>(row)};
}

SymbolicExecutable::Guard guard_from(
    const std::tuple<std::string, SymbolicExecutable::Register>& guard) {
    static constexpr std::array KINDS{"positive", "zero", "other"};
    return {SymbolicExecutable::Guard::Kind(number_of(KINDS, std::get<0>(guard))),
            std::get<1>(guard)};
}

SymbolicExecutable::PatchedField number_from(
    const std::tuple<std::string, uint32_t, uint32_t, SymbolicExecutable::Register>& number) {
    static constexpr std::array FIELDS{
        "bytes",   "strides", "offset", "buffers", "scratch_tables", "sizes",        "numbers",
        "scratch", "units",   "grain",  "threads", "finish_units",   "multiply_adds"};
    auto field = SymbolicExecutable::PatchedField::Field(number_of(FIELDS, std::get<0>(number)));
    return {field, std::get<1>(number), std::get<2>(number), std::get<3>(number)};
}

// Keeps a plan as the pattern of others; false where a formula has no place in it.
bool keep(
    const PlanHandle& self, const StructureHandle& structure, const std::vector<int64_t>& constants,
    const std::vector<
        std::tuple<std::string, SymbolicExecutable::Register, SymbolicExecutable::Register>>& rows,
    const std::vector<std::tuple<std::string, SymbolicExecutable::Register>>& guards,
    const Registers& inferred,
    const std::vector<std::tuple<std::string, uint32_t, uint32_t, SymbolicExecutable::Register>>&
        numbers,
    const std::vector<std::tuple<uint32_t, Registers>>& shapes) {
    auto result = Ref<SymbolicExecutable>::adopt(new SymbolicExecutable);
    result->template_plan = self.plan;
    result->num_lengths = structure.form.lengths.size();
    result->constants = constants;
    for (const auto& row : rows) result->rows.push_back(row_from(row));
    for (const auto& guard : guards) result->guards.push_back(guard_from(guard));
    result->inferred_lengths = inferred;
    for (const auto& number : numbers) result->patches.push_back(number_from(number));
    for (const auto& [instruction, lengths] : shapes)
        result->shapes.push_back({instruction, lengths});
    if (!structure.has_form || !result->is_valid()) return false;
    if (cache_template(structure.form, std::move(result)) >= TIERS.templates_until_reset)
        reset_hotness(structure.form);
    return true;
}

} // namespace

void declare_templates(nb::module_& module, nb::class_<StructureHandle>& structure,
                       nb::class_<PlanHandle>& plan) {
    using namespace nb::literals;
    structure
        .def(
            "wants_template",
            [](const StructureHandle& self, bool able, bool expects_others) {
                return self.has_form && exactness_of_key(self) == Key::by_form &&
                       should_compile_template(self.form, able, expects_others);
            },
            "able"_a, "expects_others"_a = false)
        .def_prop_ro("lengths", [](const StructureHandle& self) {
            return nb::make_tuple(self.form.lengths, self.form.axes);
        });
    plan.def("cache_template", keep, "structure"_a, "constants"_a, "rows"_a, "guards"_a,
             "inferred"_a, "numbers"_a, "shapes"_a);
    module.def("num_cached_templates", num_cached_templates);
    module.def("set_templates_enabled", set_templates_enabled, "now"_a);
}

} // namespace tenfold::bindings
