"""Call operation: makes a call of a traced function one node of the graph.

Takes a Subgraph, returns the Op whose nodes compute it. Its inputs are the argument arrays and the
captured arrays, its results those of the function. Single calls, and hot small graphs, are inlined
(`rewrite/inline.py`). Other calls are computed in batches (`transforms/batch_compiler.py`). A loop
calls its step repeatedly (`native/python/scan_loop.cpp`).

>>> import tenfold as tn
>>> x = tn._native.placeholder(tn._native.Type((2,), tn.float64, "cpu"))
>>> double = Subgraph("double", [_native.node_of(x * 2)], [_native.node_of(x)])
>>> Callee(double).op
<op double>
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Node, Type, Value
from tenfold.caches import LruCache
from tenfold.core.cached_property import cached
from tenfold.core.interpreter import rebuild_with_origin
from tenfold.core.op import BoundCall, Inferred, Kind, Op, exact_params
from tenfold.core.subgraph import Subgraph
from tenfold.errors import DeviceError, ExplainedError
from tenfold.runtime.reference import ReferenceFailure
from tenfold.storage import dense
from tenfold.transforms import batch_compiler
from tenfold.transforms.loop_kernel_launch import (
    MIN_STEPS,
    LoopArrays,
    LoopKernels,
    compiled_loop,
    loop_kernel_for,
)

ENDLESS = 2**62
"""The steps of a loop that its condition ends."""


class Callee:
    """A Subgraph with an op whose calls compute it: a traced function, a loop step or a branch."""

    def __init__(
        self, subgraph: Subgraph, page: str = "control", family: object = None, **facts: Any
    ) -> None:
        self.subgraph, self.page, self.family, self.facts = subgraph, page, family, facts
        self.loop_kernels: LoopKernels = {}

    @cached
    def op(self) -> Op[...]:
        """The operation; `family` identifies the traced function, `facts` are further ones."""
        return call_op(self.subgraph, self.page, self.family, **self.facts)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Free the cached plans of its op, which is freed with its last node."""
        if "op" in vars(self) and not is_finalizing():  # module globals may be None at exit
            batch_compiler.forget_op(self.op.id)
            batch_compiler.forget_op_later(self.op.id)  # calls that are pending may yet be planned

    def __repr__(self) -> str:
        return repr(self.subgraph)

    def compute(self, operands: Sequence[Value]) -> list[Value]:
        """Compute its results. Raises ReferenceFailure if the computation fails."""
        inputs = tuple([_native.value_array(value) for value in operands])
        results = _native.apply(self.op.id, inputs, self.op.signature.bind().params)
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
        stops = _native.times_stopped()
        until, arrays = steps < 0, LoopArrays(xs, captures, ys)
        counts = len(carry), len(xs)
        loop = loop_kernel_for(self.subgraph, self.loop_kernels, counts, until=until)
        if loop is None:
            self._run_steps(operation, carry, arrays, ENDLESS if until else steps, reverse, until)
            return
        kernel = compiled_loop(loop, 0 if until else steps)
        if kernel is None:  # a short loop, as far as is known
            few = MIN_STEPS if until else steps
            goes_on = self._run_steps(operation, carry, arrays, few, reverse, until)
            if not (goes_on and until):
                return
            kernel = compiled_loop(loop, MIN_STEPS)
            assert kernel is not None, "so many steps are worth a kernel"
        if until:
            state = [*carry, dense.adopt(np.asarray(True), dense.HOST)]
            kernel.run(state, arrays, ENDLESS, stops, reverse=False)
            carry[:] = state[:-1]
        else:
            kernel.run(carry, arrays, steps, stops, reverse=reverse)

    def _run_steps(
        self,
        operation: str,
        carry: list[Value],
        arrays: LoopArrays,
        steps: int,
        reverse: bool,
        until: bool,
    ) -> bool:
        """Compute steps one by one, at most until the last result of one is false; return it."""

        def compute(step: int, nodes: list[Node]) -> None:
            failure = pipeline.compute(nodes)
            if failure is not None:
                raise ReferenceFailure(error_at_step(operation, step, failure))

        op, params = self.op, self.op.signature.bind().params
        return _native.run_loop(op.id, params, carry, *arrays, steps, reverse, until, compute)


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


_interned: WeakValueDictionary[Hashable, Callee] = WeakValueDictionary()
_recent: LruCache[Hashable, Callee] = LruCache(
    256, "subgraphs", "a lambda in a loop is traced in each iteration, and reuses its plan"
)
"""Keeps the last Callees alive."""


def interned_callee(subgraph: Subgraph) -> Callee:
    """Return the same Callee for equal Subgraphs, so that a new trace reuses the plan."""
    key = _subgraph_key(subgraph)
    interned = _interned.setdefault(key, Callee(subgraph))
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


def _call_placeholder(*arrays: Array) -> tuple[Array, ...]:
    """Call a traced function."""
    raise NotImplementedError(f"{len(arrays)} arrays: native code makes the nodes of calls")


def _device_of(subgraph: Subgraph) -> str:
    """Return the device of all results. Raises DeviceError for several."""
    devices = sorted({node.type.device for node in subgraph.outputs})
    if len(devices) > 1:
        rule = f"its results are on different devices: {', '.join(devices)}"
        raise DeviceError(subgraph.name, rule, remedy="move them with x.to_device(...) behind it")
    return devices[0] if devices else dense.HOST


def call_op(subgraph: Subgraph, page: str, family: object = None, **facts: Any) -> Op[...]:
    """Return the op whose calls compute a Subgraph.

    A failure of it names the line of the call, or that of the failed operation, as the rule of the
    Subgraph makes them.
    """
    results = tuple([(node.type.shape, node.type.dtype) for node in subgraph.outputs])
    device = _device_of(subgraph)
    ops = [node.op for node in subgraph.graph.nodes if isinstance(node.op, Op)]

    def rule(types: tuple[Type, ...], _device: str) -> Inferred:
        return Inferred(results, tuple(type_.dtype for type_ in types))

    def reference(*operands: Any) -> tuple[np.ndarray, ...]:
        *arrays, _device = operands
        inputs = [
            _native.value_array(dense.adopt(x, node.type.device))
            for x, node in zip(arrays, subgraph.inputs, strict=True)
        ]
        nodes = [_native.node_of(array) for array in subgraph.apply(inputs)]
        failure = pipeline.compute([node for node in nodes if node.pending])
        if failure is not None:
            has_lines = subgraph.rule is rebuild_with_origin
            raise ReferenceFailure(failure) if has_lines else failure
        return tuple([dense.export(value) for node in nodes if (value := node.value())])

    def bind(*operands: Array) -> BoundCall:
        return BoundCall(operands, (device,))

    return Op.declare(
        name=subgraph.name,
        page=page,
        function=_call_placeholder,  # not the user's function: the op may outlive it
        kind=Kind.CONTRACTION,
        rule=rule,
        bind=bind,
        reference=reference,
        body=subgraph,
        family=family,
        can_fail=any(op.semantics.can_fail for op in ops),
        moves=any(op.semantics.moves for op in ops),
        pure=all(op.semantics.pure for op in ops),
        unbounded_time=any(op.semantics.unbounded_time for op in ops),
        multiplies=any(
            op.lowering.multiply_adds is not None or op.rewriting.multiplies for op in ops
        ),
        public=False,
        cost=float(len(subgraph.graph)),
        **facts,
    )
