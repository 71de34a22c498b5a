"""Batch compiler: nodes of one batch signature are computed together, as one expression.

Takes an operation, or a call of a traced function, with its members' operands as native code has
stacked them (`native/exec/dynamic_batching.h`), hands on their stacked results. The expression is
made once for equal batches, by the batch rules; then its nodes are made anew for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tenfold import _native, pipeline, settings
from tenfold._native import Node, Type, Value
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.core.op import Op, Params
from tenfold.errors import UnsupportedError
from tenfold.inspect import batch_split_reasons
from tenfold.runtime import timeline
from tenfold.storage import dense
from tenfold.transforms.batch_interpreter import BatchedNode, batched_unasked
from tenfold.transforms.tracer import substituted

MOST = 4096
"""Expressions that are kept; the one not used for longest goes first."""
NEAR = 64
"""Earlier batches of an operation that a later one is compared with, to say why it is apart."""
OFTEN = 3
"""Groups of one form that are computed without a plan."""
_seen: LruCache[tuple[Any, ...], int] = LruCache(MOST, "forms of groups")
_expressions: LruCache[tuple[Any, ...], Any] = LruCache(MOST, "expressions of groups")
# Keys have the numbers of operations: what is kept must not keep the op of a call that is gone.
Columns = Sequence[tuple[Any, bool]]
Earlier = dict[Any, dict[int, batch_split_reasons.BatchFeatures]]
"""Of an evaluation: by operation or function its batches, by the number of the group."""
Kept = tuple[tuple[Node, ...], tuple[Node, ...], tuple[bool, ...], tuple[int, ...], bool]
"""The nodes of an expression's results, its placeholders, which results have a row for each member,
and what it is planned by: numbers of options, and whether there are rules.
"""


class ExactNumber:
    """A number, equal to those of its type and bits alone."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, (type(value), repr(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactNumber) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def group(
    op: Op[...],
    params: Params,
    columns: Columns,
    members: int,
    rows: int,
    nodes: Sequence[Node],
    number: int,
    rest: bool,
    earlier: Earlier,
    wanted: bool,
) -> tuple[list[Value], Kept | None] | None:
    """Compute one operation for many members; None where each is to be computed by itself.

    Each column is a scalar, a Value that all members share, or a Value with one row for each.
    `rows` is the number of members, or a little more: the rows above it are padding. `nodes` are
    those of the members where results are to be compared; RunError is raised where one differs.
    `number` is that of the batch in this evaluation, and `earlier` has those before it; `rest` says
    that a limit cut these members off from the batch before. If `wanted`, and with a plan, it also
    returns the expression by which native code computes such batches from now on.
    """
    why = _apart(op, params, columns, number, rest, earlier) if timeline.watched() else ""
    with timeline.together(members, why):
        if nodes:
            return _compared(op, params, columns, nodes)
        return _computed(op, params, columns, rows, wanted)


def _apart(
    op: Op[...], params: Params, columns: Columns, number: int, rest: bool, earlier: Earlier
) -> str:
    """Say why members are not computed with those of an earlier batch; nothing of the first."""
    batches = earlier.setdefault(batch_split_reasons.family(op), {})
    if number in batches:
        return str(batch_split_reasons.CUT if rest else batch_split_reasons.LATER)
    types, shared = [], []
    for x, stacked in columns:
        known = isinstance(x, Value)
        types.append(
            batch_split_reasons.form(x.type, stacked) if known else (np.dtype(type(x)), ())
        )
        common = known and not stacked and x.type.size >= batch_split_reasons.SHARED
        shared.append(x.address if common else None)
    batch = batch_split_reasons.BatchFeatures(op, params, tuple(types), tuple(shared))
    why = batch_split_reasons.nearest([*batches.values()][-NEAR:], batch)
    batches[number] = batch
    return why


def _computed(
    op: Op[...], params: Params, columns: Columns, rows: int, wanted: bool
) -> tuple[list[Value], Kept | None] | None:
    flags = tuple([stacked for _, stacked in columns])
    scalars = tuple([None if isinstance(x, Value) else ExactNumber(x) for x, _ in columns])
    given = tuple([x.type if isinstance(x, Value) else None for x, _ in columns])
    try:
        made = expression(op, params, given, flags, scalars)
        if made is None:
            return None
        graph, inputs, stacked, plain = made
        values = [x for x, _ in columns if isinstance(x, Value)]
        nodes = [_native.node_of(_native.value_array(value)) for value in values]
        outputs = substituted(graph, dict(zip(inputs, nodes, strict=True)))
        pending = [node for node in outputs if node.pending]
        often = _comes_often(op, params, flags)
        with settings.within(optimise=False) if plain else nullcontext():
            failure = pipeline.compute(pending, planned=often) if pending else None
            options = pipeline.options_key()
    except Exception:  # noqa: BLE001  # the unbatched computation raises a better error
        return None
    if failure is not None:
        return None
    _native.count("batches")
    results = [_rows(node, each, rows) for node, each in zip(outputs, stacked, strict=True)]
    if not (wanted and often):
        return results, None
    again = substituted(graph, {each: each for each in inputs})  # as Graph's, but made today
    rules = not plain and bool(settings.get("optimise"))
    return results, (again, inputs, stacked, options, rules)


def _compared(
    op: Op[...], params: Params, columns: Columns, nodes: Sequence[Node]
) -> tuple[list[Value], None] | None:
    from tenfold.transforms.batch_check import verified  # who does not verify needs none

    try:
        found, unlike = verified(op, params, columns, nodes)
    except Exception:  # noqa: BLE001  # as in group
        return None
    if unlike is not None:
        raise unlike
    _native.count("batches")
    device = nodes[0].type.device
    return [dense.adopt(np.ascontiguousarray(rows), device) for rows in found], None


def forget(op: int) -> None:
    """Forget what is kept of the operation of this number, of which no new calls come."""
    _native.forget_op(op)
    for cache in (_seen, _expressions):
        cache.drop(lambda key: key[0] == op)
    _native.forget_groups(op)


class _Number:
    """The number of an operation: what is kept of that is forgotten with it."""

    def __init__(self, op: int) -> None:
        self.op = op

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():  # of modules nothing may be left by then
            forget(self.op)


_later: LruCache[int, _Number] = LruCache(256, "operations to be forgotten")


def forget_later(op: int) -> None:
    """As forget, when so many others have followed; what it is called for meanwhile is kept."""
    _later[op] = _Number(op)


Expression = tuple[Graph, tuple[Node, ...], tuple[bool, ...], bool]
"""The expression of a group, its placeholders, which results have a row for each member, and
whether rules are left out: without products they spare little, and what they see of lengths would
make another plan for each number of members."""


def expression(
    op: Op[...],
    params: Params,
    given: tuple[Type | None, ...],
    flags: tuple[bool, ...],
    scalars: tuple[Any, ...],
) -> Expression | None:
    """Return the expression of a group, None where there is none; equal groups have one."""
    key = (op.id, params, given, flags, scalars)
    found = _expressions.get(key)
    if found is None:
        found = _expressions.setdefault(key, (_written(op, params, given, flags, scalars),))
    made: Expression | None = found[0]
    return made


def _written(
    op: Op[...],
    params: Params,
    given: tuple[Type | None, ...],
    flags: tuple[bool, ...],
    scalars: tuple[Any, ...],
) -> Expression | None:
    ones: list[Any] = []
    stand_ins: dict[Node, BatchedNode] = {}
    inputs: list[Node] = []
    for type_, stacked, scalar in zip(given, flags, scalars, strict=True):
        if type_ is None:
            ones.append(scalar.value)
            continue
        shape = type_.shape[1:] if stacked else type_.shape
        one = _native.placeholder(Type(shape, type_.dtype, type_.device))
        all_ = _native.placeholder(type_)
        ones.append(one)
        inputs.append(_native.node_of(all_))
        stand_ins[_native.node_of(one)] = BatchedNode(all_, stacked)
    try:
        made = op.body(ones) if op.body else _native.apply(op.id, tuple(ones), params)
        results = made if isinstance(made, tuple) else (made,)
        entries = batched_unasked([_native.node_of(result) for result in results], stand_ins)
    except UnsupportedError:
        return None
    graph = Graph.of([_native.node_of(entry.value) for entry in entries])
    products = any(isinstance(node.op, Op) and node.op.multiply_adds for node in graph.nodes)
    return graph, tuple(inputs), tuple([entry.batched for entry in entries]), not products


def _comes_often(op: Op[...], params: Params, flags: tuple[bool, ...]) -> bool:
    """Whether there were such groups before, so that a plan is worth its making."""
    key = (op.id, params, flags)
    times = _seen.get(key) or 1
    _seen[key] = times + 1
    return times > OFTEN


def _rows(node: Node, stacked: bool, rows: int) -> Value:
    """Return a result in row-major order with so many rows."""
    value = node.value()
    assert value is not None, "it has been computed"
    if stacked and not value.strides:
        return value
    found = dense.export(value)
    if not stacked:
        found = np.broadcast_to(found, (rows, *found.shape))
    return dense.adopt(np.ascontiguousarray(found), value.type.device)


_native.set_groups(group)
