"""Batch verification: compares a batch's results with those of its members, one by one.

Takes an operation and its members' stacked operands, under `tn.options(verify=True)`; hands on the
stacked results, and the error where one differs. All results are compared bit for bit but those of
calls that have multiply-adds, such as products. Each of these is computed once more from its inputs
in the batch. A product must be within the bound of a reordered sum (Higham 2002, "Accuracy and
Stability of Numerical Algorithms", section 3.5), a solve within that of its condition. Readers of
such a result read that of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Node, Type, Value
from tenfold.core.bitwise_equal import different
from tenfold.core.graph import Graph
from tenfold.core.op import Op, Params
from tenfold.dtypes import kind_of, wide
from tenfold.errors import RunError
from tenfold.rewrite.inline import is_call
from tenfold.settings import within
from tenfold.storage import dense
from tenfold.transforms.batch_compiler import ExactNumber
from tenfold.transforms.batch_interpreter import BatchedNode, batched_unasked
from tenfold.transforms.tracer import substituted

ALONE = {"verify": False, "batch": False, "reassociate": False}
"""The options under which a member is computed by itself."""
SLACK = 4
"""Roundings of a complex product to one of a real one, at the most."""


class CheckedOperation(NamedTuple):
    """An operation for one member and for all; where both are compared."""

    one: Graph
    """Its outputs are the results, then what is compared by itself."""
    leaves: tuple[Node, ...]
    """Placeholders of what a member reads."""
    all: Graph
    inputs: tuple[Node, ...]
    rows: tuple[bool, ...]
    """Which outputs have a row for each member."""
    results: int


def verified(
    op: Op[...], params: Params, columns: Sequence[tuple[Any, bool]], nodes: Sequence[Node]
) -> tuple[list[np.ndarray], RunError | None]:
    """Compute an operation for many members, with a row for each, as `group` does; return also what
    is to be raised where a member's result is another when it is computed by itself.

    Raises whatever a computation raises.
    """
    found, unlike = _compared(op, params, columns, nodes, every=False)
    if unlike and op.body:  # each operation is compared, to name it
        unlike = _compared(op, params, columns, nodes, every=True)[1] or unlike
    return found, unlike


def _compared(
    op: Op[...],
    params: Params,
    columns: Sequence[tuple[Any, bool]],
    nodes: Sequence[Node],
    *,
    every: bool,
) -> tuple[list[np.ndarray], RunError | None]:
    """Compute all members together, and each alone until one differs."""
    types = tuple([x.type if isinstance(x, Value) else None for x, _ in columns])
    flags = tuple([stacked for _, stacked in columns])
    scalars = tuple([None if isinstance(x, Value) else ExactNumber(x) for x, _ in columns])
    written = _written(op, params, types, flags, scalars, every)
    found = _rows(written, columns, len(nodes))
    for number, node in enumerate(nodes):
        wrong = _difference(written, _leaves(columns, node, number), found, number)
        if wrong:
            return found, _error(op, node, number, len(nodes), *wrong)
    return found[: written.results], None


def _written(
    op: Op[...],
    params: Params,
    types: tuple[Type | None, ...],
    flags: tuple[bool, ...],
    scalars: tuple[Any, ...],
    every: bool,
) -> CheckedOperation:
    """Write an operation for one member and for all."""
    ones: list[Any] = []
    stand_ins: dict[Node, BatchedNode] = {}
    for type_, stacked, scalar in zip(types, flags, scalars, strict=True):
        if type_ is None:
            ones.append(scalar.value)
            continue
        shape = type_.shape[1:] if stacked else type_.shape
        ones.append(_native.placeholder(Type(shape, type_.dtype, type_.device)))
        stand_ins[_native.node_of(ones[-1])] = BatchedNode(_native.placeholder(type_), stacked)
    made = op.body(ones) if op.body else _native.apply(op.id, tuple(ones), params)
    results = made if isinstance(made, tuple) else (made,)
    graph = Graph.of(_flat([_native.node_of(result) for result in results]))
    chosen = [node for node in graph.nodes if _is_compared(node, every)]
    one = Graph.of([*[graph.nodes[at] for at in graph.outputs], *chosen])
    entries = batched_unasked([one.nodes[at] for at in one.outputs], stand_ins)
    outputs = [_native.node_of(entry.value) for entry in entries]
    inputs = tuple([_native.node_of(entry.value) for entry in stand_ins.values()])
    rows = tuple([entry.batched for entry in entries])
    return CheckedOperation(one, tuple(stand_ins), Graph.of(outputs), inputs, rows, len(results))


def _flat(nodes: Sequence[Node]) -> list[Node]:
    """Write what calls of other functions are made of in their place."""
    graph = Graph.of(nodes)
    if not any(is_call(node.op) for node in graph.nodes if node.op is not None):
        return list(nodes)
    made: list[Any] = []
    for node, inputs in zip(graph.nodes, graph.inputs, strict=True):
        given = [made[at] for at in inputs]
        if node.op is None and inputs:  # a part of several results
            made.append(given[0][node.params[0]])
        elif not inputs:
            made.append(node.scalar if node.is_scalar else _native.array_of(node))
        elif is_call(node.op):
            parts = node.op.body(given)
            made.append(parts if len(parts) > 1 else parts[0])
        else:
            made.append(_native.apply(node.op.id, tuple(given), node.params))
    return _flat([_native.node_of(made[at]) for at in graph.outputs])


def _is_compared(node: Node, every: bool) -> bool:
    """Whether an operation is compared by itself."""
    op = node.op
    return isinstance(op, Op) and len(node.types) == 1 and (every or op.multiply_adds is not None)


def _rows(
    written: CheckedOperation, columns: Sequence[tuple[Any, bool]], members: int
) -> list[np.ndarray]:
    """Compute all members together."""
    values = [_native.value_array(x) for x, _ in columns if isinstance(x, Value)]
    given = dict(zip(written.inputs, map(_native.node_of, values), strict=True))
    outputs = substituted(written.all, given)
    found = _values(outputs)
    return [
        x if stacked else np.broadcast_to(x, (members, *x.shape))
        for x, stacked in zip(found, written.rows, strict=True)
    ]


def _values(nodes: Sequence[Node]) -> list[np.ndarray]:
    with within(**ALONE):
        pending = [node for node in nodes if node.pending]
        failure = pipeline.compute(pending) if pending else None
    if failure is not None:
        raise failure
    return [dense.export(value) for node in nodes if (value := node.value()) is not None]


def _leaves(columns: Sequence[tuple[Any, bool]], node: Node, number: int) -> list[Any]:
    """What a member reads: Arrays, and Python's numbers as they were written."""
    found: list[Any] = []
    for (x, stacked), below in zip(columns, node.inputs or [None] * len(columns), strict=True):
        if not isinstance(x, Value):
            continue
        values = dense.export(x)[number] if stacked else dense.export(x)
        found.append(
            below.scalar
            if below is not None and below.is_scalar
            else _native.value_array(dense.adopt(np.array(values), x.type.device))
        )
    return found


def _difference(
    written: CheckedOperation, leaves: Sequence[Any], found: Sequence[np.ndarray], number: int
) -> tuple[Node | None, tuple[int, ...], Any, Any] | None:
    """Compute a member by itself; return where it differs: the operation that is to blame, if it is
    known, the index, and the values in the group and alone.
    """
    graph, device = written.one, written.all.nodes[written.all.outputs[0]].type.device
    known = dict(zip(written.leaves, leaves, strict=True))
    chosen = {at: i for i, at in enumerate(graph.outputs) if i >= written.results}
    made: list[Any] = []
    alone: dict[int, tuple[Node, list[Any]]] = {}
    for at, (node, inputs) in enumerate(zip(graph.nodes, graph.inputs, strict=True)):
        given = [made[i] for i in inputs]
        if node in known:
            made.append(known[node])
        elif not inputs:
            made.append(node.scalar if node.is_scalar else _native.array_of(node))
        elif node.op is None:
            made.append(given[0][node.params[0]])
        else:
            made.append(_native.apply(node.op.id, tuple(given), node.params))
        if at in chosen:  # what reads it reads the group's
            alone[at] = _native.node_of(made[at]), given
            row = np.array(found[chosen[at]][number])
            made[at] = _native.value_array(dense.adopt(row, device))
    for at, (node, given) in alone.items():
        wrong = _unlike(found[chosen[at]][number], _values([node])[0], _bound(node, given))
        if wrong:
            return graph.nodes[at], *wrong
    results = [_native.node_of(made[at]) for at in graph.outputs[: written.results]]
    for row, value in zip(found, _values(results), strict=False):
        wrong = _unlike(row[number], value, None)
        if wrong:
            return None, *wrong
    return None


Bound = Callable[[np.ndarray], Any]


def _unlike(
    together: np.ndarray, alone: np.ndarray, bound: Bound | None
) -> tuple[tuple[int, ...], Any, Any] | None:
    """Return the first index where two results differ by more than they may, and both values."""
    wrong = different(together, alone)
    if bound is not None and wrong.any():
        with np.errstate(all="ignore"):
            wide_ = np.complex128 if kind_of(alone.dtype) == "c" else np.float64
            apart = np.abs(together.astype(wide_) - alone.astype(wide_))
            wrong &= ~(apart <= bound(alone))
    if not wrong.any():
        return None
    at = tuple([int(i) for i in np.argwhere(wrong)[0]])
    return at, together[at], alone[at]


def _bound(node: Node, given: Sequence[Any]) -> Bound | None:
    """How far a call's results may be apart; None where they must be the same."""
    op: Op[...] = node.op
    dtype = node.type.dtype
    if op.multiply_adds is None or kind_of(dtype) not in "fc":
        return None
    eps = float(ml_dtypes.finfo(wide(dtype)).eps)  # type: ignore[no-untyped-call]  # theirs
    rounding = float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]  # theirs
    nodes = [_native.node_of(x) for x in given]
    values = [np.abs(x.astype(np.complex128)) for x in _values(nodes)]
    if op.contraction is None:
        matrix = next(x for x in _values(nodes) if x.ndim > 1)
        order = max(matrix.shape[-2:])

        def of_solve(alone: np.ndarray) -> Any:
            condition = np.max(np.linalg.cond(matrix.astype(np.complex128)), initial=1.0)
            return 2 * SLACK * order * eps * condition * np.max(np.abs(alone), initial=0.0)

        return of_solve
    types = tuple([x.type for x in nodes])
    axes = op.contraction(types, *node.params).contracted[0]
    length = int(np.prod([types[0].shape[axis] for axis in axes], dtype=np.int64))
    reference = op.reference
    assert reference is not None, "a product has NumPy's meaning"
    moduli = np.abs(reference(*values, *node.params))

    def of_sum(alone: np.ndarray) -> Any:
        return 2 * SLACK * (length + 1) * eps * moduli + 2 * rounding * np.abs(alone)

    return of_sum


def _error(
    op: Op[...],
    node: Node,
    number: int,
    members: int,
    blamed: Node | None,
    at: tuple[int, ...],
    together: Any,
    alone: Any,
) -> RunError:
    within_ = f" ({blamed.name} in it)" if blamed is not None and op.body else ""
    line = f" (written at {node.origin[0]}:{node.origin[1]})" if node.origin else ""
    rule = (
        f"member {number} of {members} computed together{within_} has {together} at {at}, "
        f"and {alone} by itself{line}"
    )
    remedy = "fix batch= of the operation, or compute each by itself: tn.options(batch=False)"
    return RunError(op.name, rule, remedy=remedy)
