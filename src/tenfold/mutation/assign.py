"""Assignment: writes to an array, a view or the result of `concat`, by `tn.assign` or `x op= e`.

Takes an Array (a view too, or the result of `tn.concat`) and a right side, and writes: see
`view_writethrough.py`.

>>> import tenfold as tn
>>> p, q = tn.zeros(2), tn.zeros(3)
>>> assign(tn.concat([p, q]), tn.arange(5.0)).shape
(5,)
>>> p.tolist(), q.tolist()
([0.0, 1.0], [2.0, 3.0, 4.0])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, cast

from tenfold import _native
from tenfold._native import Array
from tenfold.core.index_map import Slice, whole_slice
from tenfold.core.shape_rules import whole_axes
from tenfold.dtypes import same_kind
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.mutation import external_buffer
from tenfold.mutation.coerce_rhs import coerce_rhs, fit_to_part
from tenfold.mutation.noalias_check import verify
from tenfold.mutation.setitem import is_view_of
from tenfold.mutation.view_writethrough import refuse_read_only, shows_sums, sum_through, write_view
from tenfold.ops.indexing import capture, index_view
from tenfold.ops.joining import joined_arrays
from tenfold.ops.reshaping import broadcast_to
from tenfold.settings import get
from tenfold.storage.kinds import to_dense

SAVERS: dict[str, Callable[[Any, Any], Any] | None] = {
    "=": None,
    "+=": operator.add,
    "-=": operator.sub,
    "*=": operator.mul,
    "/=": operator.truediv,
}


def assign(target: Array, expr: Any, op: str = "=", *, noalias: bool = False) -> Array:
    """Assign `expr` to `target`, or what `op` ("=", "+=", "-=", "*=", "/=") makes of both; return
    the target.

    The target is an Array, also a view, through which it writes; or what `tn.concat` returned, and
    `expr` is split among the arrays that were joined. `expr` broadcasts to the target's shape; the
    shape and the dtype of the target stay. Readers of the old value keep it. `noalias=True` is
    the caller's promise that `expr` reads nothing of the target; `tn.options(verify=True)` checks
    it.

    Raises ShapeError for an `expr` that does not broadcast and for a view that repeats elements,
    DTypeError for one of another kind (float for int, complex for real), ValueError for another
    `op`, AliasError for a promise that proves wrong, TypeError for a target that is not an Array.
    After an error nothing has changed.

    >>> import tenfold as tn
    >>> y = tn.asarray([1.0, 2.0])
    >>> tn.assign(y, tn.asarray([2.0, 4.0]), "+=").tolist()
    [3.0, 6.0]
    >>> _ = tn.assign(y[1:], 0)
    >>> y.tolist()
    [3.0, 0.0]
    """
    if (target_type := type(target)) is not Array:
        rule = f"the target is {target_type.__name__}, not an Array"
        raise TypeError(message("assign", rule, remedy="make one first: x = tn.asarray(...)"))
    if op not in SAVERS:
        rule = f"op {op!r} is none of {', '.join(SAVERS)}"
        raise ValueError(message("assign", rule, [target], "use one of them"))
    if noalias not in (True, False):
        rule = f"noalias {noalias!r} is not a bool"
        raise TypeError(message("assign", rule, [target], "give True or False"))
    operation = "assign" if op == "=" else op
    expr = coerce_rhs(expr, target, operation)
    joined = joined_arrays(target)
    targets = [target] if joined is None else _require_live(target, joined, operation)
    if noalias and get("verify") and isinstance(expr, Array):
        for written_array in targets:
            verify(written_array, expr)
    if joined is None:
        write_view(*_write_arguments(target, expr, op))
    else:
        _assign_joined(target, targets, expr, op)
    return target


def assign_result(target: Array, result: Any, symbol: str) -> None:
    """Let `target` name `result`, what its operator `symbol` has made of it: `target op= e`.

    Raises DTypeError for a result of another library: `e` has elements that only NumPy holds.
    """
    if not isinstance(result, Array):
        rule = f"the result is of type {type(result).__name__}, which an Array cannot hold"
        remedy = f"convert the right side first, or write x = x {symbol} e"
        raise DTypeError(f"{symbol}=", rule, [target], remedy)
    write_view(*_update_arguments(target, result, f"{symbol}="))


def _update_arguments(target: Array, result: Array, op: str) -> tuple[Array, Slice, Any]:
    """Return the checked arguments of `write_view` for the result of `target op= e`.

    If the target shows elements several times, they are those of an array below it, to which every
    term is added.
    """
    _refuse_misfit(target, result, op)
    if not _native.has_kind(target):
        result = to_dense(result)
    if op in ("+=", "-=") and shows_sums(target):
        node = _native.node_of(result).inputs[1]
        term = node.scalar if node.is_scalar else _native.array_of(node)
        below, terms = sum_through(target, term)
        result = cast(Array, SAVERS[op](below, terms))  # type: ignore[misc]  # of two values
        target = below
    refuse_read_only(target, op)
    return target, whole_slice(target.shape), result


def _refuse_misfit(target: Array, result: Array, operation: str) -> None:
    """Raise ShapeError or DTypeError for a result that cannot replace the whole target."""
    if result.shape != target.shape:
        rule = f"a result of shape {result.shape} cannot replace shape {target.shape}"
        raise ShapeError(operation, rule, [target], "write x = x + e to make a new array")
    if not same_kind(result.dtype, target.dtype):
        rule = f"a result of {result.dtype} cannot replace {target.dtype} (same-kind rule)"
        raise DTypeError(operation, rule, [target], "write x = x + e, or convert e with tn.astype")


def _write_arguments(target: Array, expr: Any, op: str) -> tuple[Array, Slice, Any]:
    """Return the checked arguments of `write_view` that replace a whole target."""
    function = SAVERS[op]
    if function is not None:
        return _update_arguments(target, function(target, expr), op)
    value = fit_to_part(expr, target, target.shape, "assign")
    refuse_read_only(target, "assign")
    return target, whole_slice(target.shape), value


def _require_live(target: Array, joined: list[Array | None], operation: str) -> list[Array]:
    """Return the arrays that were joined. Raises ValueError when one of them is freed."""
    living = [array for array in joined if array is not None]
    if len(living) < len(joined):
        rule = f"array {joined.index(None) + 1} of the joined ones has no name any more"
        remedy = "join arrays that have names, and views of them"
        raise ValueError(message(operation, rule, [target], remedy))
    return living


def _assign_joined(target: Array, arrays: list[Array], expr: Any, op: str) -> None:
    """Split the right side among arrays; all are read before one is written."""
    operation = "assign" if op == "=" else op
    node = _native.node_of(target)
    (axis,) = node.params
    value = fit_to_part(expr, target, target.shape, operation)
    # A number is converted to each array's dtype. A view of a written array is read before.
    value = capture(value) if isinstance(value, Array) else expr
    slices = list(_split_value(value, target, [array.shape[axis] for array in arrays], axis))
    writes = [
        _write_arguments(array, slice_, op) for array, slice_ in zip(arrays, slices, strict=True)
    ]
    if any(_native.window_of(array) is not None for array in arrays):
        external_buffer.compute_before_writes(
            target, [written_value for *_, written_value in writes]
        )
    op_id, params = node.op.id, node.params
    del node  # it holds the old values
    try:
        for write_args in writes:
            write_view(*write_args)
    finally:
        result = _native.apply(op_id, tuple(arrays), params)
        _native.rebind(target, _native.node_of(result))


def _split_value(value: Any, target: Array, lengths: list[int], axis: int) -> Iterator[Any]:
    """Yield the slice of the value for each of the joined arrays."""
    broadcasted = broadcast_to(value, target.shape) if isinstance(value, Array) else value
    picks = list(whole_axes(target.shape))
    for end, length in zip(accumulate(lengths), lengths, strict=True):
        if not isinstance(broadcasted, Array):
            yield broadcasted
            continue
        picks[axis] = (end - length, length, 1) if length else (0, 0, 1)
        yield index_view(broadcasted, tuple(picks))


def view_setter(view_of: Callable[[Array], Array]) -> Callable[[Array, Any], None]:
    """Return the setter of a property that is a view, such as `T`, which also ends `x.T += e`."""

    def set_view(x: Array, value: Any) -> None:
        view = view_of(x)
        node = _native.node_of(view)
        if value is not view and not is_view_of(value, x, node.op, node.params):
            assign(view, value)

    return set_view
