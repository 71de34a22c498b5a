"""Reductions: sums and products over axes by the canonical tree, the rest exactly.

The tree is that of `core/canonical_reduction.py`. A maximum, a truth value or a position is the
same for every order of folding, so those are computed in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.canonical_reduction import accumulation_dtypes, fold_axes
from tenfold.core.op import Op, P, ReductionTree, SampleCall
from tenfold.core.op_decorators import reduction, refuse_unordered
from tenfold.core.scalar_ir import Body, ComplexElement, Element, Operand
from tenfold.core.shape_rules import Axis, Shape, normalize_axes, normalize_axis, product, reduced
from tenfold.dtypes import BOOL, HALF_DTYPES, INT64, compute_dtype, kind_of
from tenfold.errors import IntegerError
from tenfold.ops.arithmetic import multiply_unfused
from tenfold.ops.cast import astype, convert, convert_element
from tenfold.ops.complex import conj
from tenfold.ops.cumulative import cumulative_prod
from tenfold.ops.movement import flip, permute_dims
from tenfold.ops.reshaping import broadcast_to, reshape
from tenfold.ops.selection import where

Axes = tuple[int, ...]
FoldDtypes = tuple[np.dtype, np.dtype]

SAMPLES = (
    SampleCall(((2, 3, 4),), {"axis": (0, 2)}),
    SampleCall(((3, 5),), {"axis": -1, "keepdims": True}),
    SampleCall(((2, 3),), {"axis": None}),
    SampleCall(((),)),
)
_EMPTY_SAMPLES = (SampleCall(((2, 0),), {"axis": 1}), SampleCall(((0,),)))
_ONE_AXIS_SAMPLES = (
    SampleCall(((2, 3, 4),), {"axis": 1}),
    SampleCall(((3, 5),), {"axis": -1, "keepdims": True}),
    SampleCall(((2, 3),)),
    SampleCall(((),)),
)


def _accumulate_components(k: Body, x: Operand, index: Element) -> tuple[Element, ...]:
    return tuple(x) if isinstance(x, ComplexElement) else (k.convert(x, compute_dtype(x.dtype)),)


def _join_components(components: tuple[Element, ...]) -> Operand:
    return ComplexElement(*components) if len(components) == 2 else components[0]


def _finish_accumulators(k: Body, accumulators: tuple[Element, ...], dtype: np.dtype) -> Operand:
    return convert_element(k, _join_components(accumulators), dtype)


def _finish_sum(k: Body, accumulators: tuple[Element, ...], dtype: np.dtype) -> Operand:
    """As NumPy: a sum of -0.0 alone is 0.0."""
    return _finish_accumulators(
        k, tuple(x if x.dtype == BOOL else x + 0 for x in accumulators), dtype
    )


def _reduction_tree(kind: str, **fields: Any) -> ReductionTree:
    return ReductionTree(
        **{
            "kind": kind,
            "dtype": compute_dtype,
            "accumulate": _accumulate_components,
            "finish": _finish_accumulators,
            **fields,
        }
    )


def spread(x: Array, shape: Shape, axes: Axes) -> Array:
    """Return what is left of an array of `shape` after a reduction, repeated along its axes."""
    return broadcast_to(reshape(x, reduced(shape, axes, keepdims=True)), shape)


def _sum_reference(x: np.ndarray, axes: Axes, keepdims: bool, dtype: Any) -> np.ndarray:
    folded = fold_axes(np.add, x, axes, keepdims, identity=0)
    return np.add(folded, np.zeros((), x.dtype))  # as NumPy: a sum of -0.0 alone is 0.0


@reduction(
    dtypes=accumulation_dtypes,
    reference=_sum_reference,
    folding=_reduction_tree("add", finish=_finish_sum, identity=0),
    method=True,
    numpy=(np.sum,),
    samples=(*SAMPLES, *_EMPTY_SAMPLES, SampleCall(((4, 3),), {"dtype": "float32", "axis": 0})),
    vjp=lambda g, y, x, axes, keepdims, dtype: (spread(g, x.shape, axes),),
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


def _products_of_others(
    g: Array, y: Array, x: Array, axes: Axes, keepdims: bool, dtype: Any
) -> tuple[Array]:
    """Multiply by the product of the elements before and behind each: exact with zeros."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    order = (*kept, *axes)
    moved = permute_dims(conj(convert(x, y.dtype)), order)
    lines = reshape(moved, (*moved.shape[: len(kept)], product(x.shape[axis] for axis in axes)))
    before = cumulative_prod(lines, axis=-1, exclusive=True)
    after = flip(cumulative_prod(flip(lines, axis=-1), axis=-1, exclusive=True), axis=-1)
    others = reshape(before * after, moved.shape)
    inverse = tuple(order.index(axis) for axis in range(x.ndim))
    return (spread(g, x.shape, axes) * permute_dims(others, inverse),)


def _prod_reference(x: np.ndarray, axes: Axes, keepdims: bool, dtype: Any) -> np.ndarray:
    return fold_axes(multiply_unfused, x, axes, keepdims, identity=1)


@reduction(
    dtypes=accumulation_dtypes,
    reference=_prod_reference,
    folding=_reduction_tree("product", identity=1),
    method=True,
    numpy=(np.prod,),
    samples=(*SAMPLES, *_EMPTY_SAMPLES, SampleCall(((4, 3),), {"dtype": "float32", "axis": 0})),
    vjp=_products_of_others,
)
def prod(x: Array, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Product over `axis`: one, a tuple of them, or all when None. An empty product is 1.

    Shapes, dtypes, tree and errors are those of `tn.sum`.

    >>> import tenfold as tn
    >>> tn.prod(tn.asarray([[1, 5], [7, 2]]), axis=0).tolist()
    [7, 10]
    """


def _shares_of_ties(g: Array, y: Array, x: Array, axes: Axes, keepdims: bool) -> tuple[Array]:
    """The elements that are the extreme share its cotangent in equal parts; so do NaN."""
    wins = (x == spread(y, x.shape, axes)) | (x != x)
    share = g / astype(count_nonzero(wins, axis=axes, keepdims=keepdims), g.dtype)
    return (where(wins, spread(share, x.shape, axes), 0),)


def _ordered_dtypes(type_: Type) -> FoldDtypes:
    refuse_unordered([type_])
    return type_.dtype, type_.dtype


def _extremum_reference(ufunc: np.ufunc, negative_wins: bool) -> Callable[..., np.ndarray]:
    """Reduce with np.maximum or np.minimum, then correct the sign of a zero: -0.0 < 0.0."""

    def reference(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
        extremum = np.asarray(ufunc.reduce(x, axis=axes, keepdims=keepdims))
        if kind_of(x.dtype) != "f" or not (extremum == 0).any():
            return extremum
        zeros = (x == 0) & (np.signbit(x) == negative_wins)
        wins = zeros.any(axis=axes, keepdims=keepdims)
        signed = np.where(wins == negative_wins, -0.0, 0.0).astype(x.dtype)
        return np.where(extremum == 0, signed, extremum)

    return reference


def _extremum(
    kind: str, ufunc: np.ufunc, *numpy: Callable[..., Any]
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare the reduction by np.maximum or np.minimum."""
    return reduction(
        dtypes=_ordered_dtypes,
        reference=_extremum_reference(ufunc, negative_wins=ufunc is np.minimum),
        folding=_reduction_tree(kind, exact=True),
        empty=False,
        method=True,
        numpy=numpy,
        samples=SAMPLES,
        vjp=_shares_of_ties,
    )


@_extremum("largest", np.maximum, np.max, np.amax)
def max(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Largest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`.

    NaN if there is one; -0.0 is below 0.0. Raises ShapeError (a ValueError) at the call when a
    reduced axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.max(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=0).tolist()
    [7, 7, 5, 2]
    """


@_extremum("smallest", np.minimum, np.min, np.amin)
def min(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Smallest element over `axis`: one, a tuple of them, or all when None; the dtype of `x`.

    NaN if there is one; -0.0 is below 0.0. Raises ShapeError (a ValueError) at the call when a
    reduced axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.min(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=1).tolist()
    [1, -1]
    """


def _bool_dtypes(type_: Type) -> FoldDtypes:
    return BOOL, BOOL


def _reduced_by(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Return a function of NumPy as a reference."""
    return lambda x, axes, keepdims: np.asarray(function(x, axis=axes, keepdims=keepdims))


def _truth(
    kind: str, numpy: Callable[..., Any], *, identity: bool
) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare the reduction of truth values."""
    return reduction(
        dtypes=_bool_dtypes,
        reference=_reduced_by(numpy),
        folding=_reduction_tree(kind, identity=identity, exact=True),
        method=True,
        numpy=(numpy,),
        samples=(*SAMPLES, *_EMPTY_SAMPLES),
        section="utility",
    )


@_truth("or", np.any, identity=False)
def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether an element is not zero, over `axis`: one, a tuple of them, or all when None; bool.

    NaN is not zero. False over an empty axis.

    >>> import tenfold as tn
    >>> tn.any(tn.asarray([[0, 5], [0, 0]]), axis=1).tolist()
    [True, False]
    """


@_truth("and", np.all, identity=True)
def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether no element is zero, over `axis`: one, a tuple of them, or all when None; bool.

    NaN is not zero. True over an empty axis.

    >>> import tenfold as tn
    >>> tn.all(tn.asarray([[0, 5], [1, 2]]), axis=1).tolist()
    [False, True]
    """


def _count_dtypes(type_: Type) -> FoldDtypes:
    return BOOL, INT64


def _accumulate_truth(k: Body, x: Operand, index: Element) -> tuple[Element, ...]:
    assert isinstance(x, Element), "a truth value"
    return (k.convert(x, INT64),)


@reduction(
    dtypes=_count_dtypes,
    reference=_reduced_by(np.count_nonzero),
    folding=_reduction_tree(
        "add", dtype=lambda _: INT64, accumulate=_accumulate_truth, identity=0, exact=True
    ),
    numpy=(np.count_nonzero,),
    samples=(*SAMPLES, *_EMPTY_SAMPLES),
    section="searching",
)
def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the elements that are not zero, over `axis`: one, a tuple of them, or all when None.

    The result is int64. NaN is not zero.

    >>> import tenfold as tn
    >>> tn.count_nonzero(tn.asarray([[0, 5], [1, 2]]), axis=1).tolist()
    [1, 2]
    """


def _one_axis_or_all(axis: Axis, ndim: int) -> Axes:
    if isinstance(axis, (tuple, list)):
        raise IntegerError(
            "",
            f"axis {axis!r} is not an int: a position is counted along one axis",
            remedy="give one axis, or None for the position in the flattened array",
        )
    return normalize_axes(None, ndim) if axis is None else (normalize_axis(axis, ndim),)


def _position_dtypes(type_: Type) -> FoldDtypes:
    operand, _ = _ordered_dtypes(type_)
    return compute_dtype(operand) if operand in HALF_DTYPES else operand, INT64


def _position_reference(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """Find with np.argmax or np.argmin; several axes are read as one, in row-major order."""

    def reference(x: np.ndarray, axes: Axes, keepdims: bool) -> np.ndarray:
        axis = axes[0] if len(axes) == 1 else None
        return np.asarray(function(x, axis=axis, keepdims=keepdims))

    return reference


def _accumulate_with_index(k: Body, x: Operand, index: Element) -> tuple[Element, ...]:
    assert isinstance(x, Element), "a real number"
    return x, index


def _finish_index(k: Body, accumulators: tuple[Element, ...], dtype: np.dtype) -> Operand:
    return accumulators[1]


def _position(kind: str, numpy: Callable[..., Any]) -> Callable[[Callable[P, Array]], Op[P]]:
    """Declare the search for the position of an extreme."""
    return reduction(
        dtypes=_position_dtypes,
        reference=_position_reference(numpy),
        folding=_reduction_tree(
            kind, accumulate=_accumulate_with_index, finish=_finish_index, one_axis=True
        ),
        empty=False,
        axes_of=_one_axis_or_all,
        method=True,
        numpy=(numpy,),
        samples=_ONE_AXIS_SAMPLES,
        section="searching",
    )


@_position("first largest", np.argmax)
def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Position of the largest element along `axis`, int64; in the flattened array when None.

    The first of equals; the first NaN if there is one. Raises ShapeError (a ValueError) at the call
    when the axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.argmax(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=1).tolist()
    [1, 0]
    """


@_position("first smallest", np.argmin)
def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Position of the smallest element along `axis`, int64; in the flattened array when None.

    The first of equals; the first NaN if there is one. Raises ShapeError (a ValueError) at the call
    when the axis is empty, DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.argmin(tn.asarray([[1, 5, 5, 2], [7, 7, 0, -1]]), axis=1).tolist()
    [0, 3]
    """
