"""Cumulative operations: running sums and products along one axis, and differences.

Within a block of 1,024 the scan is sequential, so the first 1,024 results have NumPy's bits. The
carry into a block is the sequential sum of the totals of the blocks before; it is combined with
each result of the block. So the blocks of one axis are independent but for their carries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.canonical_reduction import BLOCK, Combine, accumulation_dtypes
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, derived, operation
from tenfold.core.shape_rules import normalize_axis, normalize_count
from tenfold.dtypes import BOOL, canonical
from tenfold.errors import ShapeError
from tenfold.ops.arithmetic import multiply_unfused, subtract
from tenfold.ops.cast import convert
from tenfold.ops.comparison import not_equal
from tenfold.ops.complex import conj
from tenfold.ops.indexing import index
from tenfold.ops.joining import concat
from tenfold.ops.movement import flip
from tenfold.ops.pad import pad

_SAMPLES = (
    SampleCall(((5,),)),
    SampleCall(((2, 3),), {"axis": 1, "include_initial": True}),
    SampleCall(((2, 3),), {"axis": 0, "exclusive": True}),
    SampleCall(((0, 3),), {"axis": 0, "include_initial": True}),
    SampleCall(((2, 0),), {"axis": -1, "dtype": "float32"}),
)


def _scan(combine: Combine, x: np.ndarray) -> np.ndarray:
    """Scan the last axis of `x`, (..., n)."""
    length = x.shape[-1]
    full_length = length - length % BLOCK
    scanned = np.empty(x.shape, x.dtype)
    blocked = (*x.shape[:-1], full_length // BLOCK, BLOCK)
    scanned[..., :full_length].reshape(blocked)[...] = _scan_sequential(
        combine, x[..., :full_length].reshape(blocked)
    )
    scanned[..., full_length:] = _scan_sequential(combine, x[..., full_length:])
    carries = _scan_sequential(combine, scanned[..., BLOCK - 1 : full_length : BLOCK].copy())
    for block, start in enumerate(range(BLOCK, length, BLOCK)):
        block_view = scanned[..., start : start + BLOCK]
        block_view[...] = combine(carries[..., block, None], block_view)
    return scanned


def _scan_sequential(combine: Combine, x: np.ndarray) -> np.ndarray:
    if isinstance(combine, np.ufunc):
        return combine.accumulate(x, axis=-1, dtype=x.dtype)
    scanned = x.copy()
    for i in range(1, x.shape[-1]):
        scanned[..., i] = combine(scanned[..., i - 1], x[..., i])
    return scanned


def _reference(ufunc: np.ufunc, identity: int) -> Callable[..., np.ndarray]:
    def reference(
        x: np.ndarray, axis: int, dtype: Any, include_initial: bool, exclusive: bool
    ) -> np.ndarray:
        rows = np.moveaxis(x, axis, -1)
        combine = multiply_unfused if ufunc is np.multiply and x.dtype.kind == "c" else ufunc
        scanned = _scan(combine, rows)
        if include_initial or exclusive:
            initial = np.full((*rows.shape[:-1], 1), identity, x.dtype)
            scanned = np.concatenate((initial, scanned), axis=-1)
        if exclusive:
            scanned = scanned[..., : rows.shape[-1]]
        return np.moveaxis(scanned, -1, axis)

    return reference


def _scan_rule(
    types: tuple[Type, ...], axis: int, dtype: Any, include_initial: bool, exclusive: bool
) -> Inferred:
    (type_,) = types
    operand, result = accumulation_dtypes(type_, dtype)
    shape = list(type_.shape)
    shape[axis] += include_initial
    return Inferred(((tuple(shape), result),), (operand,))


def _bind_scan(
    x: Any, axis: int | None, dtype: Any, include_initial: bool, exclusive: bool
) -> BoundCall:
    x = array(x)
    if axis is None and x.ndim != 1:
        raise ShapeError(
            "",
            f"an array of {x.ndim} axes has no one axis to scan",
            remedy="name it, as in axis=-1",
        )
    if include_initial and exclusive:
        raise ShapeError(
            "",
            "include_initial and exclusive both put the identity first",
            remedy="include_initial keeps the total and has one element more; exclusive drops it",
        )
    return BoundCall(
        (x,),
        (
            normalize_axis(0 if axis is None else axis, x.ndim),
            None if dtype is None else canonical(dtype, ""),
            bool(include_initial),
            bool(exclusive),
        ),
    )


def _of_elements(g: Array, axis: int, include_initial: bool) -> Array:
    """Return the cotangents of the running results, without that of the initial one."""
    return index(g, (*(slice(None),) * axis, slice(1, None))) if include_initial else g


def _shifted(x: Array, axis: int, distance: int) -> Array:
    """Return the elements that are `distance` further along an axis, and 0 beyond its end."""
    key = (*(slice(None),) * axis, slice(distance, None))
    widths = [(0, distance * (at == axis)) for at in range(x.ndim)]
    return pad(index(x, key), widths)


def _summed_back(
    g: Array, y: Array, x: Array, axis: int, dtype: Any, include_initial: bool, exclusive: bool
) -> tuple[Array]:
    turned = flip(_of_elements(g, axis, include_initial), axis=axis)
    return (flip(cumulative_sum(turned, axis=axis, exclusive=exclusive), axis=axis),)


def _multiplied_back(
    g: Array, y: Array, x: Array, axis: int, dtype: Any, include_initial: bool, exclusive: bool
) -> tuple[Array]:
    """Multiply the product before each element by a sum over the products behind it: there is no
    quotient, so it is exact with zeros. The sum is the linear recurrence
    s[i] = g[i] + x[i + 1] * s[i + 1], by recursive doubling (Kogge and Stone 1973).
    """
    factors = conj(convert(x, y.dtype))
    total = _of_elements(g, axis, include_initial)
    total = _shifted(total, axis, 1) if exclusive else total
    ratio, distance = _shifted(factors, axis, 1), 1
    while distance < x.shape[axis]:
        total = total + ratio * _shifted(total, axis, distance)
        ratio = ratio * _shifted(ratio, axis, distance)
        distance *= 2
    return (cumulative_prod(factors, axis=axis, exclusive=True) * total,)


@operation(
    rule_free=True,
    bind_depends_on="types",
    rule=_scan_rule,
    reference=_reference(np.add, 0),
    scanning="add",
    numpy=(np.cumulative_sum,),
    samples=_SAMPLES,
    vjp=_summed_back,
)
def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    exclusive: bool = False,
) -> BoundCall:
    """Running sum along `axis`, which may be left out for one axis; the shape of `x`.

    `include_initial` puts 0 first and makes n + 1 elements; `exclusive` puts 0 first and leaves
    the total out. Dtypes are those of `tn.sum`: integers in int64 or uint64, halves accumulate in
    float32. Sequential in blocks of 1,024; a block is added to the sum of the totals before it.

    Raises ShapeError for an axis out of range or left out of several, and for both options at once.

    >>> import tenfold as tn
    >>> x = tn.asarray([[0, 1, 2], [3, 4, 5]])
    >>> tn.cumulative_sum(x, axis=1).tolist()
    [[0, 1, 3], [3, 7, 12]]
    >>> tn.cumulative_sum(x, axis=1, exclusive=True).tolist()
    [[0, 0, 1], [0, 3, 7]]
    """
    return _bind_scan(x, axis, dtype, include_initial, exclusive)


@operation(
    rule_free=True,
    bind_depends_on="types",
    rule=_scan_rule,
    reference=_reference(np.multiply, 1),
    scanning="product",
    numpy=(np.cumulative_prod,),
    samples=_SAMPLES,
    vjp=_multiplied_back,
)
def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
    exclusive: bool = False,
) -> BoundCall:
    """Running product along `axis`, which may be left out for one axis; the shape of `x`.

    `include_initial` puts 1 first and makes n + 1 elements; `exclusive` puts 1 first and leaves
    the total out. Dtypes, order and errors are those of `tn.cumulative_sum`.

    >>> import tenfold as tn
    >>> tn.cumulative_prod(tn.asarray([2, 3, 4]), include_initial=True).tolist()
    [1, 2, 6, 24]
    """
    return _bind_scan(x, axis, dtype, include_initial, exclusive)


@derived(
    numpy=(np.diff,),
    samples=[
        SampleCall(((5,),)),
        SampleCall(((3, 4),), {"axis": 0, "n": 2}),
        SampleCall(((0, 2),), {"axis": 0}),
        SampleCall(((2, 1),), {"n": 3}),
    ],
    section="utility",
)
def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> Array:
    """Differences of neighbours along `axis`, each minus the one before it, taken `n` times.

    `prepend` and `append` are joined to `x` first, so the axis has their length less `n`, and 0 at
    least. The dtype of `x`: unsigned integers wrap; for bool, whether neighbours differ.

    Raises ShapeError for an axis out of range, for a negative `n`, and for what cannot be joined.

    >>> import tenfold as tn
    >>> tn.diff(tn.asarray([1, 4, 9, 16]), prepend=tn.asarray([0])).tolist()
    [1, 3, 5, 7]
    >>> tn.diff(tn.asarray([1, 4, 9, 16]), n=2).tolist()
    [2, 2]
    """
    x = array(x)
    position = normalize_axis(axis, x.ndim)
    order = normalize_count(n, "n")
    operands = [array(operand) for operand in (prepend, x, append) if operand is not None]
    values = concat(operands, axis=position) if len(operands) > 1 else x
    leading = (slice(None),) * position
    difference = not_equal if values.dtype == BOOL else subtract
    for _ in range(min(order, values.shape[position])):
        upper, lower = (*leading, slice(1, None)), (*leading, slice(None, -1))
        values = difference(index(values, upper), index(values, lower))
    return values
