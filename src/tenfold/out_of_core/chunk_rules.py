"""Chunk rules: how rows of a result are computed from rows of the operands, for each kind of op.

Takes a CutNode: a node of a traced function, and for each operand the axis along which it comes in
chunks, or None for one that is there whole. A rule hands on the axis of the result, or a ChunkFold
if the op reduces the chunked axis; and from a range of rows the expression that computes them. The
rules follow from what an op declares: its shapes, index map, reduced or contracted axes.

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((9, 2), tn.float64, "cpu"))
>>> node = tn._native.node_of(tn.sum(x, axis=1))
>>> cut = CutNode(node, node.op, (0,), ((9, 2),))
>>> chunk_rule_of(cut).axis(cut)
0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.index_map import AxisMap, updated_slice
from tenfold.core.op import Kind, Op, Params
from tenfold.core.shape_rules import Pick, whole_axes
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


class ChunkRule(NamedTuple):
    """The rule of a kind of ops."""

    applies: Callable[[Op[...]], object]
    """Whether an op is of this kind, by its declaration."""
    axis: Callable[[CutNode], int | ChunkFold | None]
    """The chunked axis of the result, a ChunkFold, or None: it needs few rows, and is whole."""
    rows: Callable[[CutNode, Rows, int, int], Any]
    """The rows of the result from `begin` to `end`; of a whole result all of it."""
    moves_rows: bool = False
    """Whether rows of the result may need rows of other numbers of the operands."""


def _axis_of_map(cut: CutNode) -> int:
    ndim = len(cut.shape)
    axis = common([axis + ndim - len(cut.shapes[at]) for at, axis in cut.chunked])
    for at, own in cut.chunked:
        if cut.shapes[at][own] != cut.shape[axis]:
            raise CannotCutError
    return axis


def aligned_rows(cut: CutNode, source: Rows, at: int, from_last: int, rows: tuple[int, int]) -> Any:
    """Return the rows of an operand that broadcasts: of a whole one those beside the chunk."""
    shape = cut.shapes[at]
    axis = len(shape) - from_last
    if cut.axes[at] is None and (axis < 0 or shape[axis] == 1):
        return source.whole(at)
    return source.rows(at, *rows, axis=axis)


def _rows_of_map(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    from_last = len(cut.shape) - cut.axis
    operands = [
        aligned_rows(cut, source, at, from_last, (begin, end)) for at in range(len(cut.axes))
    ]
    return cut.call(operands)


def _axis_of_reduction(cut: CutNode) -> int | ChunkFold:
    at, axis = cut.only()
    axes, keepdims, *_ = cut.node.params
    if axis in axes:
        return reduction_fold(cut, at, axis)
    return axis if keepdims else axis - sum(reduced < axis for reduced in axes)


def _rows_as_they_are(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    at, _ = cut.only()
    operands = [
        source.rows(i, begin, end) if i == at else source.whole(i) for i in range(len(cut.axes))
    ]
    return cut.call(operands)


def _axis_of_index(cut: CutNode) -> int | None:
    _, axis = cut.only()
    access, shape = cut.node.params
    result, *_ = access[axis]
    if result is None or shape[result] <= 1:
        return None  # few rows: it is whole
    if sum(step[0] == result for step in access) > 1:
        raise CannotCutError("a diagonal takes other columns of each row")
    return int(result)


def _rows_of_index(cut: CutNode, source: Rows, begin: int, end: int) -> Array:
    at, axis = cut.only()
    access, shape = cut.node.params
    result, step, start = access[axis]
    if result is None or cut.axis < 0:
        begin, end = 0, 1 if result is None else shape[result]
    first, last = start + step * begin, start + step * max(end - 1, begin)
    low, high = min(first, last), max(first, last) + 1
    low, high = (low, high) if end > begin else (0, 0)
    moved = (result, step, first - low if end > begin else 0)
    part_shape = shape if result is None else with_length(shape, result, end - begin)
    part = ((*access[:axis], moved, *access[axis + 1 :]), part_shape)
    return slice_view(source.rows(at, low, high), part)


def _axis_of_permutation(cut: CutNode) -> int:
    return int(cut.node.params[0].index(cut.only()[1]))


def _axis_of_windows(cut: CutNode) -> int:
    return cut.only()[1]


def _rows_of_windows(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    at, axis = cut.only()
    behind = cut.shapes[at][axis] - cut.shape[axis]  # rows of the last window
    return cut.call((source.rows(at, begin, end + behind),))


def _axis_of_update(cut: CutNode) -> int:
    access, shape = cut.node.params
    axes = [cut.axes[0]] if cut.axes[0] is not None else []
    if cut.axes[1] is not None:  # where the rows of the value go
        own = cut.axes[1] + len(shape) - len(cut.shapes[1])
        axes += [axis for axis, step in enumerate(access) if step[0] == own] or [-1]
    axis = common(axes)
    if axis < 0 or (access[axis][0] is not None and access[axis][1] != 1):
        raise CannotCutError("the rows of the value go to others")
    return axis


def _rows_of_update(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    access, shape = cut.node.params
    own, _, start = access[cut.axis]
    length = 1 if own is None else shape[own]
    low, high = max(begin, start), min(end, start + length)
    target = source.rows(0, begin, end, axis=cut.axis)
    if low >= high:
        return target
    step: AxisMap = (None, 0, low - begin)
    if own is None:
        value_rows = source.whole(1)
    else:
        rows = (low - start, high - start)
        value_rows = aligned_rows(cut, source, 1, len(shape) - own, rows)
        step, shape = (own, 1, low - begin), with_length(shape, own, high - low)
    part = (*access[: cut.axis], step, *access[cut.axis + 1 :]), shape
    return cut.call((target, value_rows), updated_slice(part))


def _axis_of_broadcast(cut: CutNode) -> int:
    at, axis = cut.only()
    target, first = cut.node.params
    if cut.shapes[at][axis] != target[first + axis]:
        raise CannotCutError
    return int(first + axis)


def _rows_of_broadcast(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    target, first = cut.node.params
    part = source.rows(0, begin, end)
    return cut.call((part,), (with_length(target, cut.axis, end - begin), first))


def _axis_of_reshape(cut: CutNode) -> int:
    """The axis before which the shapes have the same number of elements."""
    at, axis = cut.only()
    before = math.prod(cut.shapes[at][:axis])
    same = [a for a in range(len(cut.shape)) if math.prod(cut.shape[:a]) == before]
    long = [a for a in same if cut.shape[a] > 1]
    if not same:
        raise CannotCutError("the new shape mixes the rows with other axes")
    return long[0] if long else same[0]


def _rows_of_reshape(cut: CutNode, source: Rows, begin: int, end: int) -> Array:
    (at, axis), shape = cut.only(), cut.shapes[0]
    old, new = math.prod(shape[axis + 1 :]), math.prod(cut.shape[cut.axis + 1 :])
    target = with_length(cut.shape, cut.axis, end - begin)
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


def _product_axes(cut: CutNode) -> tuple[Any, list[list[int]]]:
    """Return the contraction, and the batch axes of each operand."""
    assert cut.op.rewriting.contraction is not None, "it is a product"
    types = tuple([node.type for node in cut.node.inputs])
    facts = cut.op.rewriting.contraction(types, *cut.node.params)
    batch = [
        [a for a in range(len(shape)) if a not in facts.contracted[at] + facts.free[at]]
        for at, shape in enumerate(cut.shapes[:2])
    ]
    return facts, batch


def _axis_of_product(cut: CutNode) -> int | ChunkFold:
    facts, batch = _product_axes(cut)
    batch_ndim = max(map(len, batch))
    places: list[int] = []
    for at, axis in cut.chunked:
        if axis in batch[at] and cut.shapes[at][axis] == 1:
            raise CannotCutError("its one row broadcasts")
        if axis in facts.contracted[at]:
            return contraction_fold(cut, facts.contracted, facts.contracted[at].index(axis))
        if axis in facts.free[at]:
            before = len(facts.free[0]) * at + facts.free[at].index(axis)
            places.append(batch_ndim + before)
        else:
            places.append(batch_ndim - len(batch[at]) + batch[at].index(axis))
    if len(places) > 1 and places[0] >= batch_ndim:
        raise CannotCutError("each row of one operand meets all rows of the other")
    return common(places)


def _rows_of_product(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    _, batch = _product_axes(cut)
    from_last = max(map(len, batch)) - cut.axis  # 0 or less: a free axis
    operands: list[Any] = []
    for at, axis in enumerate(cut.axes):
        place = len(batch[at]) - from_last
        if axis is not None:
            operands.append(source.rows(at, begin, end))
        elif 0 <= place < len(batch[at]) and cut.shapes[at][batch[at][place]] > 1:
            operands.append(source.rows(at, begin, end, axis=batch[at][place]))
        else:
            operands.append(source.whole(at))
    return cut.call(operands)


def _axis_of_join(cut: CutNode) -> int:
    (place,) = cut.node.params
    axis = common([axis for _, axis in cut.chunked])
    new_axis = len(cut.shape) > len(cut.shapes[0])
    return axis + (new_axis and place <= axis)


def _rows_of_join(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    _, axis = cut.chunked[0]
    operands = range(len(cut.axes))
    if len(cut.shape) > len(cut.shapes[0]) or cut.node.params[0] != axis:
        return cut.call([source.rows(at, begin, end, axis=axis) for at in operands])
    parts, start = [], 0
    for at in operands:
        low, high = (min(max(row - start, 0), cut.shapes[at][axis]) for row in (begin, end))
        if low < high:
            parts.append(source.rows(at, low, high, axis=axis))
        start += cut.shapes[at][axis]
    if not parts:
        return source.rows(0, 0, 0, axis=axis)
    joined: Any = cut.call(parts) if len(parts) > 1 else parts[0]
    return joined if joined.dtype == cut.node.type.dtype else concat([joined], axis=axis)


def _axis_of_pad(cut: CutNode) -> int:
    _, axis = cut.only()
    widths, mode, _ = cut.node.params
    if mode != "constant" and any(widths[axis]):
        raise CannotCutError(f"mode {mode!r} takes rows of the ends")
    return axis


def _rows_of_pad(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    (at, axis), (widths, mode, value) = cut.only(), cut.node.params
    before = widths[axis][0]
    low, high = (min(max(row - before, 0), cut.shapes[at][axis]) for row in (begin, end))
    ends = (
        max(min(before, end) - begin, 0),
        max(end - max(begin, before + cut.shapes[at][axis]), 0),
    )
    part = (*widths[:axis], ends, *widths[axis + 1 :])
    return cut.call((source.rows(at, low, high),), (part, mode, value))


def _runs_of_blocks(cut: CutNode) -> list[tuple[int, int, int]] | None:
    """Return runs of rows of a result that is made of blocks of an operand: first row, the row
    behind the last, and the first row of the operand; None where the rows stay as they are.
    """
    at, axis = cut.only()
    assert cut.op.lowering.pieces is not None, "it is made of blocks"
    pieces = cut.op.lowering.pieces(cut.shapes, *cut.node.params)
    if pieces is NotImplemented or len(cut.shape) != len(cut.shapes[at]):
        raise CannotCutError
    runs, stays = [], True
    for start, shape, _, reads, _ in pieces:
        if reads is None or reads[axis][:2] != (axis, 1):
            raise CannotCutError
        rows = start[axis], start[axis] + shape[axis], reads[axis][2]
        stays = stays and rows == (0, cut.shape[axis], 0)
        runs.append((rows, with_length(shape, axis, 0), reads))
    whole = with_length(cut.shape, axis, 0)
    if not stays and any(shape != whole for _, shape, _ in runs):
        raise CannotCutError
    return None if stays else sorted(rows for rows, *_ in runs)


def _axis_of_blocks(cut: CutNode) -> int:
    _runs_of_blocks(cut)
    return cut.only()[1]


def _rows_of_blocks(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    (at, axis), runs = cut.only(), _runs_of_blocks(cut)
    if runs is None:
        return _rows_as_they_are(cut, source, begin, end)
    parts = [
        source.rows(at, max(begin, first) - first + start, min(end, last) - first + start)
        for first, last, start in runs
        if max(begin, first) < min(end, last)
    ]
    return concat(parts, axis=axis) if parts else source.rows(at, 0, 0)


def _axis_of_gather(cut: CutNode) -> int:
    axes, place = cut.node.params
    places = []
    index_ndim = max(map(len, cut.shapes[1:]))
    for at, axis in cut.chunked:
        if at > 0:
            places.append(place + index_ndim - len(cut.shapes[at]) + axis)
        elif axis in axes:
            raise CannotCutError("it takes any rows of an array that comes in chunks")
        else:
            remaining = axis - sum(a < axis for a in axes)
            places.append(remaining + index_ndim * (remaining >= place))
    return common(places)


def _rows_of_gather(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    _, place = cut.node.params
    if cut.axes[0] is not None:
        return _rows_as_they_are(cut, source, begin, end)
    from_last = max(map(len, cut.shapes[1:])) - (cut.axis - place)
    indices = range(1, len(cut.axes))
    parts = [aligned_rows(cut, source, at, from_last, (begin, end)) for at in indices]
    return cut.call([source.whole(0), *parts])


def _axis_of_scan(cut: CutNode) -> int | ChunkFold:
    at, axis = cut.only()
    return scan_fold(cut, at) if axis == cut.node.params[0] else axis


def _rows_of_scan(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    at, axis = cut.only()
    if axis != cut.node.params[0]:
        return _rows_as_they_are(cut, source, begin, end)
    return scan_fold(cut, at).rows(source, begin, end)


def _axis_of_scatter(cut: CutNode) -> int | ChunkFold:
    return scatter_fold(cut)


def _member_params(cut: CutNode) -> Params | None:
    """Return the params with which an op computes one row of a batch along the first axis."""
    batch_params, params = cut.op.transforms.batch_params, cut.node.params
    if batch_params is None or any(axis not in (0, None) for axis in cut.axes):
        return None
    candidates = [params]
    for at in range(min(len(params), 2)):  # an axis, or a tuple of them
        axes = params[at] if type(params[at]) is tuple else (params[at],)
        if all(type(axis) is int and axis > 0 for axis in axes):
            before = tuple([axis - 1 for axis in axes])
            own = before if type(params[at]) is tuple else before[0]
            candidates.append((*params[:at], own, *params[at + 1 :]))
    length = cut.shapes[cut.chunked[0][0]][0]
    types = [_native.Type(x.type.shape[1:], x.type.dtype, x.type.device) for x in cut.node.inputs]
    member = tuple(map(_native.placeholder, types))
    for candidate in candidates:
        try:
            cut.op.rebound(member, candidate)  # a call tests more than the rule of shapes
            inferred = cut.op.semantics.rule(tuple(types), *candidate)
            same = batch_params(length, *candidate) == params
        except (ValueError, TypeError, IndexError):
            continue
        shapes = [shape for shape, _ in inferred.results]
        if same and [(length, *shape) for shape in shapes] == [t.shape for t in cut.node.types]:
            return candidate
    return None


def _axis_of_stack(cut: CutNode) -> int:
    if _member_params(cut) is None:
        raise CannotCutError
    return 0


def _rows_of_stack(cut: CutNode, source: Rows, begin: int, end: int) -> Any:
    params = _member_params(cut)
    assert params is not None, "it has an axis"
    assert cut.op.transforms.batch_params is not None, "and so a rule"
    operands = [source.rows(at, begin, end, axis=0) for at in range(len(cut.axes))]
    return cut.call(operands, cut.op.transforms.batch_params(end - begin, *params))


CHUNK_RULES = (
    ChunkRule(lambda op: op.semantics.shapes == "broadcast", _axis_of_map, _rows_of_map),
    ChunkRule(lambda op: op.rewriting.reduces, _axis_of_reduction, _rows_as_they_are),
    ChunkRule(
        lambda op: op.semantics.shapes == "permuted", _axis_of_permutation, _rows_as_they_are
    ),
    ChunkRule(lambda op: op is index, _axis_of_index, _rows_of_index, True),
    ChunkRule(lambda op: op is sliding_window_view, _axis_of_windows, _rows_of_windows, True),
    ChunkRule(lambda op: op.lowering.updates, _axis_of_update, _rows_of_update, True),
    ChunkRule(lambda op: op is broadcast_to, _axis_of_broadcast, _rows_of_broadcast),
    ChunkRule(lambda op: op is reshape, _axis_of_reshape, _rows_of_reshape, True),
    ChunkRule(lambda op: op is pad, _axis_of_pad, _rows_of_pad, True),
    ChunkRule(lambda op: op.rewriting.contraction, _axis_of_product, _rows_of_product),
    ChunkRule(lambda op: op.lowering.joins, _axis_of_join, _rows_of_join, True),
    ChunkRule(lambda op: op.lowering.pieces, _axis_of_blocks, _rows_of_blocks, True),
    ChunkRule(lambda op: op.lowering.gathers, _axis_of_gather, _rows_of_gather),
    ChunkRule(lambda op: op.lowering.scanning, _axis_of_scan, _rows_of_scan, True),
    ChunkRule(lambda op: op.lowering.scatter, _axis_of_scatter, _rows_as_they_are),
    ChunkRule(lambda op: op.transforms.batch_params, _axis_of_stack, _rows_of_stack),
)
"""The kinds of ops, the first that applies."""


def has_chunk_rule(op: Op[...]) -> bool:
    """Whether there is a rule for an op."""
    return any(rule.applies(op) for rule in CHUNK_RULES)


def chunk_rule_of(cut: CutNode) -> ChunkRule:
    """Return the rule of a node. Raises CannotCutError where there is none."""
    for rule in CHUNK_RULES:
        if rule.applies(cut.op):
            return rule
    raise CannotCutError


def is_long(node: Node, inputs_are_long: Sequence[bool]) -> bool:
    """Whether an array without chunks is made again by rows, since it is large and cheap."""
    op = node.op
    if (
        not isinstance(op, Op)
        or len(node.types) > 1
        or node.type.size * node.type.dtype.itemsize <= LONG_BYTES
    ):
        return False
    cheap = op.semantics.kind is Kind.VIEW or not inputs_are_long
    return cheap or (op.semantics.kind is Kind.MAP and any(inputs_are_long))


LONG_BYTES = 1 << 20
"""The bytes above which a broadcast or created array is not stored whole."""
