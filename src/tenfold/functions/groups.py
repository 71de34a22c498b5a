"""Groups: nodes of a large graph that do the same are computed together, as one expression.

Takes an operation, or a call of a traced function, with what its members read side by side, as
native code has put it there (`native/groups.h`), hands on their results side by side. The
expression is made once for equal groups, by the batch rules; then its nodes are made anew for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Node, Type, Value
from tenfold.caches import Recent, remembered
from tenfold.devices import timeline
from tenfold.errors import UnsupportedError
from tenfold.functions.batching import Entry, batched
from tenfold.functions.traced import substituted
from tenfold.ir.graph import Graph
from tenfold.ir.op import Op, Params
from tenfold.storage import dense

MOST = 4096
"""Expressions that are kept; the one not used for longest goes first."""
OFTEN = 3
"""Groups of one form that are computed without a plan."""
_seen: Recent[tuple[Any, ...], int] = Recent(MOST, "forms of groups")
Columns = Sequence[tuple[Any, bool]]


class Exact:
    """A number, equal to those of its type and bits alone."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, (type(value), repr(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def group(
    op: Op[...], params: Params, columns: Columns, members: int, nodes: Sequence[Node]
) -> list[Value] | None:
    """Compute one operation for many members; None where each is to be computed by itself.

    Each column is a scalar, a Value that all share, or one of a row for each. `nodes` are those of
    the members where they are to be compared: then RunError is raised where one differs.
    """
    if nodes:
        return _compared(op, params, columns, nodes)
    flags = tuple([stacked for _, stacked in columns])
    scalars = tuple([None if isinstance(x, Value) else Exact(x) for x, _ in columns])
    given = tuple([x.type if isinstance(x, Value) else None for x, _ in columns])
    try:
        made = expression(op, params, given, flags, scalars)
        if made is None:
            return None
        graph, inputs, rows = made
        values = [x for x, _ in columns if isinstance(x, Value)]
        nodes = [_native.node_of(_native.value_array(value)) for value in values]
        outputs = substituted(graph, dict(zip(inputs, nodes, strict=True)))
        pending = [node for node in outputs if node.pending]
        with timeline.together(members):
            often = _comes_often(op, params, flags)
            failure = pipeline.compute(pending, planned=often) if pending else None
    except Exception:  # noqa: BLE001  # whatever it is, whoever computes it alone says it better
        return None
    if failure is not None:
        return None
    _native.count("batches")
    return [_rows(node, row, members) for node, row in zip(outputs, rows, strict=True)]


def _compared(
    op: Op[...], params: Params, columns: Columns, nodes: Sequence[Node]
) -> list[Value] | None:
    from tenfold.functions.verifying import verified  # who does not verify needs none

    try:
        with timeline.together(len(nodes)):
            found, unlike = verified(op, params, columns, nodes)
    except Exception:  # noqa: BLE001  # as in group
        return None
    if unlike is not None:
        raise unlike
    _native.count("batches")
    device = nodes[0].type.device
    return [dense.adopt(np.ascontiguousarray(rows), device) for rows in found]


@remembered("expressions of groups", MOST)
def expression(
    op: Op[...],
    params: Params,
    given: tuple[Type | None, ...],
    flags: tuple[bool, ...],
    scalars: tuple[Any, ...],
) -> tuple[Graph, tuple[Node, ...], tuple[bool, ...]] | None:
    """Return the expression of a group, its placeholders, and which results have a row for each."""
    ones: list[Any] = []
    stand_ins: dict[Node, Entry] = {}
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
        stand_ins[_native.node_of(one)] = Entry(all_, stacked)
    try:
        made = op.body(ones) if op.body else _native.apply(op.id, tuple(ones), params)
        results = made if isinstance(made, tuple) else (made,)
        entries = batched([_native.node_of(result) for result in results], stand_ins)
    except UnsupportedError:
        return None
    outputs = [_native.node_of(entry.value) for entry in entries]
    return Graph.of(outputs), tuple(inputs), tuple([entry.batched for entry in entries])


def _comes_often(op: Op[...], params: Params, flags: tuple[bool, ...]) -> bool:
    """Whether there were such groups before, so that a plan is worth its making."""
    key = (op, params, flags)
    times = _seen.get(key) or 1
    _seen[key] = times + 1
    return times > OFTEN


def _rows(node: Node, stacked: bool, members: int) -> Value:
    """Return a result in row-major order with a row for each member."""
    value = node.value()
    assert value is not None, "it has been computed"
    if stacked and not value.strides:
        return value
    found = dense.export(value)
    if not stacked:
        found = np.broadcast_to(found, (members, *found.shape))
    return dense.adopt(np.ascontiguousarray(found), value.type.device)


_native.set_groups(group)
