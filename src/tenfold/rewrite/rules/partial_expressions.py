"""Partial expressions: a slice of an elementwise expression becomes the expression of the slices.

Input: an `index` of a pending node. Output: a node of the same value that computes that slice only.
None if the node is not such a slice, or its base has been read in part before: the second partial
read computes the whole base, unless it is larger than half the memory.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0, 3.0]) * 2
>>> sliced = partial_expression(tn._native.node_of(x[1:]))
>>> sliced.name, sliced.type.shape
('multiply', (2,))
"""

from __future__ import annotations

from typing import Any

from tenfold import _native
from tenfold._native import Array, Node, Scope
from tenfold.core.index_map import (
    Slice,
    compose_slices,
    operand_slice,
    split_new_axes,
    whole_slice,
)
from tenfold.core.interpreter import ORIGIN
from tenfold.core.op import Kind, Op
from tenfold.core.shape_rules import Shape, whole_axes
from tenfold.ops.indexing import index, index_view, slice_view
from tenfold.settings import override


def partial_expression(node: Node) -> Node | None:
    """Return a node that computes only the slice of its base that `node` reads."""
    if node.op is not index:
        return None
    view = _composed_views(node)
    if view is None:
        return None
    base, part = view
    if not _is_splittable(base) or base.passed_through():
        return None
    with override(strict_dtypes=False):  # nodes keep the dtypes of their options
        part, new_axes = split_new_axes(part)
        sliced = _build_part(base, part)
        return _native.node_of(
            index_view(sliced, whole_axes(sliced.shape), new_axes) if new_axes else sliced
        )


def _composed_views(node: Node) -> tuple[Node, Slice] | None:
    """Compose a chain of slices; return the base node and its slice.

    None if another thread has just computed the node: a computed node drops its inputs.
    """
    inputs = node.inputs
    if not inputs:
        return None
    (base,) = inputs
    part: Slice = node.params
    while base.op is index and (inputs := base.inputs):
        composed = compose_slices(part, base.params)
        if composed is None:
            break
        part = composed
        (base,) = inputs
    return base, part


def _is_splittable(node: Node) -> bool:
    """Whether a slice of the node is the operation on slices of its inputs."""
    op = node.op
    return (
        node.pending and isinstance(op, Op) and op.semantics.kind is Kind.MAP and op.semantics.pure
    )


def _build_part(base: Node, base_part: Slice) -> Array:
    """Build the expression of the slice, inputs before users; shared nodes are built once."""
    built: dict[tuple[Node, Slice], Array] = {}
    stack = [(base, base_part)]
    while stack:
        node, part = stack[-1]
        if (node, part) in built:
            stack.pop()
            continue
        if not _is_splittable(node):
            built[node, part] = _slice_leaf(node, part)
            continue
        shape, operands = node.type.shape, node.inputs
        if not operands:  # another thread has computed it since
            built[node, part] = _slice_leaf(node, part)
            continue
        operand_slices = [(operand, _operand_part(operand, part, shape)) for operand in operands]
        missing = [operand_slice for operand_slice in operand_slices if operand_slice not in built]
        if missing:
            stack.extend(missing)
            continue
        inputs = tuple(
            operand_slice[0].scalar if operand_slice[0].is_scalar else built[operand_slice]
            for operand_slice in operand_slices
        )
        built[node, part] = _reapply(node, inputs)
    return built[base, base_part]


def _reapply(node: Node, inputs: tuple[Any, ...]) -> Array:
    """Apply a node's operation to slices of its inputs; a failure reports the user's line."""
    with Scope((ORIGIN, node.origin)):
        result: Array = _native.apply(node.op.id, inputs, node.params)
    return result


def _operand_part(operand: Node, part: Slice, shape: Shape) -> Slice:
    operand_shape = operand.type.shape
    return operand_slice(part, shape, operand_shape, len(shape) - len(operand_shape))[0]


def _slice_leaf(node: Node, part: Slice) -> Array:
    array = _native.array_of(node)
    return array if part == whole_slice(node.type.shape) else slice_view(array, part)
