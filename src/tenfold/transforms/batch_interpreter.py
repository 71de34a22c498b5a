"""Batch interpreter: the graph of one member becomes that of all, with a leading batch axis.

Takes nodes on placeholders, and for each placeholder its replacement: an Array with the batch axis
in front, or one that all members share. Returns ordinary lazy nodes, built op by op by the batch
rules. A node without batched inputs is reused and computed once.

A batch rule follows from what an op declares: its `shapes`, axes that it folds or scans, its
`batch_params` or `batch`. An op with none of these is called once for each member.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = _native.placeholder(_native.Type((2,), tn.float64, "cpu"))
>>> result = _native.node_of(tn.sum(x * 10))
>>> rows = BatchedNode(tn.asarray([[1.0, 2.0], [3.0, 4.0]]), batched=True)
>>> (sums,) = batch_nodes([result], {_native.node_of(x): rows})
>>> sums.value.tolist(), sums.batched
([30.0, 70.0], True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from tenfold import _native
from tenfold._native import Array, Node, Scope, Type
from tenfold.core.graph import Graph
from tenfold.core.interpreter import ORIGIN, interpret
from tenfold.core.shape_rules import whole_axes
from tenfold.core.subgraph import Subgraph
from tenfold.errors import ShapeError, UnsupportedError
from tenfold.ops.batch_rules import ALONE_BITS, ONE_BY_ONE, Members
from tenfold.ops.create import zeros
from tenfold.ops.indexing import index_view
from tenfold.ops.joining import stack
from tenfold.ops.reshaping import broadcast_to, reshape

IMPLICIT_BATCH: ContextVar[bool] = ContextVar("tenfold_unasked", default=False)
"""Whether members are batched without a `vmap`: then a member must not compute both branches."""


class BatchedNode(NamedTuple):
    """The batched value of a node: with the batch axis in front, or shared by all members."""

    value: Any
    """An Array, a Python number, or of an op with several results the tuple of them."""
    batched: bool


def batch_nodes(
    outputs: Sequence[Node], replacements: Mapping[Node, BatchedNode]
) -> list[BatchedNode]:
    """Return the batched value of each output; each value is an Array.

    Raises ShapeError when the replacements have no common length.
    """
    length = _common_length(replacements.values())

    def rule(node: Node, operands: list[BatchedNode | Node]) -> BatchedNode | Node:
        if BatchedNode not in map(type, operands):  # without replaced inputs
            return node
        return _batch_node(node, list(map(_batched, operands)), length)

    environment: Mapping[Node, BatchedNode | Node] = replacements
    return list(map(_batched, interpret(Graph.of(outputs), environment, rule)))


def _batched(result: BatchedNode | Node) -> BatchedNode:
    """Return a result as a batched value; that of a reused node is shared."""
    if isinstance(result, BatchedNode):
        return result
    value = result.scalar if result.is_scalar else _native.array_of(result)
    return BatchedNode(value, batched=False)


class BatchedSubgraph:
    """The batched form of a Subgraph: its results on inputs that have the batch axis, or not."""

    def __init__(self, member: Subgraph, batched_flags: Sequence[bool], length: int) -> None:
        self.member, self.length = member, length
        self.inputs: list[Node] = []
        replacements: dict[Node, BatchedNode] = {}
        for node, is_batched in zip(member.inputs, batched_flags, strict=True):
            type_ = node.type
            if is_batched:
                array = _native.placeholder(Type((length, *type_.shape), type_.dtype, type_.device))
                replacements[node] = BatchedNode(array, batched=True)
                node = _native.node_of(array)
            self.inputs.append(node)
        self.results = batch_nodes(member.outputs, replacements)

    def result_flags(self) -> list[bool]:
        """Which of its results are batched."""
        return [entry.batched for entry in self.results]

    def to_subgraph(self, batched_flags: Sequence[bool]) -> Subgraph:
        """Return it as a Subgraph; results with a flag get the batch axis."""
        outputs = [
            _native.node_of(with_batch_axis(entry, self.length) if is_batched else entry.value)
            for entry, is_batched in zip(self.results, batched_flags, strict=True)
        ]
        return Subgraph(self.member.name, outputs, self.inputs, self.member.rule)


def batch_implicitly(
    member: Subgraph, batched_flags: Sequence[bool], length: int
) -> BatchedSubgraph:
    """Batch a Subgraph for members that are batched without a `vmap`.

    Raises UnsupportedError where a member would compute a branch that it has not chosen.
    """
    with Scope((IMPLICIT_BATCH, True)):
        return BatchedSubgraph(member, batched_flags, length)


def _common_length(entries: Any) -> int:
    lengths = {entry.value.shape[0] for entry in entries if entry.batched}
    if len(lengths) > 1:
        rule = f"batch axes of lengths {', '.join(map(str, sorted(lengths)))} meet"
        raise ShapeError("batch", rule, remedy="give stand-ins of one length")
    return lengths.pop() if lengths else 0


def _batch_node(node: Node, operands: Sequence[BatchedNode], length: int) -> BatchedNode:
    """Batch one node, given the batched values of its inputs."""
    if node.op is None:  # a part of several results
        (results,) = operands
        return BatchedNode(results.value[node.params[0]], results.batched)
    flags = tuple([entry.batched for entry in operands])
    members = Members(node.op, length, tuple([entry.value for entry in operands]), flags)
    with Scope((ORIGIN, node.origin or ORIGIN.get())):
        if not any(flags):
            return BatchedNode(members.call(members.operands, node.params), batched=False)
        result = (
            _batch_call(members, node)
            if node.op.semantics.body and node.op.transforms.batch is None
            else apply_batch_rule(members, node)
        )
        if result is NotImplemented:
            result = _call_per_member(members, node)
        elif node.op.semantics.opaque:
            _check_result(result, node, length)
        return BatchedNode(result, batched=True)


def _batch_call(members: Members, node: Node) -> Any:
    """Batch the body of a traced function."""
    member_inputs, replacements = [], {}
    for operand, is_batched, member_node in zip(
        members.operands, members.batched, node.inputs, strict=True
    ):
        member_input = _native.placeholder(member_node.type)
        member_inputs.append(member_input)
        replacements[_native.node_of(member_input)] = BatchedNode(operand, is_batched)
    outputs = [_native.node_of(result) for result in node.op.semantics.body.apply(member_inputs)]
    results = tuple(
        [with_batch_axis(entry, members.length) for entry in batch_nodes(outputs, replacements)]
    )
    return results if len(results) > 1 else results[0]


def with_batch_axis(entry: BatchedNode, length: int) -> Array:
    """Return the value of a node with the batch axis; a shared value is broadcast."""
    shape = (length, *entry.value.shape)
    result: Array = entry.value if entry.batched else broadcast_to(entry.value, shape)
    return result


def apply_batch_rule(members: Members, node: Node) -> Any:
    """Apply the batch rule that follows from the op's declaration."""
    op, params, positions = members.op, node.params, range(len(members.operands))
    if op.transforms.batch is not None:
        return op.transforms.batch(members, *params)
    if op.semantics.shapes == "broadcast":
        ndim = len(node.type.shape)
        return members.call([members.aligned(at, ndim) for at in positions], params)
    if op.rewriting.reduces:
        return _batch_reduction(members, node)
    if op.semantics.shapes == "permuted":
        (axes,) = params
        return members.call(members.operands, ((0, *(axis + 1 for axis in axes)),))
    if op.lowering.scanning:
        axis, *other_params = params
        return members.call(members.operands, (axis + 1, *other_params))
    if op.transforms.batch_params is None:
        return NotImplemented
    batched_params = op.transforms.batch_params(members.length, *params)
    return members.call([members.in_front(at) for at in positions], batched_params)


def _batch_reduction(members: Members, node: Node) -> Array:
    """Reduce the axes of each member; a one-axis reduction flattens several axes first."""
    (x,), (axes, keepdims, *other_params) = members.operands, node.params
    folding = members.op.lowering.folding
    if folding is not None and folding.one_axis and len(axes) != 1:
        flattened = reshape(x, (members.length, math.prod(members.shape(0))))
        reduced = members.call((flattened,), ((1,), False, *other_params))
        return reshape(reduced, (members.length, *node.type.shape))
    result: Array = members.call((x,), (tuple(axis + 1 for axis in axes), keepdims, *other_params))
    return result


def _check_result(result: Any, node: Node, length: int) -> None:
    """Raise ShapeError for a result of a user's batch rule with a wrong shape or dtype."""
    expected_shape, dtype = (length, *node.type.shape), node.type.dtype
    if not isinstance(result, Array) or (result.shape, result.dtype) != (expected_shape, dtype):
        operands = [result] if isinstance(result, Array) else []
        rule = f"its batch rule did not return an array of shape {expected_shape} and dtype {dtype}"
        remedy = "return the results of all members, one behind the other on the first axis"
        raise ShapeError(node.name, rule, operands, remedy)


def _call_per_member(members: Members, node: Node) -> Any:
    """Call an op once for each member and stack the results, for ops without a batch rule.

    Raises UnsupportedError where that is to be left to the caller.
    """
    if ALONE_BITS.get():
        raise UnsupportedError(node.name, "it has no batch rule", remedy=ONE_BY_ONE)
    if members.length == 0:
        empty = [zeros((0, *t.shape), dtype=t.dtype, device=t.device) for t in node.types]
        return empty[0] if len(empty) == 1 else tuple(empty)
    results = [
        members.call(
            [_member_operand(members, at, member) for at in range(len(members.operands))],
            node.params,
        )
        for member in range(members.length)
    ]
    if isinstance(results[0], Array):
        return stack(results)
    return tuple(stack(rows) for rows in zip(*results, strict=True))


def _member_operand(members: Members, at: int, member: int) -> Any:
    x = members.operands[at]
    return index_view(x, (member, *whole_axes(x.shape)[1:])) if members.batched[at] else x


__all__ = [
    "IMPLICIT_BATCH",
    "BatchedNode",
    "BatchedSubgraph",
    "apply_batch_rule",
    "batch_implicitly",
    "batch_nodes",
    "with_batch_axis",
]
