"""Lowering: turns a group of fused roots into a kernel and its launch parameters.

Takes a Schedule with layouts and one of its groups, hands on a Lowering: the body of a kernel,
which is independent of lengths, its stores, its operands and its scalars.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from tenfold.core.gather_rules import (
    GatherSource,
    ResultIndex,
    normalized_index,
    select_element,
)
from tenfold.core.index_map import (
    COMPUTED_INDEX,
    AxisMap,
    IndexMap,
    coalesce,
    compose_view,
    remap_axes,
    strides_in,
)
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Instruction
from tenfold.core.scalar_ir import Operand as Computed
from tenfold.core.shape_rules import Shape, row_major
from tenfold.dtypes import BOOL, INT64, REAL_DTYPES
from tenfold.ops.cast import constant_element, convert_element
from tenfold.schedule.elementwise_lowering import apply_rule
from tenfold.schedule.fusion import element_access, operand_accesses, root_location
from tenfold.schedule.schedule_ir import (
    FusedGroup,
    ItemKind,
    LaunchScalar,
    Schedule,
    ScheduleItem,
    UnorderedOperand,
)


class Lowering:
    """The body of one group, and the memory it reads and writes."""

    def __init__(self, schedule: Schedule, group: FusedGroup) -> None:
        self.schedule, self.group, self.layouts = schedule, group, schedule.layouts
        self.items, self.nodes = schedule.items, schedule.graph.nodes
        self.body = Body()
        self.memory: list[UnorderedOperand] = []
        self.parameters: list[LaunchScalar] = []
        self.stores: list[tuple[int, tuple[int, ...]]] = []
        self._numbers: dict[object, int] = {}
        self._elements: dict[tuple[int, IndexMap], Any] = {}
        for root in sorted(group.roots):
            self._compute(root)
        if group.offsets >= 0:
            self._bound_segments(group.offsets)
        for root in sorted(group.outputs):
            self._store(root)

    def root_access(self, root: int) -> IndexMap:
        """The access of a root's own elements in the space of the group."""
        return remap_axes(element_access(self.schedule, root), self.group.roots[root])

    def _bound_segments(self, offsets: int) -> None:
        """Load the first entry of each row, and its end, which is the first of the next row."""
        dtype, (stride,) = self.items[offsets].dtype, self.layouts[offsets]
        strides = (stride, *(0 for _ in self.group.space[1:]))
        operands = [UnorderedOperand(offsets, dtype, strides, at) for at in (0, stride)]
        bounds = [
            self.body.convert(self.body.load(self._operand_number(memory), dtype), INT64)
            for memory in operands
        ]
        self.body.apply("segment", INT64, *bounds, data=1)

    def _compute(self, root: int) -> None:
        """Compute the element of a root, operands first, without recursion."""
        items, elements, roots = self.items, self._elements, self.group.roots
        inlined = self.schedule.inlined
        start = root, self.root_access(root)
        stack, visited = [start], dict[tuple[int, IndexMap], list[tuple[int, IndexMap]]]()
        while stack:
            operand = number, access = stack[-1]
            if operand in elements:
                stack.pop()
                continue
            if number not in inlined and number not in roots:
                elements[operand] = self._load(number, access)
                continue
            inputs = visited.get(operand)
            if inputs is None:
                inputs = visited[operand] = operand_accesses(items, number, access)
                if items[number].kind is not ItemKind.GATHER:
                    missing = [
                        read
                        for read in inputs
                        if read not in elements
                        and items[read[0]].kind is not ItemKind.SCALAR
                        and read[1] != COMPUTED_INDEX
                    ]
                    if missing:
                        stack += missing
                        continue
            elements[operand] = self._compute_element(number, access, inputs)
        elements[root, root_location(items, self.group, root)] = elements[start]

    def _compute_element(
        self, number: int, access: IndexMap, inputs: list[tuple[int, IndexMap]]
    ) -> Any:
        item = self.items[number]
        if item.kind is ItemKind.CONSTANT:
            return constant_element(self.body, item.fill, item.dtype)
        if item.kind in (ItemKind.VIEW, ItemKind.SLICE_STORE, ItemKind.REPEAT):
            return self._operand(inputs[0], item.dtype)
        if item.kind is ItemKind.SCALAR:
            return self._parameter(number, item.dtype)
        if item.kind is ItemKind.MAP:
            return self._map_element(item, inputs)
        if item.kind is ItemKind.GATHER:
            return self._gather_element(item, access)
        if item.kind is ItemKind.SCAN:
            return self._scan_element(item, inputs[0])
        if item.kind is ItemKind.SCATTER:
            return self._scatter_element(number, access, inputs)
        if item.kind is ItemKind.SEGMENT_FOLD:
            parts = parts_of(self._operand(inputs[0], item.dtype))
            return append_fold(self.body, self.nodes[item.position].op.lowering.segments, parts)
        folding = self.nodes[item.position].op.lowering.folding
        assert folding is not None, item.kind
        node = self.nodes[item.position]
        if item.kind is ItemKind.IDENTITY:
            assert folding.identity is not None, "an empty axis has a value"
            return constant_element(self.body, folding.identity, item.dtype)
        if item.kind is ItemKind.FOLD:
            source = self._operand(inputs[0], item.dtype if not item.is_first else node.operands[0])
            index = self.body.index(item.axis)
            parts = (
                folding.accumulate(self.body, source, index) if item.is_first else parts_of(source)
            )
            return append_fold(self.body, folding.kind, parts)
        element = self._elements.get(inputs[0])
        if item.is_first:  # no axis was reduced
            source = self._operand(inputs[0], node.operands[0])
            element = folding.accumulate(
                self.body, source, self.body.constant(0, np.dtype(np.int64))
            )
        return folding.finish(self.body, parts_of(element), item.dtype)

    def _scan_element(self, item: ScheduleItem, operand: tuple[int, IndexMap]) -> Computed:
        """The running value, accumulated in one dtype and rounded to that of the result."""
        node = self.nodes[item.position]
        _, _, include_initial, exclusive = node.params
        first_value = "initial" if include_initial else "exclusive" if exclusive else ""
        parts = parts_of(self._operand(operand, node.operands[0]))
        kind = node.op.lowering.scanning
        running = tuple(
            self.body.apply("scan", part.dtype, *parts, data=(kind, i, first_value))
            for i, part in enumerate(parts)
        )
        return convert_element(self.body, _join_parts(running), item.dtype)

    def _scatter_element(
        self, number: int, access: IndexMap, inputs: list[tuple[int, IndexMap]]
    ) -> Computed:
        """The new value of the cell that an element names."""
        item, node = self.items[number], self.nodes[self.items[number].position]
        rule = node.op.lowering.scatter
        axes, index_axis = rule.place(*node.params)
        at = ResultIndex(tuple(map(self._index, access)), item.shape, self._number)
        indices = inputs[1:] if item.initial < 0 else inputs[1:-1]
        positions = {
            axis: normalized_index(
                self.body, at, self._operand(index, dtype), item.shape[axis], wraps=rule.wraps
            )
            for axis, index, dtype in zip(axes, indices, node.operands[rule.indices], strict=True)
        }
        index_ndim = len(at) - (len(item.shape) - len(axes))
        remaining = iter((*at.axes[:index_axis], *at.axes[index_axis + index_ndim :]))
        place = [
            positions[axis] if axis in positions else next(remaining)
            for axis in range(len(item.shape))
        ]
        offset = self._offset(place, item.shape, row_major(item.shape))
        if item.initial < 0:
            initial = constant_element(self.body, rule.fill(item.dtype), item.dtype)
        else:
            every = self.body.constant(True, BOOL)
            initial = self._read_offset(item.initial, item.dtype, offset, every)
        parts = (*parts_of(initial), *parts_of(self._operand(inputs[0], item.dtype)))
        results = tuple(
            self.body.apply("scatter", part.dtype, offset, *parts, data=(rule.kind, i))
            for i, part in enumerate(parts[: len(parts) // 2])
        )
        return _join_parts(results)

    def _map_element(self, item: ScheduleItem, inputs: list[tuple[int, IndexMap]]) -> Computed:
        node = self.nodes[item.position]
        operands = [
            self._operand(operand, dtype)
            for operand, dtype in zip(inputs, node.operands, strict=True)
        ]
        result = apply_rule(
            self.body, node.op, node.params, operands, node.operands, node.type.dtype
        )
        assert result is not None, f"{node.name} has a rule"
        return result

    def _gather_element(self, item: ScheduleItem, access: IndexMap) -> Computed:
        node = self.nodes[item.position]
        result_index = ResultIndex(tuple(map(self._index, access)), item.shape, self._number)
        sources = [
            GatherSource(self.items[i].shape, dtype, partial(self._read_at, i, dtype))
            for i, dtype in zip(item.inputs, node.operands, strict=True)
        ]
        element: Computed = node.op.lowering.element_at(
            self.body, result_index, *sources, *node.params
        )
        return element

    def _index(self, step: AxisMap) -> Element:
        """The index along an axis of an array, from the loop indices."""
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
        """A number that follows from shapes: passed at the launch, so that kernels are shared."""
        if value in (0, 1):
            return self.body.constant(value, INT64)
        return self._scalar(LaunchScalar(-1, INT64, number=value))

    def _read_at(
        self, number: int, dtype: np.dtype, index: Sequence[Element], valid: Element | None
    ) -> Computed:
        """Read an item in memory at a computed index."""
        item = self.items[number]
        if item.kind is ItemKind.SCALAR:
            value = self._parameter(number, dtype)
            zero = convert_element(self.body, self._zero(item.dtype), dtype)
            return value if valid is None else select_element(self.body, valid, value, zero)
        if item.size == 0:  # the launch fails: an empty array has no valid index
            return convert_element(self.body, self._zero(item.dtype), dtype)
        if valid is None:
            valid = self.body.constant(True, BOOL)
        layout, itemsize = self.layouts[number], item.dtype.itemsize
        assert not any(stride % itemsize for stride in layout), "strides are whole elements"
        strides = [stride // itemsize for stride in layout]
        return self._read_offset(number, dtype, self._offset(index, item.shape, strides), valid)

    def _offset(self, index: Sequence[Element], shape: Shape, strides: Sequence[int]) -> Element:
        """The offset of an index in elements, by the strides of the axes."""
        zero = offset = self.body.constant(0, INT64)
        steps = zip(index, strides, shape, strict=True)
        for axis_index, stride, length in sorted(steps, key=lambda step: -abs(step[1])):
            if length > 1 and stride:
                step_offset = axis_index if stride == 1 else axis_index * self._number(stride)
                offset = step_offset if offset is zero else offset + step_offset
        return offset

    def _read_offset(
        self, number: int, dtype: np.dtype, offset: Element, valid: Element
    ) -> Computed:
        """Read an item, in memory or a number, at an offset in elements."""
        item = self.items[number]
        if item.kind is ItemKind.SCALAR:
            return self._parameter(number, dtype)
        memory = UnorderedOperand(number, item.dtype, (0,) * len(self.group.space))
        element = self._gather(self._operand_number(memory), item.dtype, offset, valid)
        return convert_element(self.body, element, dtype)

    def _zero(self, dtype: np.dtype) -> Computed:
        zero = self.body.constant(0, REAL_DTYPES.get(dtype, dtype))
        return ComplexElement(zero, zero) if dtype in REAL_DTYPES else zero

    def _gather(self, operand: int, dtype: np.dtype, offset: Element, valid: Element) -> Computed:
        if dtype not in REAL_DTYPES:
            return self.body.gather(operand, dtype, offset, valid)
        part_dtype = REAL_DTYPES[dtype]
        parts = [
            self.body.apply("gather", part_dtype, offset, valid, data=(operand, i)) for i in (0, 1)
        ]
        return ComplexElement(*parts)

    def _operand(self, operand: tuple[int, IndexMap], dtype: np.dtype) -> Computed:
        number, access = operand
        if self.items[number].kind is ItemKind.SCALAR:
            return self._parameter(number, dtype)
        element = self._elements[number, access]
        if isinstance(element, Element) and element.dtype == dtype:
            return element
        if isinstance(element, tuple) and not isinstance(element, ComplexElement):
            element = _join_parts(element)
        return convert_element(self.body, element, dtype)

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
        if number in self.schedule.concat_of:
            assert item.access is not None, "pieces of blocks are read as a whole"
            number, access = self.schedule.concat_of[number], compose_view(access, item.access)
        strides, offset = strides_in(access, self.layouts[number], len(self.group.space))
        operand = self._operand_number(UnorderedOperand(number, item.dtype, strides, offset))
        if item.dtype not in REAL_DTYPES:
            return self.body.load(operand, item.dtype)
        part_dtype = REAL_DTYPES[item.dtype]
        return ComplexElement(
            *(self.body.apply("load", part_dtype, data=(operand, i)) for i in (0, 1))
        )

    def _operand_number(self, memory: UnorderedOperand) -> int:
        if memory not in self._numbers:
            self._numbers[memory] = len(self.memory)
            self.memory.append(memory)
        return self._numbers[memory]

    def _store(self, root: int) -> None:
        root_element = self._elements[root, root_location(self.items, self.group, root)]
        elements = tuple(element.position for element in parts_of(root_element))
        shape = self.items[root].shape
        strides = [0] * len(self.group.space)
        if self.items[root].kind is ItemKind.SCATTER:  # its cells are at computed indices
            self.stores.append((len(self.memory), elements))
            self.memory.append(
                UnorderedOperand(root, self.items[root].dtype, tuple(strides), 0, True)
            )
            return
        target = self.schedule.concat_of.get(root, root)
        layout, axes = self.layouts[target], self.group.roots[root]
        access = self.items[root].access
        if access is not None:
            access_strides, offset = strides_in(remap_axes(access, axes), layout, len(strides))
            strides = [*access_strides]
        else:
            offset = sum(map(operator.mul, self.items[root].start, layout))
            location = root_location(self.items, self.group, root)
            for (space_axis, *_), length, stride in zip(location, shape, layout, strict=True):
                if space_axis is not None and length != 1:
                    strides[space_axis] = stride
        self.stores.append((len(self.memory), elements))
        self.memory.append(
            UnorderedOperand(target, self.items[root].dtype, tuple(strides), offset, True)
        )


def append_fold(body: Body, kind: str, parts: tuple[Element, ...]) -> tuple[Element, ...]:
    """Append the fold of an element's parts along the reduced axis."""
    return tuple(
        body.apply("fold", part.dtype, *parts, data=(kind, i)) for i, part in enumerate(parts)
    )


def parts_of(element: Any) -> tuple[Element, ...]:
    """Return the one or two real elements of an element, or the parts of a fold as they are."""
    return tuple(element) if isinstance(element, tuple) else (element,)


def _join_parts(parts: tuple[Element, ...]) -> Computed:
    return ComplexElement(*parts) if len(parts) == 2 else parts[0]


def contiguous_strides(shape: Shape, itemsize: int) -> tuple[int, ...]:
    """Return the strides, in bytes, of an array in row-major order."""
    return tuple([itemsize * stride for stride in row_major(shape)])


def merged_axes(
    order: Sequence[int], space: Shape, memory: Sequence[UnorderedOperand], unmerged_axes: set[int]
) -> list[list[int]]:
    """Return the axes coalesced into loops, outer ones first; axes of length 1 are dropped.

    Axes in `unmerged_axes` are not coalesced.
    """
    merged: list[list[int]] = []
    layouts = [m.strides for m in memory]
    for alone, axes in groupby(order, unmerged_axes.__contains__):
        if alone:
            merged += [[axis] for axis in axes]
        else:
            merged += coalesce([axis for axis in axes if space[axis] != 1], space, layouts)
    return merged


def with_axes(body: Sequence[Instruction], axes: Mapping[int, int]) -> tuple[Instruction, ...]:
    """Return instructions with loops instead of the axes that they name."""
    return tuple(
        [
            instruction._replace(data=axes[int(str(instruction.data))])
            if instruction.name in ("index", "segment")
            else instruction
            for instruction in body
        ]
    )
