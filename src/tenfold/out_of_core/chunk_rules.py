"""Chunk rules: how rows of a result are computed from rows of the operands, for each kind of op.

Takes a CutNode: a node of a traced function, and for each operand the axis along which it comes in
chunks, or None for one that is there whole. Hands on a RowRule: the axis of the result, and the
expression of a range of its rows; or a ChunkFold if the op reduces the chunked axis. The rules
follow from what an op declares: its shapes, index map, reduced or contracted axes.

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((9, 2), tn.float64, "cpu"))
>>> node = tn._native.node_of(tn.sum(x, axis=1))
>>> row_rule(CutNode(node, node.op, (0,), ((9, 2),))).axis
0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.index_map import AxisMap, updated_slice
from tenfold.core.op import Kind, Op, Params
from tenfold.core.shape_rules import Pick, whole_axes
from tenfold.ops.batch_rules import Members
from tenfold.ops.indexing import index, index_view, slice_view
from tenfold.ops.joining import concat
from tenfold.ops.pad import pad
from tenfold.ops.reshaping import broadcast_to, reshape
from tenfold.ops.windows import sliding_window_view
from tenfold.out_of_core.chunk_folds import (
    ChunkFold,
    contraction_fold,
    reduction_fold,
    scan_fold,
    scatter_fold,
)
from tenfold.out_of_core.cut_node import CannotCutError, CutNode, Rows, common, with_length
from tenfold.transforms.batch_interpreter import apply_batch_rule


class RowRule(NamedTuple):
    """How the rows of one node are computed."""

    axis: int | None = None
    """The chunked axis of the result; None: it is whole, since it needs few rows, or is folded."""
    rows: Callable[[Rows, int, int], Any] | None = None
    """The rows of the result from `begin` to `end`; of a whole result all of it."""
    fold: ChunkFold | None = None
    """How the chunked axis is reduced."""
    moves_rows: bool = False
    """Whether rows of the result may need rows of other numbers of the operands."""


def _map(cut: CutNode) -> RowRule:
    ndim = len(cut.shape)
    axis = common([axis + ndim - len(cut.shapes[at]) for at, axis in cut.chunked])
    if any(cut.shapes[at][own] != cut.shape[axis] for at, own in cut.chunked):
        raise CannotCutError
    return RowRule(axis, lambda *rows: cut.call(_aligned(cut, cut.operands, ndim - axis, *rows)))


def _aligned(
    cut: CutNode, operands: Sequence[int], from_last: int, source: Rows, begin: int, end: int
) -> list[Any]:
    """Return rows of operands that broadcast: of a whole one those beside the chunk."""
    places = [(at, len(cut.shapes[at]) - from_last) for at in operands]
    return [
        source.whole(at)
        if cut.axes[at] is None and (axis < 0 or cut.shapes[at][axis] == 1)
        else source.rows(at, begin, end, axis=axis)
        for at, axis in places
    ]


def _reduction(cut: CutNode) -> RowRule:
    at, axis = cut.only()
    axes, keepdims, *_ = cut.node.params
    if axis in axes:
        return RowRule(fold=reduction_fold(cut, at, axis))
    before = 0 if keepdims else sum(reduced < axis for reduced in axes)
    return RowRule(axis - before, cut.as_it_is)


def _view(cut: CutNode) -> RowRule:
    at, axis = cut.only()
    access = cut.op.reads(cut.shapes[at], cut.node.params)
    result = access[axis][0]
    if access[axis] != (result, 1, 0) or sum(step[0] == result for step in access) > 1:
        raise CannotCutError("a diagonal takes other columns of each row")
    return RowRule(result, cut.as_it_is)


def _index(cut: CutNode) -> RowRule:
    at, axis = cut.only()
    access, shape = cut.node.params
    result, step, start = access[axis]
    is_whole = result is None or shape[result] <= 1  # few rows
    if not is_whole and sum(step[0] == result for step in access) > 1:
        raise CannotCutError("a diagonal takes other columns of each row")

    def rows(source: Rows, begin: int, end: int) -> Any:
        if is_whole:
            begin, end = 0, 1 if result is None else shape[result]
        first, last = start + step * begin, start + step * max(end - 1, begin)
        low, high = (min(first, last), max(first, last) + 1) if end > begin else (0, 0)
        moved = (result, step, first - low if end > begin else 0)
        part_shape = shape if result is None else with_length(shape, result, end - begin)
        part = ((*access[:axis], moved, *access[axis + 1 :]), part_shape)
        return slice_view(source.rows(at, low, high), part)

    moves = is_whole or (step, start) != (1, 0)
    return RowRule(None if is_whole else int(result), rows, moves_rows=moves)


def _windows(cut: CutNode) -> RowRule:
    at, axis = cut.only()
    behind = cut.shapes[at][axis] - cut.shape[axis]  # rows of the last window

    def rows(source: Rows, begin: int, end: int) -> Any:
        first = min(begin, cut.shape[axis] - 1)  # of no rows one window is made, and not taken
        made = cut.call((source.rows(at, first, max(end, first + 1) + behind),))
        if begin < end:
            return made
        picks: list[Pick] = [*whole_axes(made.shape)]
        picks[axis] = (0, 0, 1)
        return index_view(made, tuple(picks))

    return RowRule(axis, rows, moves_rows=True)


def _update(cut: CutNode) -> RowRule:
    access, shape = cut.node.params
    axes = [cut.axes[0]] if cut.axes[0] is not None else []
    if cut.axes[1] is not None:  # where the rows of the value go
        place = cut.axes[1] + len(shape) - len(cut.shapes[1])
        axes += [axis for axis, step in enumerate(access) if step[0] == place] or [-1]
    axis = common(axes)
    own, by, start = access[axis]
    if axis < 0 or (own is not None and by != 1):
        raise CannotCutError("the rows of the value go to others")
    stop = start + (1 if own is None else shape[own])

    def rows(source: Rows, begin: int, end: int) -> Any:
        low, high = max(begin, start), min(end, stop)
        target = source.rows(0, begin, end, axis=axis)
        if low >= high:
            return target
        if own is None:
            value, step, lengths = source.whole(1), (None, 0, low - begin), shape
        else:
            (value,) = _aligned(cut, (1,), len(shape) - own, source, low - start, high - start)
            step, lengths = (own, 1, low - begin), with_length(shape, own, high - low)
        steps: tuple[AxisMap, ...] = (*access[:axis], step, *access[axis + 1 :])
        return cut.call((target, value), updated_slice((steps, lengths)))

    return RowRule(axis, rows, moves_rows=True)


def _broadcast(cut: CutNode) -> RowRule:
    at, axis = cut.only()
    target, first = cut.node.params
    if cut.shapes[at][axis] != target[first + axis]:
        raise CannotCutError

    def rows(source: Rows, begin: int, end: int) -> Any:
        part = with_length(target, first + axis, end - begin), first
        return cut.call((source.rows(0, begin, end),), part)

    return RowRule(first + axis, rows)


def _reshape(cut: CutNode) -> RowRule:
    """The axis before which the shapes have the same number of elements."""
    at, axis = cut.only()
    shape, before = cut.shapes[at], math.prod(cut.shapes[at][:axis])
    same = [a for a in range(len(cut.shape)) if math.prod(cut.shape[:a]) == before]
    if not same:
        raise CannotCutError("the new shape mixes the rows with other axes")
    result = next((a for a in same if cut.shape[a] > 1), same[0])
    old, new = math.prod(shape[axis + 1 :]), math.prod(cut.shape[result + 1 :])

    def rows(source: Rows, begin: int, end: int) -> Any:
        target = with_length(cut.shape, result, end - begin)
        if not old or not new:
            return reshape(source.rows(at, 0, 0), target)
        low, high = begin * new // old, -(-end * new // old)
        part = source.rows(at, low, high)
        if (low * old, high * old) == (begin * new, end * new):
            return reshape(part, target)
        flat = reshape(part, (*shape[:axis], (high - low) * old))
        picks: list[Pick] = [*whole_axes(flat.shape)]
        picks[axis] = (begin * new - low * old, (end - begin) * new, 1)
        return reshape(index_view(flat, tuple(picks)), target)

    return RowRule(result, rows, moves_rows=True)


def _product(cut: CutNode) -> RowRule:
    assert cut.op.rewriting.contraction is not None, "it is a product"
    types = tuple([node.type for node in cut.node.inputs])
    contracted, free, *_ = cut.op.rewriting.contraction(types, *cut.node.params)
    batch = [
        [a for a in range(len(shape)) if a not in contracted[at] + free[at]]
        for at, shape in enumerate(cut.shapes[:2])
    ]
    batch_ndim, places = max(map(len, batch)), list[int]()
    for at, axis in cut.chunked:
        if axis in batch[at] and cut.shapes[at][axis] == 1:
            raise CannotCutError("its one row broadcasts")
        if axis in contracted[at]:
            return RowRule(fold=contraction_fold(cut, contracted, contracted[at].index(axis)))
        if axis in free[at]:
            places.append(batch_ndim + len(free[0]) * at + free[at].index(axis))
        else:
            places.append(batch_ndim - len(batch[at]) + batch[at].index(axis))
    if len(places) > 1 and places[0] >= batch_ndim:
        raise CannotCutError("each row of one operand meets all rows of the other")
    from_last = batch_ndim - common(places)  # 0 or less: a free axis

    def operand(source: Rows, at: int, begin: int, end: int) -> Any:
        place = len(batch[at]) - from_last
        if cut.axes[at] is not None:
            return source.rows(at, begin, end)
        if 0 <= place < len(batch[at]) and cut.shapes[at][batch[at][place]] > 1:
            return source.rows(at, begin, end, axis=batch[at][place])
        return source.whole(at)

    return RowRule(
        places[0],
        lambda source, *rows: cut.call([operand(source, at, *rows) for at in cut.operands]),
    )


def _join(cut: CutNode) -> RowRule:
    (place,), axis = cut.node.params, common([axis for _, axis in cut.chunked])
    stacks = len(cut.shape) > len(cut.shapes[0])
    if stacks or place != axis:

        def whole_rows(source: Rows, begin: int, end: int) -> Any:
            return cut.call([source.rows(at, begin, end, axis=axis) for at in cut.operands])

        return RowRule(axis + (stacks and place <= axis), whole_rows)

    def rows(source: Rows, begin: int, end: int) -> Any:
        parts, start = [], 0
        for at in cut.operands:
            low, high = (min(max(row - start, 0), cut.shapes[at][axis]) for row in (begin, end))
            if low < high:
                parts.append(source.rows(at, low, high, axis=axis))
            start += cut.shapes[at][axis]
        if not parts:
            return source.rows(0, 0, 0, axis=axis)
        joined = cut.call(parts) if len(parts) > 1 else parts[0]
        return joined if joined.dtype == cut.node.type.dtype else concat([joined], axis=axis)

    return RowRule(axis, rows, moves_rows=True)


def _pad(cut: CutNode) -> RowRule:
    at, axis = cut.only()
    (widths, mode, value), length = cut.node.params, cut.shapes[at][axis]
    before = widths[axis][0]
    if mode != "constant" and any(widths[axis]):
        raise CannotCutError(f"mode {mode!r} takes rows of the ends")

    def rows(source: Rows, begin: int, end: int) -> Any:
        low, high = (min(max(row - before, 0), length) for row in (begin, end))
        ends = max(min(before, end) - begin, 0), max(end - max(begin, before + length), 0)
        part = (*widths[:axis], ends, *widths[axis + 1 :])
        return cut.call((source.rows(at, low, high),), (part, mode, value))

    return RowRule(axis, rows, moves_rows=True)


def _blocks(cut: CutNode) -> RowRule:
    """A result made of blocks of an operand: of the same rows, or one below the other."""
    at, axis = cut.only()
    assert cut.op.lowering.pieces is not None, "it is made of blocks"
    pieces = cut.op.lowering.pieces(cut.shapes, *cut.node.params)
    if pieces is NotImplemented or len(cut.shape) != len(cut.shapes[at]):
        raise CannotCutError
    runs, whole = list[tuple[int, int, int]](), True
    for start, shape, _, reads, _ in pieces:
        if reads is None or reads[axis][:2] != (axis, 1):
            raise CannotCutError
        runs.append((start[axis], start[axis] + shape[axis], reads[axis][2]))
        whole = whole and with_length(shape, axis, 0) == with_length(cut.shape, axis, 0)
    if {*runs} == {(0, cut.shape[axis], 0)}:
        return RowRule(axis, cut.as_it_is)
    if not whole:
        raise CannotCutError

    def rows(source: Rows, begin: int, end: int) -> Any:
        parts = [
            source.rows(at, max(begin, first) - first + start, min(end, last) - first + start)
            for first, last, start in sorted(runs)
            if max(begin, first) < min(end, last)
        ]
        return concat(parts, axis=axis) if parts else source.rows(at, 0, 0)

    return RowRule(axis, rows, moves_rows=True)


def _gather(cut: CutNode) -> RowRule:
    axes, place = cut.node.params
    places, index_ndim = [], max(map(len, cut.shapes[1:]))
    for at, axis in cut.chunked:
        if at > 0:
            places.append(place + index_ndim - len(cut.shapes[at]) + axis)
        elif axis in axes:
            raise CannotCutError("it takes any rows of an array that comes in chunks")
        else:
            remaining = axis - sum(a < axis for a in axes)
            places.append(remaining + index_ndim * (remaining >= place))
    result, indices = common(places), cut.operands[1:]
    if cut.axes[0] is not None:
        return RowRule(result, cut.as_it_is)
    from_last = index_ndim - (result - place)
    return RowRule(
        result,
        lambda source, *rows: cut.call(
            [source.whole(0), *_aligned(cut, indices, from_last, source, *rows)]
        ),
    )


def _scan(cut: CutNode) -> RowRule:
    at, axis = cut.only()
    if axis != cut.node.params[0]:
        return RowRule(axis, cut.as_it_is)
    fold = scan_fold(cut, at)
    return RowRule(axis, fold.rows, fold, True)


def _scatter(cut: CutNode) -> RowRule:
    rule = cut.op.lowering.scatter
    columns = [axis for _, axis in cut.chunked if axis > 0]
    if columns and rule is not None and rule.base is None:
        return _segments(cut)
    return RowRule(fold=scatter_fold(cut))


def _segments(cut: CutNode) -> RowRule:
    """Rows of the first operand are combined, whichever are their columns."""
    at, axis = cut.only()
    if at > 0 or axis == 0:
        raise CannotCutError("its segments lie along the rows")
    return RowRule(axis, cut.as_it_is)


def _stack(cut: CutNode) -> RowRule:
    """An operation that `tn.vmap` would make of one that computes a row."""
    length = cut.shapes[cut.chunked[0][0]][0]
    if any(axis not in (0, None) for axis in cut.axes):
        raise CannotCutError
    all_inputs = tuple([True] * len(cut.axes))
    for flags in (all_inputs, tuple([axis is not None for axis in cut.axes])):
        for params in _member_params(cut.node.params):
            member = _member(cut, flags, params, length)
            if member is not None:
                return RowRule(0, partial(_rows_of_stack, cut, flags, member))
    raise CannotCutError


def _member_params(params: Params) -> Iterator[Params]:
    """Yield params, and those with the axes that its first or second one may be shifted."""
    yield params
    for at in range(min(len(params), 2)):  # an axis, or a tuple of them
        axes = params[at] if type(params[at]) is tuple else (params[at],)
        if all(type(axis) is int and axis > 0 for axis in axes):
            before = tuple([axis - 1 for axis in axes])
            own = before if type(params[at]) is tuple else before[0]
            yield (*params[:at], own, *params[at + 1 :])


def _member(cut: CutNode, flags: tuple[bool, ...], params: Params, length: int) -> Node | None:
    """Return the node of one row whose batch is the node; None where it is another."""
    types = [node.type for node in cut.node.inputs]
    full = tuple(map(_native.placeholder, types))
    one = tuple(
        [
            _native.placeholder(Type(x.shape[1:], x.dtype, x.device)) if is_batched else whole
            for x, is_batched, whole in zip(types, flags, full, strict=True)
        ]
    )
    try:
        cut.op.rebound(one, params)  # a call tests more than the rule of shapes
        member = _origin_node(_native.apply(cut.op.id, one, params))
        batch = apply_batch_rule(Members(cut.op, length, full, flags), member)
        node = _origin_node(batch)
    except (ValueError, TypeError, IndexError):
        return None
    same = node.op is cut.op and node.params == cut.node.params
    same = same and [*node.inputs] == [*map(_native.node_of, full)]
    return member if same and node.types == cut.node.types else None


def _origin_node(result: Any) -> Node:
    """Return the node of an operation of one or several results."""
    return (
        _native.node_of(result[0]).inputs[0] if type(result) is tuple else _native.node_of(result)
    )


def _rows_of_stack(
    cut: CutNode, flags: tuple[bool, ...], member: Node, source: Rows, begin: int, end: int
) -> Any:
    operands = [
        source.rows(at, begin, end, axis=0) if is_batched else source.whole(at)
        for at, is_batched in enumerate(flags)
    ]
    with cut.line():
        return apply_batch_rule(Members(cut.op, end - begin, tuple(operands), flags), member)


CHUNK_RULES: tuple[tuple[Callable[[Op[...]], object], Callable[[CutNode], RowRule]], ...] = (
    (lambda op: op.semantics.shapes == "broadcast", _map),
    (lambda op: op.rewriting.reduces, _reduction),
    (lambda op: op is index, _index),
    (lambda op: op is sliding_window_view, _windows),
    (lambda op: op.lowering.updates, _update),
    (lambda op: op is broadcast_to, _broadcast),
    (lambda op: op.semantics.view and op.is_affine_view, _view),
    (lambda op: op is reshape, _reshape),
    (lambda op: op is pad, _pad),
    (lambda op: op.rewriting.contraction, _product),
    (lambda op: op.lowering.joins, _join),
    (lambda op: op.lowering.pieces, _blocks),
    (lambda op: op.lowering.gathers, _gather),
    (lambda op: op.lowering.scanning, _scan),
    (lambda op: op.lowering.scatter, _scatter),
    (lambda op: op.lowering.segments, _segments),
    (lambda op: op.transforms.batch_params or op.transforms.batch, _stack),
)
"""Whether an op is of a kind, by its declaration, and the rule of that kind; the first applies."""


def has_chunk_rule(op: Op[...]) -> bool:
    """Whether there is a rule for an op, which says more than how it is batched."""
    return op.transforms.batch_params is not None or any(
        applies(op) for applies, rule in CHUNK_RULES if rule is not _stack
    )


def row_rule(cut: CutNode) -> RowRule:
    """Return the rule of a node. Raises CannotCutError where there is none."""
    for applies, rule in CHUNK_RULES:
        if applies(cut.op):
            return rule(cut)
    raise CannotCutError


def is_long(node: Any, inputs_are_long: Sequence[bool]) -> bool:
    """Whether an array without chunks is made again by rows, since it is large and cheap."""
    op = node.op
    if not isinstance(op, Op) or len(node.types) > 1:
        return False
    if node.type.size * node.type.dtype.itemsize <= LONG_BYTES:
        return False
    cheap = op.semantics.kind is Kind.VIEW or not inputs_are_long
    return cheap or (op.semantics.kind is Kind.MAP and any(inputs_are_long))


LONG_BYTES = 1 << 20
"""The bytes above which a broadcast or created array is not stored whole."""
