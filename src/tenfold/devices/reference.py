"""The reference device: NumPy, one operation at a time, at once. The living meaning of every op.

Takes a Graph, publishes the value of every output and of every node that somebody can see. Values that
nobody needs any more are dropped as soon as their last reader ran.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.devices import timeline
from tenfold.devices.device import declare
from tenfold.errors import Explained, RunError
from tenfold.ir.graph import Graph
from tenfold.ir.op import Kind, Op
from tenfold.ops.cast import cast_values
from tenfold.storage import dense

Values = tuple[np.ndarray, ...]
"""The results of one node."""
DOCUMENTED = (np.linalg.LinAlgError, IndexError, ValueError)
"""The classes in which a failure for values is raised as it is; any other is a RunError."""


class Reference:
    """NumPy, unfused and synchronous."""

    name = "reference"

    def run(self, graph: Graph) -> None:
        """Compute a graph, node by node."""
        computed: list[Values] = [()] * len(graph)
        left = list(graph.uses)
        for position, node in enumerate(graph.nodes):
            inputs = graph.inputs[position]
            computed[position] = self._values(node, [computed[i] for i in inputs])
            if graph.held[position] and node.pending:
                node.publish([dense.adopt(value, self.name) for value in computed[position]])
            for i in inputs:
                left[i] -= 1
                if left[i] == 0:
                    computed[i] = ()

    def _values(self, node: Node, inputs: list[Values]) -> Values:
        if node.is_scalar:
            return (np.asarray(node.scalar),)
        if not node.pending:
            return _present(node)
        if node.op is None:  # a part: one of the results of its input
            return (inputs[0][node.params[0]],)
        category = "kernel" if node.op.kind < Kind.COMPLEX else "call"
        begun = timeline.begin()
        results = run_op(node, [values[0] for values in inputs])
        _native.count(f"{category}s")
        _native.count("launches")
        if (multiply_adds := node.op.multiply_adds) is not None:
            types = tuple(operand.type for operand in node.inputs)
            _native.count("multiply_adds", multiply_adds(types, *node.params))
        timeline.record(node.name, category, begun)
        return results


def _present(node: Node) -> Values:
    """The values a computed node or a leaf holds."""
    found: list[np.ndarray] = []
    while (value := node.value(len(found))) is not None:
        found.append(dense.export(value))
    return tuple(found)


def run_op(node: Node, inputs: list[np.ndarray]) -> Values:
    """Compute one operation from NumPy arrays; check what it returns against what its rule said."""
    op: Op[...] = node.op
    operands = [cast_operand(x, dtype) for x, dtype in zip(inputs, node.operands, strict=True)]
    try:
        with np.errstate(all="ignore"):
            results = _call(op, operands, node.params)
    except (Explained, IndexError, ValueError, ArithmeticError, TypeError) as error:
        raise _failed(node, error) from error
    return tuple(
        _checked(node, result, type_) for result, type_ in zip(results, node.types, strict=True)
    )


def cast_operand(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an operand in the dtype in which it enters; a Python int beyond int64 stays exact."""
    return x.astype(dtype) if x.dtype == object else cast_values(x, dtype)


def _call(op: Op[...], operands: list[np.ndarray], params: tuple[Any, ...]) -> Values:
    if op.reference is None:
        assert op.element is not None, "an op has a reference or an element rule"
        leaves = [_native.value_array(dense.adopt(x, Reference.name)) for x in operands]
        node = _native.node_of(op.element(*leaves))
        Reference().run(Graph.of([node]))
        return _present(node)
    result = op.reference(*operands, *params)
    return tuple(result) if isinstance(result, tuple) else (result,)


def _checked(node: Node, result: Any, type_: Type) -> np.ndarray:
    values = cast_values(np.asarray(result), type_.dtype)
    if values.shape != type_.shape:
        raise RunError(
            node.name,
            f"its rule said shape {type_.shape}, its computation gave {values.shape}",
            remedy="correct the shape rule of the op, or the function that computes it",
        )
    return values


def _failed(node: Node, error: Exception) -> Exception:
    """The error to raise at the wait: names the op and the user's line."""
    place = f" (written at {node.origin[0]}:{node.origin[1]})" if node.origin else ""
    text = error.rule if isinstance(error, Explained) else str(error)
    documented = next((c for c in DOCUMENTED if isinstance(error, c)), None)
    if documented is not None and not isinstance(error, Explained):
        return documented(f"{node.name}: {text}{place}")
    return RunError(node.name, f"{type(error).__name__}: {text}{place}")


declare(Reference())
