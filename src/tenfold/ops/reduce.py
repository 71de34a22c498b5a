"""Reductions: sums and products over axes by the canonical tree, the rest exactly.

The tree is that of `core/canonical_reduction.py`. A maximum, a truth value or a position is the
same for every order of folding, so those are computed in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.canonical_reduction import fold_axes
from tenfold.core.op import ReductionTree, SampleCall
from tenfold.core.op_decorators import reduction, refuse_unordered
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Operand
from tenfold.core.shape_rules import Axis, normalize_axes, normalize_axis
from tenfold.dtypes import BOOL, HALVES, INT64, accumulator, kind_of, wide
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops.arithmetic import multiplied
from tenfold.ops.cast import converted_element

Axes = tuple[int, ...]
Dtypes = tuple[np.dtype, np.dtype]

SAMPLES = (
    SampleCall(((2, 3, 4),), {"axis": (0, 2)}),
    SampleCall(((3, 5),), {"axis": -1, "keepdims": True}),
    SampleCall(((2, 3),), {"axis": None}),
    SampleCall(((),)),
)
_EMPTY = (SampleCall(((2, 0),), {"axis": 1}), SampleCall(((0,),)))
_ONE_AXIS = (
    SampleCall(((2, 3, 4),), {"axis": 1}),
    SampleCall(((3, 5),), {"axis": -1, "keepdims": True}),
    SampleCall(((2, 3),)),
    SampleCall(((),)),
)


def accumulating(type_: Type, dtype: np.dtype | None) -> Dtypes:
    """Return the dtype in which `type_` is accumulated, and that of the result."""
    result = accumulator(type_.dtype) if dtype is None else dtype
    if kind_of(type_.dtype) == "c" and kind_of(result) != "c":
        raise DTypeError(
            "",
            f"cannot accumulate {type_.dtype} in {result}",
            remedy="take tn.real(x) or tn.abs(x), or leave dtype out",
        )
    return wide(result), result


def _parts(k: Body, x: Operand, index: Element) -> tuple[Element, ...]:
    return tuple(x) if isinstance(x, ComplexElement) else (k.convert(x, wide(x.dtype)),)


def _whole(parts: tuple[Element, ...]) -> Operand:
    return ComplexElement(*parts) if len(parts) == 2 else parts[0]


def _left(k: Body, parts: tuple[Element, ...], dtype: np.dtype) -> Operand:
    return converted_element(k, _whole(parts), dtype)


def _sum_left(k: Body, parts: tuple[Element, ...], dtype: np.dtype) -> Operand:
    """As NumPy: a sum of -0.0 alone is 0.0."""
    return _left(k, tuple(x if x.dtype == BOOL else x + 0 for x in parts), dtype)


def _folding(kind: str, **facts: Any) -> ReductionTree:
    return ReductionTree(**{"kind": kind, "dtype": wide, "enter": _parts, "leave": _left, **facts})


def _sum(x: np.ndarray, axes: Axes, keepdims: bool, dtype: Any) -> np.ndarray:
    folded = fold_axes(np.add, x, axes, keepdims, identity=0)
    return np.add(folded, np.zeros((), x.dtype))  # as NumPy: a sum of -0.0 alone is 0.0


@reduction(
    dtypes=accumulating,
    reference=_sum,
    folding=_folding("add", leave=_sum_left, identity=0),
    method=True,
    numpy=(np.sum,),
    samples=(*SAMPLES, *_EMPTY, SampleCall(((4, 3),), {"dtype": "float32", "axis": 0})),
)
def sum(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sum over `axis`: one, a tuple of them, or all when None. An empty sum is 0.

    `x` is (..., n, ...); a reduced axis is left out, or has length 1 with `keepdims`. The result
    has the dtype of `x`, with integers widened to int64 or uint64, where they wrap; or `dtype`, to
    which the elements are then converted first. Half types are summed in float32 and rounded once.
    The tree of additions depends on the lengths alone (docs/semantics.md).

    Raises ShapeError for an axis out of range or named twice, DTypeError for complex `x` and a real
    `dtype`.

    >>> import tenfold as tn
    >>> x = tn.asarray([[1, 5], [7, 0]])
    >>> tn.sum(x, axis=1).tolist()
    [6, 7]
    >>> tn.sum(tn.ones((3, 2, 4)), axis=(1, 2)).tolist()
    [8.0, 8.0, 8.0]
    """


def _prod(x: np.ndarray, axes: Axes, keepdims: bool, dtype: Any) -> np.ndarray:
    return fold_axes(multiplied, x, axes, keepdims, identity=1)


@reduction(
    dtypes=accumulating,
    reference=_prod,
    folding=_folding("product", identity=1),
    method=True,
    numpy=(np.prod,),
    samples=(*SAMPLES, *_EMPTY, SampleCall(((4, 3),), {"dtype": "float32", "axis": 0})),
)
def prod(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Product over `axis`: one, a tuple of them, or all when None. An empty product is 1.

    Shapes, dtypes, tree and errors are those of `tn.sum`.

    >>> import tenfold as tn
    >>> tn.prod(tn.asarray([[1, 5], [7, 2]]), axis=0).tolist()
    [7, 10]
    """


def _ordered(type_: Type) -> Dtypes:
    refuse_unordered([type_])
    return type_.dtype, type_.dtype


def _extreme(ufunc: np.ufunc, negative_wins: bool) -> Callable[..., np.ndarray]:
    """Reduce with np.maximum or np.minimum, then correct the sign of a zero: -0.0 < 0.0."""

    def reference(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
        found = np.asarray(ufunc.reduce(x, axis=axes, keepdims=keepdims))
        if kind_of(x.dtype) != "f" or not (found == 0).any():
            return found
        zeros = (x == 0) & (np.signbit(x) == negative_wins)
        wins = zeros.any(axis=axes, keepdims=keepdims)
        signed = np.where(wins == negative_wins, -0.0, 0.0).astype(x.dtype)
        return np.where(found == 0, signed, found)

    return reference


@reduction(
    dtypes=_ordered,
    reference=_extreme(np.maximum, negative_wins=False),
    folding=_folding("largest", exact=True),
    empty=False,
    method=True,
    numpy=(np.max, np.amax),
    samples=SAMPLES,
)
def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Largest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`.

    NaN if there is one; -0.0 is below 0.0. Raises ShapeError (a ValueError) at the call when a
    reduced axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.max(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=0).tolist()
    [7, 7, 5, 2]
    """


@reduction(
    dtypes=_ordered,
    reference=_extreme(np.minimum, negative_wins=True),
    folding=_folding("smallest", exact=True),
    empty=False,
    method=True,
    numpy=(np.min, np.amin),
    samples=SAMPLES,
)
def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Smallest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`.

    NaN if there is one; -0.0 is below 0.0. Raises ShapeError (a ValueError) at the call when a
    reduced axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.min(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=1).tolist()
    [1, -1]
    """


def _truth(type_: Type) -> Dtypes:
    return BOOL, BOOL


def _any(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return np.any(x, axis=axes, keepdims=keepdims)


@reduction(
    dtypes=_truth,
    reference=_any,
    folding=_folding("or", identity=False, exact=True),
    method=True,
    numpy=(np.any,),
    samples=(*SAMPLES, *_EMPTY),
    section="utility",
)
def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether an element is not zero, over `axis`: one, a tuple of them, or all when None; bool.

    NaN is not zero. False over an empty axis.

    >>> import tenfold as tn
    >>> tn.any(tn.asarray([[0, 5], [0, 0]]), axis=1).tolist()
    [True, False]
    """


def _all(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return np.all(x, axis=axes, keepdims=keepdims)


@reduction(
    dtypes=_truth,
    reference=_all,
    folding=_folding("and", identity=True, exact=True),
    method=True,
    numpy=(np.all,),
    samples=(*SAMPLES, *_EMPTY),
    section="utility",
)
def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether no element is zero, over `axis`: one, a tuple of them, or all when None; bool.

    NaN is not zero. True over an empty axis.

    >>> import tenfold as tn
    >>> tn.all(tn.asarray([[0, 5], [1, 2]]), axis=1).tolist()
    [False, True]
    """


def _counted(type_: Type) -> Dtypes:
    return BOOL, INT64


def _count_nonzero(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
    return np.asarray(np.count_nonzero(x, axis=axes, keepdims=keepdims))


def _one(k: Body, x: Operand, index: Element) -> tuple[Element, ...]:
    assert isinstance(x, Element), "a truth value"
    return (k.convert(x, INT64),)


@reduction(
    dtypes=_counted,
    reference=_count_nonzero,
    folding=_folding("add", dtype=lambda _: INT64, enter=_one, identity=0, exact=True),
    numpy=(np.count_nonzero,),
    samples=(*SAMPLES, *_EMPTY),
    section="searching",
)
def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the elements that are not zero, over `axis`: one, a tuple of them, or all when None.

    The result is int64. NaN is not zero.

    >>> import tenfold as tn
    >>> tn.count_nonzero(tn.asarray([[0, 5], [1, 2]]), axis=1).tolist()
    [1, 2]
    """


def _one_or_all(axis: Axis, ndim: int) -> Axes:
    if isinstance(axis, (tuple, list)):
        raise ShapeError(
            "",
            f"axis {axis!r} is not an int: a position is counted along one axis",
            remedy="give one axis, or None for the position in the flattened array",
        )
    return normalize_axes(None, ndim) if axis is None else (normalize_axis(axis, ndim),)


def _positioned(type_: Type) -> Dtypes:
    operand, _ = _ordered(type_)
    return wide(operand) if operand in HALVES else operand, INT64


def _position(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Find with np.argmax or np.argmin; several axes are read as one, in row-major order."""

    def reference(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
        axis = axes[0] if len(axes) == 1 else None
        return np.asarray(function(x, axis=axis, keepdims=keepdims))

    return reference


def _with_index(k: Body, x: Operand, index: Element) -> tuple[Element, ...]:
    assert isinstance(x, Element), "a real number"
    return x, index


def _index_left(k: Body, parts: tuple[Element, ...], dtype: np.dtype) -> Operand:
    return parts[1]


def _positions(kind: str) -> ReductionTree:
    return _folding(kind, enter=_with_index, leave=_index_left, one_axis=True)


@reduction(
    dtypes=_positioned,
    reference=_position(np.argmax),
    folding=_positions("first largest"),
    empty=False,
    axes_of=_one_or_all,
    method=True,
    numpy=(np.argmax,),
    samples=_ONE_AXIS,
    section="searching",
)
def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Position of the largest element along `axis`, int64; in the flattened array when None.

    The first of equals; the first NaN if there is one. Raises ShapeError (a ValueError) at the call
    when the axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.argmax(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=1).tolist()
    [1, 0]
    """


@reduction(
    dtypes=_positioned,
    reference=_position(np.argmin),
    folding=_positions("first smallest"),
    empty=False,
    axes_of=_one_or_all,
    method=True,
    numpy=(np.argmin,),
    samples=_ONE_AXIS,
    section="searching",
)
def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Position of the smallest element along `axis`, int64; in the flattened array when None.

    The first of equals; the first NaN if there is one. Raises ShapeError (a ValueError) at the call
    when the axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.argmin(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=1).tolist()
    [0, 3]
    """
