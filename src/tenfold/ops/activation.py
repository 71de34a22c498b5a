"""Activation functions: element rules of neural networks, stable however large `x` is."""

from __future__ import annotations

import math

import numpy as np

from tenfold._native import Array
from tenfold.core.dtype_rules import real_floating, real_numeric
from tenfold.core.op_decorators import elementwise
from tenfold.ops.elementary import erfc, exp, log1p
from tenfold.ops.fused import fma
from tenfold.ops.selection import maximum, minimum, where

_INVERSE_SQRT2 = 0.7071067811865476
_INVERSE_SQRT2_ERROR = -4.833646656726457e-17
"""1 / sqrt(2) as a float64, and its rounding error."""


def _rounded_inverse_sqrt2(dtype: np.dtype) -> tuple[float, float]:
    """Return 1 / sqrt(2) rounded to `dtype`, and the rounding error."""
    rounded = float(dtype.type(_INVERSE_SQRT2))
    return rounded, (_INVERSE_SQRT2 - rounded) + _INVERSE_SQRT2_ERROR


@elementwise(
    dtypes=real_floating,
    accuracy=4,
    partials=(lambda y, x: y * sigmoid(-x),),  # type: ignore[has-type]  # below
)
def sigmoid(x: Array, /) -> Array:
    """`1 / (1 + exp(-x))`, element by element: floating dtypes, integers as NumPy promotes them.

    Of `exp(x)` and `exp(-x)` the one that cannot overflow is used. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.sigmoid(tn.asarray([0.0, -1000.0])).tolist()
    [0.5, 0.0]
    """
    tail = exp(-abs(x))
    return where(x < 0, tail, 1) / (1 + tail)


@elementwise(
    dtypes=real_floating,
    accuracy=8,
    partials=(lambda y, x: sigmoid(x),),
)
def softplus(x: Array, /) -> Array:
    """`log(1 + exp(x))`, element by element: floating dtypes, integers as NumPy promotes them.

    Computed as `maximum(x, 0) + log1p(exp(-abs(x)))`. Raises DTypeError for complex.

    >>> import tenfold as tn
    >>> tn.softplus(tn.asarray([0.0, 1000.0])).tolist()
    [0.6931471805599453, 1000.0]
    """
    return maximum(x, 0) + log1p(exp(-abs(x)))


@elementwise(
    dtypes=real_numeric,
    partials=(lambda y, x: ~(x <= 0),),  # 1 at NaN
)
def relu(x: Array, /) -> Array:
    """The larger of `x` and 0, element by element: the dtype of `x`; NaN stays NaN.

    Raises DTypeError for bool and complex.

    >>> import tenfold as tn
    >>> tn.relu(tn.asarray([-1.5, 2.5])).tolist()
    [0.0, 2.5]
    """
    return maximum(x, 0)


@elementwise(
    dtypes=real_floating,
    accuracy=12,
    partials=(
        lambda y, x: (
            0.5 * erfc(-_INVERSE_SQRT2 * x) + x * exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        ),
    ),
)
def gelu(x: Array, /) -> Array:
    """`x * P(X <= x)` for a standard normal X, element by element; the exact form, by erfc.

    Floating dtypes, integers as NumPy promotes them; raises DTypeError for complex.

    In the negative tail erfc would multiply the rounding error of its argument by `x**2`: that
    error, known exactly from one fused multiply-add, is put right to first order. Hendrycks, Gimpel
    2016, "Gaussian error linear units".

    >>> import tenfold as tn
    >>> tn.gelu(tn.asarray([0.0, 100.0, -100.0])).tolist()
    [0.0, 100.0, -0.0]
    """
    # Beyond 40 the probability is 0 or 1 in every dtype; the bounds keep infinities out of it.
    bounded = minimum(maximum(x, -40), 40)
    root, root_error = _rounded_inverse_sqrt2(x.dtype)
    argument = bounded * -root
    error = fma(bounded, -root, -argument) - bounded * root_error
    slope = exp(-argument * argument) * (-2 / math.sqrt(math.pi))
    return 0.5 * maximum(x, -40) * (erfc(argument) + slope * error)
