"""Update slice rules: forward reads of an updated array to its base or to the written value.

Input: the index maps (`core/index_map.py`) of a slice that is read and of one that is written.
Output: whether they are disjoint, or the read slice relative to the written one. An index of an
`update` without other readers reads the base array or the written value. An update that is
overwritten before any read is dropped. Class bitwise.

>>> row, rest = ((None, 0, 2), (0, 1, 0)), ((0, 1, 3), (1, 1, 0))
>>> written = ((0, 1, 1), (1, 1, 0))
>>> are_disjoint(row, (4,), rest, (2, 4)), relative_access(row, (4,), written, (2, 4))
(True, ((None, 0, 1), (0, 1, 0)))
"""

from __future__ import annotations

from math import gcd

from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Pick, Shape, product
from tenfold.ops.assignment import Access, Step
from tenfold.ops.cast import astype
from tenfold.ops.indexing import index
from tenfold.ops.reshaping import broadcast_to
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.slice_composition import canonical_pick, operand_picks, remaining_axes
from tenfold.rewrite.rules.views import insert_axes, make_index

x, y, z = variables("x y z")


def are_disjoint(access: Access, shape: Shape, other_access: Access, other_shape: Shape) -> bool:
    """Whether two accesses are certainly disjoint.

    An access has, for every axis of the array, an axis of its own shape, a coefficient and a start.
    """
    return any(
        _ranges_disjoint(_positions(step, shape), _positions(other_step, other_shape))
        for step, other_step in zip(access, other_access, strict=True)
    ) or 0 in (product(shape), product(other_shape))


def _positions(step: Step, shape: Shape) -> tuple[int, int, int]:
    """Return the positions along an axis of the array as (start, length, step), step >= 0."""
    axis, coefficient, start = step
    length = 1 if axis is None else shape[axis]
    if length <= 1:
        return start, length, 0
    return (
        (start, length, coefficient)
        if coefficient >= 0
        else (start + coefficient * (length - 1), length, -coefficient)
    )


def _ranges_disjoint(first: tuple[int, int, int], second: tuple[int, int, int]) -> bool:
    (start, length, by), (begin, count, step) = first, second
    if start + by * (length - 1) < begin or begin + step * (count - 1) < start:
        return True
    divisor = gcd(by, step)
    return divisor > 1 and (start - begin) % divisor != 0


def relative_access(
    access: Access, shape: Shape, written_access: Access, written_shape: Shape
) -> Access | None:
    """Return an access relative to the written slice; None unless it certainly lies inside it."""
    relative: list[Step] = [(None, 0, 0)] * len(written_shape)
    used_axes: set[int] = set()
    for (axis, coefficient, start), (written_axis, step, begin) in zip(
        access, written_access, strict=True
    ):
        length = 1 if axis is None else shape[axis]
        count = 1 if written_axis is None else written_shape[written_axis]
        if length == 0 or written_axis in used_axes:
            return None
        if written_axis is None or count == 1:
            if start != begin or length != 1:
                return None
            continue
        used_axes.add(written_axis)
        first_index, start_remainder = divmod(start - begin, step)
        stride, stride_remainder = divmod(coefficient, step) if length > 1 else (0, 0)
        last_index = first_index + stride * (length - 1)
        if start_remainder or stride_remainder:
            return None
        if min(first_index, last_index) < 0 or max(first_index, last_index) >= count:
            return None
        relative[written_axis] = (
            (axis, stride, first_index) if length > 1 else (None, 0, first_index)
        )
    return tuple(relative)


def index_access(term: NodeView) -> Access:
    """Return the access by which an index reads its input."""
    assert index.lowering.reads is not None, "an index reads by steps"
    return index.lowering.reads(term.inputs[0].shape, *term.params)


def sole_reader(match: Match) -> bool:
    """Whether the updated array has no other reader."""
    return match.root.inputs[0].single_reader


def _index_of_update(match: Match) -> NodeView | None:
    root, updated = match.root, match.root.inputs[0]
    base, value = updated.inputs
    access = index_access(root)
    if are_disjoint(access, root.shape, *updated.params):
        return match.again(root, base)
    relative = relative_access(access, root.shape, *updated.params)
    if relative is None or value.is_scalar:
        return None
    return _part_of_value(match, value, relative, updated.params[1])


def _part_of_value(
    match: Match, value: NodeView, access: Access, written_shape: Shape
) -> NodeView | None:
    """Return the index of a written value, which was broadcast to the slice and converted."""
    root = match.root
    picks: list[Pick] = [
        start if axis is None else canonical_pick(start, root.shape[axis], step)
        for axis, step, start in access
    ]
    order = [axis for axis, *_ in access if axis is not None]
    if order != sorted(order):
        return None
    missing = len(written_shape) - len(value.shape)
    result = make_index(match, value, operand_picks(value.shape, written_shape, tuple(picks)))
    if value.dtype != root.dtype:
        result = match.make(astype, result, params=(root.dtype,))
    lengths = tuple(root.shape[axis] for axis in order)
    if result.shape != lengths:
        begin = len(remaining_axes(picks[:missing]))
        result = match.make(broadcast_to, result, params=(lengths, begin))
    return insert_axes(match, result, tuple(a for a in range(len(root.shape)) if a not in order))


def _update_of_update(match: Match) -> NodeView | None:
    """Drop an update whose written slice is overwritten completely."""
    root, updated = match.root, match.root.inputs[0]
    covered = relative_access(*updated.params, *root.params)
    if covered is None or match["z"] == updated:
        return None
    return match.again(root, match["x"], match["z"])


UPDATE_SLICE_RULES = (
    Rule("index-update", pattern.index(pattern.set_at(x, y)), _index_of_update, when=sole_reader),
    Rule(
        "update-update",
        pattern.set_at(pattern.set_at(x, y), z),
        _update_of_update,
        when=sole_reader,
    ),
)
