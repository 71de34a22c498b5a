"""Tracer: runs a Python function on placeholders and records its operations as nodes.

Takes a function and arguments, returns a TracedFunction: result nodes on placeholders for the
argument arrays, and the captured arrays. A subexpression without arguments is hoisted: it is
captured, computed once and shared by all calls.

>>> import tenfold as tn
>>> w = tn.asarray([1.0, 2.0])
>>> structure = flatten(((0,), {}))[1]
>>> trace = trace_function(lambda x: tn.sum(w * x) + 1, [tn.asarray([3.0, 4.0])], structure)
>>> trace.subgraph, len(trace.captured)
(<<lambda>: 3 operations>, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.graph import Graph
from tenfold.core.interpreter import NodeRule, interpret, rebuild, rebuild_with_origin
from tenfold.core.pytree import TreeDef, flatten
from tenfold.core.subgraph import Subgraph
from tenfold.errors import message
from tenfold.interop.asarray import asarray
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
    """The Subgraph of a function, with its captures and guards."""

    subgraph: Subgraph
    """Its inputs are the placeholders of the arguments, then of the captured arrays."""
    structure: TreeDef
    """The structure of the result tree."""
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
    rule: NodeRule[Any] = rebuild,
) -> TracedFunction:
    """Run a function on placeholders for the Arrays among the leaves of its arguments.

    `structure` is that of (args, kwargs). Without hoisting, nodes that depend on no argument are a
    part of the function too. `rule` is that of the Subgraph. Raises NeedsValues where it asks for a
    value or assigns to a window. Raises TypeError for a result that is not an array, RunError where
    it changes an array that is not an argument. Afterwards every Array and every window has its
    former value, also after an error.
    """
    types = [_native.node_of(leaf).type if isinstance(leaf, Array) else None for leaf in leaves]
    name = name_of(function)
    with open_trace() as trace:
        try:
            arguments, inputs = list(leaves), []
            for at, type_ in enumerate(types):
                if type_ is not None:
                    arguments[at] = _native.placeholder(type_)
                    inputs.append(_native.node_of(arguments[at]))
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
    closed, inputs, captured, guards = _close_over_captures(nodes, inputs, trace.accessed, hoist)
    return TracedFunction(Subgraph(name, closed, inputs, rule), form, captured, guards)


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function for messages."""
    return getattr(function, "__name__", type(function).__name__)


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


Closure = tuple[
    tuple[Node, ...], list[Node], tuple[CapturedArray, ...], tuple[tuple[Array, Node], ...]
]
"""The outputs and inputs of a Subgraph, its captures and its guards."""


def _close_over_captures(
    outputs: tuple[Node, ...], inputs: list[Node], accessed: list[tuple[Array, Node]], hoist: bool
) -> Closure:
    """Find the captured nodes and replace them with placeholders."""
    graph = Graph.of(outputs)
    windows = {node for array, node in accessed if _native.window_of(array) is not None}
    depends_on_input = _dependent_nodes(graph, windows.union(inputs), accessed, hoist)
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
    environment = dict(zip(inputs, map(_native.array_of, inputs), strict=True))
    sources, placeholders = [], []
    for node in captured:
        environment[node] = _native.placeholder(node.type)
        sources.append(CapturedArray(node, names.get(node)))
        placeholders.append(_native.node_of(environment[node]))
    results = tuple(map(_native.node_of, interpret(graph, environment, rebuild_with_origin)))
    hoisted_inputs = {
        graph.nodes[i]
        for input_indices, is_dependent in zip(graph.inputs, depends_on_input, strict=True)
        if not is_dependent
        for i in input_indices
    }
    direct = set(captured) - hoisted_inputs
    guards = tuple([pair for pair in accessed if pair[1] not in direct])
    return results, [*inputs, *placeholders], tuple(sources), guards


def _dependent_nodes(
    graph: Graph, roots: set[Node], accessed: list[tuple[Array, Node]], hoist: bool
) -> list[bool]:
    """Return for each node whether it is a part of the function: it depends on one of the roots.

    A root is an input, or a window: others may write to that. Without hoisting all nodes that the
    function has made are parts of it.
    """
    accessed_nodes = set() if hoist else {node for _, node in accessed}
    dependent: list[bool] = []

    def rule(node: Node, operands: list[bool]) -> bool:
        depends = any(operands) if hoist else node.pending and node not in accessed_nodes
        dependent.append(depends or node in roots)
        return dependent[-1]

    interpret(graph, {}, rule)
    return dependent
