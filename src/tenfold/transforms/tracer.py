"""Tracer: runs a Python function on placeholders and records its operations as nodes.

Takes a function and arguments, returns a TracedFunction: the Subgraph of its operations, and the
captured arrays. A subexpression without arguments is hoisted: it is captured, computed once and
shared by all calls. `tracing` opens a trace for other transforms, such as `tn.vmap`. In a trace
deep expressions are not computed early, and no external buffer is written. After it, even on an
error, every Array has its former value.

>>> import tenfold as tn
>>> w = tn.asarray([1.0, 2.0])
>>> structure = flatten(((0,), {}))[1]
>>> trace = trace_function(lambda x: tn.sum(w * x) + 1, [tn.asarray([3.0, 4.0])], structure)
>>> trace.subgraph, len(trace.captured)
(<<lambda>: 3 operations>, 1)
>>> x = _native.placeholder(_native.Type((), tn.float64, "cpu"))
>>> with tracing("tn.vmap", "choose with tn.where"):
...     abs(x) if x < 0 else x
Traceback (most recent call last):
...
tenfold.errors.UnsupportedError: tn.vmap: <doctest ...>:2 asks for a value, and ... has none
  remedy: choose with tn.where
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node, Scope
from tenfold.core.callable_signature import name_of
from tenfold.core.graph import Graph
from tenfold.core.interpreter import NodeRule, interpret, rebuild, rebuild_with_origin
from tenfold.core.pytree import TreeDef, flatten
from tenfold.core.subgraph import Subgraph
from tenfold.core.trace_state import TRACE, TraceState, line_of
from tenfold.errors import ExplainedError, RunError, UnsupportedError, message
from tenfold.interop.asarray import asarray
from tenfold.runtime.reference import TRACED
from tenfold.settings import internal_changes


class Trace(TraceState):
    """An open trace, with the Arrays that it read and changed."""

    def __init__(self, outer: TraceState | None) -> None:
        super().__init__(outer)
        self.log = _native.TraceLog()

    @property
    def mutated(self) -> list[Array]:
        """Outside Arrays that the block has changed; their former values are restored."""
        return self.log.changed

    @property
    def accessed(self) -> list[tuple[Array, Node]]:
        """Outside Arrays that were read, with their nodes."""
        return self.log.reads


class open_trace(Scope):  # noqa: N801  # it is called as a function
    """Trace the block; its value is the Trace. At its end outside Arrays get their former values
    back, and the accesses are recorded in an enclosing trace.
    """

    def prepare(self) -> tuple[Any, Sequence[tuple[Any, Any]]]:
        """Return the Trace, and the steps that open and close it."""
        self.trace = trace = Trace(TRACE.get())
        log = trace.log
        return trace, ((TRACE, trace), (log.begin, log.end), *internal_changes(pending_depth=0))


class restore_arrays(open_trace):  # noqa: N801  # it is called as a function
    """Raise RunError where the block changes an outside array, and restore the array's value."""

    def __init__(self, operation: str) -> None:
        super().__init__()
        self.operation = operation

    def ended(self, error: BaseException | None) -> None:
        """Tell an enclosing trace what the block asked for, and raise the error of a change."""
        trace = self.trace
        if trace.waited and trace.outer is not None:
            trace.outer.waited = True  # an enclosing function may run untraced
        if error is None and trace.assigned:  # and the function went on
            raise mutation_error(self.operation, f"the function {ASSIGNS_WINDOW}")
        if error is None and trace.mutated:
            raise mutation_error(self.operation, f"the function {CHANGES_ARRAY}", trace.mutated)


class tracing(restore_arrays):  # noqa: N801  # it is called as a function
    """Raise UnsupportedError with the user's line where the block asks for missing values.

    Raises RunError where it changes an outside array.
    """

    def __init__(self, operation: str, remedy: str) -> None:
        super().__init__(operation)
        self.remedy = remedy

    def ended(self, error: BaseException | None) -> None:
        """Raise the error of a block that has asked for missing values."""
        super().ended(error)
        if isinstance(error, UnsupportedError) and error.rule == TRACED:
            raise needs_values_error(self.operation, line_of(error), self.remedy) from error


ASSIGNS_WINDOW = "changes the memory of a window"
CHANGES_ARRAY = "changes an array that it was not given"


def mutation_error(operation: str, rule: str, mutated: Sequence[Array] = ()) -> RunError:
    """Return the error of a function that changes outside arrays."""
    remedy = "return the new value, and assign it where the function is called"
    return RunError(operation, rule, mutated[:1], remedy)


CONTROL_REMEDY = "choose by values with tn.where or tn.cond, repeat with tn.while_loop"


def needs_values_error(
    operation: str, location: str, remedy: str | None, cause: BaseException | None = None
) -> UnsupportedError:
    """Return the error of a function that asks for a value at a location; or is refused there."""
    rule = f"{location} asks for a value, and an array that is traced has none"
    if isinstance(cause, ExplainedError) and cause.rule not in ("", TRACED):
        rule, remedy = f"{location}: {cause.rule}", cause.remedy
    return UnsupportedError(operation, rule, remedy=remedy)


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
            current = _native.stored_node(array)
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

    def captured_arrays(self) -> list[Array]:
        """Return the arrays that it captures, with their current values."""
        return [
            _native.array_of(capture.node) if capture.source is None else capture.source
            for capture in self.captured
        ]


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
    body = Subgraph(name, closed, inputs, rule, len(inputs) - len(captured))
    return TracedFunction(body, form, captured, guards)


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
