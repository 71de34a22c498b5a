"""Pickling: stores an Array as a table of nodes, and restores or copies it.

Takes an Array, returns columns: op names, parameters, input positions of each node, and the values
of leaves. The columns are flat, so an expression of a million nodes takes linear time and no
recursion. Computed nodes are stored as values; pending nodes stay pending, and shared nodes stay
shared. An Array of fewer bytes than its leaves is computed first. Two Arrays in one pickle are
stored separately, each with its whole expression.

>>> import pickle
>>> from tenfold.interop.asarray import asarray
>>> pickle.loads(pickle.dumps(asarray([1, 2]) + 1)).tolist()
[2, 3]
"""

from __future__ import annotations

import sys
from array import array as numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import _native, pipeline, settings
from tenfold._native import Array, Node, Type
from tenfold.core.graph import Graph
from tenfold.core.interpreter import ORIGIN, interpret
from tenfold.core.op import OPS, Op
from tenfold.errors import DeviceError, UnsupportedError, raise_if_failed
from tenfold.runtime.reference import TRACED
from tenfold.storage import dense

PICKLE_FORMAT = 1
"""The version of the table format."""
VALUE_CODE, NUMBER_CODE, RESULT_CODE, PLACEHOLDER_CODE = -1, -2, -3, -4
"""Kinds in the column of ops: a value, a Python number, one result of the input, an input of a
traced function."""


class _NodeTable:
    """Writes the columns of one expression, or of a traced function's, with its placeholders."""

    def __init__(self, *, traced: bool = False) -> None:
        self.traced = traced
        self.kinds = numbers("i")
        self.inputs = numbers("i")
        self.counts = numbers("i")
        self.payloads = numbers("i")
        self.ops: dict[Any, int] = {}
        self.names: list[str] = []
        self.payload_index: dict[int, int] = {}
        self.values: list[Any] = []

    def write(self, node: Node, inputs: list[int]) -> int:
        """Append one node; return its position."""
        payload: Any
        if node.is_scalar:
            kind, payload = NUMBER_CODE, node.scalar
        elif self.traced and not node.pending and node.value() is None:
            type_ = node.type
            kind, payload = PLACEHOLDER_CODE, (type_.shape, type_.dtype, type_.device)
        elif not node.pending:
            kind, payload = VALUE_CODE, _leaf_values(node)
        else:
            kind = RESULT_CODE if node.op is None else self._op(node)
            payload = node.params
        self.kinds.append(kind)
        self.inputs.extend(inputs)
        self.counts.append(len(inputs))
        self.payloads.append(self._store_payload(payload))
        return len(self.kinds) - 1

    def _op(self, node: Node) -> int:
        op: Any = node.op
        if op in self.ops:
            return self.ops[op]
        is_public = OPS.get(op.full_name) is op
        name = op.full_name if is_public else inner_op_name(op)
        if not is_public and inner_op(name) is not op:
            raise UnsupportedError(
                "pickle",
                f"the operation {op.full_name!r} is not in the table, which the reader finds it by",
                remedy="compute the array first, with x.wait(); or declare it as public, "
                "with @tn.op(public=True), in a module that the reader imports too",
            )
        self.names.append(name)
        return self.ops.setdefault(op, len(self.ops))

    def _store_payload(self, payload: Any) -> int:
        index = self.payload_index.setdefault(id(payload), len(self.values))
        if index == len(self.values):
            self.values.append(payload)  # also keeps its id from being reused
        return index


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
    """Return the pickled form of an Array."""
    graph = Graph.of([node := _native.node_of(self)])
    if _is_smaller_than_leaves(node, graph):
        raise_if_failed(pipeline.compute([node]))
        graph = Graph.of([node])
    return restore, (PICKLE_FORMAT, *write_nodes(graph))


def write_nodes(graph: Graph, *, traced: bool = False) -> tuple[Any, ...]:
    """Return the columns of a graph; with `traced` it may have placeholders."""
    writer = _NodeTable(traced=traced)
    interpret(graph, {}, writer.write)
    columns = (writer.kinds, writer.counts, writer.inputs, writer.payloads)
    return tuple(writer.names), *(c.tobytes() for c in columns), writer.values


def _is_smaller_than_leaves(node: Node, graph: Graph) -> bool:
    """Whether the value of a pending node has fewer bytes than the values that it is made of."""
    if not node.pending or node.type.storage != dense.DENSE or settings.get("strict_sync"):
        return False
    leaves = [leaf for leaf in graph.nodes if not leaf.pending and not leaf.is_scalar]
    if any(leaf.value() is None for leaf in leaves):
        return False  # traced
    return _bytes_of(node) < sum(map(_bytes_of, leaves))


def _bytes_of(node: Node) -> int:
    return node.type.size * node.type.dtype.itemsize


def restore(format_number: int, *columns: Any) -> Array:
    """Make the Array that `reduce` wrote.

    Raises UnsupportedError for an operation that is not declared here, or another format.
    """
    if format_number != PICKLE_FORMAT:
        raise UnsupportedError(
            "unpickle",
            f"format {format_number} is not {PICKLE_FORMAT}",
            remedy="read it with the tenfold that wrote it",
        )
    return rename(restore_nodes(columns)[-1])


def restore_nodes(
    columns: tuple[Any, ...], origins: Sequence[tuple[str, int] | None] = ()
) -> list[Any]:
    """Make the Arrays and numbers of the nodes that `write_nodes` wrote, in their order.

    `origins` are the user's lines of the nodes, if they are known.
    """
    names, *data, values = columns
    ops = [_declared_op(name) for name in names]
    kinds, counts, inputs, payloads = [numbers("i") for _ in range(4)]
    for column, of_column in zip((kinds, counts, inputs, payloads), data, strict=True):
        column.frombytes(of_column)
    leaves: dict[int, Any] = {}
    restored: list[Any] = []
    sources = iter(inputs)
    # The options of the reader do not apply to an existing expression.
    with settings.override(strict_dtypes=False, pending_depth=0):
        for at, (kind, count) in enumerate(zip(kinds, counts, strict=True)):
            payload_index = payloads[at]
            payload = values[payload_index]
            operands = tuple(restored[next(sources)] for _ in range(count))
            if kind == VALUE_CODE and payload_index not in leaves:
                leaves[payload_index] = _restore_leaf(*payload)
            if kind == VALUE_CODE:
                restored.append(leaves[payload_index])
            elif kind == NUMBER_CODE:
                restored.append(payload)
            elif kind == RESULT_CODE:
                restored.append(operands[0][payload[0]])
            elif kind == PLACEHOLDER_CODE:
                restored.append(_native.placeholder(Type(*payload)))
            else:
                with _native.Scope((ORIGIN, origins[at] if origins else None)):
                    restored.append(_native.apply(ops[kind].id, operands, payload))
    return restored


def inner_op_name(op: Any) -> str:
    """Return the internal name of an operation: its page and its function's name."""
    return f"{op.page}:{op.function.__name__}"


def inner_op(name: str) -> Any:
    """Return the internal operation of that name, or None."""
    page, _, function = name.partition(":")
    modules = [sys.modules.get(f"tenfold.{room}.{page}") for room in ("ops", "kinds")]
    declared = next((getattr(module, function, None) for module in modules if module), None)
    return declared if isinstance(declared, Op) else None


def _declared_op(name: str) -> Any:
    if ":" in name and (op := inner_op(name)) is not None:
        return op
    if name not in OPS:
        raise UnsupportedError(
            "unpickle",
            f"the operation {name!r} is not declared here",
            remedy="import the module that declares it before unpickling",
        )
    return OPS[name]


def _restore_leaf(device: str, results: list[np.ndarray[Any, Any]]) -> Any:
    try:
        settings.checked_device(device)
    except DeviceError as error:
        remedy = "move the array to a device of both machines before pickling: x.to_device(...)"
        rule = f"device {device!r} does not exist here"
        raise DeviceError("unpickle", rule, remedy=remedy) from error
    arrays = [_native.value_array(dense.import_values(values, device)) for values in results]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def rename(self: Array) -> Array:
    """Return another name for the same value: a copy, since values never change."""
    return _native.array_of(_native.node_of(self))


def deep_rename(self: Array, _memo: dict[int, Any]) -> Array:
    """As rename, for copy.deepcopy."""
    return rename(self)
