"""View composition: merges views of views into one, and drops views that move nothing.

Input: indexings, permutations, reshapes and broadcasts of each other. Output: one in place of two.
An indexing that selects fewer elements moves below the other view, so that it reaches the
computation there (`rewrite/rules/slice_pushdown.py`). Class bitwise.

>>> print(VIEW_RULES[0])
index-whole: index(x) => x when selects_all (bitwise)
"""

from __future__ import annotations

import numpy as np

from tenfold.core.index_map import (
    Slice,
    compose_slices,
    compose_view,
    operand_slice,
    ordered_slice,
    picks_of,
    slice_of,
    split_new_axes,
    takes_all,
    whole_slice,
)
from tenfold.core.pattern import pattern, variables
from tenfold.core.shape_rules import Shape, broadcast, row_major, whole_axes
from tenfold.ops.cast import astype
from tenfold.ops.create import full
from tenfold.ops.indexing import index
from tenfold.ops.movement import permute_dims
from tenfold.ops.reshaping import broadcast_to, reshape
from tenfold.rewrite.node_view import NodeView
from tenfold.rewrite.rule import Match, Rule
from tenfold.rewrite.rules.constant_folding import is_bitwise_exact
from tenfold.rewrite.rules.slice_composition import Picks, remaining_axes

(x,) = variables("x")


def make_slice(match: Match, term: NodeView, part: Slice) -> NodeView:
    """Return a slice of `term`, or `term` itself if that is all of it."""
    return term if part == whole_slice(term.shape) else match.make(index, term, params=part)


def make_index(
    match: Match, term: NodeView, picks: Picks, new_axes: tuple[int, ...] = ()
) -> NodeView:
    """Return an index of `term` by picks, or `term` itself if it selects all."""
    return make_slice(match, term, slice_of(picks, new_axes))


def permute(match: Match, term: NodeView, axes: tuple[int, ...]) -> NodeView:
    """Return `term` with its axes permuted, or `term` itself for the identity."""
    if axes == tuple(range(len(axes))):
        return term
    return match.make(permute_dims, term, params=(axes,))


def insert_axes(match: Match, term: NodeView, new_axes: tuple[int, ...]) -> NodeView:
    """Return `term` with inserted axes of length 1."""
    return make_index(match, term, whole_axes(term.shape), new_axes)


def selects_all(match: Match) -> bool:
    """Whether an index selects every element in place, without new axes."""
    part, shape = _indexing(match.root)
    return part == whole_slice(shape)


def same_shape(match: Match) -> bool:
    """Whether the operand has the shape of the root."""
    return match["x"].shape == match.root.shape


def is_identity_permutation(match: Match) -> bool:
    """Whether a permutation is the identity."""
    (axes,) = match.root.params
    return bool(axes == tuple(range(len(axes))))


def selects_fewer(match: Match) -> bool:
    """Whether the root selects fewer elements than its operand has."""
    if match.root.op is index and takes_all(*_indexing(match.root)):
        return False
    return match.root.size < match.root.inputs[0].size


def _indexing(root: NodeView) -> tuple[Slice, Shape]:
    """Return the slice of an index and the shape of its operand. Plan keys contain whether it
    selects all, so this reads no lengths.
    """
    nodes = root.graph.nodes
    return nodes[root.at].params, nodes[root.inputs[0].at].type.shape


def _index_of_index(match: Match) -> NodeView | None:
    composed = compose_slices(match.root.params, match.root.inputs[0].params)
    return None if composed is None else make_slice(match, match["x"], composed)


def _permutation_of_permutation(match: Match) -> NodeView:
    (inner,), (outer,) = match.root.inputs[0].params, match.root.params
    return permute(match, match["x"], tuple(inner[axis] for axis in outer))


def _broadcast_of_broadcast(match: Match) -> NodeView:
    (_, inner), (target, outer) = match.root.inputs[0].params, match.root.params
    return match.make(broadcast_to, match["x"], params=(target, inner + outer))


def _index_of_permutation(match: Match) -> NodeView | None:
    """Index `x` in its own axis order, then permute the smaller result."""
    term, (axes,) = match["x"], match.root.inputs[0].params
    if term.op is None:
        return None
    part, new_axes = split_new_axes(match.root.params)
    access = compose_view(part[0], permute_dims.reads(term.shape, (axes,)))
    ordered, order = ordered_slice(access, part[1])
    return insert_axes(match, permute(match, make_slice(match, term, ordered), order), new_axes)


def slice_of_broadcast(
    match: Match, term: NodeView, part: Slice, target: Shape, first: int, dtype: np.dtype
) -> NodeView:
    """Return a slice of `term` broadcast to `target`, in a dtype: the slice is broadcast."""
    operand_part, begin = operand_slice(part, target, term.shape, first)
    result = make_slice(match, term, operand_part)
    if term.dtype != dtype:
        result = match.make(astype, result, params=(dtype,))
    if result.shape != part[1]:
        result = match.make(broadcast_to, result, params=(part[1], begin))
    return result


def _index_of_broadcast(match: Match) -> NodeView:
    """Index `x`, then broadcast the result."""
    term, (target, first) = match["x"], match.root.inputs[0].params
    part, new_axes = split_new_axes(match.root.params)
    result = slice_of_broadcast(match, term, part, target, first, term.dtype)
    return insert_axes(match, result, new_axes)


def _element_of_reshape(match: Match) -> NodeView | None:
    """Read one element, by its position in row-major order."""
    term, (picks, new_axes) = match["x"], picks_of(*match.root.params)
    if remaining_axes(picks) or term.op is None:
        return None
    steps = row_major(match.root.inputs[0].shape)
    starts = [start for *_, start in match.root.params[0]]
    element = sum(start * step for start, step in zip(starts, steps, strict=True))
    positions = []
    for step in row_major(term.shape):
        position, element = divmod(element, step)
        positions.append(position)
    return make_index(match, term, tuple(positions), new_axes)


def _reshape_to_index(match: Match) -> NodeView | None:
    """Lower a reshape that inserts or removes axes of length 1 to an index."""
    term, (target,) = match["x"], match.root.params
    if [n for n in term.shape if n != 1] != [n for n in target if n != 1] or term.size == 0:
        return None
    axes = zip(term.shape, whole_axes(term.shape), strict=True)
    picks = tuple(0 if length == 1 else pick for length, pick in axes)
    new_axes = tuple(axis for axis, length in enumerate(target) if length == 1)
    return make_index(match, term, picks, new_axes)


def _reshape_of_units(match: Match) -> NodeView | None:
    """Merge a reshape of an index that only inserts or removes axes of length 1."""
    term, (picks, _) = match["x"], picks_of(*match.root.inputs[0].params)
    axes = zip(picks, term.shape, whole_axes(term.shape), strict=True)
    if any(pick != all_ and length != 1 for pick, length, all_ in axes):
        return None
    if term.size != match.root.size:  # an empty index
        return None
    return match.make(reshape, term, params=match.root.params)


VIEW_OF_VIEW_RULES = (
    Rule("index-whole", pattern.index(x), x, when=selects_all),
    Rule("permute-in-order", pattern.permute_dims(x), x, when=is_identity_permutation),
    Rule("reshape-to-itself", pattern.reshape(x), x, when=same_shape),
    Rule("broadcast-to-itself", pattern.broadcast_to(x), x, when=same_shape),
    Rule("index-index", pattern.index(pattern.index(x)), _index_of_index),
    Rule(
        "permute-permute",
        pattern.permute_dims(pattern.permute_dims(x)),
        _permutation_of_permutation,
    ),
    Rule(
        "reshape-reshape",
        pattern.reshape(pattern.reshape(x)),
        lambda match: match.make(reshape, match["x"], params=match.root.params),
    ),
    Rule(
        "broadcast-broadcast",
        pattern.broadcast_to(pattern.broadcast_to(x)),
        _broadcast_of_broadcast,
    ),
    Rule("reshape-index", pattern.reshape(pattern.index(x)), _reshape_of_units),
    Rule("reshape-units", pattern.reshape(x), _reshape_to_index),
    Rule(
        "index-permute",
        pattern.index(pattern.permute_dims(x)),
        _index_of_permutation,
        when=selects_fewer,
    ),
    Rule(
        "index-broadcast",
        pattern.index(pattern.broadcast_to(x)),
        _index_of_broadcast,
        when=selects_fewer,
    ),
    Rule("element-reshape", pattern.index(pattern.reshape(x)), _element_of_reshape),
)
"""Views of views."""


def _view_of_full(match: Match) -> NodeView:
    """Return a `full` array in the shape of the view."""
    _, value, dtype, device = match.root.inputs[0].params
    return match.make(full, params=(match.root.shape, value, dtype, device))


VIEW_OF_FULL_RULES = tuple(
    Rule(f"{name}-full", view(pattern.full()), _view_of_full)
    for name, view in (
        ("index", pattern.index),
        ("permute", pattern.permute_dims),
        ("reshape", pattern.reshape),
    )
)
"""Views of a `full` array; not broadcasts, which would make it larger."""


def _skip_broadcast(match: Match) -> NodeView | None:
    """Read the input of a broadcast, if the elementwise operation broadcasts it itself."""
    root = match.root
    op, inputs = root.op, list(root.inputs)
    if op is None or op.semantics.dtypes is None or not is_bitwise_exact(op):
        return None
    for position, term in enumerate(inputs):
        if term.op is not broadcast_to:
            continue
        (target, first), (inner,) = term.params, term.inputs
        shapes = [
            inner.shape if at == position else operand.shape for at, operand in enumerate(inputs)
        ]
        if first + len(inner.shape) == len(target) and broadcast(*shapes) == root.shape:
            inputs[position] = inner
    if inputs == list(root.inputs):
        return None
    return match.make(op, *inputs, params=root.params)


BROADCAST_OPERAND_RULES = (
    Rule("broadcast-operand", pattern.reading(pattern.broadcast_to(x)), _skip_broadcast),
)

VIEW_RULES = (*VIEW_OF_VIEW_RULES, *VIEW_OF_FULL_RULES, *BROADCAST_OPERAND_RULES)
