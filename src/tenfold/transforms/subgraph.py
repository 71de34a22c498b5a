"""Subgraph: the closed graph of a traced function, a loop step or a branch, as one operation.

Takes nodes on placeholders, returns a Subgraph, which can be a parameter of an operation. Subgraphs
with the same operations from the same source lines are interned, so that a new trace reuses the
plan.

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((2,), tn.float64, "cpu"))
>>> def trace(): return intern_subgraph("twice", [_native.node_of(x * 2)], [_native.node_of(x)])
>>> twice = trace()
>>> twice, trace() is twice
(<twice: 1 operation>, True)
>>> twice.apply([tn.asarray([1.0, 2.0])])[0].tolist()
[2.0, 4.0]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from tenfold import _native, pipeline
from tenfold._native import Array, Node, Type, Value
from tenfold.caches import LruCache
from tenfold.core.graph import Graph
from tenfold.core.op import Op
from tenfold.errors import ExplainedError, UnsupportedError
from tenfold.runtime.reference import ReferenceFailure
from tenfold.transforms import batch_compiler
from tenfold.transforms.call_op import call_op
from tenfold.transforms.tracer import substitute


class Subgraph:
    """A closed graph: result nodes, on placeholders for all inputs and captured arrays."""

    def __init__(self, name: str, outputs: Sequence[Node], inputs: Sequence[Node]) -> None:
        self.name, self.inputs = name, tuple(inputs)
        self.graph = Graph.of(outputs)
        self.outputs = tuple(outputs)

    @property
    def types(self) -> tuple[Type, ...]:
        """The Types of its results."""
        return tuple([node.type for node in self.outputs])

    @cached_property
    def op(self) -> Op[...]:
        """The operation whose calls compute the Subgraph."""
        return call_op(self.name, "control", self.graph, self.inputs, lines=True)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Free the cached plans of its op."""
        if "op" in vars(self) and not is_finalizing():  # module globals may be None at exit
            batch_compiler.forget_op(self.op.id)

    def apply(self, operands: Sequence[Array]) -> tuple[Array, ...]:
        """Return its results as lazy arrays on other inputs."""
        nodes = [_native.node_of(array) for array in operands]
        outputs = substitute(self.graph, dict(zip(self.inputs, nodes, strict=True)), lines=True)
        return tuple([_native.array_of(node) for node in outputs])

    def compute(self, operands: Sequence[Value]) -> list[Value]:
        """Compute its results. Raises ReferenceFailure if the computation fails."""
        inputs = tuple([_native.value_array(value) for value in operands])
        results = _native.apply(self.op.id, inputs, self.op.bind().params)
        nodes = [
            _native.node_of(array)
            for array in (results if isinstance(results, tuple) else (results,))
        ]
        failure = pipeline.compute(nodes)
        if failure is not None:
            raise ReferenceFailure(failure)
        return [value for node in nodes if (value := node.value()) is not None]

    def repeat(
        self,
        operation: str,
        carry: list[Value],
        xs: Sequence[Value],
        captures: Sequence[Value],
        ys: Sequence[Value] = (),
        *,
        steps: int = -1,
        reverse: bool = False,
    ) -> None:
        """Compute it in a loop of `steps` steps, or until its last result is false.

        Its inputs are the carry, a row of each array of `xs`, and the captures. Its results are the
        next carry, which replaces the items of `carry`, and a row of each array of `ys`. Raises
        ReferenceFailure with the number of the failed step.
        """

        def compute(step: int, nodes: list[Node]) -> None:
            failure = pipeline.compute(nodes)
            if failure is not None:
                raise ReferenceFailure(error_at_step(operation, step, failure))

        op, params = self.op, self.op.bind().params
        arguments = (carry, xs, captures, ys, steps, reverse)
        _native.repeat(op.id, params, *arguments, compute, _poll_signals)

    def __repr__(self) -> str:
        count = sum(node.op is not None for node in self.graph.nodes)
        return f"<{self.name}: {count} operation{'s' if count != 1 else ''}>"

    def __reduce__(self) -> NoReturn:
        rule = f"{self.name!r} was traced from a function, which the reader does not have"
        raise UnsupportedError("pickle", rule, remedy="compute the array first, with x.wait()")


def _poll_signals() -> None:
    """Do nothing: the call lets Python switch threads and handle signals."""


def error_at_step(operation: str, step: int, failure: Exception) -> Exception:
    """Return the failure of a step as an error of the loop that names the step."""
    location = f"{operation}, step {step}"
    if isinstance(failure, ExplainedError):
        operation_, rule = f"{location}: {failure.operation}", failure.rule
        error: Exception = type(failure)(operation_, rule, failure.operands, failure.remedy)
    else:
        error = type(failure)(f"{location}: {failure}")
    error.__cause__ = failure  # as `raise ... from` does
    return error


_interned: WeakValueDictionary[Hashable, Subgraph] = WeakValueDictionary()
_recent: LruCache[Hashable, Subgraph] = LruCache(
    256, "subgraphs", "a lambda in a loop is traced in each iteration, and reuses its plan"
)
"""Keeps the last Subgraphs alive."""


def intern_subgraph(name: str, outputs: Sequence[Node], inputs: Sequence[Node]) -> Subgraph:
    """Return the interned Subgraph of these nodes."""
    candidate = Subgraph(name, outputs, inputs)
    key = _subgraph_key(candidate)
    interned = _interned.setdefault(key, candidate)
    _recent[key] = interned
    return interned


def _subgraph_key(subgraph: Subgraph) -> Hashable:
    input_index = {node: index for index, node in enumerate(subgraph.inputs)}
    node_keys = []
    for node, inputs in zip(subgraph.graph.nodes, subgraph.graph.inputs, strict=True):
        node_key: Hashable = input_index.get(node)
        if node.is_scalar:
            node_key = (type(node.scalar), repr(node.scalar))
        elif node_key is None and not inputs and not node.pending:
            node_key = node  # a computed value
        elif node_key is None:
            op = node.op.id if node.op is not None else None
            node_key = (op, exact_params(node.params), node.origin)
        node_keys.append((node_key, inputs, node.types))
    return (
        subgraph.name,
        tuple(node_keys),
        subgraph.graph.outputs,
        tuple([node.type for node in subgraph.inputs]),
    )


def exact_params(params: Any) -> Hashable:
    """Return a key of parameters that distinguishes -0.0 from 0.0 and treats NaNs as equal."""
    if isinstance(params, tuple):
        return tuple(map(exact_params, params))
    return type(params), repr(params) if isinstance(params, (float, complex)) else params


__all__ = ["Subgraph", "intern_subgraph"]
