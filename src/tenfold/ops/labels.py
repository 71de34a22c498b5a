"""Labels: one element of each row, by an integer for each row, and what classifiers make of it.

>>> import tenfold as tn
>>> one_hot(tn.asarray([2, 0]), 3).tolist()
[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import array, derived
from tenfold.core.shape_rules import Shape, broadcast, normalize_axis, normalize_count
from tenfold.dtypes import FLOAT64, canonical, compute_dtype, kind_of, same_kind
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops.arange import arange
from tenfold.ops.cast import astype, convert
from tenfold.ops.comparison import equal, not_equal
from tenfold.ops.gathering import integers, take, take_along_axis
from tenfold.ops.movement import expand_dims, squeeze
from tenfold.ops.reshaping import broadcast_to, reshape
from tenfold.ops.selection import where


def _is_at(indices: Array, length: int, axis: int) -> Array:
    """Return the mask of the positions along a new axis that are the index of their row."""
    places = reshape(
        arange(length, device=indices.device),
        tuple(length if i == axis else 1 for i in range(indices.ndim + 1)),
    )
    return equal(expand_dims(indices, axis), places)


def _listed(value: Any, peer: Array) -> Array:
    return array(np.asarray(value) if isinstance(value, list) else value, peer)


def _require_integers(indices: Array, name: str) -> None:
    if kind_of(indices.dtype) not in "iu":
        rule = f"{name} are integers, not {indices.dtype}"
        raise DTypeError("", rule, remedy="convert with tn.astype(i, tn.int64)")


def _one_hot_reference(indices: Any, num_classes: int, axis: int = -1, dtype: Any = None) -> Any:
    places = np.expand_dims(np.asarray(indices), axis)
    lengths = [1] * places.ndim
    lengths[axis] = num_classes
    hot = places == np.arange(num_classes).reshape(lengths)
    return hot.astype(FLOAT64 if dtype is None else dtype)


@derived(
    reference=_one_hot_reference,
    samples=[
        SampleCall((), positional=([2, 0, 3, -1], 3)),
        SampleCall((), {"axis": 0, "dtype": np.int8}, ([[1], [0]], 2)),
        SampleCall((), {}, ([], 2)),
    ],
)
def one_hot(indices: Array, num_classes: int, /, *, axis: int = -1, dtype: Any = None) -> Array:
    """Return 1 at the index of each row and 0 elsewhere: (...) integers to (..., num_classes),
    float64 if no dtype is named.

    The new axis stands at `axis`. An index outside of 0 to num_classes - 1 gives zeros.

    >>> import tenfold as tn
    >>> tn.one_hot(tn.asarray([1, 0]), 2, dtype=tn.int64).tolist()
    [[0, 1], [1, 0]]
    """
    indices, length = integers(indices), normalize_count(num_classes, "num_classes")
    _require_integers(indices, "indices")
    hot = _is_at(indices, length, normalize_axis(axis, indices.ndim + 1))
    return convert(hot, FLOAT64 if dtype is None else canonical(dtype, "one_hot"))


@derived(
    reference=lambda x, mask: np.where(
        np.reshape(mask, np.shape(mask) + (1,) * (x.ndim - np.ndim(mask))), x, x.dtype.type(0)
    ),
    samples=[
        SampleCall(((3, 2),), positional=([True, False, True],)),
        SampleCall(((2, 2, 2),), positional=([[True, False], [False, True]],)),
        SampleCall(((0, 2),), positional=(np.zeros(0, bool),)),
    ],
)
def mask_rows(x: Array, mask: Array, /) -> Array:
    """Return `x` with 0 in the rows where `mask` does not hold, whatever stood there.

    `mask` has the first axes of `x`, bool. Raises ShapeError and DTypeError for another mask.

    >>> import tenfold as tn
    >>> tn.mask_rows(tn.asarray([[1, 2], [3, 4]]), tn.asarray([False, True])).tolist()
    [[0, 0], [3, 4]]
    """
    x = array(x)
    mask = _listed(mask, x)
    if kind_of(mask.dtype) != "b":
        raise DTypeError("", f"a mask of {mask.dtype} is not bool", remedy="compare: mask != 0")
    if mask.shape != x.shape[: mask.ndim]:
        rule = f"a mask of shape {mask.shape} does not name the rows of shape {x.shape}"
        raise ShapeError("", rule, remedy="give one truth value for each index of the first axes")
    zero: Any = 0
    return where(expand_dims(mask, tuple(range(mask.ndim, x.ndim))), x, zero)


def _rows_of(x: Array, indices: Array, axis: int, name: str) -> int:
    """Return the axis on which each row of `x` has an index, or raise ShapeError."""
    position = normalize_axis(axis, x.ndim)
    rows = (*x.shape[:position], *x.shape[position + 1 :])
    _require_integers(indices, name)
    if indices.shape != rows:
        rule = f"{name} of shape {indices.shape} are not one for each row {rows} of {x.shape}"
        raise ShapeError("", rule, remedy="give the shape of the array without the axis")
    return position


@derived(
    reference=lambda x, indices, axis=-1: np.take_along_axis(
        x, np.expand_dims(np.asarray(indices, np.int64), axis), axis
    ).squeeze(axis),
    samples=[
        SampleCall(((2, 3),), positional=([2, -3],)),
        SampleCall(((2, 3),), {"axis": 0}, ([1, 0, -1],)),
        SampleCall(((0, 3),), positional=(np.zeros(0, np.int64),)),
    ],
)
def choose_at(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """Return the element of each row of `x` along `axis` at that row's own integer index.

    `indices` has the shape of `x` without `axis`, which is gone. Negative indices count from the
    end. Raises ShapeError for indices that do not fit, IndexError for one out of bounds: at the
    call if its value is known, else at the wait.

    >>> import tenfold as tn
    >>> tn.choose_at(tn.asarray([[1, 2], [3, 4]]), tn.asarray([1, 0])).tolist()
    [2, 3]
    """
    x = array(x)
    indices = integers(indices, x)
    position = _rows_of(x, indices, axis, "indices")
    chosen = take_along_axis(x, expand_dims(indices, position), axis=position)
    return squeeze(chosen, position)


def _fill_reference(x: np.ndarray, indices: Any, values: Any, axis: int = -1) -> np.ndarray:
    result = x.copy()
    places = np.expand_dims(np.asarray(indices, np.int64), axis)
    filled = np.broadcast_to(np.asarray(values), np.shape(indices))
    np.put_along_axis(result, places, np.expand_dims(filled, axis).astype(x.dtype), axis)
    return result


@derived(
    reference=_fill_reference,
    samples=[
        SampleCall(((2, 3),), positional=([2, -3], True)),
        SampleCall(((2, 3),), {"axis": 0}, ([1, 0, -1], [True, False, True])),
    ],
)
def fill_at(x: Array, indices: Array, values: Array, /, *, axis: int = -1) -> Array:
    """Return `x` with the element of each row along `axis` at that row's own index replaced.

    `indices` has the shape of `x` without `axis`, `values` broadcasts to it; the dtype of `x`
    stays. Negative indices count from the end. Raises ShapeError for operands that do not fit,
    DTypeError for values that `x` cannot hold, IndexError for an index out of bounds: at the call
    if its value is known, else at the wait.

    >>> import tenfold as tn
    >>> tn.fill_at(tn.asarray([[1, 2], [3, 4]]), tn.asarray([1, 0]), 9).tolist()
    [[1, 9], [9, 4]]
    """
    x = array(x)
    indices = integers(indices, x)
    position = _rows_of(x, indices, axis, "indices")
    length = x.shape[position]
    places = take(arange(length, device=x.device), indices, axis=0)  # checked, counted from 0
    filled: Any = values
    if isinstance(values, (Array, np.ndarray, list)):
        value = _listed(values, x)
        if broadcast(value.shape, indices.shape) != indices.shape:
            rule = f"values of shape {value.shape} do not broadcast to the indices {indices.shape}"
            raise ShapeError("", rule, remedy="give one value, or one for each row")
        if not same_kind(value.dtype, x.dtype):
            rule = f"{value.dtype} cannot replace elements of {x.dtype} (same-kind rule)"
            raise DTypeError("", rule, remedy="convert the values with tn.astype")
        filled = convert(expand_dims(broadcast_to(value, indices.shape), position), x.dtype)
    result = where(_is_at(places, length, position), filled, x)
    if result.dtype != x.dtype:
        rule = f"{values!r} cannot replace elements of {x.dtype} (same-kind rule)"
        raise DTypeError("", rule, remedy="convert x with tn.astype first")
    return result


def _softmax_gradient_reference(
    p: np.ndarray,
    labels: Any,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
) -> np.ndarray:
    classes = p.shape[axis]
    hot = _one_hot_reference(labels, classes, axis, bool)
    computed = p.astype(compute_dtype(p.dtype))
    off = smoothing / max(classes - 1, 1)
    gradient = np.where(hot, computed - (1 - smoothing), computed - off if off else computed)
    if ignore_label is not None:
        gradient = np.where(np.expand_dims(labels, axis) == ignore_label, 0, gradient)
    return gradient.astype(p.dtype)


_ROWS: tuple[Shape, ...] = ((3, 4),)


@derived(
    reference=_softmax_gradient_reference,
    samples=[
        SampleCall(_ROWS, positional=([2, 0, 3],)),
        SampleCall(_ROWS, {"smoothing": 0.25}, ([2, 0, 3],)),
        SampleCall(_ROWS, {"ignore_label": -1, "smoothing": 0.125}, ([2, -1, 3],)),
        SampleCall(((2, 3),), {"axis": 0}, ([1, 0, 1],)),
    ],
)
def softmax_gradient(
    probabilities: Array,
    labels: Array,
    /,
    *,
    axis: int = -1,
    smoothing: float = 0.0,
    ignore_label: int | None = None,
) -> Array:
    """Return the gradient of the cross-entropy of labels with respect to the logits, from the
    probabilities that `tn.softmax` made of them along `axis`: probabilities minus targets.

    `labels` are the integer classes, of the shape without `axis`. The target is 1 at the label;
    with `smoothing` s it is 1 - s there, and s / (n - 1) at each of the n - 1 other classes. Rows
    with `ignore_label` have the gradient 0. The dtype of `probabilities`: real floating.

    Raises ShapeError for labels that do not fit, DTypeError for other dtypes. Szegedy et al. 2016,
    "Rethinking the inception architecture for computer vision", section 7.

    >>> import tenfold as tn
    >>> p = tn.softmax(tn.zeros((2, 4)))
    >>> tn.softmax_gradient(p, tn.asarray([1, 3]), ignore_label=3).tolist()
    [[0.25, -0.75, 0.25, 0.25], [0.0, 0.0, 0.0, 0.0]]
    """
    p = array(probabilities)
    labels = integers(labels, p)
    if kind_of(p.dtype) != "f":
        rule = f"probabilities of {p.dtype} are not real floating"
        raise DTypeError("", rule, remedy="give what tn.softmax returns")
    position = _rows_of(p, labels, axis, "labels")
    classes, computed = p.shape[position], convert(p, compute_dtype(p.dtype))
    others = smoothing / (classes - 1 if classes > 1 else 1)
    off = computed - others if others else computed
    gradient = where(_is_at(labels, classes, position), computed - (1 - smoothing), off)
    if ignore_label is not None:
        zero: Any = 0
        counted = not_equal(expand_dims(labels, position), ignore_label)
        gradient = where(counted, gradient, zero)
    return astype(gradient, p.dtype, copy=False)
