"""Update slice rules: forward reads of an updated array to its base or to the written value.

Input: the index maps (`core/index_map.py`) of a slice that is read and of one that is written.
Output: an index of an `update` without other readers reads the base array or the written value.
An update that is overwritten before any read is dropped. Class bitwise.

>>> print(UPDATE_SLICE_RULES[0])
index-update: index(set_at(x, y)) => ... when sole_reader (bitwise)
"""

from __future__ import annotations

from tenfold.core.index_map import IndexMap, are_disjoint, relative_map, split_new_axes
from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Shape
from tenfold.ops import assignment, indexing  # noqa: F401  # declare what patterns name
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.views import insert_axes, slice_of_broadcast

x, y, z = variables("x y z")


def sole_reader(match: Match) -> bool:
    """Whether the updated array has no other reader."""
    return match.root.inputs[0].single_reader


def _index_of_update(match: Match) -> NodeView | None:
    root, updated = match.root, match.root.inputs[0]
    base, value = updated.inputs
    if are_disjoint(root.params, updated.params, updated.shape):
        return match.again(root, base)
    relative = relative_map(root.params, updated.params)
    if relative is None or value.is_scalar:
        return None
    return _part_of_value(match, value, relative, updated.params[1])


def _part_of_value(
    match: Match, value: NodeView, access: IndexMap, written_shape: Shape
) -> NodeView | None:
    """Return the index of a written value, which was broadcast to the slice and converted."""
    root = match.root
    order = [axis for axis, *_ in access if axis is not None]
    if order != sorted(order):
        return None
    part, new_axes = split_new_axes((access, root.shape))
    first = len(written_shape) - len(value.shape)
    result = slice_of_broadcast(match, value, part, written_shape, first, root.dtype)
    return insert_axes(match, result, new_axes)


def _update_of_update(match: Match) -> NodeView | None:
    """Drop an update whose written slice is overwritten completely."""
    root, updated = match.root, match.root.inputs[0]
    covered = relative_map(updated.params, root.params)
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
