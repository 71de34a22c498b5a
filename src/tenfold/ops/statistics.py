"""Statistics: means, variances and log-sum-exp over axes, all made of canonical sums.

Integers and booleans are computed in float64; half types in float32 throughout, rounded once at the
end. A variance takes one pass over the data (`ops/variance.py`); a logarithm of a sum of
exponentials is shifted by the maximum (Blanchard, Higham, Higham 2021, "Accurately computing the
log-sum-exp and softmax functions").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.core.op import SampleCall
from tenfold.core.op_decorators import array, derived, elementwise
from tenfold.core.shape_rules import Axis, normalize_axes, product
from tenfold.dtypes import FLOAT64, compute_dtype, kind_of, real_part
from tenfold.errors import DTypeError
from tenfold.ops import reduce
from tenfold.ops.cast import convert
from tenfold.ops.complex import abs2, imag, real
from tenfold.ops.create import number
from tenfold.ops.elementary import exp, log, sqrt
from tenfold.ops.predicates import isfinite
from tenfold.ops.reduce import SAMPLES
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import where
from tenfold.ops.variance import sum_of_squares

_VARIANCE_SAMPLES = (*SAMPLES, SampleCall(((4, 3),), {"axis": 0, "correction": 1}))
_SOFTMAX_SAMPLES = (
    SampleCall(((3, 4),)),
    SampleCall(((2, 3, 2),), {"axis": (0, 1)}),
    SampleCall(((2, 0),)),
)


def _to_computation_dtype(x: Array) -> tuple[Array, np.dtype]:
    """Return `x` in the dtype in which it is computed, and the dtype of the result."""
    x = array(x)
    result = x.dtype if kind_of(x.dtype) in "fc" else FLOAT64
    return convert(x, compute_dtype(result)), result


def _to_real_computation_dtype(x: Array) -> tuple[Array, np.dtype]:
    x = array(x)
    if kind_of(x.dtype) == "c":
        raise DTypeError(
            "",
            f"needs real numbers, not {x.dtype}",
            remedy="take tn.real(x), tn.imag(x) or tn.abs(x)",
        )
    return _to_computation_dtype(x)


def _elements_per_result(x: Array, axis: Axis) -> int:
    """How many elements of `x` are folded into one result."""
    return product(x.shape[i] for i in normalize_axes(axis, x.ndim))


@derived(method=True, numpy=(np.mean,), samples=SAMPLES)
def mean(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Arithmetic mean over `axis`: one, a tuple of them, or all when None. NaN over an empty axis.

    `x` is (..., n, ...); a reduced axis is left out, or has length 1 with `keepdims`. The dtype of
    `x`; integers and booleans give float64, halves accumulate in float32.

    >>> import tenfold as tn
    >>> tn.mean(tn.asarray([[1, 2], [3, 6]]), axis=1).tolist()
    [1.5, 4.5]
    """
    values, result = _to_computation_dtype(x)
    total = reduce.sum(values, axis=axis, keepdims=keepdims)
    # elements per sum; an empty result has no sums, so its divisor does not matter
    return convert(total / (values.size // (total.size or 1)), result)


def _variance(
    values: Array, axis: Axis, correction: float, keepdims: bool, ddof: float | None
) -> Array:
    """Return the variance in the dtype of the computation; complex numbers have distances."""
    if ddof is not None and correction != 0:
        raise ValueError("ddof= is NumPy's name of correction=: give one of them")
    correction = correction if ddof is None else ddof
    correction_number = number(correction, "")
    if isinstance(correction_number, complex):
        raise DTypeError(
            "", f"correction {correction} is not a real number", remedy="give a real one"
        )
    axes, count = normalize_axes(axis, values.ndim), _elements_per_result(values, axis)
    if count == 0:
        total = reduce.sum(abs2(values), axis=axes, keepdims=keepdims)
    elif kind_of(values.dtype) == "c":
        real_squares = sum_of_squares(real(values), axes, keepdims=keepdims)
        total = real_squares + sum_of_squares(imag(values), axes, keepdims=keepdims)
    else:
        total = sum_of_squares(values, axes, keepdims=keepdims)
    return total / max(count - correction_number, 0)


@derived(method=True, numpy=(np.var,), samples=_VARIANCE_SAMPLES)
def var(
    x: Array,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Array:
    """Variance over `axis`: the sum of squared distances from the mean, over n - `correction`.

    `correction=1` estimates the variance of what the n elements were drawn from. Where n does not
    exceed it the divisor is 0: the result is NaN, or infinite. Equal elements have variance 0
    exactly; NaN where one is NaN or infinite, or where the difference of two is past the largest
    float. Axes and dtypes are those of `tn.mean`; complex numbers give real ones. `ddof` is NumPy's
    name of `correction`, which libraries pass to every namespace. Computed in one pass over the
    data (Chan, Golub, LeVeque 1979): docs/decisions/0011.

    >>> import tenfold as tn
    >>> tn.var(tn.asarray([1, 2, 3, 4])).item()
    1.25
    """
    values, result = _to_computation_dtype(x)
    return convert(_variance(values, axis, correction, keepdims, ddof), real_part(result))


@elementwise(public=False, partials=(lambda y, x: where(y == 0, 0, 0.5 / where(y == 0, 1, y)),))
def root_of_variance(x: Array, /) -> Array:
    """Return the square root, whose derivative at 0 is 0, as that of a norm is."""
    return sqrt(x)


@derived(method=True, numpy=(np.std,), samples=_VARIANCE_SAMPLES)
def std(
    x: Array,
    /,
    *,
    axis: Axis = None,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
) -> Array:
    """Standard deviation over `axis`: the square root of the variance, `tn.var`.

    Axes, dtypes and `correction` are those of `tn.var`.

    >>> import tenfold as tn
    >>> tn.std(tn.asarray([[1.0, 3.0], [2.0, 2.0]]), axis=1).tolist()
    [1.0, 0.0]
    """
    values, result = _to_computation_dtype(x)
    variance = _variance(values, axis, correction, keepdims, ddof)
    return convert(root_of_variance(variance), real_part(result))


@derived(samples=(*SAMPLES, SampleCall(((2, 0),), {"axis": 1})))
def logsumexp(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Logarithm of the sum of `exp(x)` over `axis`, without overflow: one axis, a tuple, or all.

    -inf where every element is -inf and over an empty axis. The dtype of `x`; integers and booleans
    give float64, halves are computed in float32. Raises DTypeError for complex numbers.

    >>> import tenfold as tn
    >>> tn.logsumexp(tn.asarray([1000.0, 1000.0])).item()
    1000.6931471805599
    """
    values, result = _to_real_computation_dtype(x)
    if _elements_per_result(values, axis) == 0:
        return convert(log(reduce.sum(values, axis=axis, keepdims=keepdims)), result)
    largest = reduce.max(values, axis=axis, keepdims=True)
    zero: Any = 0.0  # weak: the dtype stays
    shift = where(isfinite(largest), largest, zero)  # inf - inf would be NaN
    total = log(reduce.sum(exp(values - shift), axis=axis, keepdims=keepdims))
    return convert(total + reshape(shift, total.shape), result)


def _minus_maximum(x: Array, axis: Axis) -> tuple[Array, np.dtype]:
    """Return `x` minus its maximum, which is 0 or below."""
    values, result = _to_real_computation_dtype(x)
    if _elements_per_result(values, axis) == 0:
        return values, result
    return values - reduce.max(values, axis=axis, keepdims=True), result


@derived(samples=_SOFTMAX_SAMPLES)
def softmax(x: Array, /, *, axis: Axis = -1) -> Array:
    """`exp(x)` over its sum along `axis` (one, a tuple, or all when None), without overflow.

    The shape of `x`; each row along `axis` sums to 1. NaN where a row holds +inf or NaN, or nothing
    but -inf: such a row has no answer. Dtypes are those of `tn.logsumexp`.

    >>> import tenfold as tn
    >>> tn.softmax(tn.asarray([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    values, result = _minus_maximum(x, axis)
    powers = exp(values)
    return convert(powers / reduce.sum(powers, axis=axis, keepdims=True), result)


@derived(samples=_SOFTMAX_SAMPLES)
def log_softmax(x: Array, /, *, axis: Axis = -1) -> Array:
    """Logarithm of `tn.softmax` along `axis`, exact where softmax itself would be 0.

    The shape of `x`; NaN where softmax is. Dtypes are those of `tn.logsumexp`.

    >>> import tenfold as tn
    >>> tn.log_softmax(tn.asarray([0.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """
    values, result = _minus_maximum(x, axis)
    return convert(values - log(reduce.sum(exp(values), axis=axis, keepdims=True)), result)
