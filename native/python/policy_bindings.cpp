// Policy bindings: the thresholds of the native policies, as Python reads and prints them.
#include <nanobind/stl/tuple.h>

#include "exec/batch_policy.h"
#include "exec/tier_policy.h"
#include "exec/update_deferral.h"
#include "python/value_bindings.h"

namespace tenfold::bindings {
namespace {

using Thresholds = std::initializer_list<std::pair<const char*, std::size_t>>;

// Gives the module a namespace with these numbers.
void add_table(nb::module_& module, const char* name, Thresholds thresholds) {
    nb::dict numbers;
    for (const auto& [threshold, number] : thresholds) numbers[threshold] = number;
    module.attr(name) = nb::module_::import_("types").attr("SimpleNamespace")(**numbers);
}

} // namespace

void declare_policies(nb::module_& module) {
    using namespace nb::literals;
    add_table(module, "DEFERRAL",
              {{"min_run", DEFERRAL.min_run},
               {"max_deferred", DEFERRAL.max_deferred},
               {"max_sharing", DEFERRAL.max_sharing},
               {"max_after_failure", DEFERRAL.max_after_failure}});
    add_table(module, "TIERS",
              {{"hot_runs", TIERS.hot_runs},
               {"hot_runs_long", TIERS.hot_runs_long},
               {"few_elements", TIERS.few_elements},
               {"few_elements_factor", TIERS.few_elements_factor},
               {"max_joined_blocks", TIERS.max_joined_blocks},
               {"max_elements", TIERS.max_elements},
               {"max_long_elements", TIERS.max_long_elements},
               {"max_update_elements", TIERS.max_update_elements},
               {"optimised_elements", TIERS.optimised_elements},
               {"optimised_launches", TIERS.optimised_launches}});
    add_table(module, "BATCHES",
              {{"min_mean_group_size", BATCHES.min_mean_group_size},
               {"min_members", BATCHES.min_members},
               {"min_large_members", BATCHES.min_large_members},
               {"min_planned_members", BATCHES.min_planned_members},
               {"full_members", BATCHES.full_members},
               {"min_part_elements", BATCHES.min_part_elements}});
    module.def(
        "due_updates",
        [](uint32_t target, uint32_t value, uint32_t retry_limit) {
            DueUpdates due = due_updates(target, value, retry_limit);
            return std::tuple(due.target, due.value, due.may_share);
        },
        "target"_a, "value"_a, "retry_limit"_a);
    module.def(
        "disable_deferral", [](const NodeHandle& node) { disable_deferral(*node.node); }, "node"_a);
    module.def("replays_until_lookup", replays_until_lookup, "lookups"_a);
}

} // namespace tenfold::bindings
