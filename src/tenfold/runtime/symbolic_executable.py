"""Symbolic executable: generalises an executable to other lengths by formulas and guards.

Takes the executable of example lengths, once its structure has occurred with other lengths, and
plans the graph again with SymInts for lengths (`core/symbolic/sym_int.py`). If that gives the same
instructions, every number in them is a formula, and every decision is a guard. Native code
evaluates both for new lengths, and replays (`native/exec/symbolic_executable.h`). Other graphs are
planned again for each shape.

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

from tenfold._native import Node, Type
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.core.symbolic.shape_env import ShapeEnv
from tenfold.core.symbolic.size_program import SizeProgram
from tenfold.core.symbolic.sym_int import NotSymbolic, is_size, value_of, values_of
from tenfold.dtypes import DTYPES
from tenfold.errors import RunError
from tenfold.rewrite.registry import optimise_graph
from tenfold.runtime import timeline
from tenfold.runtime.device import OptimisedGraph
from tenfold.runtime.executable import ExecutableBuilder, NotReplayable, Threads
from tenfold.schedule.lowering import contiguous_strides
from tenfold.schedule.schedule_ir import Buffer, LaunchScalar, Schedule
from tenfold.schedule.symbolic_graph import (
    Lengths,
    SymbolicNode,
    SymbolicType,
    compare_lengths,
    refuse_items,
    symbolic_node,
    with_symbolic_lengths,
)
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


def generalise(builder: ExecutableBuilder, planner: Planner, threads: Threads) -> bool:
    """Build and cache the symbolic executable of a plan, if it pays and is possible; return whether
    it was cached.
    """
    original, structure = builder.original, builder.structure
    products = [step.product for step in builder.plan.steps if step.kind == "call"]
    is_generic = all(product and product.routine != "small" for product in products)
    is_generic = is_generic and _is_shape_generic(original, products=bool(products))
    is_generic = is_generic and builder.is_reusable
    if not structure.wants_template(is_generic, timeline.in_batch()):  # its sizes vary
        return False
    lengths, axes = structure.lengths
    shape_env = ShapeEnv(lengths)
    symbols = [
        (axis, length) if axis else length for axis, length in zip(axes, lengths, strict=True)
    ]
    try:
        sizes = dict(zip(symbols, shape_env.lengths, strict=True))
        if products:
            _rewrite_again(builder, sizes)
        symbolic = _SymbolicInstructions(builder, planner, sizes)
        symbolic.emit(threads)
        _SizeProgramWriter(symbolic, shape_env).save(builder)
    except (NotSymbolic, NotReplayable, TypeError):  # native code takes no SymInt for a number
        return False
    return True


def _is_shape_generic(original: OptimisedGraph, *, products: bool) -> bool:
    """Whether the rewrite may be the same for other lengths: without products, rules have read no
    lengths, other than which are 0, 1 or equal. There are no user functions.
    """
    report, graph = original.report, original.graph
    generic_ops = all(isinstance(node.op, Op) for node in graph.nodes if node.pending)
    reads_lengths = report.read_shapes and not products
    return generic_ops and not (reads_lengths or report.read_scalars)


def _rewrite_again(builder: ExecutableBuilder, lengths: Lengths) -> None:
    """Rewrite the original graph once more with symbolic lengths: what rules decide about lengths
    becomes guards. Raises NotSymbolic if they read other facts of the example, or decide otherwise.
    """

    def symbolic(node: Node, inputs: list[SymbolicNode]) -> SymbolicNode:
        return symbolic_node(node, inputs, lengths)

    try:
        graph, report = optimise_graph(builder.original.graph, symbolic=symbolic)
    except RunError as error:  # a rule has met a number without a formula
        raise NotSymbolic from error
    if report.read_shapes or report.read_scalars or _outline(graph) != _outline(builder.graph):
        raise NotSymbolic


def _outline(graph: Graph) -> list[tuple[Any, ...]]:
    """The operations of a graph, with their parameters and inputs."""
    return [
        (node.op if node.pending else None, node.params if node.pending else (), inputs)
        for node, inputs in zip(graph.nodes, graph.inputs, strict=True)
    ]


class _SymbolicInstructions(ExecutableBuilder):
    """The instructions of a plan, with SymInts among the arguments."""

    def __init__(self, example: ExecutableBuilder, planner: Planner, lengths: Lengths) -> None:
        graph = with_symbolic_lengths(example.graph, lengths)
        plan = planner(graph)
        refuse_items(plan)
        super().__init__(example.structure, example.original, graph, plan, example.caller)
        self.inferred = [*self._inferred(lengths)]
        """The lengths of all pending nodes of the original graph."""
        compare_lengths([*self.inferred, *lengths.values()])

    def _inferred(self, lengths: Lengths) -> Iterator[int]:
        for position, node in enumerate(with_symbolic_lengths(self.original.graph, lengths).nodes):
            if node.is_scalar:
                continue
            if node.pending == self.structure.is_computed(position):
                raise NotSymbolic  # another thread has computed it meanwhile
            if node.pending:
                yield from node.type.shape

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

    def __init__(self, symbolic: _SymbolicInstructions, shape_env: ShapeEnv) -> None:
        self.general, self.shape_env = symbolic, shape_env
        self.formulas = SizeProgram(shape_env)
        self.numbers: list[tuple[str, int, int, Any]] = []
        self.shapes: list[tuple[int, list[Any]]] = []

    def save(self, example: ExecutableBuilder) -> None:
        """Cache the symbolic executable, if it reproduces the example's instructions."""
        example_instructions = [
            (name, _example_arguments(name, arguments))
            for name, arguments in self.general.instructions
        ]
        if example_instructions != [
            (name, _example_values(arguments)) for name, arguments in example.instructions
        ]:
            raise NotSymbolic
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
        is_saved = example.build().cache_template(
            example.structure,
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
            values.append(tuple([_parameter_bytes(number) for number in argument]))
        elif isinstance(argument, SymbolicType):
            shape = values_of(argument.shape)
            values.append(Type(shape, argument.dtype, argument.device, dense.NAME))
        else:
            values.append(_example_values(argument))
    return tuple(values)


def _parameter_bytes(number: Any) -> Any:
    return struct.pack("q", number.value) if is_size(number) else _example_values(number)


def _example_values(argument: Any) -> Any:
    """Lists as tuples, SymInts as their example values."""
    if isinstance(argument, (list, tuple)):
        nested = any(map(_NESTED.__contains__, map(type, argument)))
        return tuple(map(_example_values, argument)) if nested else values_of(argument)
    return value_of(argument)


__all__ = ["generalise"]
