"""Batch verification: compares a batch's results with unbatched results of each member.

Takes an operation and its members' stacked operands, under `tn.options(verify=True)`. Returns the
stacked results, and an error where one differs. Results are compared bit for bit, except those of
calls with multiply-adds, such as products. These are computed again from their inputs in the batch.
A product must be within the bound of a reordered sum (Higham 2002, "Accuracy and Stability of
Numerical Algorithms", section 3.5), a solve within that of its condition number. Readers of such a
result read the batch's value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Node, Value
from tenfold.core.bitwise_equal import different
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret, rebuild
from tenfold.core.op import Op, Params
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import compute_dtype, kind_of
from tenfold.errors import RunError, raise_if_failed
from tenfold.rewrite.inline import is_call
from tenfold.settings import override
from tenfold.storage import dense
from tenfold.transforms.batch_call import BatchCall, batch_member, member_subgraph

UNBATCHED_OPTIONS = {"verify": False, "batch": False, "reassociate": False}
"""The options under which a single member is computed."""
COMPLEX_ROUNDINGS = 4
"""Upper bound of the roundings of a complex product, for each rounding of a real product."""


class CheckedOperation(NamedTuple):
    """An operation as the graph of one member and as the graph of the batch."""

    member: Subgraph
    """Its outputs are the results, then the operations that are compared one at a time."""
    batch: Subgraph
    stacked_flags: tuple[bool, ...]
    """Whether each output has a row for each member."""
    result_count: int


def verify_batch(
    op: Op[...], params: Params, operands: Sequence[tuple[Any, bool]], nodes: Sequence[Node]
) -> tuple[list[np.ndarray], RunError | None]:
    """Compute an operation for many members, with a row for each, as `compute_batch` does.

    Returns the results, and the error to raise if a member's result differs without batching.
    Raises the errors of the computation.
    """
    results, mismatch = _compute_and_compare(op, params, operands, nodes, all_ops=False)
    if mismatch and op.semantics.body:  # each operation is compared, to name it
        mismatch = _compute_and_compare(op, params, operands, nodes, all_ops=True)[1] or mismatch
    return results, mismatch


def _compute_and_compare(
    op: Op[...],
    params: Params,
    operands: Sequence[tuple[Any, bool]],
    nodes: Sequence[Node],
    *,
    all_ops: bool,
) -> tuple[list[np.ndarray], RunError | None]:
    """Compute the batch, then each member without batching until one differs."""
    checked = _build_checked_operation(BatchCall.of(op, params, operands), all_ops)
    results = _compute_batch(checked, operands, len(nodes))
    for member, node in enumerate(nodes):
        mismatch = _first_difference(
            checked, _member_operands(operands, node, member), results, member
        )
        if mismatch:
            return results, _error(op, node, member, len(nodes), *mismatch)
    return results[: checked.result_count], None


def _build_checked_operation(call: BatchCall, all_ops: bool) -> CheckedOperation:
    """Build the graph of an operation for one member and for the batch."""
    member = member_subgraph(call)
    results = _inline_calls(member.outputs)
    compared_nodes = [node for node in Graph.of(results).nodes if _is_compared(node, all_ops)]
    compared = Subgraph(call.op.name, [*results, *compared_nodes], member.inputs)
    batched = batch_member(compared, call)
    stacked_flags = batched.result_flags()
    batch = batched.to_subgraph(stacked_flags)
    return CheckedOperation(compared, batch, tuple(stacked_flags), len(results))


def _inline_calls(nodes: Sequence[Node]) -> list[Node]:
    """Replace calls of traced functions with the nodes of their bodies."""
    graph = Graph.of(nodes)
    while any(map(_is_pending_call, graph.nodes)):
        results = interpret(graph, {}, _inline_call)
        graph = Graph.of([_native.node_of(result) for result in results])
    return [graph.nodes[at] for at in graph.outputs]


def _is_pending_call(node: Node) -> bool:
    return node.pending and node.op is not None and is_call(node.op)


def _inline_call(node: Node, operands: list[Any]) -> Any:
    if not _is_pending_call(node):
        return rebuild(node, operands)
    results = node.op.semantics.body.apply(operands)
    return results if len(results) > 1 else results[0]


def _is_compared(node: Node, all_ops: bool) -> bool:
    """Whether the result of an operation is compared separately."""
    op = node.op
    return (
        isinstance(op, Op)
        and len(node.types) == 1
        and (all_ops or op.lowering.multiply_adds is not None)
    )


def _compute_batch(
    checked: CheckedOperation, operands: Sequence[tuple[Any, bool]], members: int
) -> list[np.ndarray]:
    """Compute the batch: an ndarray with a row for each member, for each output."""
    arrays = [_native.value_array(x) for x, _ in operands if isinstance(x, Value)]
    results = _compute_values(list(map(_native.node_of, checked.batch.apply(arrays))))
    return [
        x if stacked else np.broadcast_to(x, (members, *x.shape))
        for x, stacked in zip(results, checked.stacked_flags, strict=True)
    ]


def _compute_values(nodes: Sequence[Node]) -> list[np.ndarray]:
    with override(**UNBATCHED_OPTIONS):
        pending = [node for node in nodes if node.pending]
        raise_if_failed(pipeline.compute(pending) if pending else None)
    return [dense.export(value) for node in nodes if (value := node.value()) is not None]


def _member_operands(operands: Sequence[tuple[Any, bool]], node: Node, member: int) -> list[Any]:
    """Return the operands of one member: Arrays, and Python numbers unconverted."""
    leaves: list[Any] = []
    for (x, stacked), source in zip(operands, node.inputs or [None] * len(operands), strict=True):
        if not isinstance(x, Value):
            continue
        values = dense.export(x)[member] if stacked else dense.export(x)
        leaves.append(
            source.scalar
            if source is not None and source.is_scalar
            else _native.value_array(dense.adopt(np.array(values), x.type.device))
        )
    return leaves


def _first_difference(
    checked: CheckedOperation,
    leaves: Sequence[Any],
    batch_results: Sequence[np.ndarray],
    member: int,
) -> tuple[Node | None, tuple[int, ...], Any, Any] | None:
    """Compute a member without batching and return the first difference, or None.

    A difference is the responsible operation (None if unknown), the index and both values.
    """
    member_graph, count = checked.member, checked.result_count
    device = checked.batch.outputs[0].type.device
    batch_rows = dict(zip(member_graph.outputs[count:], batch_results[count:], strict=True))
    recomputed: dict[Node, tuple[Node, list[Any]]] = {}

    def rule(node: Node, operands: list[Any]) -> Any:
        result = rebuild(node, operands)
        if node not in batch_rows:
            return result
        recomputed[node] = _native.node_of(result), operands
        row = np.array(batch_rows[node][member])  # its readers read the batch's value
        return _native.value_array(dense.adopt(row, device))

    environment = dict(zip(member_graph.inputs, leaves, strict=True))
    results = interpret(member_graph.graph, environment, rule)
    for compared, (node, operands) in recomputed.items():
        mismatch = _first_mismatch(
            batch_rows[compared][member],
            _compute_values([node])[0],
            _error_bound(node, operands),
        )
        if mismatch:
            return compared, *mismatch
    values = _compute_values([_native.node_of(result) for result in results[:count]])
    for row, value in zip(batch_results, values, strict=False):
        mismatch = _first_mismatch(row[member], value, None)
        if mismatch:
            return None, *mismatch
    return None


Bound = Callable[[np.ndarray], Any]


def _first_mismatch(
    batch_result: np.ndarray, member_result: np.ndarray, bound: Bound | None
) -> tuple[tuple[int, ...], Any, Any] | None:
    """Return the first index where two results differ by more than `bound`, and both values."""
    mismatched = different(batch_result, member_result)
    if bound is not None and mismatched.any():
        with np.errstate(all="ignore"):
            wide_dtype = np.complex128 if kind_of(member_result.dtype) == "c" else np.float64
            distance = np.abs(batch_result.astype(wide_dtype) - member_result.astype(wide_dtype))
            mismatched &= ~(distance <= bound(member_result))
    if not mismatched.any():
        return None
    at = tuple([int(i) for i in np.argwhere(mismatched)[0]])
    return at, batch_result[at], member_result[at]


def _error_bound(node: Node, operands: Sequence[Any]) -> Bound | None:
    """Return the allowed error of a call's result; None where the bits must be equal."""
    op: Op[...] = node.op
    dtype = node.type.dtype
    if op.lowering.multiply_adds is None or kind_of(dtype) not in "fc":
        return None
    eps = float(ml_dtypes.finfo(compute_dtype(dtype)).eps)  # type: ignore[no-untyped-call]  # stub
    rounding = float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]  # stub
    nodes = [_native.node_of(x) for x in operands]
    values = [np.abs(x.astype(np.complex128)) for x in _compute_values(nodes)]
    if op.rewriting.contraction is None:
        matrix = next(x for x in _compute_values(nodes) if x.ndim > 1)
        order = max(matrix.shape[-2:])

        def of_solve(result: np.ndarray) -> Any:
            condition = np.max(np.linalg.cond(matrix.astype(np.complex128)), initial=1.0)
            return (
                2
                * COMPLEX_ROUNDINGS
                * order
                * eps
                * condition
                * np.max(np.abs(result), initial=0.0)
            )

        return of_solve
    types = tuple([x.type for x in nodes])
    axes = op.rewriting.contraction(types, *node.params).contracted[0]
    length = int(np.prod([types[0].shape[axis] for axis in axes], dtype=np.int64))
    reference = op.reference
    assert reference is not None, "a product has NumPy's meaning"
    moduli = np.abs(reference(*values, *node.params))

    def of_sum(result: np.ndarray) -> Any:
        return 2 * COMPLEX_ROUNDINGS * (length + 1) * eps * moduli + 2 * rounding * np.abs(result)

    return of_sum


def _error(
    op: Op[...],
    node: Node,
    member: int,
    members: int,
    blamed: Node | None,
    at: tuple[int, ...],
    batch_value: Any,
    member_value: Any,
) -> RunError:
    blamed_text = f" ({blamed.name} in it)" if blamed is not None and op.semantics.body else ""
    origin_text = f" (written at {node.origin[0]}:{node.origin[1]})" if node.origin else ""
    rule = (
        f"member {member} of {members} computed together{blamed_text} has {batch_value} at {at}, "
        f"and {member_value} by itself{origin_text}"
    )
    remedy = "fix batch= of the operation, or compute each by itself: tn.options(batch=False)"
    return RunError(op.name, rule, remedy=remedy)
