"""Complementary error function: float64 in NumPy, within 2.5 units in the last place.

Takes an ndarray, hands on 1 - erf(x), subnormal results as well. The trapezoidal rule for the
integral

    erfc(x) = 2 x exp(-x**2) / pi * integral of exp(-t**2) / (t**2 + x**2) from 0 to infinity

at t = h / 2, 3 h / 2, ... is exact but for the residue of the pole at t = i x, which is
2 / (1 + exp(2 pi x / h)) and counts where x < pi / h, and for exp(-(pi / h)**2): F. Matta, A.
Reichel, "Uniform computation of the error function and other related functions", Mathematics of
Computation 25, 1971; D. Hunter, T. Regan, "A note on the evaluation of the complementary error
function", Mathematics of Computation 26, 1972. With 2 pi / h = 13 the latter is 5e-19. All terms
are positive, and everything but the exponential carries its rounding error along.

>>> erfc_reference(np.asarray([0.0, 30.0])).tolist()
[1.0, 0.0]
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.ops.fused import FloatPair, two_product, two_sum

if TYPE_CHECKING:
    from decimal import Decimal

INVERSE_STEP = 13
"""2 pi / h; also the number of terms: the next one is below 1e-18 of the first."""
POLE = INVERSE_STEP / 2
"""pi / h, up to which the residue counts."""
CUTOFF = 30.0
"""Beyond, and long before, the result is 0."""
LOG2_AND_ERROR = (0.6931471805599453, 2.3190468138462996e-17)
"""The natural logarithm of 2, and its rounding error."""
PI_DIGITS = "3.14159265358979323846264338327950288419716939937511"


def erfc_reference(x: np.ndarray) -> np.ndarray:
    """Return 1 - erf(x) of float64; NaN for NaN."""
    a = np.minimum(np.abs(x), CUTOFF)
    square = two_product(a, a)
    total, error = _integral(*square)
    scaled, scaled_error = two_product(total, a)
    scaled_error += error * a
    power, argument_error, exponent = _exponential(*square)
    tail = np.ldexp(power * (scaled + (scaled_error + scaled * argument_error)), exponent)
    residue = 2.0 / (1.0 + np.exp(INVERSE_STEP * np.minimum(a, POLE)))
    tail = np.where(a < POLE, tail + residue, tail)
    return np.where(x < 0.0, 2.0 - tail, tail)


def _integral(square: np.ndarray, error: np.ndarray) -> FloatPair:
    """Return the sum of the rule, smallest terms first, over pi and without the exponential."""
    total = total_error = np.zeros_like(square)
    for node, node_error, weight, weight_error in _terms():
        denominator, denominator_error = two_sum(node, square)
        denominator_error += error + node_error
        term = weight / denominator
        product, product_error = two_product(term, denominator)
        remainder = (weight - product) - product_error - term * denominator_error + weight_error
        total, rounding_error = two_sum(total, term)
        total_error = total_error + (rounding_error + remainder / denominator)
    return total, total_error


@cache
def _terms() -> tuple[tuple[np.ndarray, ...], ...]:
    """Return t**2 and 2 h exp(-t**2) / pi of every node, the last first, and their errors."""
    from decimal import Decimal, localcontext  # imported only where it is used

    with localcontext() as context:
        context.prec = 40
        pi = Decimal(PI_DIGITS)
        nodes = [((n + Decimal("0.5")) * 2 * pi / INVERSE_STEP) ** 2 for n in range(INVERSE_STEP)]
        return tuple(
            (*_split(node), *_split(4 * (-node).exp() / INVERSE_STEP)) for node in reversed(nodes)
        )


def _split(number: Decimal) -> FloatPair:
    rounded = float(number)
    return np.asarray(rounded), np.asarray(float(number - type(number)(rounded)))


def _exponential(square: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return p, r, n with exp(-square - error) = p * (1 + r) * 2**n."""
    n = -np.rint(square / LOG2_AND_ERROR[0])
    product, product_error = two_product(n, np.asarray(LOG2_AND_ERROR[0]))
    argument, argument_error = two_sum(-square, -product)
    argument_rest = argument_error - product_error - n * LOG2_AND_ERROR[1] - error
    return np.exp(argument), argument_rest, np.nan_to_num(n).astype(np.int32)
