"""Plants: small bugs, each of which the tests must find.

Table.

Takes nothing, hands on rows for `tools/planted_bugs.py`: a name, a file of the repository, a text
that stands in it exactly once, the text that takes its place, and the tests that are asked first.
A plant changes what can be observed: a wrong value, a read out of bounds, a result of another
shape, a kernel that is reused where it must not be.

>>> len({plant.name for plant in PLANTS}) == len(PLANTS) >= 60
True
"""

from __future__ import annotations

from typing import NamedTuple


class Plant(NamedTuple):
    """One bug: `old` becomes `new` in `file`; `tests` are asked first, below tests/."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def native(self) -> bool:
        """Whether the extension is built again."""
        return self.file.startswith("native/")


KEYS = (
    Plant(
        "schedule_key forgets which values die",
        "src/tenfold/schedule/schedule.py",
        "dead_after_read = bool(graph.dead_after_read) and graph.dead_after_read[position]",
        "dead_after_read = False",
        ("schedule/test_structure_keys.py", "schedule/test_in_place_updates.py"),
    ),
    Plant(
        "schedule_key forgets which nodes are held",
        "src/tenfold/schedule/schedule.py",
        "                    graph.live_out[position],\n                    node.params,",
        "                    node.params,",
        ("schedule/test_structure_keys.py", "schedule/test_fusion.py"),
    ),
    Plant(
        "schedule_key forgets strides",
        "src/tenfold/schedule/schedule.py",
        "(type_.shape, type_.dtype, value.strides if value else None, dead_after_read)",
        "(type_.shape, type_.dtype, None, dead_after_read)",
        ("schedule/test_structure_keys.py", "schedule/test_fusion.py"),
    ),
    Plant(
        "schedule_key forgets shapes",
        "src/tenfold/schedule/schedule.py",
        "(type_.shape, type_.dtype, value.strides if value else None, dead_after_read)",
        "(type_.dtype, value.strides if value else None, dead_after_read)",
        ("schedule/test_structure_keys.py", "schedule/test_fusion.py"),
    ),
    Plant(
        "schedule_key forgets dtypes of values",
        "src/tenfold/schedule/schedule.py",
        "(type_.shape, type_.dtype, value.strides if value else None, dead_after_read)",
        "(type_.shape, value.strides if value else None, dead_after_read)",
        ("schedule/test_structure_keys.py", "schedule/test_fusion.py"),
    ),
    Plant(
        "schedule_key forgets parameters",
        "src/tenfold/schedule/schedule.py",
        "                    node.params,\n                    node.type.dtype,",
        "                    node.type.dtype,",
        ("schedule/test_structure_keys.py", "schedule/test_fusion.py"),
    ),
    Plant(
        "keys of plans forget the options",
        "src/tenfold/pipeline.py",
        "return (settings.options_fingerprint(), *rule_registry.rules_fingerprint())",
        "return (0, *rule_registry.rules_fingerprint())",
        (
            "runtime/test_replay.py::test_a_plan_that_was_made_under_other_options_is_not_replayed",
            "runtime/test_replay.py",
        ),
    ),
    Plant(
        "plans of parts are moved though the whole array is written",
        "src/tenfold/runtime/scheduled_graph.py",
        "if item.kind is ItemKind.SLICE_STORE or item.base >= 0",
        "if item.kind is ItemKind.SLICE_STORE or number in dict(self.plan.reused_buffers) or "
        "item.base >= 0",
        ("runtime/test_guard_pages.py", "schedule/test_in_place_updates.py"),
    ),
    Plant(
        "keys of plans forget the rules",
        "src/tenfold/rule_registry.py",
        "return _process_version, _open_block.get().number",
        "return 0, 0",
        ("rewrite/test_user_rules.py", "runtime/test_replay.py"),
    ),
    Plant(
        "programs forget the processor",
        "src/tenfold/jit/program.py",
        "return self.by_kernel.get((kernel, cpu)) or KernelPrograms()",
        'return self.by_kernel.get((kernel, "native")) or KernelPrograms()',
        (
            "runtime/test_cpu.py::test_programs_of_different_processors_are_different",
            "runtime/test_kernel_cache.py",
        ),
    ),
    Plant(
        "the cache on disk forgets the level of optimisation",
        "src/tenfold/jit/target_key.py",
        'return digest(environment + struct.pack("<I", level) + text.encode())',
        "return digest(environment + text.encode())",
        (
            (
                "runtime/test_kernel_cache.py::"
                "test_an_entry_is_for_one_text_level_processor_and_version"
            ),
            "runtime/test_kernel_cache.py",
        ),
    ),
    Plant(
        "the cache on disk forgets the environment",
        "src/tenfold/jit/target_key.py",
        'return digest(environment + struct.pack("<I", level) + text.encode())',
        'return digest(struct.pack("<I", level) + text.encode())',
        (
            (
                "runtime/test_kernel_cache.py::"
                "test_an_entry_is_for_one_text_level_processor_and_version"
            ),
            "runtime/test_kernel_cache.py",
        ),
    ),
    Plant(
        "the environment forgets our sources",
        "src/tenfold/jit/target_key.py",
        "        _source_state(),\n        _llvm_build(),",
        "        _llvm_build(),",
        ("runtime/test_kernel_cache.py",),
    ),
    Plant(
        "an entry on disk has the places of its functions one byte off",
        "src/tenfold/jit/cache_entry.py",
        "*entry.function_offsets)\n    content",
        "*(offset + 1 for offset in entry.function_offsets))\n    content",
        (
            "runtime/test_kernel_cache.py::test_loaded_functions_lie_as_far_apart_as_they_did",
            "runtime/test_kernel_cache.py",
        ),
    ),
    Plant(
        "traces forget the Types of arguments",
        "src/tenfold/transforms/trace_cache.py",
        "_native.node_of(leaf).type if isinstance(leaf, Array)",
        "Array if isinstance(leaf, Array)",
        (
            "transforms/test_scan_loops.py::test_a_function_is_traced_once_for_each_signature",
            "transforms/test_scan_loops.py",
        ),
    ),
    Plant(
        "a trace is kept though what it reads has changed",
        "src/tenfold/transforms/trace_cache.py",
        "if not are_same(cached.bindings, current_bindings)",
        "if False",
        (
            (
                "transforms/test_scan_loops.py::"
                "test_arrays_in_objects_and_other_functions_are_seen_too"
            ),
            "transforms/test_scan_loops.py",
        ),
    ),
    Plant(
        "functions forget the values of what is no array",
        "src/tenfold/transforms/trace_cache.py",
        "else exact_params(leaf)\n",
        "else type(leaf)\n",
        (
            "transforms/test_function.py::test_other_arguments_count_by_their_values",
            "transforms/test_function.py",
        ),
    ),
    Plant(
        "common subexpressions forget parameters",
        "src/tenfold/rewrite/cse.py",
        "    return exact_params(graph.nodes[at].params)\n\n\ndef costly_pairs",
        '    return ""\n\n\ndef costly_pairs',
        (
            "rewrite/test_cse.py::test_nodes_of_other_parameters_are_not_merged",
            "rewrite/test_cse.py",
        ),
    ),
)

GUARDS = (
    Plant(
        "a guard of a template is one too weak",
        "src/tenfold/core/symbolic/shape_env.py",
        "self._add_guard(number if decision else 1 - number)",
        "self._add_guard(number + 1 if decision else 2 - number)",
        ("schedule/test_symbolic_sizes.py", "runtime/test_symbolic_executables.py", "second_runs"),
    ),
    Plant(
        "of alike guards the weakest is left",
        "src/tenfold/core/symbolic/shape_env.py",
        "self._positive[variable_terms] = min(constant,",
        "self._positive[variable_terms] = max(constant,",
        ("schedule/test_symbolic_sizes.py",),
    ),
    Plant(
        "what must be 0 is no guard",
        "src/tenfold/core/symbolic/shape_env.py",
        '        self._zero["zero" if decision else "other", number.terms] = None\n',
        "",
        ("schedule/test_symbolic_sizes.py", "runtime/test_symbolic_executables.py"),
    ),
    Plant(
        "a quotient below 0 is rounded down twice",
        "src/tenfold/core/symbolic/sym_int.py",
        'return -_atom_quotient(shape_env, "ceil", -number, divisor)',
        'return -_atom_quotient(shape_env, "floor", -number, divisor)',
        ("schedule/test_symbolic_sizes.py", "runtime/test_symbolic_executables.py"),
    ),
    Plant(
        "the smaller of two Sizes is the first",
        "src/tenfold/core/symbolic/sym_int.py",
        'result: int = _extreme("min", first, second)',
        "result: int = first",
        ("schedule/test_symbolic_sizes.py",),
    ),
    Plant(
        "batch rules of users count as uniform",
        "src/tenfold/transforms/batch_compiler.py",
        "is_uniform(op.semantics.body) if op.semantics.body else op.permanent",
        "is_uniform(op.semantics.body) if op.semantics.body else True",
        ("transforms/test_batch_cache.py",),
    ),
    Plant(
        "templates are kept where rules have looked at lengths",
        "src/tenfold/runtime/symbolic_executable.py",
        "return generic_ops and not (reads_lengths or report.read_scalars)",
        "return True",
        ("runtime/test_symbolic_executables.py",),
    ),
)

UNITS = (
    Plant(
        "a map has one unit fewer",
        "src/tenfold/schedule/loop_schedule.py",
        "units = outer * -(-largest(last, 1) // part)",
        "units = outer * largest(largest(last, 1) // part, 1)",
        ("tiny", "schedule/test_loop_schedule.py", "full_size"),
    ),
    Plant(
        "a part of a map is no whole packets",
        "src/tenfold/schedule/loop_schedule.py",
        "longest = max(longest // kernel.lanes, 1) * kernel.lanes",
        "longest = max(longest // kernel.lanes, 1) * kernel.lanes + 1",
        ("schedule/test_loop_schedule.py", "schedule/test_verify_kernels.py", "full_size"),
    ),
    Plant(
        "a part of columns is no whole packets",
        "src/tenfold/schedule/loop_schedule.py",
        "part = smallest(part, -(-last // kernel.lanes) * kernel.lanes)",
        "part = smallest(part, last)",
        (
            "schedule/test_verify_kernels.py::test_every_form_of_any_length_keeps_the_rules",
            "runtime/test_cpu_reductions.py",
            "ops/test_variance.py",
        ),
    ),
    Plant(
        "rows that are split have one unit fewer",
        "src/tenfold/schedule/loop_schedule.py",
        "return part, outer * -(-blocks // part), 2, 0",
        "return part, outer * (blocks // part), 2, 0",
        (
            "runtime/test_cpu_reductions.py::test_threads_do_not_change_the_bits_of_a_long_row",
            "runtime/test_cpu_reductions.py",
        ),
    ),
    Plant(
        "columns have one slot for blocks too few",
        "src/tenfold/schedule/loop_schedule.py",
        "slots = (-(-folded // BLOCK)).bit_length() + 1",
        "slots = (folded // BLOCK).bit_length()",
        ("runtime/test_cpu_reductions.py",),
    ),
    Plant(
        "rows of a scan side by side have one unit fewer",
        "src/tenfold/schedule/loop_schedule.py",
        "return 0, -(-outer // rows), largest(1, range_elements // (rows * last)), 0",
        "return 0, largest(outer // rows, 1), largest(1, range_elements // (rows * last)), 0",
        ("schedule/test_scan_kernels.py", "ops/test_scan.py"),
    ),
    Plant(
        "kept elements of a row have no room for a last packet",
        "src/tenfold/core/loop_ir.py",
        "return 8 * len(self.cached_elements) * (length + self.lanes)",
        "return 8 * len(self.cached_elements) * length // 2",
        ("schedule/test_verify_kernels.py", "ops/test_variance.py"),
    ),
    Plant(
        "a tail mask has one lane more",
        "src/tenfold/codegen/llvm/function_emitter.py",
        'valid = int_min(ir, int_op(ir, "sub", end, position), lanes)',
        'valid = int_op(ir, "add", int_op(ir, "sub", end, position), 1)\n'
        "        valid = int_min(ir, valid, lanes)",
        (
            "codegen/test_strided_loads.py::test_nothing_past_the_last_element_is_written",
            "tiny",
            "runtime/test_guard_pages.py",
        ),
    ),
    Plant(
        "a tail mask has one lane less",
        "src/tenfold/codegen/llvm/function_emitter.py",
        "{iota(lanes, 'i32')}, {limit}\")\n        self.valid",
        "{iota(lanes, 'i32').replace('i32 0', 'i32 1', 1)}, {limit}\")\n        self.valid",
        ("tiny",),
    ),
    Plant(
        "a unit of a map ends at the length of the axis",
        "src/tenfold/codegen/llvm/module_emitter.py",
        '(ir, int_op(ir, "add", begin, unit_length), length)\n'
        "        reduce_inner.begin_row(emitter)\n",
        "(ir, length, length)\n        reduce_inner.begin_row(emitter)\n",
        ("schedule/test_update_coalescing.py", "schedule/test_in_place_updates.py", "full_size"),
    ),
    Plant(
        "a unit of a map goes past the end",
        "src/tenfold/codegen/llvm/module_emitter.py",
        '(ir, int_op(ir, "add", begin, unit_length), length)\n'
        "        reduce_inner.begin_row(emitter)\n",
        '(ir, *[int_op(ir, "add", begin, unit_length)] * 2)\n'
        "        reduce_inner.begin_row(emitter)\n",
        ("tiny", "runtime/test_guard_pages.py", "runtime/test_symbolic_executables.py"),
    ),
    Plant(
        "loads of a whole row go on past the last packet",
        "src/tenfold/codegen/llvm/function_emitter.py",
        'tail = int_op(ir, "urem", int_op(ir, "sub", end, begin), lanes)',
        'tail = int_op(ir, "and", int_op(ir, "sub", end, begin), 0)',
        ("tiny", "runtime/test_guard_pages.py"),
    ),
    Plant(
        "stores past the cache ask for no alignment",
        "src/tenfold/codegen/llvm/load_store.py",
        'misalignment = ir.value(f"and i64 {address}, {align - 1}")',
        'misalignment = ir.value(f"and i64 {address}, 0")',
        ("codegen/test_alignment.py", "full_size/test_streamed_maps.py"),
    ),
    Plant(
        "streamed stores are planned for rows of any stride",
        "src/tenfold/schedule/loop_schedule.py",
        "or any(stride % 64 for stride in outer)",
        "or any(stride % 8 for stride in outer)",
        (
            "schedule/test_loop_schedule.py::test_rows_off_cache_lines_are_not_streamed",
            "schedule/test_loop_schedule.py",
        ),
    ),
)

MEMORY = (
    Plant(
        "in place: no hazard is ever seen",
        "src/tenfold/schedule/loop_dependence.py",
        "safe_loop_order(target, reads if maps else [], axes=launch.order) for target in targets",
        "safe_loop_order(target, [], axes=launch.order) for target in targets",
        ("schedule/test_in_place_updates.py", "array", "schedule"),
    ),
    Plant(
        "in place: gathers of what is written are no hazard",
        "src/tenfold/schedule/loop_dependence.py",
        "    if _is_gathered(launch, base):\n        reasons.append(GATHERED)\n",
        "",
        (
            (
                "schedule/test_update_coalescing.py::"
                "test_array_read_at_computed_indices_is_not_written_over"
            ),
            "schedule/test_in_place_updates.py",
            "array",
        ),
    ),
    Plant(
        "in place: an array that is held is written over",
        "src/tenfold/schedule/in_place_updates.py",
        "if graph.live_out[base] or not graph.dead_after_read:",
        "if not graph.dead_after_read:",
        (
            "schedule/test_staged_values.py::test_old_value_that_is_held_is_kept",
            "array/test_live_references.py",
        ),
    ),
    Plant(
        "overlap: ranges that lie one byte into each other are apart",
        "src/tenfold/core/strided_overlap.py",
        "        second_low - first_high - first.itemsize,\n"
        "        first_low - second_high - second.itemsize,\n",
        "        second_low - first_high,\n        first_low - second_high,\n",
        ("schedule/test_dependence.py::test_overlap_is_exact", "schedule/test_dependence.py"),
    ),
    Plant(
        "overlap: equal addresses are the same cells",
        "src/tenfold/core/strided_overlap.py",
        "return all(length == 1 or stride == other_stride for "
        "length, stride, other_stride in axes)",
        "return True",
        (
            "schedule/test_dependence.py::test_same_means_every_index_is_the_same_cell",
            "schedule/test_dependence.py",
        ),
    ),
    Plant(
        "alias: loops count in the unsafe direction",
        "src/tenfold/schedule/dependence.py",
        "directions[axis] = -sign",
        "directions[axis] = sign",
        (
            "schedule/test_dependence.py::test_loops_in_a_safe_order_read_nothing_late",
            "schedule/test_dependence.py",
        ),
    ),
    Plant(
        "alias: a hazard over the last index is overlooked",
        "src/tenfold/schedule/dependence.py",
        "shape[axis] - 2)",
        "shape[axis] - 3)",
        ("schedule/test_dependence.py::test_order_is_exact", "schedule/test_dependence.py"),
    ),
    Plant(
        "reuse: an operand that is read at another place is written over",
        "src/tenfold/schedule/buffer_reuse.py",
        "return all(m.strides == store.strides and m.offset == store.offset for m in loads)",
        "return True",
        (
            (
                "schedule/test_update_coalescing.py::"
                "test_row_that_a_later_pass_reads_again_is_not_written_over"
            ),
            "schedule/test_in_place_updates.py",
            "second_runs",
            "random",
        ),
    ),
    Plant(
        "reuse: memory is free one step too early",
        "src/tenfold/schedule/buffer_reuse.py",
        "last_step[item] = number",
        "last_step.setdefault(item, number)",
        ("tiny", "schedule/test_concat_gather.py", "runtime/test_bitwise_equality.py"),
    ),
    Plant(
        "views: starts are not added up",
        "src/tenfold/core/index_map.py",
        "return (outer, coefficient * outer_coefficient, start + coefficient * outer_start)",
        "return (outer, coefficient * outer_coefficient, start + outer_start)",
        ("schedule/test_composed_views.py",),
    ),
    Plant(
        "views: a fixed index of a view is taken once",
        "src/tenfold/core/index_map.py",
        "return (None, 0, start + coefficient * outer_start)",
        "return (None, 0, start + outer_start)",
        ("schedule/test_composed_views.py",),
    ),
    Plant(
        "strides of one axis are not added up",
        "src/tenfold/core/index_map.py",
        "space_strides[axis] += coefficient * stride",
        "space_strides[axis] = coefficient * stride",
        (
            "schedule/test_concat_gather.py::test_identity_and_diagonal_matrices_are_kernels",
            "ops/test_samples.py",
            "ops/test_linalg.py",
        ),
    ),
    Plant(
        "readers of views may come after the update of their memory",
        "src/tenfold/schedule/write_ordering.py",
        "base_of[unit] = base",
        "pass",
        ("schedule/test_in_place_updates.py",),
    ),
    Plant(
        "axes of loops are merged whatever their strides",
        "src/tenfold/schedule/lowering.py",
        "    layouts = [m.strides for m in memory]\n",
        "    layouts = [m.strides for m in memory[:1]]\n",
        ("tiny", "schedule/test_loop_schedule.py", "ops/test_movement.py"),
    ),
    Plant(
        "runs: parts that meet are written together",
        "src/tenfold/core/index_map.py",
        "    return offset, shape, slice_strides\n",
        "    return 2 * offset, shape, slice_strides\n",
        ("rewrite/test_update_slices.py", "schedule/test_update_coalescing.py"),
    ),
    Plant(
        "a vector of which each second element is read lies side by side",
        "src/tenfold/schedule/loop_schedule.py",
        "if stride == int(step) * memory.dtype.itemsize:\n                return step",
        'if stride == int(step) * memory.dtype.itemsize:\n                return "2"',
        ("codegen/test_strided_loads.py",),
    ),
    Plant(
        "backwards packets are not turned round",
        "src/tenfold/codegen/llvm/load_store.py",
        'order = ", ".join(f"i32 {lanes - 1 - i}" for i in range(lanes))',
        'order = ", ".join(f"i32 {i}" for i in range(lanes))',
        ("schedule/test_composed_views.py",),
    ),
    Plant(
        "packets of every third element pick a neighbour",
        "src/tenfold/codegen/llvm/strided_load.py",
        "result, indices = self._loaded(lane * step, width), list(range(0, width, step))",
        "result, indices = self._loaded(lane * step, width), list(range(step // 3, width, step))",
        ("codegen/test_strided_loads.py",),
    ),
    Plant(
        "tiles begin a block too late at the edge",
        "src/tenfold/codegen/llvm/transpose.py",
        'last_begin = int_op(ir, "sub", length, _largest_block(emitter.kernel))',
        'last_begin = int_op(ir, "sub", length, 1)',
        ("runtime/test_guard_pages.py", "codegen/test_tiled_maps.py"),
    ),
    Plant(
        "tiles are turned with rows and columns exchanged",
        "src/tenfold/codegen/llvm/transpose.py",
        "for index, lanes in ((i, low), (i + distance, high)):",
        "for index, lanes in ((i, high), (i + distance, low)):",
        ("codegen/test_tiled_maps.py",),
    ),
)

FUSION = (
    Plant(
        "names: a value from which a pending name is computed later is written over",
        "src/tenfold/core/graph.py",
        "if passed_through and dead_after_read:",
        "if not passed_through and dead_after_read:",
        ("graphs/test_named_intermediates.py",),
    ),
    Plant(
        "names: a function of the user runs again for a name",
        "src/tenfold/core/graph.py",
        "stored[at] = runs_once(node) or any(map(stored.__getitem__, inputs[at]))",
        "stored[at] = any(map(stored.__getitem__, inputs[at]))",
        ("graphs/test_named_intermediates.py",),
    ),
    Plant(
        "names: no evaluation stores what an earlier one has passed through",
        "src/tenfold/core/graph.py",
        "if is_live and not node.passed_through(mark=False):",
        "if is_live:",
        ("graphs/test_named_intermediates.py",),
    ),
    Plant(
        "names: a loop that asks for one of two states computes all steps again",
        "src/tenfold/core/graph.py",
        "if nodes[i].passed_through(mark=False):",
        "if False:",
        ("graphs/test_named_intermediates.py",),
    ),
    Plant(
        "names: an array that an update writes over keeps that value",
        "src/tenfold/schedule/buffer_reuse.py",
        "    stored -= schedule.overwriter_of.keys()\n",
        "",
        ("graphs/test_named_intermediates.py",),
    ),
    Plant(
        "fuse: roots are read at any index of their group",
        "src/tenfold/schedule/fusion.py",
        "            or remap_axes(read.access, embedding) == "
        "root_location(self.items, group, read.item)\n",
        "            or True\n",
        ("schedule/passes", "schedule/test_fusion.py", "ops/test_variance.py", "random"),
    ),
    Plant(
        "fuse: a group joins another that waits for it",
        "src/tenfold/schedule/fusion.py",
        "            group.number in self.groups[predecessor].predecessors\n",
        "            False\n",
        ("schedule/test_fusion.py::test_steps_stand_in_an_order_in_which_they_can_run", "random"),
    ),
    Plant(
        "fuse: folds of other axes share loops",
        "src/tenfold/schedule/fusion.py",
        "if item.kind is ItemKind.FOLD and group.axis not in (None, item.axis):",
        "if item.kind is ItemKind.FOLD and group.axis not in (None, item.axis) and group.axis > 9:",
        (
            "schedule/passes",
            "ops/test_variance.py",
            "schedule/test_fusion.py",
            "runtime/test_cpu_reductions.py",
            "random",
        ),
    ),
)

FOLDS = (
    Plant(
        "the largest is no NaN",
        "src/tenfold/codegen/reducers.py",
        'return (_nan_or(k, x, y, k.select(y < x, x, y), "and"),)',
        "return (k.select(y < x, x, y),)",
        ("ops/test_reduce.py::test_nan_wins_maximum_and_minimum_wherever_it_stands",),
    ),
    Plant(
        "the smallest of two zeros has the wrong sign",
        "src/tenfold/codegen/reducers.py",
        'return (_nan_or(k, x, y, k.select(x < y, x, y), "or"),)',
        'return (_nan_or(k, x, y, k.select(x < y, x, y), "and"),)',
        (
            "runtime/test_cpu_reductions.py::test_zeros_of_both_signs_are_ordered_by_sign",
            "ops/test_reduce.py::test_negative_zero_is_below_zero",
        ),
    ),
    Plant(
        "positions: of equals the last is found",
        "src/tenfold/codegen/reducers.py",
        "take_right = beats | (ties & (j < i))",
        "take_right = beats | (ties & (i < j))",
        (
            "ops/test_reduce.py::test_equal_zeros_tie_so_the_first_is_found",
            "schedule/test_arg_reduction_kernels.py",
            "runtime/test_cpu_reductions.py",
        ),
    ),
    Plant(
        "positions: NaN does not win over what came before",
        "src/tenfold/codegen/reducers.py",
        "take_right = ~(y <= x if larger else x <= y) & (x == x)",
        "take_right = (x < y if larger else y < x) & (x == x)",
        (
            "schedule/test_arg_reduction_kernels.py",
            "codegen/test_arg_reductions.py",
        ),
    ),
    Plant(
        "searches: a chunk that ties is taken",
        "src/tenfold/codegen/llvm/search.py",
        "        return y < x if self.larger else x < y\n",
        "        return y <= x if self.larger else x <= y\n",
        (
            "codegen/test_arg_reductions.py::test_first_of_equals_wins_in_a_row",
            "codegen/test_arg_reductions.py",
        ),
    ),
    Plant(
        "searches: the worst number is 0",
        "src/tenfold/codegen/llvm/search.py",
        "return -np.inf if larger else np.inf",
        "return 0.0",
        ("codegen/test_arg_reductions.py", "ops/test_reduce.py"),
    ),
    Plant(
        "searches: parts of a row begin one part later",
        "src/tenfold/codegen/llvm/search.py",
        'first_entry = int_op(ir, "mul", number, unit_count)\n    slots',
        'first_entry = int_op(ir, "mul", number, 1)\n    slots',
        (
            "codegen/test_arg_reductions.py::test_first_of_equals_wins_among_parts",
            "codegen/test_arg_reductions.py",
            "full_size",
        ),
    ),
    Plant(
        "a fold combines what waits in the wrong order",
        "src/tenfold/codegen/llvm/loop_emitter.py",
        "merged = combine_partials(ir, self.kind, earlier, current, in_order=True)",
        "merged = combine_partials(ir, self.kind, current, earlier, in_order=True)",
        (
            "runtime/test_cpu_reductions.py",
            "schedule/test_arg_reduction_kernels.py",
            "ops/test_variance.py",
        ),
    ),
    Plant(
        "a fold in registers combines neighbours in the wrong order",
        "src/tenfold/codegen/llvm/reduce_inner.py",
        "leaf = combine_partials(ir, kind, pending.pop(), leaf, in_order=True)",
        "leaf = combine_partials(ir, kind, leaf, pending.pop(), in_order=True)",
        (
            "runtime/test_cpu_reductions.py",
            "schedule/test_arg_reduction_kernels.py",
            "ops/test_variance.py",
        ),
    ),
    Plant(
        "the lanes of a row that is not full are folded as if they were",
        "src/tenfold/codegen/llvm/horizontal_reduce.py",
        '(("full", None), ("ragged", "%valid"))',
        '(("full", None), ("ragged", None))',
        ("tiny", "ops/test_reduce.py", "runtime/test_cpu_reductions.py"),
    ),
    Plant(
        "lanes are folded with one pair too few",
        "src/tenfold/codegen/llvm/reduce_outer.py",
        'pairs = int_op(ir, "sub", valid, half)\n\n            def combine',
        'pairs = int_op(ir, "sub", valid, half + 1)\n\n            def combine',
        ("runtime/test_cpu_reductions.py", "ops/test_reduce.py"),
    ),
    Plant(
        "a ragged row of a block overwrites what lanes have come to",
        "src/tenfold/codegen/llvm/reduce_inner.py",
        "for x, y in zip(with_ragged, full_only, strict=True)",
        "for x, y in zip(with_ragged, with_ragged, strict=True)",
        ("tiny", "ops/test_reduce.py", "runtime/test_cpu_reductions.py"),
    ),
    Plant(
        "the tree of a split row counts its blocks down",
        "src/tenfold/codegen/llvm/reduce_inner.py",
        'count = int_op(ir, "lshr", int_op(ir, "add", length, BLOCK - 1), 10)',
        'count = int_op(ir, "lshr", length, 10)',
        (
            "runtime/test_cpu_reductions.py::test_threads_do_not_change_the_bits_of_a_long_row",
            "runtime/test_cpu_reductions.py",
        ),
    ),
    Plant(
        "moments: the drift has the wrong sign",
        "src/tenfold/codegen/reducers.py",
        "distance = (other_first - first) - (drift - other_drift)",
        "distance = (other_first - first) + (drift - other_drift)",
        ("ops/test_variance.py", "ops/test_reduce.py"),
    ),
    Plant(
        "scans: the running value of a block is lost",
        "src/tenfold/codegen/llvm/scan.py",
        'value: float = int(self.scan.kind == "product" and component == 0)',
        'value: float = int(self.scan.kind == "product")',
        ("schedule/test_scan_kernels.py", "ops/test_scan.py"),
    ),
    Plant(
        "scans: an exclusive scan is an inclusive one",
        "src/tenfold/codegen/llvm/scan.py",
        "        number = self.store.operand\n        stride = self",
        "        number = self.store.operand\n        return\n        stride = self",
        (
            "ops/test_scan.py::test_exclusive_scan_is_the_inclusive_one_moved_by_one",
            "schedule/test_scan_kernels.py",
        ),
    ),
    Plant(
        "gathers: the bound is one too large",
        "src/tenfold/core/gather_rules.py",
        "k.fail((position < 0) | (position >= count))",
        "k.fail((position < 0) | (position > count))",
        ("schedule/test_concat_gather.py::test_index_out_of_bounds_raises", "ops/test_indexing.py"),
    ),
    Plant(
        "gathers: negative indices count from one before the end",
        "src/tenfold/core/gather_rules.py",
        "position = k.select(position < 0, position + count, position)",
        "position = k.select(position < 0, position + count - 1, position)",
        (
            "schedule/test_concat_gather.py",
            "ops/test_indexing.py::test_any_key_of_integer_arrays_equals_numpy",
        ),
    ),
)

MEANING = (
    Plant(
        "derivatives: recipes of an endless loop hold in both directions",
        "src/tenfold/transforms/derivative_rules.py",
        "    if is_users or _is_forward_alone(node):",
        "    if is_users or node.op.transforms.jvp is not None:",
        ("transforms/test_jacobians.py",),
    ),
    Plant(
        "derivatives: jacobian goes in the direction of more passes",
        "src/tenfold/transforms/jacobians.py",
        "return sum(x.size for x in sources) < sum(x.size for x in results)",
        "return sum(x.size for x in sources) > sum(x.size for x in results)",
        ("transforms/test_jacobians.py",),
    ),
    Plant(
        "derivatives: a checkpoint is differentiated outside of itself",
        "src/tenfold/transforms/checkpoint.py",
        "        made = _native.apply(CHECKPOINT.id, inputs, (cached.callee, device))",
        "        made = cached.trace.subgraph.apply(inputs)",
        ("transforms/test_checkpoint.py",),
    ),
    Plant(
        "derivatives: a contribution is dropped",
        "src/tenfold/transforms/cotangent_sum.py",
        "    arrays += _products([term for term in terms if isinstance(term, ProductTerm)])",
        "    arrays += _products([term for term in terms if isinstance(term, ProductTerm)][:1])",
        ("transforms/test_cotangent_sum.py", "transforms/test_derivatives.py"),
    ),
    Plant(
        "derivatives: where masks the wrong elements",
        "src/tenfold/ops/selection.py",
        "        where(condition, 0, g),  # type: ignore[has-type]  # below",
        "        where(condition, g, 0),  # type: ignore[has-type]  # below",
        ("transforms/test_derivatives.py", "transforms/test_derivative_table.py"),
    ),
    Plant(
        "rules: x + 0 is x for floats",
        "src/tenfold/rewrite/rules/constant_folding.py",
        'Rule("add-zero", x + 0, x, when=same_integer_or_bool_type)',
        'Rule("add-zero", x + 0, x, when=same_type)',
        ("rewrite/test_rule_pairs.py", "rewrite", "ops/test_elementwise_semantics.py"),
    ),
    Plant(
        "rules: x == x is true of NaN",
        "src/tenfold/rewrite/rules/booleans.py",
        'return kind_of(match["x"].dtype) in "biu" and x_is_removable(match)',
        "return x_is_removable(match)",
        ("rewrite/test_rule_pairs.py", "rewrite"),
    ),
    Plant(
        "rules: not (x < y) is x >= y of floats",
        "src/tenfold/rewrite/rules/booleans.py",
        'return all(kind_of(match[name].dtype) in "biu" for name in ("x", "y"))',
        "return True",
        ("rewrite/test_rule_pairs.py", "rewrite"),
    ),
    Plant(
        "rules: where(not c, x, y) keeps the order",
        "src/tenfold/rewrite/rules/booleans.py",
        'Rule("where-not", _where(_not(c), x, y), _where(c, y, x))',
        'Rule("where-not", _where(_not(c), x, y), _where(c, x, y))',
        ("rewrite/test_rule_pairs.py", "rewrite"),
    ),
    Plant(
        "rules: max(-x) is -max(x)",
        "src/tenfold/rewrite/rules/monotone_reductions.py",
        "    reduce.max: reduce.min,\n",
        "    reduce.max: reduce.max,\n",
        ("rewrite/test_rule_pairs.py",),
    ),
    Plant(
        "rules: max(-x) of integers, of which the smallest is its own negative",
        "src/tenfold/rewrite/rules/monotone_reductions.py",
        'return reduces_unshared(match) and kind_of(match["x"].dtype) == "f"',
        "return reduces_unshared(match)",
        ("rewrite/test_user_rules.py", "rewrite/test_random_reductions.py", "rewrite"),
    ),
    Plant(
        "rules: abs(-x) of unsigned integers",
        "src/tenfold/rewrite/rules/constant_folding.py",
        'return kind_of(match["x"].dtype) != "u"',
        "return True",
        ("rewrite/test_rule_pairs.py", "rewrite"),
    ),
    Plant(
        "rules: casts of casts lose nothing where they do",
        "src/tenfold/rewrite/rules/constant_folding.py",
        "    if not _can_represent(middle, source):\n        return None\n",
        "",
        ("rewrite/test_rule_pairs.py", "rewrite", "ops/test_cast.py"),
    ),
    Plant(
        "rules: what is read beside a replaced part is the old value",
        "src/tenfold/core/index_map.py",
        "if start_remainder or stride_remainder:",
        "if stride_remainder:",
        ("rewrite/test_update_slices.py", "array", "schedule/test_update_coalescing.py"),
    ),
    Plant(
        "rules: a permutation of equal lengths is dropped",
        "src/tenfold/rewrite/rules/views.py",
        'Rule("permute-in-order", pattern.permute_dims(x), x, when=is_identity_permutation)',
        'Rule("permute-in-order", pattern.permute_dims(x), x, when=same_shape)',
        (
            "ops/test_movement.py::test_transpose_of_a_matrix",
            "rewrite/test_rule_pairs.py",
            "ops/test_movement.py",
        ),
    ),
    Plant(
        "dtypes: integers are divided in float32",
        "src/tenfold/core/dtype_rules.py",
        "        dtype = FLOAT64\n",
        '        dtype = DTYPES["float32"]\n',
        ("ops/test_elementwise.py::test_result_dtype_is_the_one_of_numpy",),
    ),
    Plant(
        "dtypes: uint64 and int64 are compared in float64",
        "src/tenfold/core/dtype_rules.py",
        'if kinds == {"i", "u"} and kind_of(promote(types)) == "f":',
        'if kinds == {"f", "u"} and kind_of(promote(types)) == "f":',
        ("ops/test_elementwise_semantics.py::test_int64_and_uint64_are_compared_exactly",),
    ),
    Plant(
        "dtypes: integers float together",
        "src/tenfold/core/dtype_rules.py",
        "    return dtypes[0]\n",
        "    return to_floating(common)\n",
        ("ops/test_elementwise.py::test_result_dtype_is_the_one_of_numpy",),
    ),
    Plant(
        "shapes: an empty axis broadcasts with any length",
        "src/tenfold/core/shape_rules.py",
        "            if result[position] != 1:\n",
        "            if result[position] > 1:\n",
        (
            "ops/test_elementwise.py::test_shapes_broadcast_and_empty_ones_stay_empty",
            "errors",
            "random",
        ),
    ),
    Plant(
        "shapes: axes are counted from 1 below 0",
        "src/tenfold/core/shape_rules.py",
        "    return position % ndim\n",
        "    return abs(position) % ndim\n",
        ("tiny", "ops/test_joining.py"),
    ),
    Plant(
        "assignment: a part of a view is written at the place of the view",
        "src/tenfold/mutation/view_writethrough.py",
        "            access = compose_view(part[0], _view_map(op, base, target, params).reads)\n",
        "            access = whole_slice(part[1])[0]\n",
        ("array/test_setitem.py", "features/test_assignment.py"),
    ),
    Plant(
        "assignment: what fills an array is of another dtype",
        "src/tenfold/mutation/view_writethrough.py",
        "    value = convert(value, target.dtype)\n    return value if",
        "    return value if",
        ("array/test_setitem.py", "array"),
    ),
    Plant(
        "batching: scans go along the batch axis",
        "src/tenfold/transforms/batch_interpreter.py",
        "return members.call(members.operands, (axis + 1, *other_params))",
        "return members.call(members.operands, (axis, *other_params))",
        ("transforms/test_batch_rules.py",),
    ),
    Plant(
        "batching: axes of a permutation are off by one",
        "src/tenfold/transforms/batch_interpreter.py",
        "((0, *(axis + 1 for axis in axes)),))",
        "((0, *(axis + 1 for axis in reversed(axes))),))",
        ("transforms/test_batch_rules.py",),
    ),
    Plant(
        "batching: operands of fewer axes are aligned at the batch axis",
        "src/tenfold/ops/batch_rules.py",
        "self.spread(at, 0, missing) if self.batched[at] and missing > 0 else self.operands[at]",
        "self.spread(at, self.ndim(at), missing)\n"
        "            if self.batched[at] and missing > 0\n"
        "            else self.operands[at]",
        ("transforms/test_batch_rules.py",),
    ),
    Plant(
        "engine: results of a batch go to the wrong members",
        "src/tenfold/engine/python_operators.py",
        "pairs = zip(results, devices, strict=True)",
        "pairs = zip(reversed(results), devices, strict=True)",
        ("engine/test_dynamic_batching.py", "engine/test_push.py", "ops/test_samples.py"),
    ),
    Plant(
        "engine: increments are summed in another order",
        "src/tenfold/engine/python_operators.py",
        "half = 1 << ((len(values) - 1).bit_length() - 1)",
        "half = len(values) // 2",
        ("engine/test_engine_objects.py", "engine/test_model.py"),
    ),
    Plant(
        "interop: bfloat16 from DLPack is taken for uint16",
        "src/tenfold/interop/dlpack.py",
        "return (values.view(BFLOAT16) if is_bfloat16 else values), header.read_only",
        "return values, header.read_only",
        ("interop/test_dlpack.py",),
    ),
    Plant(
        "interop: memory that DLPack lends is shared though it may be written",
        "src/tenfold/interop/asarray.py",
        "must_copy = not is_read_only if copy is None else copy",
        "must_copy = is_read_only if copy is None else copy",
        ("interop/test_dlpack.py",),
    ),
    Plant(
        "linalg: the reference reads the other triangle",
        "src/tenfold/ops/lu_and_triangular.py",
        'lower = side == "lower" or',
        'lower = side == "upper" or',
        ("ops/test_triangular.py",),
    ),
)

NATIVE = (
    Plant(
        "derivatives: what an input needs is forgotten",
        "native/python/derivative_walk.cpp",
        "words.push_back(recipe_word(input->type.get()) | uint64_t(is_needed(visited, number)));",
        "words.push_back(recipe_word(input->type.get()));",
        ("transforms/test_derivatives.py",),
    ),
    Plant(
        "linalg: the other triangle is read",
        "native/lapack/triangular.cpp",
        "const char uplo = is_upper != bool(s.transposed) ? 'U' : 'L';",
        "const char uplo = is_upper == bool(s.transposed) ? 'U' : 'L';",
        ("ops/test_triangular.py",),
    ),
    Plant(
        "the native key forgets which values die",
        "native/dispatch/graph_key.cpp",
        "uint64_t(bool(value.next)) << 16 | uint64_t(entry.dead_after_read) << 17 |",
        "uint64_t(bool(value.next)) << 16 |",
        ("runtime/test_replay_keys.py", "runtime/test_replay.py"),
    ),
    Plant(
        "the native key forgets strides",
        "native/dispatch/graph_key.cpp",
        "    for (int64_t stride : value.strides) words.push_back(uint64_t(stride));\n",
        "",
        ("runtime/test_replay_keys.py", "runtime/test_op_interpreter.py"),
    ),
    Plant(
        "the native key forgets which nodes are held",
        "native/dispatch/graph_key.cpp",
        "words.push_back(pending_tag | uint64_t(entry.live_out) << 8 |",
        "words.push_back(pending_tag |",
        ("runtime/test_replay_keys.py", "runtime/test_replay.py"),
    ),
    Plant(
        "the native key forgets values of scalars",
        "native/dispatch/graph_key.cpp",
        "    words.push_back(std::bit_cast<uint64_t>(scalar.real));\n",
        "",
        ("runtime/test_replay.py", "second_runs/test_literals.py"),
    ),
    Plant(
        "assignments node by node write over what is read later",
        "native/exec/op_interpreter.cpp",
        "if (num_pending_readers_[position] != 1 || entry.live_out ||",
        "if (entry.live_out ||",
        ("array/test_new_lengths.py",),
    ),
    Plant(
        "assignments node by node write over what views see",
        "native/exec/op_interpreter.cpp",
        "memory.references.load(std::memory_order_relaxed) ==\n"
        "                   1 + num_stale_aliases_[position];",
        "memory.references.load(std::memory_order_relaxed) >=\n"
        "                   1 + num_stale_aliases_[position];",
        ("array/test_new_lengths.py",),
    ),
    Plant(
        "assignments node by node forget where parts begin",
        "native/ir/index_map.cpp",
        "                     starts_of(params).starts.span());",
        "                     {});",
        ("array/test_new_lengths.py",),
    ),
    Plant(
        "assignments node by node leave readers of the old value pending",
        "native/exec/op_interpreter.cpp",
        "        if (in_place)\n            publish_readers(target);",
        "",
        ("array/test_new_lengths.py",),
    ),
    Plant(
        "assignments node by node keep half of a complex number",
        "native/exec/op_interpreter.cpp",
        "if (packs_complex64) element[0] |= element[1] << 32;",
        "",
        ("array/test_new_lengths.py",),
    ),
    Plant(
        "assignments node by node copy the last unit short",
        "native/exec/part_copy.cpp",
        "int64_t count = std::min(sizes.span, axes[0].length - first);",
        "int64_t count = std::min(sizes.span, axes[0].length - first - 1);",
        ("array/test_new_lengths.py",),
    ),
    Plant(
        "a product of matrices that is added to something is interpreted",
        "native/exec/matrix_product.cpp",
        "if (!is_assigned && !(op.keeps_products && is_only_assigned(graph, i))) return false;",
        "if (!is_assigned && op.part == Op::slice) return false;",
        ("runtime/test_op_interpreter.py",),
    ),
    Plant(
        "a gather reads negative indices as they are",
        "native/exec/gather.cpp",
        "return position < 0 ? position + index.length : position;",
        "return position < 0 ? 0 : position;",
        ("runtime/test_op_interpreter.py",),
    ),
    Plant(
        "a gather does not look at its last index",
        "native/exec/gather.cpp",
        "in_bounds &= position >= 0 && position < index.length;",
        "in_bounds &= row + 1 == sizes.rows || (position >= 0 && position < index.length);",
        ("runtime/test_op_interpreter.py",),
    ),
    Plant(
        "an assigned number is computed apart although a function of the user may fail twice",
        "native/exec/tier_policy.cpp",
        "return entry.value || !op || (op->python && op->is_permanent && op->pure);",
        "return entry.value || !op || op->python;",
        ("runtime/test_assigned_numbers.py",),
    ),
    Plant(
        "a scatter writes number by number whatever the rows",
        "native/exec/gather.cpp",
        "other = static_cast<const char*>(first_row) + row * sizes.row_stride;",
        "other = static_cast<const char*>(first_row);",
        ("runtime/test_op_interpreter.py",),
    ),
    Plant(
        "an integer without axes in a key is that of the first element",
        "native/python/index_keys.cpp",
        "value = make_slice(*slices[i]->params, *value, slices[i]->type);",
        "continue;",
        ("ops/test_indexing.py",),
    ),
    Plant(
        "a fill of 64-bit complex numbers writes half of each",
        "native/exec/part_copy.cpp",
        "std::memcpy(to + i * int64_t(BYTES), element.data(), BYTES);",
        "std::memcpy(to + i * int64_t(BYTES), element.data(), (BYTES + 1) / 2);",
        ("runtime/test_op_interpreter.py", "array/test_new_lengths.py"),
    ),
    Plant(
        "native templates round up as down",
        "native/exec/symbolic_executable.cpp",
        "result = left / right + (left % right > 0); break;",
        "result = left / right; break;",
        ("runtime/test_symbolic_executables.py",),
    ),
    Plant(
        "native templates ask of no guard",
        "native/exec/symbolic_executable.cpp",
        "return is_satisfied(guard, registers[guard.value]);",
        "return is_satisfied(guard, registers[guard.value]) || true;",
        ("runtime/test_guard_pages.py", "runtime/test_symbolic_executables.py"),
    ),
    Plant(
        "native guards are one too weak",
        "native/exec/symbolic_executable.cpp",
        "return number > 0;",
        "return number > -1;",
        ("runtime/test_guard_pages.py", "runtime/test_symbolic_executables.py"),
    ),
    Plant(
        "one by one: memory that is held is written over",
        "native/exec/op_interpreter.cpp",
        "if (num_pending_readers_[input] != 1 || input_entry.live_out || input_entry.value ||",
        "if (num_pending_readers_[input] != 1 || input_entry.value ||",
        (
            "runtime/test_op_interpreter.py::test_array_with_another_name_is_not_written_over",
            "runtime/test_op_interpreter.py",
        ),
    ),
    Plant(
        "folds one by one: axes are folded as one whatever their strides",
        "native/exec/reduction_kernels.cpp",
        "        if (axis.stride != inner.stride * inner.length) return false;\n",
        "",
        ("runtime/test_reduction_kernels.py",),
    ),
    Plant(
        "axes of operands are merged by the first operand alone",
        "native/exec/iteration_space.cpp",
        "merges = strides[k] == space.strides[k][last] * space.lengths[last];",
        "merges = strides[0] == space.strides[0][last] * space.lengths[last];",
        (
            "runtime/test_op_interpreter.py::test_any_layout_has_the_bits_of_numpy",
            "runtime/test_op_interpreter.py",
        ),
    ),
    Plant(
        "the walk takes what is held once more for temporary",
        "native/ir/linearize.cpp",
        "entry.live_out = references > entry.num_uses + 1;",
        "entry.live_out = references > entry.num_uses + 2;",
        ("tiny", "second_runs", "runtime/test_replay.py"),
    ),
    Plant(
        "replays read moved parts where the first run did",
        "native/exec/executable.cpp",
        "shifts_[load.slot] =\n"
        "                key_.base_offsets[load.position] - plan_.base_offsets[load.position];",
        "shifts_[load.slot] = 0;",
        ("runtime/test_slice_params.py",),
    ),
    Plant(
        "forms of parts forget their steps",
        "native/ir/index_map.cpp",
        "        words.push_back(uint64_t(step.coefficient));\n",
        "",
        ("runtime/test_slice_params.py", "runtime/test_symbolic_executables.py", "second_runs"),
    ),
    Plant(
        "native common subexpressions forget parameters",
        "native/ir/cse.cpp",
        "return first.op == second.op &&\n"
        "               (same_params || first.params.get() == second.params.get()) &&",
        "return first.op == second.op &&",
        (
            "runtime/test_bitwise_equality.py",
            "runtime/test_op_interpreter.py",
            "transforms/test_large_graph_cse.py",
        ),
    ),
)

PLANTS = (*KEYS, *GUARDS, *UNITS, *MEMORY, *FUSION, *FOLDS, *MEANING, *NATIVE)

FALLBACK = (
    "tiny",
    "second_runs",
    "schedule",
    "rewrite",
    "features",
    "random",
    "full_size",
    "runtime",
    "ops/test_reduce.py",
    "ops/test_scan.py",
    "ops/test_indexing.py",
    "ops/test_elementwise.py",
    "ops/test_movement.py",
    "array",
    "transforms/test_function.py",
    "transforms/test_vmap.py",
    "transforms/test_scan_loops.py",
    "engine/test_model.py",
    "engine/test_dynamic_batching.py",
)
"""Tests that are asked about a plant that its own tests have not found."""
