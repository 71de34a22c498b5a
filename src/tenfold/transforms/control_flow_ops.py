"""Control flow operations: compute loops and branches, and their batch rules.

Takes the operands of `tn.scan`, `tn.while_loop` and `tn.cond` (`transforms/control_flow.py`) with
the Subgraphs of their functions as parameters, returns their results. A step is a call of its
Subgraph: planned once, and replayed by native code (`native/python/scan_loop.cpp`) for each step.
The batch rules batch the Subgraph.

The operands of a scan are the carry, then the arrays with a row for each step. Those of a
while_loop are the first condition, then the carry. Those of a cond are its condition,
then the operands of its functions. In all three the captured arrays come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Type, Value
from tenfold.core.interpreter import rebuild_with_origin
from tenfold.core.op import BoundCall, Inferred, Kind, Op
from tenfold.core.subgraph import Subgraph
from tenfold.dtypes import BOOL, kind_of
from tenfold.errors import UnsupportedError
from tenfold.ops.batch_rules import Members
from tenfold.ops.reduce import any as any_
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import where
from tenfold.ops.stop_gradient import stop_gradient
from tenfold.storage import dense
from tenfold.transforms.batch_interpreter import (
    IMPLICIT_BATCH,
    BatchedNode,
    BatchedSubgraph,
    with_batch_axis,
)
from tenfold.transforms.call_op import Callee, interned_callee
from tenfold.transforms.loop_derivatives import (
    checkpoint_back,
    cond_back,
    scan_back,
    while_along,
)

Compute = Callable[..., Sequence[Value]]


def _compute_scan(
    operands: Sequence[Value],
    step: Callee,
    carry_count: int,
    xs_count: int,
    length: int,
    reverse: bool,
    device: str,
) -> list[Value]:
    carry, remaining = list(operands[:carry_count]), operands[carry_count:]
    ys = []
    for type_ in step.subgraph.types[carry_count:]:
        stacked_type = Type((length, *type_.shape), type_.dtype, device)
        ys.append(Value.allocate(stacked_type, stacked_type.size * stacked_type.dtype.itemsize))
    xs, captures = remaining[:xs_count], remaining[xs_count:]
    step.repeat("tn.scan", carry, xs, captures, ys, steps=length, reverse=reverse)
    return [*carry, *ys]


def _compute_while(
    operands: Sequence[Value], step: Callee, carry_count: int, _: str
) -> list[Value]:
    first_condition, *remaining = operands
    carry = remaining[:carry_count]
    if _is_true(first_condition):
        step.repeat("tn.while_loop", carry, (), remaining[carry_count:])
    return carry


def _compute_cond(
    values: Sequence[Value],
    true_branch: Callee,
    false_branch: Callee,
    operand_count: int,
    true_capture_count: int,
    _: str,
) -> list[Value]:
    condition, *remaining = values
    is_true = _is_true(condition)
    captures = (
        remaining[operand_count : operand_count + true_capture_count]
        if is_true
        else remaining[operand_count + true_capture_count :]
    )
    return (true_branch if is_true else false_branch).compute(
        [*remaining[:operand_count], *captures]
    )


def _compute_checkpoint(values: Sequence[Value], call: Callee, _: str) -> list[Value]:
    return call.compute(values)


def _is_true(value: Value) -> bool:
    return bool(memoryview(value)[0]) if value.is_on_host else bool(dense.export(value).item())


def _compute_fields(compute: Compute) -> dict[str, Callable[..., Any]]:
    """Return the Op fields `on_values` and `reference` for a function that computes Values."""

    def on_values(inputs: Sequence[Value], *params: Any) -> tuple[Value, ...]:
        """Compute row-major Values; no two of them, and no input, share memory."""
        device, results = params[-1], []
        buffers = {_native.identity_of(value)[1] for value in inputs}
        for value in compute(inputs, *params):
            is_owner = not (value.strides or value.is_view or value.owner is not None)
            if not is_owner or _native.identity_of(value)[1] in buffers:
                value = dense.copy_to_pool(dense.export(value), device)
            buffers.add(_native.identity_of(value)[1])
            results.append(value)
        return tuple(results)

    def reference(*operands: Any) -> tuple[np.ndarray, ...]:
        arrays = [x for x in operands if isinstance(x, np.ndarray)]
        params = operands[len(arrays) :]
        inputs = [dense.adopt(x, params[-1]) for x in arrays]
        return tuple(map(dense.export, on_values(inputs, *params)))

    return {"on_values": on_values, "reference": reference}


def _scan_rule(types: tuple[Type, ...], *params: Any) -> Inferred:
    step, carry_count, _, length, *_ = params
    ys = [
        ((length, *result_type.shape), result_type.dtype)
        for result_type in step.subgraph.types[carry_count:]
    ]
    carry = [
        (result_type.shape, result_type.dtype) for result_type in step.subgraph.types[:carry_count]
    ]
    return Inferred((*carry, *ys), tuple([type_.dtype for type_ in types]))


def _while_rule(types: tuple[Type, ...], step: Callee, carry_count: int, _: str) -> Inferred:
    carry = tuple([(type_.shape, type_.dtype) for type_ in step.subgraph.types[:carry_count]])
    return Inferred(carry, tuple([type_.dtype for type_ in types]))


def _cond_rule(types: tuple[Type, ...], true_branch: Callee, *_: Any) -> Inferred:
    results = tuple([(type_.shape, type_.dtype) for type_ in true_branch.subgraph.types])
    return Inferred(results, tuple([type_.dtype for type_ in types]))


def subgraph_of_arrays(name: str, outputs: Sequence[Array], inputs: Sequence[Array]) -> Subgraph:
    """Return the Subgraph of output arrays on placeholder arrays."""
    nodes = [*map(_native.node_of, outputs)], [*map(_native.node_of, inputs)]
    return Subgraph(name, *nodes, rebuild_with_origin)


def _batch_step(
    step: Subgraph, batched_flags: list[bool], carry_count: int, length: int
) -> BatchedSubgraph:
    """Batch a step until its flags are stable: a carry batched after it is batched before it."""
    while True:
        batched_step = BatchedSubgraph(step, batched_flags, length)
        updated_flags = [
            old_flag or new_flag
            for old_flag, new_flag in zip(
                batched_flags[:carry_count], batched_step.result_flags(), strict=False
            )
        ]
        if updated_flags == batched_flags[:carry_count]:
            return batched_step
        batched_flags[:carry_count] = updated_flags


def _batched_operands(members: Members, batched_flags: Sequence[bool]) -> list[Any]:
    """Return the operands; those with a flag get the batch axis."""
    positions = range(len(members.operands))
    return [members.in_front(at) if batched_flags[at] else members.operands[at] for at in positions]


def _call_members(
    members: Members, operands: Sequence[Any], params: tuple[Any, ...]
) -> list[Array]:
    result = members.call(operands, params)
    return list(result) if isinstance(result, tuple) else [result]


def _with_batch_axes(
    members: Members, results: Sequence[Array], batched_flags: Sequence[bool]
) -> Any:
    """Return the batched results in the form that a batch rule returns."""
    pairs = zip(results, batched_flags, strict=True)
    batched_results = [
        with_batch_axis(BatchedNode(x, is_batched), members.length) for x, is_batched in pairs
    ]
    return batched_results[0] if len(batched_results) == 1 else tuple(batched_results)


def _batch_scan(members: Members, *params: Any) -> Any:
    step, carry_count, xs_count, length, reverse, device = params
    batched_flags = list(members.batched)
    batched_step = _batch_step(step.subgraph, batched_flags, carry_count, members.length)
    result_flags = [*batched_flags[:carry_count], *batched_step.result_flags()[carry_count:]]
    operands = _batched_operands(members, batched_flags)
    for at in range(carry_count, carry_count + xs_count):
        if batched_flags[at]:
            operands[at] = members.to_front(operands[at], 1)
    batched_params = (
        interned_callee(batched_step.to_subgraph(result_flags)),
        carry_count,
        xs_count,
        length,
        reverse,
        device,
    )
    results = _call_members(members, operands, batched_params)
    for at in range(carry_count, len(results)):
        if result_flags[at]:
            results[at] = members.to_front(results[at], 1)
    return _with_batch_axes(members, results, result_flags)


def _batch_while(members: Members, step: Callee, carry_count: int, device: str) -> Any:
    (condition_batched, *batched_flags), length = members.batched, members.length
    batched_step = _batch_step(step.subgraph, batched_flags, carry_count, length)
    if not condition_batched and not batched_step.result_flags()[carry_count]:
        operands = _batched_operands(members, (condition_batched, *batched_flags))
        loop_body = batched_step.to_subgraph([*batched_flags[:carry_count], False])
        batched_params = interned_callee(loop_body), carry_count, device
        results = _call_members(members, operands, batched_params)
        return _with_batch_axes(members, results, batched_flags[:carry_count])
    batched_flags[:carry_count] = [True] * carry_count
    batched_step = BatchedSubgraph(step.subgraph, batched_flags, length)
    inputs = [_native.array_of(node) for node in batched_step.inputs]
    active = _native.placeholder(Type((length,), BOOL, device))
    *next_carry, next_condition = [with_batch_axis(entry, length) for entry in batched_step.results]
    masked_carry = [_select(active, x, old) for x, old in zip(next_carry, inputs, strict=False)]
    still_active = active & next_condition
    loop_body = subgraph_of_arrays(
        step.subgraph.name,
        [still_active, *masked_carry, any_(still_active)],
        [active, *inputs],
    )
    first_active, *operands = _batched_operands(members, (True, *batched_flags))
    batched_params = interned_callee(loop_body), carry_count + 1, device
    _, *results = _call_members(
        members, [any_(first_active), first_active, *operands], batched_params
    )
    return _with_batch_axes(members, results, batched_flags[:carry_count])


def _select(pred: Array, x: Array, y: Array) -> Array:
    """Return for each member `x` where `pred`, else `y`."""
    return where(reshape(pred, (*pred.shape, *(1,) * (x.ndim - 1))), x, y)


def _for_members(pred: Array, x: Array, is_chosen: bool) -> Array:
    """Return `x`, with a derivative in the members alone that have chosen the branch.

    The derivative of a branch that a member has not chosen may be infinite, and 0 * inf is NaN.
    """
    if kind_of(x.dtype) not in "fc":
        return x
    return _select(pred, x, stop_gradient(x)) if is_chosen else _select(pred, stop_gradient(x), x)


def _batch_cond(members: Members, *params: Any) -> Any:
    true_branch, false_branch, operand_count, true_capture_count, device = params
    condition_batched, *batched_flags = members.batched
    length, true_end = members.length, operand_count + true_capture_count
    branch_operands = (
        [*range(true_end)],
        [*range(operand_count), *range(true_end, len(batched_flags))],
    )
    batched_branches = [
        BatchedSubgraph(branch.subgraph, [batched_flags[at] for at in positions], length)
        for branch, positions in zip((true_branch, false_branch), branch_operands, strict=True)
    ]
    if not condition_batched:
        result_flags = [
            a or b
            for a, b in zip(
                batched_branches[0].result_flags(), batched_branches[1].result_flags(), strict=True
            )
        ]
        branches = [interned_callee(x.to_subgraph(result_flags)) for x in batched_branches]
        batched_params = (*branches, operand_count, true_capture_count, device)
        return _with_batch_axes(
            members, _call_members(members, members.operands, batched_params), result_flags
        )
    if IMPLICIT_BATCH.get():
        rule = "each member computes what it has chosen"
        raise UnsupportedError("tn.cond", rule, remedy="compute them one by one")
    pred, *operands = members.operands
    branch_results = [
        branch_.to_subgraph([True] * len(branch_.results)).apply(
            [
                _for_members(pred, operands[at], is_chosen) if batched_flags[at] else operands[at]
                for at in positions
            ]
        )
        for branch_, positions, is_chosen in zip(
            batched_branches, branch_operands, (True, False), strict=True
        )
    ]
    results = [_select(pred, x, y) for x, y in zip(*branch_results, strict=True)]
    return _with_batch_axes(members, results, [True] * len(results))


def _batch_checkpoint(members: Members, call: Callee, device: str) -> Any:
    batched = BatchedSubgraph(call.subgraph, members.batched, members.length)
    flags = batched.result_flags()
    params = interned_callee(batched.to_subgraph(flags)), device
    return _with_batch_axes(members, _call_members(members, members.operands, params), flags)


def body_with_condition(body: Callee, condition: Callee, carry_count: int) -> Callee:
    """Return a body whose last result is the condition of its new carry.

    Both take `carry_count` arrays, then their captured arrays.
    """
    first, second = body.subgraph, condition.subgraph
    condition_captures = [_native.placeholder(node.type) for node in second.inputs[carry_count:]]
    outputs = [_native.array_of(node) for node in first.outputs]
    inputs = [_native.array_of(node) for node in first.inputs]
    subgraph = subgraph_of_arrays(
        first.name,
        [*outputs, *second.apply([*outputs, *condition_captures])],
        [*inputs, *condition_captures],
    )
    return interned_callee(subgraph)


def _callee_lines(head: str, callee: Callee) -> list[str]:
    return [head, *(f"  {line}" for line in str(callee.subgraph.graph).splitlines())]


def _explain_scan(
    step: Callee, _carry_count: int, _xs_count: int, length: int, *_: Any
) -> list[str]:
    return _callee_lines(f"{length:,} steps, each of them:", step)


def _explain_while(step: Callee, carry_count: int, _: str) -> list[str]:
    condition = step.subgraph.graph.outputs[carry_count]
    return _callee_lines(f"steps until %{condition} is false:", step)


def _explain_cond(true_branch: Callee, false_branch: Callee, *_: Any) -> list[str]:
    return [
        *_callee_lines(f"where it is true, {true_branch.subgraph.name}:", true_branch),
        *_callee_lines(f"else, {false_branch.subgraph.name}:", false_branch),
    ]


def _explain_checkpoint(call: Callee, _: str) -> list[str]:
    return _callee_lines(f"{call.subgraph.name}, computed by itself:", call)


def _bind(*inputs: Array, params: tuple[Any, ...]) -> BoundCall:
    return BoundCall(inputs, params)


def _control_op(name: str, **fields: Any) -> Op[...]:
    return Op.declare(
        name=name,
        page="control",
        function=_bind,
        kind=Kind.CONTRACTION,
        bind=_bind,
        can_fail=True,
        public=False,
        **fields,
    )


def _scan_back(*arguments: Any) -> list[Array | None]:
    return scan_back(SCAN, *arguments)


def _cond_back(*arguments: Any) -> list[Array | None]:
    return cond_back(COND, *arguments)


def _while_along(*arguments: Any) -> list[Array]:
    return while_along(WHILE, *arguments)


def _checkpoint_back(*arguments: Any) -> list[Array | None]:
    return checkpoint_back(CHECKPOINT, *arguments)


SCAN = _control_op(
    "scan",
    rule=_scan_rule,
    **_compute_fields(_compute_scan),
    batch=_batch_scan,
    explain_lines=_explain_scan,
    unbounded_time=True,
    vjp=_scan_back,
)
WHILE = _control_op(
    "while_loop",
    rule=_while_rule,
    **_compute_fields(_compute_while),
    batch=_batch_while,
    explain_lines=_explain_while,
    unbounded_time=True,
    jvp=_while_along,
)
COND = _control_op(
    "cond",
    rule=_cond_rule,
    **_compute_fields(_compute_cond),
    batch=_batch_cond,
    explain_lines=_explain_cond,
    vjp=_cond_back,
)
CHECKPOINT = _control_op(
    "checkpoint",
    rule=_cond_rule,
    **_compute_fields(_compute_checkpoint),
    batch=_batch_checkpoint,
    explain_lines=_explain_checkpoint,
    vjp=_checkpoint_back,
)

__all__ = ["CHECKPOINT", "COND", "SCAN", "WHILE", "body_with_condition"]
