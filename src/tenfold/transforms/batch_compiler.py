"""Batch compiler: computes nodes of one batch signature together, as one expression.

Takes an operation, or a call of a traced function, with its members' stacked operands
(`native/exec/dynamic_batching.h`). Returns their stacked results, and the expression that native
code computes further batches by (`native/exec/stacked_batch.h`). Of pushed operations it makes the
expression and the plan alone.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from tenfold import _native, pipeline, settings
from tenfold._native import Array, Executable, Node, Scope, Value
from tenfold.caches import LruCache
from tenfold.core.op import Op, Params
from tenfold.core.subgraph import Subgraph
from tenfold.errors import UnsupportedError
from tenfold.inspect import batch_split_reasons
from tenfold.ops.arithmetic import multiply
from tenfold.ops.batch_rules import ALONE_BITS
from tenfold.ops.gathering import take
from tenfold.ops.movement import expand_dims
from tenfold.ops.segments import ragged_sum
from tenfold.runtime import timeline
from tenfold.schedule.target import DEFAULT
from tenfold.storage import dense
from tenfold.transforms.batch_call import BatchCall, StackedOperands, batch_member, member_subgraph
from tenfold.transforms.batch_interpreter import batch_implicitly

MAX_EXPRESSIONS = 4096
"""Capacity of the expression cache (LRU)."""
MAX_COMPARED_BATCHES = 64
"""Earlier batches of an operation that a new one is compared with, to explain a batch split."""
_batch_counts: LruCache[tuple[Any, ...], Iterator[int]] = LruCache(
    MAX_EXPRESSIONS, "batch counts", "only batches that come again are worth a plan"
)
_expressions: LruCache[tuple[Any, ...], Any] = LruCache(
    MAX_EXPRESSIONS, "batch expressions", "batching a function takes as long as tracing it"
)
# Keys have the ids of operations: a cache entry must not keep the op of a dead call alive.
EarlierBatches = dict[Any, dict[int, batch_split_reasons.BatchFeatures]]
"""Batches of an evaluation, by operation or function and by batch number."""
CompiledBatch = tuple[
    tuple[Node, ...], tuple[Node, ...], tuple[bool, ...], tuple[int, ...], bool, bool
]
"""The outputs of an expression, its placeholders, which outputs are stacked, the plan's key (the
numbers of the options, and whether rewrite rules apply), and whether the expression is uniform.
"""
PushedBatch = tuple[
    tuple[Array, ...], tuple[Node, ...], Callable[[Sequence[Array]], tuple[Array, ...]], bool
]
"""The results on placeholders, those placeholders, a function of other operands, and whether the
expression is uniform.
"""


def compute_batch(
    op: Op[...],
    params: Params,
    operands: StackedOperands,
    members: int,
    rows: int,
    nodes: Sequence[Node],
    batch_number: int,
    is_remainder: bool,
    earlier_batches: EarlierBatches,
    want_compiled: bool,
    recurs: bool,
) -> tuple[list[Value], CompiledBatch | None] | None:
    """Compute one operation for many members; None where the members must not be batched.

    An operand is a scalar, a Value that all members share, or a Value with one row for each member.
    `rows` is at least the number of members; further rows are padding. With `nodes`, those of the
    members, the results are verified, and RunError is raised where one differs. `batch_number`
    identifies the batch in this evaluation, and `earlier_batches` has the previous ones.
    `is_remainder` says that the batch limit split it from the previous batch. With `want_compiled`,
    and if there is a plan, it also returns the expression that native code reuses for such batches.
    `recurs` says that further batches of the signature follow, so that a plan is made at once.
    """
    split_reason = (
        _split_reason(op, params, operands, batch_number, is_remainder, earlier_batches)
        if timeline.is_recording()
        else ""
    )
    with timeline.batch_members(members, split_reason):
        if nodes:
            return _compute_verified(op, params, operands, nodes)
        return _compute_unchecked(op, params, operands, rows, want_compiled, recurs)


def _split_reason(
    op: Op[...],
    params: Params,
    operands: StackedOperands,
    batch_number: int,
    is_remainder: bool,
    earlier_batches: EarlierBatches,
) -> str:
    """Return why members are not in an earlier batch; empty text for the first batch."""
    batches = earlier_batches.setdefault(batch_split_reasons.family(op), {})
    if batch_number in batches:
        return str(
            batch_split_reasons.LIMIT_REACHED if is_remainder else batch_split_reasons.LATER_LEVEL
        )
    types, shared_addresses = [], []
    for x, stacked in operands:
        is_value = isinstance(x, Value)
        types.append(
            batch_split_reasons.operand_signature(x.type, stacked)
            if is_value
            else (np.dtype(type(x)), ())
        )
        is_shared = is_value and not stacked and x.type.size >= DEFAULT.batches.shared_elements
        shared_addresses.append(x.address if is_shared else None)
    batch = batch_split_reasons.BatchFeatures(op, params, tuple(types), tuple(shared_addresses))
    reason = batch_split_reasons.nearest_reason([*batches.values()][-MAX_COMPARED_BATCHES:], batch)
    batches[batch_number] = batch
    return reason


def _compute_unchecked(
    op: Op[...],
    params: Params,
    operands: StackedOperands,
    rows: int,
    want_compiled: bool,
    recurs: bool,
) -> tuple[list[Value], CompiledBatch | None] | None:
    call = BatchCall.of(op, params, operands)
    try:
        compiled = batch_expression(call)
        if compiled is None:
            return None
        subgraph, stacked, skip_rules, uniform = compiled
        arrays = [_native.value_array(x) for x, _ in operands if isinstance(x, Value)]
        outputs = tuple(map(_native.node_of, subgraph.apply(arrays)))
        pending = [node for node in outputs if node.pending]
        batches = _batch_counts.setdefault((op.id, params, call.stacked_flags), count())
        is_frequent = recurs or next(batches) > 0
        with settings.override(optimise=False) if skip_rules else nullcontext():
            failure = pipeline.compute(pending, planned=is_frequent) if pending else None
            options = pipeline.options_key()
    except Exception:  # noqa: BLE001  # the unbatched computation raises a better error
        return None
    if failure is not None:
        return None
    _native.count("batches")
    results = [
        _result_rows(node, stacked_flag, rows)
        for node, stacked_flag in zip(outputs, stacked, strict=True)
    ]
    if not (want_compiled and is_frequent):
        return results, None
    # the same expression, with new nodes
    fresh_outputs = subgraph.apply(list(map(_native.array_of, subgraph.inputs)))
    rules = not skip_rules and bool(settings.get("optimise"))
    fresh_nodes = tuple(map(_native.node_of, fresh_outputs))
    return results, (fresh_nodes, subgraph.inputs, stacked, options, rules, uniform)


def joined_product(*parts: Value) -> Value | None:
    """Return the product of the matrix of parts `data`, `indices` and `offsets`, in compressed
    rows, by the fourth one; None where the members must be computed one by one.
    """
    data, indices, offsets, y = map(_native.value_array, parts)
    factors = data if y.ndim == 1 else expand_dims(data, axis=1)
    node = _native.node_of(ragged_sum(multiply(factors, take(y, indices, axis=0)), offsets))
    if pipeline.compute([node], planned=True) is not None:
        return None
    return _result_rows(node, True, 0)


def _compute_verified(
    op: Op[...], params: Params, operands: StackedOperands, nodes: Sequence[Node]
) -> tuple[list[Value], None] | None:
    from tenfold.transforms.batch_check import verify_batch  # imported only under verify=True

    try:
        results, mismatch = verify_batch(op, params, operands, nodes)
    except Exception:  # noqa: BLE001  # as in group
        return None
    if mismatch is not None:
        raise mismatch
    _native.count("batches")
    device = nodes[0].type.device
    return [dense.adopt(np.ascontiguousarray(rows), device) for rows in results], None


def forget_op(op: int) -> None:
    """Drop all cache entries of an operation, by its id, after its last call."""
    _native.forget_op(op)
    for cache in (_batch_counts, _expressions):
        cache.drop(lambda key: key[0] == op)
    _native.forget_batches(op)


class _OpLifetime:
    """The id of an operation; its cache entries are dropped when this object is freed."""

    def __init__(self, op: int) -> None:
        self.op = op

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():  # module globals may be None at exit
            forget_op(self.op)


_forget_queue: deque[_OpLifetime] = deque(maxlen=128)


def forget_op_later(op: int) -> None:
    """Drop the entries of an operation when 128 other operations have followed."""
    _forget_queue.append(_OpLifetime(op))


class Expression(NamedTuple):
    """The expression of a batch."""

    subgraph: Subgraph
    stacked: tuple[bool, ...]
    """Which outputs are stacked."""
    skip_rules: bool
    """Whether rewrite rules are skipped. Without products they save little, and a rule that reads
    lengths would force a new plan for each batch size."""
    is_uniform: bool
    """Whether no batch rule can have compared the number of rows."""


def batch_expression(call: BatchCall) -> Expression | None:
    """Return the expression of a batch, cached by its Types; None where no rule can batch it."""
    key = (call.op.id, *call[1:])
    cached = _expressions.get(key)
    if cached is None:
        cached = _expressions.setdefault(key, (_build_expression(call),))
    result: Expression | None = cached[0]
    return result


def _build_expression(call: BatchCall) -> Expression | None:
    try:
        member = member_subgraph(call)
        batched = batch_member(member, call)
    except UnsupportedError:
        return None
    stacked = batched.result_flags()
    subgraph = batched.to_subgraph(stacked)
    ops = [node.op for node in subgraph.graph.nodes]
    has_products = any(isinstance(op, Op) and op.lowering.multiply_adds for op in ops)
    return Expression(subgraph, tuple(stacked), not has_products, is_uniform(member))


def is_uniform(member: Subgraph) -> bool:
    """Whether batch rules that Tenfold declares make the batch: they compare no number of rows."""
    ops = [node.op for node in member.graph.nodes if isinstance(node.op, Op)]
    return all(is_uniform(op.semantics.body) if op.semantics.body else op.permanent for op in ops)


def batch_pushed(
    results: Array | tuple[Array, ...],
    inputs: Sequence[Array],
    stacked_flags: Sequence[bool],
    rows: int,
) -> PushedBatch | None:
    """Return the batch of pushed operations, from the results of one on placeholders; each member
    has the bits that it has alone. None where members must be computed one by one.

    A number among the inputs is a node of the batch, too.

    >>> import tenfold as tn
    >>> x = _native.placeholder(_native.Type((2,), tn.float64, "cpu"))
    >>> results, inputs, apply, uniform = batch_pushed(tn.exp(x), [x], [True], 3)
    >>> results[0].shape, inputs[0].type.shape, apply([tn.zeros((3, 2))])[0].tolist(), uniform
    ((3, 2), (3, 2), [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], True)
    """
    arrays = results if isinstance(results, tuple) else (results,)
    member = Subgraph("batch", [*map(_native.node_of, arrays)], [*map(_native.node_of, inputs)])
    try:
        with Scope((ALONE_BITS, True)):
            batched = batch_implicitly(member, stacked_flags, rows)
            subgraph = batched.to_subgraph([True] * len(arrays))
    except UnsupportedError:
        return None
    if any(node.op is None for node in subgraph.outputs):
        return None
    outputs = tuple(map(_native.array_of, subgraph.outputs))
    return outputs, subgraph.inputs, subgraph.apply, is_uniform(member)


def plan_batch(arrays: Sequence[Array]) -> tuple[Executable, tuple[int, ...]] | None:
    """Return the plan of a batch and the numbers of its options; without rewriting, which could
    change the bits of products.
    """
    options = settings.override(optimise=False, tier=pipeline.lasting_tier())
    with timeline.batch_members(arrays[0].shape[0]), options:
        executable = pipeline.plan_of(arrays)
        return None if executable is None else (executable, pipeline.options_key())


def _result_rows(node: Node, stacked: bool, rows: int) -> Value:
    """Return a result in row-major order with `rows` rows."""
    value = node.value()
    assert value is not None, "it has been computed"
    if stacked and not value.strides:
        return value
    array = dense.export(value)
    if not stacked:
        array = np.broadcast_to(array, (rows, *array.shape))
    return dense.adopt(np.ascontiguousarray(array), value.type.device)
