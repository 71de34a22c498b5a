"""Call operation: makes a call of a traced function one node of the graph.

Takes the traced body of a function, returns an Op. Its inputs are the argument arrays and the
captured arrays, its results those of the function. Single calls, and hot small graphs, are inlined
(`rewrite/inline.py`). Other calls are computed in batches (`transforms/batch_compiler.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Node, Type
from tenfold.core.graph import Graph
from tenfold.core.op import BoundCall, Inferred, Kind, Op
from tenfold.runtime.reference import ReferenceFailure
from tenfold.storage import dense
from tenfold.transforms.tracer import substitute


def _call_placeholder(*arrays: Array) -> tuple[Array, ...]:
    """Call a traced function."""
    raise NotImplementedError(f"{len(arrays)} arrays: native code makes the nodes of calls")


def call_op(
    name: str,
    page: str,
    graph: Graph,
    inputs: Sequence[Node],
    *,
    family: object = None,
    lines: bool = False,
) -> Op[...]:
    """Return the op whose calls compute a graph on new inputs; `family` identifies the traced
    function.

    A failure names the line of the call, or with `lines` that of the failed operation.
    """
    outputs = [graph.nodes[at] for at in graph.outputs]
    results = tuple([(node.type.shape, node.type.dtype) for node in outputs])
    device = outputs[0].type.device if outputs else "cpu"
    inputs = tuple(inputs)  # the placeholders alone, not the captured arrays
    ops = [node.op for node in graph.nodes if isinstance(node.op, Op)]

    def rule(types: tuple[Type, ...], _device: str) -> Inferred:
        return Inferred(results, tuple(type_.dtype for type_ in types))

    def body(operands: Sequence[Array]) -> tuple[Array, ...]:
        nodes = [_native.node_of(array) for array in operands]
        results = substitute(graph, dict(zip(inputs, nodes, strict=True)), lines=lines)
        return tuple([_native.array_of(node) for node in results])

    def reference(*operands: Any) -> tuple[np.ndarray, ...]:
        *arrays, _device = operands
        inputs_ = [_native.value_array(dense.adopt(x, device)) for x in arrays]
        results_ = [_native.node_of(array) for array in body(inputs_)]
        failure = pipeline.compute([node for node in results_ if node.pending])
        if failure is not None:
            raise ReferenceFailure(failure) if lines else failure
        return tuple([dense.export(value) for node in results_ if (value := node.value())])

    def bind(*operands: Array) -> BoundCall:
        return BoundCall(operands, (device,))

    return Op(
        name=name,
        page=page,
        function=_call_placeholder,  # not the user's function: the op may outlive it
        kind=Kind.CONTRACTION,
        rule=rule,
        bind=bind,
        reference=reference,
        body=body,
        family=family,
        can_fail=any(op.can_fail for op in ops),
        pure=all(op.pure for op in ops),
        unbounded_time=any(op.unbounded_time for op in ops),
        multiplies=any(op.multiply_adds is not None or op.multiplies for op in ops),
        public=False,
        cost=float(len(graph)),
    )
