"""Convolution and correlation: sums of products of one array with the sliding windows of another.

The shorter operand is the kernel. A short kernel is a fused sum of shifted products; a longer one
multiplies the sliding windows, which are a view, in one reduction.

>>> import tenfold as tn
>>> convolve(tn.asarray([1, 2, 3]), tn.asarray([1, 10])).tolist()
[1, 12, 23, 30]
"""

from __future__ import annotations

from functools import reduce as fold
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import array, derived
from tenfold.core.shape_rules import product
from tenfold.dtypes import HALF_DTYPES, compute_dtype, kind_of, promote_dtypes
from tenfold.errors import ShapeError
from tenfold.ops.arithmetic import add, multiply
from tenfold.ops.cast import convert
from tenfold.ops.complex import conj
from tenfold.ops.indexing import index, index_view
from tenfold.ops.movement import flip
from tenfold.ops.pad import pad
from tenfold.ops.reduce import sum  # noqa: A004  # its public name
from tenfold.ops.windows import MAX_UNROLLED, WindowGrid

CONVOLUTION_MODES = ("full", "same", "valid")


def _refuse_misfit(x1: Array, x2: Array, mode: str) -> None:
    if mode not in CONVOLUTION_MODES:
        rule = f"mode {mode!r} is none of {', '.join(map(repr, CONVOLUTION_MODES))}"
        raise ShapeError("", rule, remedy="use one of them")
    if x1.ndim != x2.ndim or x1.ndim == 0:
        rule = f"arrays of {x1.ndim} and {x2.ndim} axes do not convolve"
        raise ShapeError("", rule, remedy="give both as many axes, one at least")
    if 0 in (*x1.shape, *x2.shape):
        rule = f"shapes {x1.shape} and {x2.shape} have no elements to add"
        raise ShapeError("", rule, remedy="give one element at least on each axis")
    pairs = [*zip(x1.shape, x2.shape, strict=True)]
    if mode == "valid" and not (all(n >= m for n, m in pairs) or all(n <= m for n, m in pairs)):
        rule = f"neither of the shapes {x1.shape} and {x2.shape} contains the other"
        raise ShapeError("", rule, remedy="use mode='full' or 'same'")


def _part(mode: str, n: int, m: int, reverse: bool) -> tuple[int, int]:
    """Return the first position of the full result of an axis, and how many there are.

    The full result has n + m - 1. Of an even kernel the middle of "same" is the later element, for
    a reversed result the earlier one.
    """
    shorter, longer = min(n, m), max(n, m)
    if mode == "full":
        return 0, n + m - 1
    if mode == "valid":
        return shorter - 1, longer - shorter + 1
    return (shorter // 2 if reverse else (shorter - 1) // 2), longer


def _sums_of_products(x: Array, kernel: Array, parts: list[tuple[int, int]]) -> Array:
    """Return for positions of the full result the sum of the products with a window of `x`."""
    widths, picks = [], []
    for (first, count), n, m in zip(parts, x.shape, kernel.shape, strict=True):
        before = max(m - 1 - first, 0)
        after = max(first + count - n, 0)
        widths.append((before, after))
        picks.append((first - (m - 1) + before, count + m - 1, 1))
    if any(width != (0, 0) for width in widths):
        x = pad(x, widths)
    x = index_view(x, tuple(picks))
    grid = WindowGrid.parse(kernel.shape, 1, 0, 1)
    if product(kernel.shape) <= MAX_UNROLLED:
        places = np.ndindex(*kernel.shape)
        terms = [
            multiply(element, index(kernel, at))
            for at, element in zip(places, grid.elements(x, 0), strict=True)
        ]
        result: Array = fold(add, terms)
        return result
    axes = tuple(range(-kernel.ndim, 0))
    return sum(multiply(grid.views(x), kernel), axis=axes, dtype=x.dtype)


def _convolved(x1: Array, x2: Array, mode: str, *, correlation: bool) -> Array:
    dtype = promote_dtypes(x1.dtype, x2.dtype)
    computed = compute_dtype(dtype) if dtype in HALF_DTYPES else dtype
    x1, x2 = convert(x1, computed), convert(x2, computed)
    if correlation and kind_of(dtype) == "c":
        x2 = conj(x2)
    longer = [n >= m for n, m in zip(x1.shape, x2.shape, strict=True)]
    parts = [
        _part(mode, n, m, correlation and not is_longer)
        for n, m, is_longer in zip(x1.shape, x2.shape, longer, strict=True)
    ]
    flipped = x2 if correlation else flip(x2)
    if product(x1.shape) >= product(x2.shape):
        result = _sums_of_products(x1, flipped, parts)
    else:  # the windows of the longer one; those of a correlation come in the opposite order
        base = flip(x2) if correlation else x2
        result = _sums_of_products(base, flip(x1), parts)
    return convert(result, dtype)


def _reference(name: str) -> Any:
    """SciPy's direct sums; NumPy's for one axis, whose middle of an even kernel we take."""

    def reference(x1: np.ndarray, x2: np.ndarray, mode: str | None = None) -> np.ndarray:
        chosen = mode or ("full" if name == "convolve" else "valid")
        if x1.ndim == 1:
            return np.asarray(getattr(np, name)(x1, x2, chosen))
        from scipy import signal  # imported only where it is used

        return np.asarray(getattr(signal, name)(x1, x2, chosen, "direct"))

    return reference


_SAMPLES = [
    SampleCall(((7,), (3,))),
    SampleCall(((4,), (6,)), {"mode": "same"}),
    SampleCall(((50,), (40,)), {"mode": "full"}),
    SampleCall(((5, 6), (3, 3)), {"mode": "valid"}),
    SampleCall(((9, 8), (7, 7)), {"mode": "same"}),
]


@derived(reference=_reference("convolve"), numpy=(np.convolve,), samples=_SAMPLES)
def convolve(x1: Array, x2: Array, /, *, mode: str = "full") -> Array:
    """Return the convolution of two arrays with as many axes: the sums of `x1[i - j] * x2[j]` over
    j, for every i.

    `mode` "full" has all sums with a product, n + m - 1 on an axis of n and m; "same" the middle of
    them, as many as the longer one has elements; "valid" those in which the shorter one is whole,
    `max(n, m) - min(n, m) + 1`. The common dtype of both: integers wrap, halves accumulate in
    float32. Up to 32 products are added in order, more of them as in `tn.sum`.

    Raises ShapeError for other modes, and for arrays that are empty or do not fit.

    >>> import tenfold as tn
    >>> tn.convolve(tn.asarray([1, 2, 3]), tn.asarray([0, 1, 2]), mode="same").tolist()
    [1, 4, 7]
    """
    x1, x2 = array(x1), array(x2)
    _refuse_misfit(x1, x2, mode)
    return _convolved(x1, x2, mode, correlation=False)


@derived(reference=_reference("correlate"), numpy=(np.correlate,), samples=_SAMPLES)
def correlate(x1: Array, x2: Array, /, *, mode: str = "valid") -> Array:
    """Return the cross-correlation of two arrays with as many axes: the sums of
    `x1[i + j] * conj(x2[j])` over j, for every i.

    Modes, dtypes and errors are those of `tn.convolve`.

    >>> import tenfold as tn
    >>> tn.correlate(tn.asarray([1, 2, 3, 4]), tn.asarray([1, 0, -1])).tolist()
    [-2, -2]
    """
    x1, x2 = array(x1), array(x2)
    _refuse_misfit(x1, x2, mode)
    return _convolved(x1, x2, mode, correlation=True)
