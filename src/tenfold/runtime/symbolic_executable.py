"""Symbolic executable: generalises an executable to other lengths by formulas and guards.

Takes the executable of example lengths, once its structure has occurred with other lengths, and
plans the graph again with SymInts for lengths (`core/symbolic/sym_int.py`). If that gives the same
instructions, every number in them is a formula, and every decision is a guard. Native code
evaluates both for new lengths, and replays (`native/exec/symbolic_executable.h`). Other graphs are
planned again for each shape. A batch, whose lengths will vary, is planned with SymInts alone.

>>> import numpy as np
>>> import tenfold as tn
>>> from tenfold import _native
>>> with tn.options(tier=1):
...     for length in (20, 21, 22):
...         before = _native.num_cached_templates()
...         _ = (tn.asarray(np.ones(length)) - 1.5).wait()
>>> _native.num_cached_templates() - before
0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tenfold._native import TIERS, Executable, Structure, Type
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.core.symbolic.shape_env import ShapeEnv
from tenfold.core.symbolic.size_program import SizeProgram, SizeRef
from tenfold.core.symbolic.sym_int import NotSymbolic, example_value, is_size, values_of
from tenfold.dtypes import DTYPES
from tenfold.errors import RunError
from tenfold.jit.program import Program, Source, uses_left
from tenfold.rewrite.driver import RewriteReport
from tenfold.rewrite.inline import is_call
from tenfold.rule_registry import optimise_graph
from tenfold.runtime.device import OptimisedGraph, Rewrite
from tenfold.runtime.executable import Caller, ExecutableBuilder
from tenfold.runtime.instructions import FORMULA_FIELDS, Allocate, ReplayInstruction, View
from tenfold.runtime.scheduled_graph import NotReplayable, ScheduledGraph
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.schedule_ir import Buffer, Schedule, Step
from tenfold.schedule.symbolic_graph import (
    SymbolicLengths,
    SymbolicNode,
    SymbolicType,
    compare_lengths,
    refuse_items,
    symbolic_node,
    with_symbolic_lengths,
)
from tenfold.schedule.verify_kernel import verifies
from tenfold.storage import dense

Planner = Callable[[Graph], Schedule]


def generalise(builder: ExecutableBuilder, planner: Planner) -> bool:
    """Build and cache the symbolic executable of a plan, if it pays and is possible; return whether
    it was cached.
    """
    scheduled = builder.scheduled
    assert builder.executable is not None, "it is built"
    calls = [step for step in scheduled.plan.steps if step.kind == "call"]
    is_generic = all(map(_is_general_call, calls)) and builder.is_general
    is_generic = is_generic and _is_shape_generic(scheduled.original, products=bool(calls))
    may_expire = builder.launches.replay_limit >= 0
    if not scheduled.structure.wants_template(is_generic and not may_expire):
        return False
    try:
        symbolic = SymbolicSchedule(
            scheduled.structure, scheduled.original, scheduled.graph, planner, rewrites=bool(calls)
        )
        instructions = ExecutableBuilder(symbolic, builder.caller).instructions
        _compare([*map(_example_of, instructions)], builder.instructions)
        symbolic.cache(instructions, builder.executable)
    except (NotSymbolic, NotReplayable, TypeError):  # native code takes no SymInt for a number
        return False
    return True


def bind_symbolic(
    graph: Graph, optimise: Rewrite, planner: Planner, caller: Caller
) -> Executable | None:
    """Plan a graph with symbolic lengths at once, since other lengths will follow; cache its
    executable and the symbolic one. None where it must be planned for its own lengths.
    """
    structure, rewritten, report, products = graph.structure, None, RewriteReport(), True
    if not _has_products(graph) or any(is_call(node.op) for node in graph.nodes):
        rewritten, report = optimise(graph)
        products = _has_products(rewritten)
    original = OptimisedGraph(graph, report)
    is_generic = structure is not None and _is_shape_generic(original, products=products)
    if structure is None or not (is_generic and structure.wants_template(True, True)):
        return None
    try:
        symbolic = SymbolicSchedule(structure, original, rewritten, planner, rewrites=products)
        builder = ExecutableBuilder(symbolic, caller)
        calls = [step for step in symbolic.plan.steps if step.kind == "call"]
        if not all(map(_is_general_call, calls)):
            return None
        instructions = [*map(_example_of, builder.instructions)]
        if verifies():
            rewritten, report = optimise(graph)
            original = OptimisedGraph(graph, report)
            example = ScheduledGraph(structure, original, rewritten, planner(rewritten))
            _compare(instructions, ExecutableBuilder(example, caller).instructions)
        builder.executable = builder.build(instructions)
        if builder.is_general:
            symbolic.cache(builder.instructions, builder.executable)
    except (NotSymbolic, NotReplayable, TypeError):
        return None
    builder.cache()
    return builder.executable


def _has_products(graph: Graph) -> bool:
    ops = [node.op for node in graph.nodes if node.pending and isinstance(node.op, Op)]
    return any(op.lowering.multiply_adds for op in ops)


def _is_general_call(step: Step) -> bool:
    """Whether a call is a product by a kernel that takes any lengths."""
    return step.product is not None and step.product.routine != "small"


def _is_shape_generic(original: OptimisedGraph, *, products: bool) -> bool:
    """Whether the rewrite may be the same for other lengths: without products, rules have read no
    lengths, other than which are 0, 1 or equal. There are no user functions.
    """
    report, graph = original.report, original.graph
    generic_ops = all(isinstance(node.op, Op) for node in graph.nodes if node.pending)
    reads_lengths = report.read_shapes and not products
    return generic_ops and not (reads_lengths or report.read_scalars)


def _rewrite(
    original: Graph, lengths: SymbolicLengths, rewritten: Graph | None
) -> tuple[Graph, RewriteReport]:
    """Rewrite a graph with symbolic lengths: what rules decide about lengths becomes guards. Raises
    NotSymbolic if they read other facts of the example, or decide otherwise than for `rewritten`.
    """
    try:
        graph, report = optimise_graph(original, symbolic=partial(symbolic_node, lengths=lengths))
    except RunError as error:  # a rule has met a number without a formula
        raise NotSymbolic from error
    differs = rewritten is not None and _outline(graph) != _outline(rewritten)
    if differs or report.read_shapes or report.read_scalars:
        raise NotSymbolic
    return graph, report


def _outline(graph: Graph) -> list[tuple[Any, ...]]:
    """The operations of a graph, with their parameters and inputs."""
    return [
        (node.op if node.pending else None, node.params if node.pending else (), inputs)
        for node, inputs in zip(graph.nodes, graph.inputs, strict=True)
    ]


class SymbolicSchedule(ScheduledGraph):
    """A graph that is scheduled with SymInts for lengths: its instructions may hold them."""

    def __init__(
        self,
        structure: Structure,
        original: OptimisedGraph,
        graph: Graph | None,
        planner: Planner,
        *,
        rewrites: bool,
    ) -> None:
        lengths, axes = structure.lengths
        self.shape_env = ShapeEnv(lengths)
        symbols = [
            (axis, length) if axis else length for axis, length in zip(axes, lengths, strict=True)
        ]
        sizes = dict(zip(symbols, self.shape_env.lengths, strict=True))
        if graph is None or rewrites:
            rewritten, report = _rewrite(original.graph, sizes, graph)
            if graph is None:
                graph, original = rewritten, original._replace(report=report)
        symbolic_graph = with_symbolic_lengths(graph, sizes)
        plan = planner(symbolic_graph)
        refuse_items(plan)
        super().__init__(structure, original, symbolic_graph, plan)
        self.inferred = [*self._inferred(graph, sizes)]
        """The lengths of all pending nodes of the original graph."""
        compare_lengths([*self.inferred, *sizes.values()])

    def _inferred(self, graph: Graph, lengths: SymbolicLengths) -> Iterator[int]:
        original = self.original.graph
        unchanged = graph.nodes == original.nodes and graph.inputs == original.inputs
        symbolic = self.graph if unchanged else with_symbolic_lengths(original, lengths)
        for position, node in enumerate(symbolic.nodes):
            if node.is_scalar:
                continue
            if node.pending == self.structure.is_computed(position):
                raise NotSymbolic  # another thread has computed it meanwhile
            if node.pending:
                yield from node.type.shape

    def program_of(self, kernel: Source, elements: int) -> Program:
        """Return the program of a launch. Raises NotSymbolic for an unoptimised one."""
        program = super().program_of(kernel, example_value(elements))
        if (
            uses_left(kernel, self.plan.target) >= 0 and elements >= TIERS.optimised_elements
        ):  # for small work alone: a guard
            raise NotSymbolic
        return program

    def position(self, node: Any) -> int | None:
        """Return the position of a node in the walk."""
        return super().position(node.node if isinstance(node, SymbolicNode) else node)

    def type_of(self, buffer: Buffer) -> Any:
        """Return the Type of an array in memory, with SymInts in its shape."""
        return SymbolicType(buffer.shape, DTYPES[buffer.dtype], self.device, weak=False)

    def cache(self, instructions: Sequence[ReplayInstruction], example: Executable) -> None:
        """Cache the symbolic executable of instructions. Raises NotSymbolic where native code
        refuses it.
        """
        fields = _SymbolicFields(self.shape_env)
        for number, instruction in enumerate(instructions):
            fields.add(number, instruction)
        ref, register = fields.formulas.ref, fields.formulas.register
        inferred = [ref(length) for length in self.inferred]
        guards = [(kind, ref(size)) for kind, size in self.shape_env.guards()]
        is_cached = example.cache_template(
            self.structure,
            fields.formulas.constants,
            fields.formulas.instructions(),
            [(kind, register(size_ref)) for kind, size_ref in guards],
            [register(size_ref) for size_ref in inferred],
            [
                (field, number, index, register(size_ref))
                for field, number, index, size_ref in fields.numbers
            ],
            [
                (number, [register(size_ref) for size_ref in shape])
                for number, shape in fields.shapes
            ],
        )
        if not is_cached:
            raise NotSymbolic


class _SymbolicFields:
    """The formulas of instructions, and the fields where their values go."""

    def __init__(self, shape_env: ShapeEnv) -> None:
        self.formulas = SizeProgram(shape_env)
        self.numbers: list[tuple[str, int, int, SizeRef]] = []
        """The name of a field, its instruction, and the index among several numbers."""
        self.shapes: list[tuple[int, list[SizeRef]]] = []

    def add(self, number: int, instruction: ReplayInstruction) -> None:
        """Add the formulas of an instruction, the number-th."""
        in_c_order = isinstance(instruction, (Allocate, View)) and _is_contiguous(
            instruction.type, instruction.strides
        )
        for index, field in FORMULA_FIELDS[type(instruction)].items():
            if not (in_c_order and field == "strides"):
                self._add_field(number, field, instruction[index])

    def _add_field(self, number: int, field: str, value: Any) -> None:
        if isinstance(value, (SymbolicType, Type)):
            if any(is_size(length) for length in value.shape):
                self.shapes.append((number, [self.formulas.ref(n) for n in value.shape]))
            return
        for index, size in enumerate(_numbers_in(value)):
            if is_size(size):
                self.numbers.append((field, number, index, self.formulas.ref(size)))


def _is_contiguous(type_: Type | SymbolicType, strides: Sequence[int]) -> bool:
    """Whether strides are those of C order; strides of axes of length 1 do not count."""
    contiguous = contiguous_strides(type_.shape, type_.dtype.itemsize)
    steps = zip(type_.shape, strides, contiguous, strict=True)
    return all(length == 1 or stride == expected for length, stride, expected in steps)


def _numbers_in(value: Any) -> Iterator[Any]:
    """The numbers of a field: itself, or its items; of an operand only the offset."""
    items = value if isinstance(value, (list, tuple)) else (value,)
    for item in items:
        yield item[-1] if isinstance(item, tuple) else item


def _compare(instructions: Sequence[ReplayInstruction], example: Sequence[Any]) -> None:
    """Raise NotSymbolic unless instructions are those of the example."""
    if instructions != example or [*map(type, instructions)] != [*map(type, example)]:
        raise NotSymbolic


def _example_of(instruction: ReplayInstruction) -> ReplayInstruction:
    """Return an instruction with the example values of SymInts."""
    kind, values = type(instruction), [*instruction]
    for index in FORMULA_FIELDS[kind]:
        values[index] = _example_value(values[index])
    return kind._make(values)


def _example_value(value: Any) -> Any:
    if isinstance(value, SymbolicType):
        return Type(values_of(value.shape), value.dtype, value.device, dense.DENSE)
    if type(value) not in (list, tuple):
        return example_value(value)
    nested = tuple in map(type, value)
    values = tuple(map(_example_value, value)) if nested else values_of(value)
    return values if type(value) is tuple else list(values)
