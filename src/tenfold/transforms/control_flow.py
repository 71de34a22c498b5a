"""Control flow (`tn.scan`, `tn.while_loop`, `tn.cond`): lazy loops and branches, each one node.

Takes Python functions and trees of arrays, returns trees of lazy arrays. The functions are traced
and checked when the loop is built; `transforms/control_flow_ops.py` computes it.

>>> import tenfold as tn
>>> total, sums = scan(lambda carry, x: (carry + x, carry + x), 0.0, tn.asarray([1.0, 2.0, 3.0]))
>>> total.item(), sums.tolist()
(6.0, [1.0, 3.0, 6.0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tenfold import _native
from tenfold._native import Array, Type
from tenfold.core.callable_signature import name_of
from tenfold.core.op import Op
from tenfold.errors import message
from tenfold.settings import checked_device
from tenfold.transforms.control_flow_ops import COND, SCAN, WHILE, body_with_condition
from tenfold.transforms.loop_carry import (
    check_carry,
    check_condition,
    check_same_results,
    checked_callable,
    checked_length,
    flatten_arrays,
    structure_text,
    without_structure,
)
from tenfold.transforms.trace_cache import cached_trace

Function = Callable[..., Any]


def scan(
    f: Function, init: Any, xs: Any = None, *, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Carry a value through a loop over the first axis of arrays: `(carry, ys)`.

    `f(carry, x)` returns the next carry and y. It is traced once for any number of steps; a step
    computes the traced operations only. Equivalent to

        ys = []
        for x in xs:
            init, y = f(init, x)
            ys.append(y)
        return init, tn.stack(ys)

    - `init` is the first carry. `x` is a row of `xs`, `(length, ...)`. All of them, and y, are
      arrays or trees of arrays: tuples, named tuples, lists, dicts, dataclasses, to any depth.
    - Without `xs` x is None, and `length` is the number of steps, which may be 0. If f has no y it
      returns None, and ys is None.
    - `reverse` begins with the last row; row i of ys still belongs to row i of xs.
    - The carry keeps its structure, shapes and dtypes. A Python number in `init` becomes an array.
    - Captured arrays are read when `scan` is called.

    Raises ShapeError for lengths that differ, ShapeError, DTypeError or TypeError for a carry that
    changes, TypeError where f returns no pair, UnsupportedError where it asks for values. A failure
    of a step, which depends on values, is raised at the wait, with the line in f.

    The form is that of `jax.lax.scan` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> def decay(h, x):
    ...     h = 0.5 * h + x
    ...     return h, {"h": h, "square": h * h}
    >>> last, all_ = tn.scan(decay, tn.asarray(0.0), tn.asarray([4.0, 2.0, 1.0]))
    >>> last.item(), all_["square"].tolist()
    (3.0, [16.0, 16.0, 9.0])
    """
    name = "tn.scan"
    checked_callable(name, f)
    carry, form = flatten_arrays(name, "init", init)
    xs_leaves, xs_structure = flatten_arrays(name, "xs", xs)
    steps = checked_length(xs_leaves, xs_structure, length)
    row_inputs = [_native.placeholder(Type(x.shape[1:], x.dtype, x.device)) for x in xs_leaves]
    carried = form.unflatten(list(map(without_structure, carry)))
    body_trace = cached_trace(name, f, (carried, xs_structure.unflatten(row_inputs)))
    outputs, returned = body_trace.trace.subgraph.outputs, body_trace.trace.structure
    if not issubclass(returned.type or int, (tuple, list)) or len(returned.children) != 2:
        rule = f"{name_of(f)} returned {structure_text(returned)}, no pair of a carry and y"
        raise TypeError(message(name, rule, remedy="return (carry, y); y may be None"))
    carry_structure, ys_structure = returned.children
    count = len(carry)
    check_carry(name, f, init, outputs[: carry_structure.leaves], carry_structure)
    inputs = [*carry, *xs_leaves, *body_trace.trace.captured_arrays()]
    params = (body_trace.callee, count, len(xs_leaves), steps, bool(reverse), _device(inputs))
    results = _apply(SCAN, inputs, params) if outputs else ()
    return form.unflatten(results[:count]), ys_structure.unflatten(results[count:])


def while_loop(condition: Function, body: Function, init: Any) -> Any:
    """Compute `body(carry)` again and again, from `init` on, while `condition(carry)` is true.

    `condition` returns a 0-d array of bool, `body` the next carry, of the structure, shapes and
    dtypes of `init`: an array or a tree of them (tuples, named tuples, lists, dicts, dataclasses).
    Both are traced once. Nothing runs before the result is asked for; then each step computes the
    traced operations. Equivalent to

        while condition(init):
            init = body(init)
        return init

    Captured arrays are read when `while_loop` is called. Ctrl-C ends an endless loop, and its
    result can be asked for again.

    Under `tn.vmap` it runs until the loop of every member has ended. A finished member keeps its
    values, which have the bits of an unbatched loop. Its body is still computed, and the result is
    discarded.

    Raises ShapeError, DTypeError or TypeError for a carry that changes or a condition that is no
    0-d bool, UnsupportedError where a function asks for values.

    The form is that of `jax.lax.while_loop` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> def is_far(s): return tn.abs(s["root"] ** 2 - 2) > 1e-12
    >>> def newton(s): return {"root": (s["root"] + 2 / s["root"]) / 2, "steps": s["steps"] + 1}
    >>> found = tn.while_loop(is_far, newton, {"root": 1.0, "steps": 0})
    >>> found["root"].item(), found["steps"].item()
    (1.414213562373095, 5)
    """
    name = "tn.while_loop"
    for function in (condition, body):
        checked_callable(name, function)
    carry, form = flatten_arrays(name, "init", init)
    tree, carry_count = form.unflatten(list(map(without_structure, carry))), len(carry)
    condition_trace = cached_trace(name, condition, (tree,))
    subject, types = f"what {name_of(condition)} returned", condition_trace.trace.subgraph.types
    check_condition(name, subject, condition_trace.trace.structure, types)
    body_trace = cached_trace(name, body, (tree,))
    check_carry(name, body, init, body_trace.trace.subgraph.outputs, body_trace.trace.structure)
    if not carry_count:
        rule = "init has no array, so that nothing could end the loop"
        raise TypeError(message(name, rule, remedy="carry what the condition depends on"))
    condition_captures = condition_trace.trace.captured_arrays()
    (first_condition,) = condition_trace.trace.subgraph.apply([*carry, *condition_captures])
    inputs = [first_condition, *carry, *body_trace.trace.captured_arrays(), *condition_captures]
    params = (
        body_with_condition(body_trace.callee, condition_trace.callee, carry_count),
        carry_count,
        _device(inputs),
    )
    return form.unflatten(_apply(WHILE, inputs, params))


def cond(pred: Any, true_function: Function, false_function: Function, *operands: Any) -> Any:
    """Compute `true_function(*operands)` where `pred` is true, else `false_function(*operands)`.

    `pred` is a bool, or a 0-d array of bool; its value is not needed before the result is computed.
    Only the selected function is computed then. Operands are arrays or trees of them (tuples, named
    tuples, lists, dicts, dataclasses). Both functions return the same structure of arrays, of the
    same shapes and dtypes. Captured arrays are read when `cond` is called.

    Under `tn.vmap`, if `pred` is batched, both functions are computed for all members and each
    member selects its result: a failure in either raises. If `pred` is shared, one is computed.

    Raises ShapeError, DTypeError or TypeError for a pred that is not a 0-d bool, or for results of
    different structure or Types, UnsupportedError where a function asks for values.

    The form is that of `jax.lax.cond` (Bradbury et al. 2018).

    >>> import tenfold as tn
    >>> x = tn.asarray([3.0, 4.0])
    >>> tn.cond(tn.sum(x) > 1, lambda x: x / tn.sum(x), lambda x: x, x).tolist()
    [0.42857142857142855, 0.5714285714285714]
    """
    name = "tn.cond"
    for function in (true_function, false_function):
        checked_callable(name, function)
    preds, leaf = flatten_arrays(name, "pred", pred)
    check_condition(name, "pred", leaf, [_native.node_of(x).type for x in preds])
    operand_leaves, form = flatten_arrays(name, "operands", operands)
    args = form.unflatten(operand_leaves)
    true_trace = cached_trace(name, true_function, args, hoist=False)
    false_trace = cached_trace(name, false_function, args, hoist=False)
    check_same_results(true_function, true_trace.trace, false_function, false_trace.trace)
    structure = true_trace.trace.structure
    if not structure.leaves:
        return structure.unflatten(())
    true_captures, false_captures = (
        true_trace.trace.captured_arrays(),
        false_trace.trace.captured_arrays(),
    )
    inputs = [*preds, *operand_leaves, *true_captures, *false_captures]
    params = (
        true_trace.callee,
        false_trace.callee,
        len(operand_leaves),
        len(true_captures),
        _device(inputs),
    )
    return structure.unflatten(_apply(COND, inputs, params))


def _device(inputs: Sequence[Array]) -> str:
    return inputs[0].device if inputs else checked_device(None)


def _apply(op: Op[...], inputs: Sequence[Array], params: tuple[Any, ...]) -> tuple[Array, ...]:
    """Make the node of a loop or branch and return its results."""
    result: Any = _native.apply(op.id, tuple(inputs), params)
    return result if isinstance(result, tuple) else (result,)


__all__ = ["cond", "scan", "while_loop"]
