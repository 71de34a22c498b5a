"""Coefficients of `tenfold.codegen.vecmath.special`: prints its tables. Needs mpmath.

    python tools/coefficients/special.py

Beside each stands the largest error as a share of the function that is made of it, as 2**-bits.
"""

from __future__ import annotations

from exchange import FLOAT32, FLOAT64, Function, polynomial
from hyperbolic import show
from mpmath import mp, mpf


def near(z: mpf) -> mpf:
    """P in erf(x) = x + x * P(z), z = x**2."""
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def far(x: mpf) -> mpf:
    """P in erf(x) = 1 - 2**P(x)."""
    return mp.log(mp.erfc(x), 2)


def tail(middle: int) -> Function:
    """P in erfc(x) = exp(-x**2) / (x + middle) * P(q), q = (x - middle) / (x + middle)."""

    def function(q: mpf) -> mpf:
        x = middle * (1 + q) / (1 - q)
        return mp.exp(x * x) * mp.erfc(x) * (x + middle)

    return function


def slope(middle: int) -> Function:
    """The derivative of `tail(middle)`."""

    def function(q: mpf) -> mpf:
        x = middle * (1 + q) / (1 - q)
        scaled = mp.exp(x * x) * mp.erfc(x)
        change = scaled + (x + middle) * (2 * x * scaled - 2 / mp.sqrt(mp.pi))
        return change * (x + middle) ** 2 / (2 * middle)

    return function


def main() -> None:
    """Print every table."""
    for dtype, first, last, counts in (
        (FLOAT32, mpf("0.875"), mpf("3.93"), (6, 7)),
        (FLOAT64, mpf(1), mpf("5.93"), (12, 20)),
    ):
        name = dtype.__name__
        weight = lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z))  # noqa: E731
        show(f"NEAR {name}", polynomial(near, counts[0], (mpf(10) ** -7, first**2), dtype, weight))
        weight = lambda x: mp.erfc(x) / mp.erf(x) * mp.log(2)  # noqa: E731
        show(f"FAR {name}", polynomial(far, counts[1], (first, last), dtype, weight))
    for dtype, middle, last, count in (
        (FLOAT32, 2, mpf("10.1"), 10),
        (FLOAT64, 4, mpf("27.3"), 22),
    ):
        interval = (mpf(-1), (last - middle) / (last + middle))
        show(f"TAIL {dtype.__name__}", polynomial(tail(middle), count, interval, dtype))
        show(f"TAIL_SLOPE {dtype.__name__}", polynomial(slope(middle), 4, interval, dtype))
    for dtype, count in ((FLOAT32, 4), (FLOAT64, 6)):
        root = polynomial(lambda x: x ** (-mpf(1) / 3), count, (mpf(1), mpf(8)), dtype)
        show(f"ROOT {dtype.__name__}", root)


if __name__ == "__main__":
    main()
