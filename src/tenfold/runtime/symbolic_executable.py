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

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tenfold._native import Executable, Node, Structure, Type
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.core.symbolic.shape_env import ShapeEnv
from tenfold.core.symbolic.size_program import SizeProgram
from tenfold.core.symbolic.sym_int import NotSymbolic, is_size, value_of, values_of
from tenfold.dtypes import DTYPES
from tenfold.errors import RunError
from tenfold.jit.program import WORTH_OPTIMISING, Program, Source, uses_left
from tenfold.rewrite.registry import optimise_graph
from tenfold.runtime.device import OptimisedGraph
from tenfold.runtime.executable import (
    Caller,
    ExecutableBuilder,
    Instructions,
    NotReplayable,
)
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.schedule_ir import Buffer, LaunchScalar, Schedule, Step
from tenfold.schedule.symbolic_graph import (
    Lengths,
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

FIELDS: Mapping[str, tuple[str, ...]] = {
    "allocate": ("", "type", "bytes", "stride", ""),
    "view": ("", "", "type", "stride", "offset"),
    "launch": (
        *("", "finished", "place", "table", "size", "bits", "scratch", "units", "grain"),
        *("threads", "", ""),
    ),
    "set_multiply_adds": ("multiply_adds",),
}
"""For each argument of an instruction its name in native code, if it may be a formula."""
_NESTED = frozenset((list, tuple))
NO_INSTRUCTION = ("donate", "set_source")
"""Entries that describe the whole executable or the instruction before."""
OF_LAUNCH = ("set_multiply_adds", "add_blas_limit", "add_scale", "set_extra_work")
"""Entries that describe the launch before them."""


def generalise(builder: ExecutableBuilder, planner: Planner) -> bool:
    """Build and cache the symbolic executable of a plan, if it pays and is possible; return whether
    it was cached.
    """
    calls = [step for step in builder.plan.steps if step.kind == "call"]
    is_generic = all(map(_is_general_call, calls)) and builder.is_general
    is_generic = is_generic and _is_shape_generic(builder.original, products=bool(calls))
    if not builder.structure.wants_template(is_generic and builder.replay_limit < 0):
        return False
    try:
        symbolic = _SymbolicInstructions(
            builder.structure,
            builder.original,
            builder.graph,
            builder.caller,
            planner,
            rewrites_again=bool(calls),
        )
        symbolic.emit()
        symbolic.compare(builder)
        symbolic.save()
    except (NotSymbolic, NotReplayable, TypeError):  # native code takes no SymInt for a number
        return False
    return True


def bind_symbolic(
    original: OptimisedGraph, graph: Graph, planner: Planner, caller: Caller
) -> Executable | None:
    """Plan a graph with symbolic lengths at once, since other lengths will follow; cache its
    executable and the symbolic one. None where it must be planned for its own lengths.
    """
    structure = original.graph.structure
    products = any(
        node.pending and isinstance(node.op, Op) and bool(node.op.lowering.multiply_adds)
        for node in graph.nodes
    )
    if structure is None or not _is_shape_generic(original, products=products):
        return None
    if not structure.wants_template(True, True):
        return None
    try:
        symbolic = _SymbolicInstructions(
            structure, original, graph, caller, planner, rewrites_again=products
        )
        symbolic.emit()
        calls = [step for step in symbolic.plan.steps if step.kind == "call"]
        if not all(map(_is_general_call, calls)):
            return None
        if verifies():
            example = ExecutableBuilder(structure, original, graph, planner(graph), caller)
            example.emit()
            symbolic.compare(example)
        symbolic.executable = symbolic.build()
        if symbolic.is_general:
            symbolic.save()
    except (NotSymbolic, NotReplayable, TypeError):
        return None
    symbolic.cache()
    return symbolic.executable


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


def _rewrite_again(original: Graph, rewritten: Graph, lengths: Lengths) -> None:
    """Rewrite the original graph once more with symbolic lengths: what rules decide about lengths
    becomes guards. Raises NotSymbolic if they read other facts of the example, or decide otherwise.
    """

    def symbolic(node: Node, inputs: list[SymbolicNode]) -> SymbolicNode:
        return symbolic_node(node, inputs, lengths)

    try:
        graph, report = optimise_graph(original, symbolic=symbolic)
    except RunError as error:  # a rule has met a number without a formula
        raise NotSymbolic from error
    if report.read_shapes or report.read_scalars or _outline(graph) != _outline(rewritten):
        raise NotSymbolic


def _outline(graph: Graph) -> list[tuple[Any, ...]]:
    """The operations of a graph, with their parameters and inputs."""
    return [
        (node.op if node.pending else None, node.params if node.pending else (), inputs)
        for node, inputs in zip(graph.nodes, graph.inputs, strict=True)
    ]


class _SymbolicInstructions(ExecutableBuilder):
    """The instructions of a plan, with SymInts among the arguments."""

    def __init__(
        self,
        structure: Structure,
        original: OptimisedGraph,
        graph: Graph,
        caller: Caller,
        planner: Planner,
        *,
        rewrites_again: bool,
    ) -> None:
        lengths, axes = structure.lengths
        self.shape_env = ShapeEnv(lengths)
        symbols = [
            (axis, length) if axis else length for axis, length in zip(axes, lengths, strict=True)
        ]
        sizes = dict(zip(symbols, self.shape_env.lengths, strict=True))
        if rewrites_again:
            _rewrite_again(original.graph, graph, sizes)
        symbolic_graph = with_symbolic_lengths(graph, sizes)
        plan = planner(symbolic_graph)
        refuse_items(plan)
        super().__init__(structure, original, symbolic_graph, plan, caller)
        self.inferred = [*self._inferred(graph, sizes)]
        """The lengths of all pending nodes of the original graph."""
        compare_lengths([*self.inferred, *sizes.values()])

    def build(self) -> Executable:
        """Return the executable for the example's lengths."""
        return self.build_from(self._example_instructions())

    def _example_instructions(self) -> Instructions:
        return [(name, _example_arguments(name, values)) for name, values in self.instructions]

    def compare(self, example: ExecutableBuilder) -> None:
        """Raise NotSymbolic where it does not reproduce the example's instructions."""
        instructions = [(name, _example_values(values)) for name, values in example.instructions]
        if self._example_instructions() != instructions:
            raise NotSymbolic

    def save(self) -> None:
        """Cache the symbolic executable. Raises NotSymbolic where native code refuses it."""
        _SizeProgramWriter(self).save()

    def _inferred(self, graph: Graph, lengths: Lengths) -> Iterator[int]:
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

    def _program(self, kernel: Source, elements: int) -> Program:
        program = super()._program(kernel, value_of(elements))
        if (
            uses_left(kernel, self.plan.target) >= 0 and elements >= WORTH_OPTIMISING
        ):  # for small work alone: a guard
            raise NotSymbolic
        return program

    def _position(self, node: Any) -> int | None:
        return super()._position(node.node if isinstance(node, SymbolicNode) else node)

    def _type(self, buffer: Buffer) -> Any:
        return SymbolicType(buffer.shape, DTYPES[buffer.dtype], self.device, weak=False)

    def _pack_sizes(self, sizes: tuple[int, ...]) -> Any:
        return sizes

    def _number(self, parameter: LaunchScalar) -> Any:
        return parameter.number if is_size(parameter.number) else super()._number(parameter)


class _SizeProgramWriter:
    """Collects the formulas of instructions for native code."""

    def __init__(self, symbolic: _SymbolicInstructions) -> None:
        self.general, self.shape_env = symbolic, symbolic.shape_env
        self.formulas = SizeProgram(symbolic.shape_env)
        self.numbers: list[tuple[str, int, int, Any]] = []
        self.shapes: list[tuple[int, list[Any]]] = []

    def save(self) -> None:
        """Cache the symbolic executable."""
        instructions = [
            instruction
            for instruction in self.general.instructions
            if instruction[0] not in NO_INSTRUCTION
        ]
        number = -1
        for name, arguments in instructions:
            number += name not in OF_LAUNCH
            fields = dict(zip(FIELDS.get(name, ()), arguments, strict=False))
            if "type" in fields and _is_contiguous(fields["type"], fields["stride"]):
                del fields["stride"]
            for field, argument in fields.items():
                self._add_argument(number, field, argument)
        ref, register = self.formulas.ref, self.formulas.register
        inferred = [ref(length) for length in self.general.inferred]
        guards = [(kind, ref(size)) for kind, size in self.shape_env.guards()]
        is_saved = self.general.build().cache_template(
            self.general.structure,
            self.formulas.constants,
            self.formulas.instructions(),
            [(kind, register(size_ref)) for kind, size_ref in guards],
            [register(size_ref) for size_ref in inferred],
            [
                (field, number, index, register(size_ref))
                for field, number, index, size_ref in self.numbers
            ],
            [(number, [register(size_ref) for size_ref in shape]) for number, shape in self.shapes],
        )
        if not is_saved:
            raise NotSymbolic

    def _add_argument(self, number: int, field: str, argument: Any) -> None:
        if isinstance(argument, SymbolicType):
            if any(is_size(length) for length in argument.shape):
                self.shapes.append((number, [self.formulas.ref(n) for n in argument.shape]))
        elif field:
            for index, size in enumerate(_numbers_in(argument)):
                if is_size(size):
                    self.numbers.append((field, number, index, self.formulas.ref(size)))


def _is_contiguous(type_: SymbolicType, strides: tuple[int, ...]) -> bool:
    """Whether strides are those of C order; strides of axes of length 1 do not count."""
    contiguous = contiguous_strides(type_.shape, type_.dtype.itemsize)
    steps = zip(type_.shape, strides, contiguous, strict=True)
    return all(length == 1 or stride == expected for length, stride, expected in steps)


def _numbers_in(argument: Any) -> Iterator[Any]:
    """The numbers of an argument: itself, or its items; of an operand only the offset."""
    items = argument if isinstance(argument, (list, tuple)) else (argument,)
    for item in items:
        yield item[-1] if isinstance(item, tuple) else item


def _example_arguments(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an instruction, with the example values of SymInts."""
    values: list[Any] = []
    for field, argument in zip(FIELDS.get(name, ("",) * len(arguments)), arguments, strict=True):
        if field == "size" and isinstance(argument, tuple):
            values.append(struct.pack(f"{len(argument)}q", *values_of(argument)))
        elif field == "bits":
            values.append([_parameter_bytes(number) for number in argument])
        elif isinstance(argument, SymbolicType):
            shape = values_of(argument.shape)
            values.append(Type(shape, argument.dtype, argument.device, dense.NAME))
        else:
            values.append(_example_values(argument))
    return tuple(values)


def _parameter_bytes(number: Any) -> Any:
    return struct.pack("q", number.value) if is_size(number) else _example_values(number)


def _example_values(argument: Any) -> Any:
    """SymInts as their example values."""
    if type(argument) in _NESTED:
        nested = any(map(_NESTED.__contains__, map(type, argument)))
        values = tuple(map(_example_values, argument)) if nested else values_of(argument)
        return values if type(argument) is tuple else list(values)
    return value_of(argument)


__all__ = ["bind_symbolic", "generalise"]
