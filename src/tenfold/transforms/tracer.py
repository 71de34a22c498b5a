"""Tracer: runs a Python function on placeholders and records its operations as nodes.

Takes a function and arguments, hands on a TracedFunction: the nodes of its results, written on
placeholders for the arrays among its arguments, and the captured arrays. A part that depends on no
argument is captured as a whole, so it is computed once and shared by all calls.

>>> import tenfold as tn
>>> w = tn.asarray([1.0, 2.0])
>>> found = traced(lambda x: tn.sum(w * x) + 1, [tn.asarray([3.0, 4.0])], flatten(((0,), {}))[1])
>>> [node.name for node in found.outputs], len(found.captured)
(['add'], 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.pytree import TreeDef, flatten
from tenfold.errors import message
from tenfold.interop.asarray import asarray
from tenfold.rewrite.rewrite_graph import ORIGIN
from tenfold.transforms.tracing_scope import CHANGES, opened, refused


@dataclass(frozen=True, slots=True)
class CapturedArray:
    """An array that a function reads and is not given."""

    node: Node
    """What it was when the function was traced."""
    source: Array | None
    """The Array that named it, whose later values are read; None for what is made of others."""


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """What a function is made of."""

    outputs: tuple[Node, ...]
    structure: TreeDef
    """The form of what it returns."""
    inputs: tuple[Node, ...]
    """The placeholders of its arguments, then of what it captured."""
    captured: tuple[CapturedArray, ...]
    read: tuple[tuple[Array, Node], ...]
    """Arrays of others that were looked at besides: traced anew where one has changed."""

    def present(self) -> list[Node] | None:
        """Return what was captured as it is now; None where the function is to be traced anew."""
        for array, node in self.read:
            now = _native.kept_node(array)
            if now is None or now != node:
                return None
            _native.node_of(array)  # a trace around this one is told of it
        nodes: list[Node] = []
        for each in self.captured:
            node = each.node if each.source is None else _native.node_of(each.source)
            if node.type != each.node.type:
                return None
            nodes.append(node)
        return nodes


class NeedsValues(Exception):
    """The function asks for values, or assigns to a window: it cannot be traced."""

    def __init__(self, *, assigned: bool) -> None:
        super().__init__()
        self.assigned = assigned


def traced(
    function: Callable[..., Any],
    leaves: Sequence[Any],
    structure: TreeDef,
    *,
    hoists: bool = True,
) -> TracedFunction:
    """Run a function on placeholders for the Arrays among the leaves of its arguments.

    `structure` is that of (args, kwargs). Without hoisting, nodes that depend on no argument are a
    part of the function too. Raises NeedsValues where it asks for a value or assigns to a window.
    Raises TypeError for a result that is not an array, RunError where it changes an array that is
    not an argument. Afterwards every Array and every window has its former value, also after an
    error.
    """
    types = [_native.node_of(leaf).type if isinstance(leaf, Array) else None for leaf in leaves]
    name = getattr(function, "__name__", "function")
    with opened() as trace:
        try:
            arguments = [
                leaf if type_ is None else _native.placeholder(type_)
                for leaf, type_ in zip(leaves, types, strict=True)
            ]
            inputs = [_native.node_of(leaf) for leaf in arguments if isinstance(leaf, Array)]
            args, kwargs = structure.unflatten(arguments)
            result = function(*args, **kwargs)
            if result is None:
                raise _no_array(name, None)
            outputs, form = flatten(result)
            nodes = tuple([_node_of_result(name, output) for output in outputs])
        except Exception as error:
            if trace.waited:
                raise NeedsValues(assigned=trace.assigned) from error
            raise
    if trace.waited:  # and the function went on
        raise NeedsValues(assigned=trace.assigned)
    if trace.changed:
        raise refused(name, f"it {CHANGES}", trace.changed)
    return _closed(nodes, form, inputs, trace.seen, hoists=hoists)


def _node_of_result(name: str, output: Any) -> Node:
    if isinstance(output, (bool, int, float, complex, np.ndarray, np.generic)):
        output = asarray(output)
    if not isinstance(output, Array):
        raise _no_array(name, output)
    return _native.node_of(output)


def _no_array(name: str, output: Any) -> TypeError:
    shown = "nothing" if output is None else type(output).__name__
    remedy = "return arrays, or tuples, lists, dicts or dataclasses of them"
    return TypeError(message(name, f"it returned {shown}, not an array", remedy=remedy))


def _closed(
    outputs: tuple[Node, ...],
    form: TreeDef,
    inputs: list[Node],
    seen: list[tuple[Array, Node]],
    *,
    hoists: bool,
) -> TracedFunction:
    """Find what was captured, and put placeholders in its place."""
    graph = Graph.of(outputs)
    windows = {node for array, node in seen if _native.window_of(array) is not None}
    own = windows.union(inputs)  # a window is written to unseen: nothing made of it is kept
    there = {node for _, node in seen}
    inside: list[bool] = []
    for node, below in zip(graph.nodes, graph.inputs, strict=True):
        made_here = node.pending and node not in there and not hoists
        inside.append(node in own or made_here or (hoists and any(inside[at] for at in below)))
    reached = [False] * len(graph)
    for at in graph.outputs:
        reached[at] = True
    for at in reversed(range(len(graph))):
        if reached[at] and inside[at]:
            for i in graph.inputs[at]:
                reached[i] = True
    captured = [
        node
        for node, is_read, own_part in zip(graph.nodes, reached, inside, strict=True)
        if is_read and (not own_part or node in windows) and not node.is_scalar
    ]
    names = {node: array for array, node in seen}
    sources = tuple([CapturedArray(node, names.get(node)) for node in captured])
    placeholders = [_native.node_of(_native.placeholder(node.type)) for node in captured]
    given = dict(zip([*inputs, *captured], [*inputs, *placeholders], strict=True))
    results = substituted(graph, given, lines=True)
    hoisted = {
        graph.nodes[i]
        for below, own_part in zip(graph.inputs, inside, strict=True)
        if not own_part
        for i in below
    }
    direct = {each.node for each in sources} - hoisted
    read = [pair for pair in seen if pair[1] not in direct]
    return TracedFunction(results, form, (*inputs, *placeholders), sources, tuple(read))


def substituted(graph: Graph, given: dict[Node, Node], *, lines: bool = False) -> tuple[Node, ...]:
    """Return the outputs of a graph with other nodes in the place of some; `lines`: written where
    those of the graph were.
    """
    made: list[Any] = []
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        if node in given:
            made.append(_native.array_of(given[node]))
        elif not inputs and not node.pending:
            made.append(node.scalar if node.is_scalar else _native.array_of(node))
        elif node.op is None:  # a part of several results
            made.append(made[inputs[0]][node.params[0]])
        else:
            token = ORIGIN.set(node.origin) if lines and node.origin else None
            try:
                applied = _native.apply(node.op.id, tuple([made[i] for i in inputs]), node.params)
            finally:
                if token is not None:
                    ORIGIN.reset(token)
            made.append(applied)
    return tuple([_native.node_of(made[at]) for at in graph.outputs])
