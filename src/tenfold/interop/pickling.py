"""Pickling: stores an Array as a table of nodes, and restores or copies it.

Takes an Array, hands on columns: ops by name, their parameters, where each node's inputs stand, and
the values of leaves. Everything is flat, so an expression of a million nodes takes linear time and
no recursion. Computed nodes are written as their values; pending nodes stay pending, and shared
ones stay shared. Two Arrays in one pickle are written each with all that is below it.

>>> import pickle
>>> from tenfold.interop.asarray import asarray
>>> pickle.loads(pickle.dumps(asarray([1, 2]) + 1)).tolist()
[2, 3]
"""

from __future__ import annotations

import sys
from array import array as numbers
from typing import Any

import numpy as np

from tenfold import _native, settings
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.op import OPS, Op
from tenfold.errors import DeviceError, UnsupportedError
from tenfold.runtime.reference import TRACED
from tenfold.storage import dense

FORMAT = 1
"""Of the table; one that is written otherwise gets another number."""
LEAF, SCALAR, PART = -1, -2, -3
"""In the column of ops: a value, a Python number, one of the results of its input."""


class _NodeTable:
    """The columns of one expression while they are filled."""

    def __init__(self) -> None:
        self.kinds = numbers("i")
        self.inputs = numbers("i")
        self.counts = numbers("i")
        self.payloads = numbers("i")
        self.ops: dict[Any, int] = {}
        self.names: list[str] = []
        self.kept: dict[int, int] = {}
        self.values: list[Any] = []

    def write(self, node: Node, inputs: tuple[int, ...]) -> None:
        """Append one node."""
        payload: Any
        if node.is_scalar:
            kind, payload = SCALAR, node.scalar
        elif not node.pending:
            kind, payload = LEAF, _leaf_values(node)
        else:
            kind = PART if node.op is None else self._op(node)
            payload = node.params
        self.kinds.append(kind)
        self.inputs.extend(inputs)
        self.counts.append(len(inputs))
        self.payloads.append(self._keep(payload))

    def _op(self, node: Node) -> int:
        op: Any = node.op
        if op in self.ops:
            return self.ops[op]
        public = OPS.get(op.full_name) is op
        name = op.full_name if public else _inner_name(op)
        if not public and _inner(name) is not op:
            raise UnsupportedError(
                "pickle",
                f"the operation {op.full_name!r} is not in the table, which the reader finds it by",
                remedy="compute the array first, with x.wait(); or declare it as public, "
                "with @tn.op(public=True), in a module that the reader imports too",
            )
        self.names.append(name)
        return self.ops.setdefault(op, len(self.ops))

    def _keep(self, payload: Any) -> int:
        place = self.kept.setdefault(id(payload), len(self.values))
        if place == len(self.values):
            self.values.append(payload)  # which also keeps its id from being taken over
        return place


def _leaf_values(node: Node) -> tuple[str, list[np.ndarray[Any, Any]]]:
    results: list[np.ndarray[Any, Any]] = []
    while (value := node.value(len(results))) is not None:
        results.append(dense.export_or_copy(value))
    if not results:
        raise UnsupportedError(
            "pickle",
            TRACED,
            remedy="pickle what the traced function returns",
        )
    return node.type.device, results


def reduce(self: Array) -> tuple[Any, ...]:
    """Return what pickle writes of an Array."""
    graph = Graph.of([_native.node_of(self)])
    writer = _NodeTable()
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        writer.write(node, inputs)
    columns = (writer.kinds, writer.counts, writer.inputs, writer.payloads)
    return restore, (FORMAT, tuple(writer.names), *(c.tobytes() for c in columns), writer.values)


def restore(
    form: int,
    names: tuple[str, ...],
    kinds: bytes,
    counts: bytes,
    inputs: bytes,
    payloads: bytes,
    values: list[Any],
) -> Array:
    """Make the Array that `reduce` wrote.

    Raises UnsupportedError for an operation that is not declared here, or another format.
    """
    if form != FORMAT:
        raise UnsupportedError(
            "unpickle",
            f"format {form} is not {FORMAT}",
            remedy="read it with the tenfold that wrote it",
        )
    ops = [_declared_op(name) for name in names]
    columns = [numbers("i") for _ in range(4)]
    for column, data in zip(columns, (kinds, counts, inputs, payloads), strict=True):
        column.frombytes(data)
    leaves: dict[int, Any] = {}
    made: list[Any] = []
    sources = iter(columns[2])
    # What was allowed where the expression was written is not asked again.
    with settings.override(strict_dtypes=False, pending_depth=0):
        for kind, count, place in zip(columns[0], columns[1], columns[3], strict=True):
            operands = tuple(made[next(sources)] for _ in range(count))
            if kind == LEAF and place not in leaves:
                leaves[place] = _restore_leaf(*values[place])
            if kind == LEAF:
                made.append(leaves[place])
            elif kind == SCALAR:
                made.append(values[place])
            elif kind == PART:
                made.append(operands[0][values[place][0]])
            else:
                made.append(_native.apply(ops[kind].id, operands, values[place]))
    return rename(made[-1])


def _inner_name(op: Any) -> str:
    """Return the name of an operation that has no public one: its page and its function's."""
    return f"{op.page}:{op.function.__name__}"


def _inner(name: str) -> Any:
    """Return the operation without a public name that a page of this library declares; or None."""
    page, _, function = name.partition(":")
    found = getattr(sys.modules.get(f"tenfold.ops.{page}"), function, None)
    return found if isinstance(found, Op) else None


def _declared_op(name: str) -> Any:
    if ":" in name and (found := _inner(name)) is not None:
        return found
    if name not in OPS:
        raise UnsupportedError(
            "unpickle",
            f"the operation {name!r} is not declared here",
            remedy="import the module that declares it before unpickling",
        )
    return OPS[name]


def _restore_leaf(device: str, results: list[np.ndarray[Any, Any]]) -> Any:
    if device not in settings.DEVICE_IDS:
        raise DeviceError(
            "unpickle",
            f"device {device!r} does not exist here",
            remedy="move the array to a device of both machines before pickling: x.to_device(...)",
        )
    arrays = [_native.value_array(dense.import_values(values, device)) for values in results]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def rename(self: Array) -> Array:
    """Return another name for the same value: a copy, since values never change."""
    return _native.array_of(_native.node_of(self))


def deep_rename(self: Array, _memo: dict[int, Any]) -> Array:
    """As rename, for copy.deepcopy."""
    return rename(self)
