"""Reference device: runs one operation at a time by NumPy, and so defines every operation's result.

Takes a Graph, publishes the value of every output and of every live-out node. Dead values are freed
after their last reader.

>>> import tenfold as tn
>>> node = _native.node_of(tn.asarray([1.0, 2.0]) + 1)
>>> Reference().run(Graph.of([node])) is None, node.pending
(True, False)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tenfold import _native
from tenfold._native import Node, Type
from tenfold.core.cast_values import cast_values
from tenfold.core.graph import Graph
from tenfold.core.interpreter import interpret
from tenfold.core.op import Kind, Op
from tenfold.core.trace_state import line_of, note_wait
from tenfold.dtypes import kind_of
from tenfold.errors import ExplainedError, RunError, UnsupportedError, raise_if_failed
from tenfold.runtime import interruptible, timeline
from tenfold.runtime.device import Rewrite, declare
from tenfold.schedule.target import DEFAULT, Target
from tenfold.settings import get
from tenfold.storage import dense

OperandArrays = tuple[np.ndarray, ...]
"""The results of one node."""
REPORTED = (
    *(ExplainedError, IndexError, ValueError, ArithmeticError, TypeError),
    *(MemoryError, RuntimeError),
)
"""The exceptions of a failure for values; a user's function may raise any Exception."""
DOCUMENTED = (np.linalg.LinAlgError, IndexError, ValueError, MemoryError)
"""The classes that are raised unchanged; any other failure is a RunError."""


class ReferenceCall(NamedTuple):
    """The fields of a node that computing its operation needs, without the graph."""

    op: Op[...]
    params: tuple[Any, ...]
    operands: tuple[np.dtype, ...]
    types: tuple[Type, ...]
    type: Type
    name: str
    origin: tuple[str, int] | None = None


class ReferenceFailure(Exception):
    """A node failed for its values; `error` is raised at the wait.

    An Executable serves nodes of many lines: `at` makes the error of one of them.
    """

    def __init__(
        self, error: Exception, at: Callable[[Node | ReferenceCall], Exception] | None = None
    ) -> None:
        super().__init__(str(error))
        self.error, self._at = error, at

    def error_at(self, node: Node) -> Exception:
        """Return the error with the user's line of a node."""
        return self.error if self._at is None else self._at(node)


class Reference:
    """NumPy, unfused and synchronous."""

    rewrites = False

    def __init__(self, name: str = "reference") -> None:
        self.name = name

    def target(self) -> Target:
        """Return the facts that all targets share: nothing is scheduled."""
        return replace(DEFAULT, device=self.name)

    def plan(self, _graph: Graph) -> None:
        """Return None: it has no schedules."""

    def bind(self, _original: Graph, _optimise: Rewrite, *, cached: bool = True) -> None:
        """Return None: it has no Executables."""

    def run(self, graph: Graph) -> Exception | None:
        """Compute a graph node by node; nodes that depend on a failed node stay pending."""
        live = {*compress(graph.nodes, graph.live_out)}
        live.update([graph.nodes[at] for at in graph.passed_through])  # nothing is fused
        failures: list[Exception] = []

        def compute(node: Node, operands: list[OperandArrays | None]) -> OperandArrays | None:
            inputs = [values for values in operands if values is not None]
            if len(inputs) < len(operands):
                return None
            try:
                results = self._values(node, inputs)
            except ReferenceFailure as failed:
                failures.append(failed.error)
                return None
            if node in live and node.pending:
                node.publish([dense.adopt(value, self.name) for value in results])
            return results

        interpret(graph, {}, compute)
        failure = failures[0] if failures else None
        failures.clear()  # the traceback of a failure refers to this list, by `compute`
        return failure

    def _values(self, node: Node, inputs: list[OperandArrays]) -> OperandArrays:
        if node.is_scalar:
            return (np.asarray(node.scalar),)
        if not node.pending:
            return _stored_values(node)
        if node.op is None:  # a part: one of the results of its input
            return (inputs[0][node.params[0]],)
        category = "kernel" if node.op.semantics.kind < Kind.CONTRACTION else "call"
        start = timeline.begin()
        operands = [values[0] for values in inputs]
        results = run_op(node, operands)
        _native.count(f"{category}s")
        _native.count("launches")
        if node.op.lowering.multiply_adds is not None:
            _native.count("multiply_adds", multiply_adds(node, operands))
        timeline.record(node.name, category, start)
        if get("check_nans"):
            raise_if_failed(nan_failure(node, operands, results))
        return results


def _stored_values(node: Node) -> OperandArrays:
    """Return the values of a computed node or a leaf."""
    arrays: list[np.ndarray] = []
    while (value := node.value(len(arrays))) is not None:
        arrays.append(dense.export(value))
    if not arrays:
        raise no_values()
    return tuple(arrays)


TRACED = "an array that is being traced has no values"
"""The rule that reading a traced array breaks."""


def no_values() -> ReferenceFailure:
    """Return the failure of a leaf without values, a placeholder."""
    note_wait()
    return ReferenceFailure(
        UnsupportedError(
            "wait",
            TRACED,
            remedy="choose by values with tn.where, not with Python's if",
        )
    )


def run_op(node: Node | ReferenceCall, inputs: list[np.ndarray]) -> OperandArrays:
    """Compute one operation from NumPy arrays; check its results against its rule."""
    operands = [cast_operand(x, dtype) for x, dtype in zip(inputs, node.operands, strict=True)]
    try:
        results = _call_interruptible(node, operands)
    except Exception as error:
        raise_failure(node, error)
        raise
    return tuple(
        _check_result(node, result, type_)
        for result, type_ in zip(results, node.types, strict=True)
    )


def raise_failure(node: Node | ReferenceCall, error: Exception) -> None:
    """Raise the ReferenceFailure of a node for an exception that its values caused."""
    if node.op.semantics.opaque or isinstance(error, REPORTED):
        raise _failure(node, partial(_error_at_wait, error)) from error


def _call_interruptible(node: Node | ReferenceCall, operands: list[np.ndarray]) -> OperandArrays:
    """Call an operation interruptibly; a user's function runs on the calling thread."""

    def run(_interrupted: threading.Event | None) -> OperandArrays:
        with np.errstate(all="ignore"):
            return _call(node.op, operands, node.params)

    work = 0 if node.op.semantics.opaque else multiply_adds(node, operands)
    return interruptible.call(run, multiply_adds=work)


def multiply_adds(node: Node | ReferenceCall, operands: Sequence[Any]) -> int:
    """Return the multiply-adds of a call, from the shapes and dtypes of its operands."""
    if node.op.lowering.multiply_adds is None:
        return 0
    types = tuple(Type(x.shape, x.dtype, "cpu") for x in operands)
    return node.op.lowering.multiply_adds(types, *node.params)


def cast_operand(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an operand in its computation dtype; a Python int beyond int64 stays exact."""
    return x.astype(dtype) if x.dtype == object else cast_values(x, dtype)


def _call(op: Op[...], operands: list[np.ndarray], params: tuple[Any, ...]) -> OperandArrays:
    if op.reference is None:
        assert op.semantics.element is not None, "an op has a reference or an element rule"
        leaves = [_native.value_array(dense.adopt(x, "reference")) for x in operands]
        node = _native.node_of(op.semantics.element(*leaves))
        inner = Reference().run(Graph.of([node]))
        if inner is not None:
            raise inner
        # the element rule may ignore operands, but all of them broadcast
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        return tuple(np.broadcast_to(values, shape) for values in _stored_values(node))
    result = op.reference(*operands, *params)
    return tuple(result) if isinstance(result, tuple) else (result,)


def _check_result(node: Node | ReferenceCall, result: Any, type_: Type) -> np.ndarray:
    values = np.asarray(result)
    if values.shape != type_.shape:
        _refuse_result(node, "shape", type_.shape, values.shape)
    if node.op.semantics.opaque and values.dtype != type_.dtype:
        _refuse_result(node, "dtype", type_.dtype, values.dtype)
    return cast_values(values, type_.dtype)


def _refuse_result(
    node: Node | ReferenceCall, kind: str, expected: object, actual: object
) -> NoReturn:
    def error_at(node: Node | ReferenceCall) -> Exception:
        return RunError(
            node.name,
            f"its rule said {kind} {expected}, its computation gave {actual}{_source_line(node)}",
            remedy=f"correct the {kind} rule of the op, or the function that computes it",
        )

    raise _failure(node, error_at)


def _failure(
    node: Node | ReferenceCall, error_at: Callable[[Node | ReferenceCall], Exception]
) -> ReferenceFailure:
    return ReferenceFailure(error_at(node), error_at)


def nan_failure(
    node: Node, inputs: Sequence[np.ndarray], results: OperandArrays
) -> ReferenceFailure | None:
    """Return the failure of an operation that created NaN from operands without NaN."""
    if node.op is None or node.op.semantics.kind == Kind.VIEW:
        return None
    input_nans = [
        _nans(mask)
        for mask in [*inputs, *(mask for mask in node.params if isinstance(mask, float))]
    ]
    if node.op.semantics.kind != Kind.MAP:
        input_nans = [np.asarray(mask.any()) for mask in input_nans]
    for nans in map(_nans, results):
        new_nans = nans.copy()
        for mask in input_nans:
            new_nans &= ~mask
        if new_nans.any():
            index = tuple(int(i) for i in np.argwhere(new_nans)[0])
            rule = f"NaN was made of operands without NaN, at index {index}{_source_line(node)}"
            remedy = "fix the operands, or allow NaN with tn.options(check_nans=False)"
            return ReferenceFailure(RunError(node.name, rule, remedy=remedy))
    return None


def _nans(values: object) -> np.ndarray:
    array = np.asarray(values)
    return array != array if kind_of(array.dtype) in "fc" else np.zeros(array.shape, bool)


def _source_line(node: Node | ReferenceCall) -> str:
    """Return the user's line as text, if the node has it."""
    return f" (written at {node.origin[0]}:{node.origin[1]})" if node.origin else ""


def _error_at_wait(error: Exception, node: Node | ReferenceCall) -> Exception:
    """Return the error to raise at the wait, with the op and the user's line."""
    reported = _error_of(node, error)
    reported.__cause__ = error  # as `raise ... from` does
    return reported


def _error_of(node: Node | ReferenceCall, error: Exception) -> Exception:
    text = str(error)
    if isinstance(error, ExplainedError):  # its operands and remedy are in the original
        inner = error.operation not in ("", node.name)
        text = f"{error.operation}: {error.rule}" if inner else error.rule
    documented = next((c for c in DOCUMENTED if isinstance(error, c)), None)
    if documented is not None and not (
        node.op.semantics.opaque or isinstance(error, ExplainedError)
    ):
        remedy = f"\n  remedy: {node.op.semantics.remedy}" if node.op.semantics.remedy else ""
        return documented(f"{node.name}: {text}{_source_line(node)}{remedy}")
    place = _source_line(node)
    if node.op.semantics.opaque and (raised_at := line_of(error)):
        place = f"{place[:-1]}, raised at {raised_at})" if place else f" (raised at {raised_at})"
    return RunError(node.name, f"{type(error).__name__}: {text}{place}")


declare(Reference())
