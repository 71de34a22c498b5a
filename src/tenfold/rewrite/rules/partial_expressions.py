"""Partial expressions: a slice of an elementwise expression becomes the expression of the slices.

Input: an `index` of a pending node. Output: a node of the same value that computes that slice only.
None if the node is not such a slice, or its base has been read in part before: the second partial
read computes the whole base.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0, 3.0]) * 2
>>> sliced = partial_expression(tn._native.node_of(x[1:]))
>>> sliced.name, sliced.type.shape
('multiply', (2,))
"""

from __future__ import annotations

from typing import Any

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.interpreter import ORIGIN
from tenfold.core.op import Kind, Op
from tenfold.core.shape_rules import whole_axes
from tenfold.ops.indexing import index, index_view
from tenfold.rewrite.rules.slice_composition import Picks, compose_slices, operand_picks
from tenfold.settings import override


def partial_expression(node: Node) -> Node | None:
    """Return a node that computes only the slice of its base that `node` reads."""
    if node.op is not index:
        return None
    view = _composed_views(node)
    if view is None:
        return None
    base, picks, new_axes = view
    if not _is_splittable(base) or base.read_in_part():
        return None
    with override(strict_dtypes=False):  # nodes keep the dtypes of their options
        sliced = _build_part(base, picks)
        return _native.node_of(
            index_view(sliced, whole_axes(sliced.shape), new_axes) if new_axes else sliced
        )


def _composed_views(node: Node) -> tuple[Node, Picks, tuple[int, ...]] | None:
    """Compose a chain of slices; return the base node, its picks and the new axes.

    None if another thread has just computed the node: a computed node drops its inputs.
    """
    inputs = node.inputs
    if not inputs:
        return None
    (base,) = inputs
    picks, new_axes = node.params
    while base.op is index and (inputs := base.inputs):
        composed = compose_slices(base.params[0], base.params[1], picks, new_axes)
        if composed is None:
            break
        picks, new_axes = composed
        (base,) = inputs
    return base, picks, new_axes


def _is_splittable(node: Node) -> bool:
    """Whether a slice of the node is the operation on slices of its inputs."""
    op = node.op
    return (
        node.pending and isinstance(op, Op) and op.semantics.kind is Kind.MAP and op.semantics.pure
    )


def _build_part(base: Node, base_picks: Picks) -> Array:
    """Build the expression of the slice, inputs before users; shared nodes are built once."""
    built: dict[tuple[Node, Picks], Array] = {}
    stack = [(base, base_picks)]
    while stack:
        node, picks = stack[-1]
        if (node, picks) in built:
            stack.pop()
            continue
        if not _is_splittable(node):
            built[node, picks] = _slice_leaf(node, picks)
            continue
        shape, operands = node.type.shape, node.inputs
        if not operands:  # another thread has computed it since
            built[node, picks] = _slice_leaf(node, picks)
            continue
        operand_slices = [
            (operand, operand_picks(operand.type.shape, shape, picks)) for operand in operands
        ]
        missing = [operand_slice for operand_slice in operand_slices if operand_slice not in built]
        if missing:
            stack.extend(missing)
            continue
        inputs = tuple(
            operand_slice[0].scalar if operand_slice[0].is_scalar else built[operand_slice]
            for operand_slice in operand_slices
        )
        built[node, picks] = _reapply(node, inputs)
    return built[base, base_picks]


def _reapply(node: Node, inputs: tuple[Any, ...]) -> Array:
    """Apply a node's operation to slices of its inputs; a failure reports the user's line."""
    token = ORIGIN.set(node.origin)
    try:
        result: Array = _native.apply(node.op.id, inputs, node.params)
    finally:
        ORIGIN.reset(token)
    return result


def _slice_leaf(node: Node, picks: Picks) -> Array:
    array = _native.array_of(node)
    return array if picks == whole_axes(node.type.shape) else index_view(array, picks)
