"""Lowering: turns a group of fused roots into a kernel and its launch parameters.

Takes a Fusion, a group and where everything in memory lies, hands on a Lowering: the Kernel, which
knows no lengths, and the memory, the sizes and the ranges of this launch. Loop axes are ordered by
their strides; contiguous ones are coalesced.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tenfold.core.gather_rules import GatherSource, ResultIndex
from tenfold.core.index_map import AxisMap, IndexMap, compose_view, identity, remap_axes, strides_in
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Instruction
from tenfold.core.scalar_ir import Operand as Computed
from tenfold.core.shape_rules import Shape, row_major
from tenfold.dtypes import BOOL, INT64, REAL_DTYPES
from tenfold.ops.cast import constant_element, converted_element
from tenfold.schedule.elementwise_lowering import apply_rule
from tenfold.schedule.fusion import FusedGroup, Fusion
from tenfold.schedule.schedule_ir import ScheduleItem

Layout = Callable[[int], tuple[int, ...]]
"""The strides, in bytes, of an item in memory."""


@dataclass(frozen=True)
class UnorderedOperand:
    """An operand before its axes are ordered: an item, bytes for each axis of the space, offset."""

    item: int
    dtype: np.dtype
    strides: tuple[int, ...]
    offset: int = 0
    written: bool = False


@dataclass(frozen=True)
class LaunchScalar:
    """A scalar of the launch: of which item, in which dtype, and of a complex one which part.

    A number that follows from shapes, an int64, is of no item.
    """

    item: int
    dtype: np.dtype
    part: int = 0
    number: int = 0


class Lowering:
    """The body of one group, and the memory it reads and writes."""

    def __init__(
        self, fusion: Fusion, group: FusedGroup, stored: Iterable[int], layout: Layout
    ) -> None:
        self.fusion, self.group, self.layout = fusion, group, layout
        self.items = fusion.items
        self.body = Body()
        self.memory: list[UnorderedOperand] = []
        self.parameters: list[LaunchScalar] = []
        self.stores: list[tuple[int, tuple[int, ...]]] = []
        self._numbers: dict[object, int] = {}
        self._elements: dict[tuple[int, IndexMap], Any] = {}
        for root in sorted(group.roots):
            self._compute(root)
        for root in sorted(stored):
            self._store(root)

    def root_access(self, root: int) -> IndexMap:
        """Where a root's own loops stand in the space of the group."""
        space = self.fusion.iteration_space(root)
        return remap_axes(identity(space), self.group.roots[root])

    def _compute(self, root: int) -> None:
        """Make the element of a root; what it needs first comes first, without recursion."""
        stack = [(root, self.root_access(root))]
        while stack:
            number, access = stack[-1]
            if (number, access) in self._elements:
                stack.pop()
                continue
            needed = [each for each in self._inputs(number, access) if each not in self._elements]
            if needed:
                stack.extend(needed)
                continue
            self._elements[number, access] = self._compute_element(number, access)
            stack.pop()
        made = self._elements[root, self.root_access(root)]
        self._elements[root, self.fusion.root_location(self.group, root)] = made

    def _inputs(self, number: int, access: IndexMap) -> list[tuple[int, IndexMap]]:
        if self._in_memory(number) or self.items[number].kind == "located":
            return []
        found = self.fusion.operand_accesses(number, access)
        return [(i, a) for i, a in found if self.items[i].kind != "scalar"]

    def _in_memory(self, number: int) -> bool:
        """Whether an item is read from memory here; the group's own roots are at hand."""
        if number in self.group.roots:
            return False
        return self.fusion.is_root(number)

    def _compute_element(self, number: int, access: IndexMap) -> Any:
        item = self.items[number]
        if self._in_memory(number):
            return self._load(number, access)
        inputs = list(self.fusion.operand_accesses(number, access))
        if item.kind == "constant":
            return constant_element(self.body, item.fill, item.dtype)
        if item.kind in ("view", "piece"):
            return self._operand(inputs[0], item.dtype)
        if item.kind == "scalar":
            return self._parameter(number, item.dtype)
        if item.kind == "map":
            return self._map_element(item, inputs)
        if item.kind == "located":
            return self._gather_element(item, access)
        if item.kind == "scan":
            return self._scan_element(item, inputs[0])
        folding = self.fusion.op_of(item).folding
        assert folding is not None, item.kind
        node = self.fusion.graph.nodes[item.position]
        if item.kind == "identity":
            assert folding.identity is not None, "an empty axis has a value"
            return constant_element(self.body, folding.identity, item.dtype)
        if item.kind == "fold":
            source = self._operand(inputs[0], item.dtype if not item.is_first else node.operands[0])
            index = self.body.index(item.axis)
            parts = folding.enter(self.body, source, index) if item.is_first else parts_of(source)
            return append_fold(self.body, folding.kind, parts)
        made = self._elements.get(inputs[0])
        if item.is_first:  # no axis was folded
            source = self._operand(inputs[0], node.operands[0])
            made = folding.enter(self.body, source, self.body.constant(0, np.dtype(np.int64)))
        return folding.leave(self.body, parts_of(made), item.dtype)

    def _scan_element(self, item: ScheduleItem, read: tuple[int, IndexMap]) -> Computed:
        """The running value, accumulated in one dtype and rounded to that of the result."""
        node = self.fusion.graph.nodes[item.position]
        _, _, include_initial, exclusive = node.params
        first = "initial" if include_initial else "exclusive" if exclusive else ""
        parts = parts_of(self._operand(read, node.operands[0]))
        kind = self.fusion.op_of(item).scanning
        made = tuple(
            self.body.apply("scan", part.dtype, *parts, data=(kind, i, first))
            for i, part in enumerate(parts)
        )
        return converted_element(self.body, _join_parts(made), item.dtype)

    def _map_element(self, item: ScheduleItem, inputs: list[tuple[int, IndexMap]]) -> Computed:
        node = self.fusion.graph.nodes[item.position]
        operands = [
            self._operand(each, dtype) for each, dtype in zip(inputs, node.operands, strict=True)
        ]
        made = apply_rule(self.body, node.op, node.params, operands, node.operands, node.type.dtype)
        assert made is not None, f"{node.name} has a rule"
        return made

    def _gather_element(self, item: ScheduleItem, access: IndexMap) -> Computed:
        node = self.fusion.graph.nodes[item.position]
        at = ResultIndex(tuple(map(self._index, access)), item.shape, self._number)
        sources = [
            GatherSource(self.items[i].shape, dtype, partial(self._read_at, i, dtype))
            for i, dtype in zip(item.inputs, node.operands, strict=True)
        ]
        made: Computed = node.op.element_at(self.body, at, *sources, *node.params)
        return made

    def _index(self, step: AxisMap) -> Element:
        """The index along an axis of an array, where the loops stand."""
        axis, coefficient, start = step
        if axis is None:
            return self._number(start)
        index = self.body.index(axis)
        if coefficient == -1:
            return self._number(start) - index
        if coefficient != 1:
            index = index * self._number(coefficient)
        return index + self._number(start) if start else index

    def _number(self, value: int) -> Element:
        """A number that follows from shapes: given at the launch, so that kernels are shared."""
        if value in (0, 1):
            return self.body.constant(value, INT64)
        return self._scalar(LaunchScalar(-1, INT64, number=value))

    def _read_at(
        self, number: int, dtype: np.dtype, index: Sequence[Element], valid: Element | None
    ) -> Computed:
        """Read an item in memory at a computed index."""
        item = self.items[number]
        if item.kind == "scalar":
            return self._parameter(number, dtype)
        if item.size == 0:  # the launch fails; what is read at no index would be read before
            return converted_element(self.body, self._zero(item.dtype), dtype)
        memory = UnorderedOperand(number, item.dtype, (0,) * len(self.group.space))
        operand = self._operand_number(memory)
        if valid is None:
            valid = self.body.constant(True, BOOL)
        nothing = offset = self.body.constant(0, INT64)
        steps = zip(index, self.layout(number), item.shape, strict=True)
        for place, stride, length in sorted(steps, key=lambda step: -abs(step[1])):
            if length > 1 and stride:
                assert stride % item.dtype.itemsize == 0, "elements lie at whole distances"
                each = stride // item.dtype.itemsize
                jump = place if each == 1 else place * self._number(each)
                offset = jump if offset is nothing else offset + jump
        return converted_element(self.body, self._gather(operand, item.dtype, offset, valid), dtype)

    def _zero(self, dtype: np.dtype) -> Computed:
        zero = self.body.constant(0, REAL_DTYPES.get(dtype, dtype))
        return ComplexElement(zero, zero) if dtype in REAL_DTYPES else zero

    def _gather(self, operand: int, dtype: np.dtype, offset: Element, valid: Element) -> Computed:
        if dtype not in REAL_DTYPES:
            return self.body.gather(operand, dtype, offset, valid)
        part = REAL_DTYPES[dtype]
        parts = [self.body.apply("gather", part, offset, valid, data=(operand, i)) for i in (0, 1)]
        return ComplexElement(*parts)

    def _operand(self, read: tuple[int, IndexMap], dtype: np.dtype) -> Computed:
        number, access = read
        if self.items[number].kind == "scalar":
            return self._parameter(number, dtype)
        made = self._elements[number, access]
        if isinstance(made, tuple) and not isinstance(made, ComplexElement):
            made = _join_parts(made)
        return converted_element(self.body, made, dtype)

    def _parameter(self, number: int, dtype: np.dtype) -> Computed:
        if dtype in REAL_DTYPES:
            return ComplexElement(*(self._scalar(LaunchScalar(number, dtype, i)) for i in (0, 1)))
        return self._scalar(LaunchScalar(number, dtype))

    def _scalar(self, parameter: LaunchScalar) -> Element:
        if parameter not in self._numbers:
            self._numbers[parameter] = len(self.parameters)
            self.parameters.append(parameter)
        dtype = REAL_DTYPES.get(parameter.dtype, parameter.dtype)
        return self.body.parameter(self._numbers[parameter], dtype)

    def _load(self, number: int, access: IndexMap) -> Computed:
        item = self.items[number]
        if number in self.fusion.join_of:
            assert item.access is not None, "pieces of blocks are read as a whole"
            number, access = self.fusion.join_of[number], compose_view(access, item.access)
        strides, offset = strides_in(access, self.layout(number), len(self.group.space))
        operand = self._operand_number(UnorderedOperand(number, item.dtype, strides, offset))
        if item.dtype not in REAL_DTYPES:
            return self.body.load(operand, item.dtype)
        part = REAL_DTYPES[item.dtype]
        return ComplexElement(*(self.body.apply("load", part, data=(operand, i)) for i in (0, 1)))

    def _operand_number(self, memory: UnorderedOperand) -> int:
        if memory not in self._numbers:
            self._numbers[memory] = len(self.memory)
            self.memory.append(memory)
        return self._numbers[memory]

    def _store(self, root: int) -> None:
        made = self._elements[root, self.fusion.root_location(self.group, root)]
        elements = tuple(element.position for element in parts_of(made))
        shape = self.items[root].shape
        strides = [0] * len(self.group.space)
        whole = self.fusion.join_of.get(root, root)
        layout, axes = self.layout(whole), self.group.roots[root]
        access = self.items[root].access
        if access is not None:
            strides_, offset = strides_in(remap_axes(access, axes), layout, len(strides))
            strides = [*strides_]
        else:
            offset = sum(map(operator.mul, self.items[root].start, layout))
            for place, length, stride in zip(axes, shape, layout, strict=True):
                if place is not None and length != 1:
                    strides[place] = stride
        self.stores.append((len(self.memory), elements))
        self.memory.append(
            UnorderedOperand(whole, self.items[root].dtype, tuple(strides), offset, True)
        )


def append_fold(body: Body, kind: str, parts: tuple[Element, ...]) -> tuple[Element, ...]:
    """Add the fold of an element's parts along the axis that is folded."""
    return tuple(
        body.apply("fold", part.dtype, *parts, data=(kind, i)) for i, part in enumerate(parts)
    )


def parts_of(made: Any) -> tuple[Element, ...]:
    """Return the one or two real elements of an element, or the parts of a fold as they are."""
    return tuple(made) if isinstance(made, tuple) else (made,)


def _join_parts(parts: tuple[Element, ...]) -> Computed:
    return ComplexElement(*parts) if len(parts) == 2 else parts[0]


def contiguous_strides(shape: Shape, itemsize: int) -> tuple[int, ...]:
    """Return the strides, in bytes, of an array in row-major order."""
    return tuple(itemsize * stride for stride in row_major(shape))


def merged_axes(
    order: Sequence[int], space: Shape, memory: Sequence[UnorderedOperand], single: set[int]
) -> list[list[int]]:
    """Return axes that can be gone through as one, outer ones first; axes of length 1 are dropped.

    Axes in `single` stay by themselves.
    """
    runs: list[list[int]] = []
    for axis in order:
        if space[axis] == 1 and axis not in single:
            continue
        if runs and axis not in single and runs[-1][-1] not in single:
            outer = runs[-1][-1]
            if all(m.strides[outer] == m.strides[axis] * space[axis] for m in memory):
                runs[-1].append(axis)
                continue
        runs.append([axis])
    return runs


def with_axes(body: Sequence[Instruction], axes: Mapping[int, int]) -> tuple[Instruction, ...]:
    """Return instructions whose indices go along the axes of the loops."""
    return tuple(
        Instruction(made.name, made.dtype, made.inputs, axes[int(str(made.data))])
        if made.name == "index"
        else made
        for made in body
    )
