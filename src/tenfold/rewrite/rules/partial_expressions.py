"""Partial expressions: a slice of an elementwise expression becomes the expression of the slices.

Takes the node of a part (`index` of a pending node), hands on a node of the same value that
computes that part only. It hands on None when the node is not such a part, or its base has been
read in part before: the second partial read computes the base whole.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0, 3.0]) * 2
>>> part = part_of(tn._native.node_of(x[1:]))
>>> part.name, part.type.shape
('multiply', (2,))
"""

from __future__ import annotations

from typing import Any

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.op import Kind, Op
from tenfold.core.shape_rules import whole_axes
from tenfold.ops.indexing import index, viewed
from tenfold.rewrite.rewrite_graph import ORIGIN
from tenfold.rewrite.rules.slice_composition import Picks, operand_picks, compose_slices
from tenfold.settings import override


def partial_expression(node: Node) -> Node | None:
    """Return a node that computes only the part of its base that `node` reads."""
    if node.op is not index:
        return None
    found = _composed_views(node)
    if found is None:
        return None
    base, picks, new = found
    if not _is_splittable(base) or base.read_in_part():
        return None
    with override(strict_dtypes=False):  # what was written under other options stays as it was
        part = _build_part(base, picks)
        return _native.node_of(viewed(part, whole_axes(part.shape), new) if new else part)


def _composed_views(node: Node) -> tuple[Node, Picks, tuple[int, ...]] | None:
    """Return what a part of a part of a part ... takes, in one step, of which node.

    None when another thread has computed the node meanwhile: a computed node drops its inputs.
    """
    inputs = node.inputs
    if not inputs:
        return None
    (base,) = inputs
    picks, new = node.params
    while base.op is index and (inputs := base.inputs):
        both = compose_slices(base.params[0], base.params[1], picks, new)
        if both is None:
            break
        picks, new = both
        (base,) = inputs
    return base, picks, new


def _is_splittable(node: Node) -> bool:
    """Whether a part of the node is made of the parts of its inputs."""
    op = node.op
    return node.pending and isinstance(op, Op) and op.kind is Kind.MAP and op.pure


def _build_part(base: Node, base_picks: Picks) -> Array:
    """Build the expression of the part, inputs before users; what is shared is built once."""
    made: dict[tuple[Node, Picks], Array] = {}
    stack = [(base, base_picks)]
    while stack:
        node, picks = stack[-1]
        if (node, picks) in made:
            stack.pop()
            continue
        if not _is_splittable(node):
            made[node, picks] = _slice_leaf(node, picks)
            continue
        shape, operands = node.type.shape, node.inputs
        if not operands:  # another thread has computed it since
            made[node, picks] = _slice_leaf(node, picks)
            continue
        parts = [(each, operand_picks(each.type.shape, shape, picks)) for each in operands]
        missing = [part for part in parts if part not in made]
        if missing:
            stack.extend(missing)
            continue
        inputs = tuple(part[0].scalar if part[0].is_scalar else made[part] for part in parts)
        made[node, picks] = _reapply(node, inputs)
    return made[base, base_picks]


def _reapply(node: Node, inputs: tuple[Any, ...]) -> Array:
    """Write a node's operation for parts of its inputs; a failure still names the user's line."""
    token = ORIGIN.set(node.origin)
    try:
        part: Array = _native.apply(node.op.id, inputs, node.params)
    finally:
        ORIGIN.reset(token)
    return part


def _slice_leaf(node: Node, picks: Picks) -> Array:
    whole = _native.array_of(node)
    return whole if picks == whole_axes(node.type.shape) else viewed(whole, picks)
