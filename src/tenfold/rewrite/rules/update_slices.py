"""Update slice rules: forward reads of an updated array to its base or to the written value.

Takes the index maps of a part that is read and of one that is replaced (`core/index_map.py`), hands
on whether they are disjoint, or where in the one the other lies. An index of an `update` without
other readers reads the array below, or the value. An update that is replaced again before any read
is dropped. Class bitwise.

>>> row, rest = ((None, 0, 2), (0, 1, 0)), ((0, 1, 3), (1, 1, 0))
>>> apart(row, (4,), rest, (2, 4)), inside(row, (4,), ((0, 1, 1), (1, 1, 0)), (2, 4))
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
from tenfold.rewrite.rules.slice_composition import operand_picks, remaining_axes, canonical_pick
from tenfold.rewrite.rules.views import make_index, insert_axes

x, y, z = variables("x y z")


def are_disjoint(read: Access, shape: Shape, part: Access, part_shape: Shape) -> bool:
    """Whether what one access reads has no element of what another does, for certain; each has for
    every axis of the array the axis of its own shape, a coefficient and a start.
    """
    return any(
        _ranges_disjoint(_positions(step, shape), _positions(other, part_shape))
        for step, other in zip(read, part, strict=True)
    ) or 0 in (product(shape), product(part_shape))


def _positions(step: Step, shape: Shape) -> tuple[int, int, int]:
    """The positions along an axis of the array as (start, length, step), the lowest first."""
    axis, by, start = step
    length = 1 if axis is None else shape[axis]
    if length <= 1:
        return start, length, 0
    return (start, length, by) if by >= 0 else (start + by * (length - 1), length, -by)


def _ranges_disjoint(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    (start, length, by), (begin, count, step) = one, other
    if start + by * (length - 1) < begin or begin + step * (count - 1) < start:
        return True
    divisor = gcd(by, step)
    return divisor > 1 and (start - begin) % divisor != 0


def relative_access(read: Access, shape: Shape, part: Access, part_shape: Shape) -> Access | None:
    """Return how a part is read where an access reads nothing else of the array; None where it
    does, or where that is not known.
    """
    found: list[Step] = [(None, 0, 0)] * len(part_shape)
    seen: set[int] = set()
    for (axis, by, start), (place, step, begin) in zip(read, part, strict=True):
        length = 1 if axis is None else shape[axis]
        count = 1 if place is None else part_shape[place]
        if length == 0 or place in seen:
            return None
        if place is None or count == 1:
            if start != begin or length != 1:
                return None
            continue
        seen.add(place)
        first, over = divmod(start - begin, step)
        each, rest = divmod(by, step) if length > 1 else (0, 0)
        last = first + each * (length - 1)
        if over or rest or min(first, last) < 0 or max(first, last) >= count:
            return None
        found[place] = (axis, each, first) if length > 1 else (None, 0, first)
    return tuple(found)


def index_access(term: NodeView) -> Access:
    """Return the access by which an index reads its input."""
    assert index.reads is not None, "an index reads by steps"
    return index.reads(term.inputs[0].shape, *term.params)


def sole_reader(match: Match) -> bool:
    """Whether only this node needs the array with its part replaced."""
    return match.root.inputs[0].alone


def _index_of_update(match: Match) -> NodeView | None:
    root, whole = match.root, match.root.inputs[0]
    below, value = whole.inputs
    read = index_access(root)
    if are_disjoint(read, root.shape, *whole.params):
        return match.again(root, below)
    found = relative_access(read, root.shape, *whole.params)
    if found is None or value.is_scalar:
        return None
    return _part_of_value(match, value, found, whole.params[1])


def _part_of_value(match: Match, value: NodeView, found: Access, part: Shape) -> NodeView | None:
    """What an index reads of a value that was broadcast to a part and converted."""
    root = match.root
    picks: list[Pick] = [
        start if axis is None else canonical_pick(start, root.shape[axis], by) for axis, by, start in found
    ]
    order = [axis for axis, *_ in found if axis is not None]
    if order != sorted(order):
        return None
    missing = len(part) - len(value.shape)
    result = make_index(match, value, operand_picks(value.shape, part, tuple(picks)))
    if value.dtype != root.dtype:
        result = match.make(astype, result, params=(root.dtype,))
    lengths = tuple(root.shape[axis] for axis in order)
    if result.shape != lengths:
        begin = len(remaining_axes(picks[:missing]))
        result = match.make(broadcast_to, result, params=(lengths, begin))
    return insert_axes(match, result, tuple(a for a in range(len(root.shape)) if a not in order))


def _update_of_update(match: Match) -> NodeView | None:
    """The value that is replaced again, as a whole, is not needed."""
    root, whole = match.root, match.root.inputs[0]
    covered = relative_access(*whole.params, *root.params)
    if covered is None or match["z"] == whole:
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
