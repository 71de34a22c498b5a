"""Tracer: runs a Python function on placeholders and records its operations as nodes.

Takes a function and arguments, returns a TracedFunction: result nodes on placeholders for the
argument arrays, and the captured arrays. A subexpression without arguments is hoisted: it is
captured, computed once and shared by all calls.

>>> import tenfold as tn
>>> w = tn.asarray([1.0, 2.0])
>>> structure = flatten(((0,), {}))[1]
>>> trace = trace_function(lambda x: tn.sum(w * x) + 1, [tn.asarray([3.0, 4.0])], structure)
>>> [node.name for node in trace.outputs], len(trace.captured)
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
from tenfold.transforms.tracing_scope import CHANGES_ARRAY, mutation_error, open_trace


@dataclass(frozen=True, slots=True)
class CapturedArray:
    """An array that a function reads and that is not an argument."""

    node: Node
    """Its node at the time of the trace."""
    source: Array | None
    """The Array whose later values are read; None for a hoisted subexpression."""


@dataclass(frozen=True, slots=True)
class TracedFunction:
    """The graph of a function on placeholders, with its captures and guards."""

    outputs: tuple[Node, ...]
    structure: TreeDef
    """The structure of the result tree."""
    inputs: tuple[Node, ...]
    """The placeholders of its arguments, then of its captured arrays."""
    captured: tuple[CapturedArray, ...]
    guards: tuple[tuple[Array, Node], ...]
    """Other Arrays that were read, with their nodes; a change of one invalidates the trace."""

    def current_captures(self) -> list[Node] | None:
        """Return the current nodes of the captured arrays; None if the trace is invalid."""
        for array, node in self.guards:
            current = _native.kept_node(array)
            if current is None or current != node:
                return None
            _native.node_of(array)  # records the access in an enclosing trace
        nodes: list[Node] = []
        for capture in self.captured:
            node = capture.node if capture.source is None else _native.node_of(capture.source)
            if node.type != capture.node.type:
                return None
            nodes.append(node)
        return nodes


class NeedsValues(Exception):
    """The function asks for values, or assigns to a window: it cannot be traced."""

    def __init__(self, *, assigned: bool) -> None:
        super().__init__()
        self.assigned = assigned


def trace_function(
    function: Callable[..., Any],
    leaves: Sequence[Any],
    structure: TreeDef,
    *,
    hoist: bool = True,
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
    with open_trace() as trace:
        try:
            arguments = [
                leaf if type_ is None else _native.placeholder(type_)
                for leaf, type_ in zip(leaves, types, strict=True)
            ]
            inputs = [_native.node_of(leaf) for leaf in arguments if isinstance(leaf, Array)]
            args, kwargs = structure.unflatten(arguments)
            result = function(*args, **kwargs)
            if result is None:
                raise _not_array_error(name, None)
            outputs, form = flatten(result)
            nodes = tuple([_node_of_result(name, output) for output in outputs])
        except Exception as error:
            if trace.waited:
                raise NeedsValues(assigned=trace.assigned) from error
            raise
    if trace.waited:  # and the function went on
        raise NeedsValues(assigned=trace.assigned)
    if trace.mutated:
        raise mutation_error(name, f"it {CHANGES_ARRAY}", trace.mutated)
    return _close_over_captures(nodes, form, inputs, trace.accessed, hoist=hoist)


def _node_of_result(name: str, output: Any) -> Node:
    if isinstance(output, (bool, int, float, complex, np.ndarray, np.generic)):
        output = asarray(output)
    if not isinstance(output, Array):
        raise _not_array_error(name, output)
    return _native.node_of(output)


def _not_array_error(name: str, output: Any) -> TypeError:
    type_name = "nothing" if output is None else type(output).__name__
    remedy = "return arrays, or tuples, lists, dicts or dataclasses of them"
    return TypeError(message(name, f"it returned {type_name}, not an array", remedy=remedy))


def _close_over_captures(
    outputs: tuple[Node, ...],
    form: TreeDef,
    inputs: list[Node],
    accessed: list[tuple[Array, Node]],
    *,
    hoist: bool,
) -> TracedFunction:
    """Find the captured nodes and replace them with placeholders."""
    graph = Graph.of(outputs)
    windows = {node for array, node in accessed if _native.window_of(array) is not None}
    roots = windows.union(inputs)  # others may write to a window: results are not hoisted
    accessed_nodes = {node for _, node in accessed}
    depends_on_input: list[bool] = []
    for node, input_indices in zip(graph.nodes, graph.inputs, strict=True):
        is_new = node.pending and node not in accessed_nodes and not hoist
        depends_on_input.append(
            node in roots or is_new or (hoist and any(depends_on_input[at] for at in input_indices))
        )
    reachable = [False] * len(graph)
    for at in graph.outputs:
        reachable[at] = True
    for at in reversed(range(len(graph))):
        if reachable[at] and depends_on_input[at]:
            for i in graph.inputs[at]:
                reachable[i] = True
    captured = [
        node
        for node, is_reachable, is_dependent in zip(
            graph.nodes, reachable, depends_on_input, strict=True
        )
        if is_reachable and (not is_dependent or node in windows) and not node.is_scalar
    ]
    names = {node: array for array, node in accessed}
    sources = tuple([CapturedArray(node, names.get(node)) for node in captured])
    placeholders = [_native.node_of(_native.placeholder(node.type)) for node in captured]
    replacements = dict(zip([*inputs, *captured], [*inputs, *placeholders], strict=True))
    results = substitute(graph, replacements, lines=True)
    hoisted_inputs = {
        graph.nodes[i]
        for input_indices, is_dependent in zip(graph.inputs, depends_on_input, strict=True)
        if not is_dependent
        for i in input_indices
    }
    direct = {source.node for source in sources} - hoisted_inputs
    guards = [pair for pair in accessed if pair[1] not in direct]
    return TracedFunction(results, form, (*inputs, *placeholders), sources, tuple(guards))


def substitute(
    graph: Graph, replacements: dict[Node, Node], *, lines: bool = False
) -> tuple[Node, ...]:
    """Return the outputs of a graph with some nodes replaced; `lines` keeps the nodes' source
    lines.
    """
    values: list[Any] = []
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        if node in replacements:
            values.append(_native.array_of(replacements[node]))
        elif not inputs and not node.pending:
            values.append(node.scalar if node.is_scalar else _native.array_of(node))
        elif node.op is None:  # a part of several results
            values.append(values[inputs[0]][node.params[0]])
        else:
            token = ORIGIN.set(node.origin) if lines and node.origin else None
            try:
                applied = _native.apply(node.op.id, tuple([values[i] for i in inputs]), node.params)
            finally:
                if token is not None:
                    ORIGIN.reset(token)
            values.append(applied)
    return tuple([_native.node_of(values[at]) for at in graph.outputs])
