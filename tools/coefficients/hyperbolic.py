"""Coefficients of `tenfold.codegen.vecmath.hyperbolic`: prints its tables. Needs mpmath.

    python tools/coefficients/hyperbolic.py

Beside each stands the largest error as a share of the function that is made of it, as 2**-bits.
"""

from __future__ import annotations

from collections.abc import Callable

from exchange import FLOAT32, FLOAT64, Function, polynomial
from mpmath import mp, mpf

HALF = mp.log(2) / 2 * mpf("1.0005")
"""What is left of an argument after whole multiples of log(2), and what rounding adds."""


def series(coefficient: Callable[[int], mpf]) -> Function:
    """The power series with these coefficients, where its closed form would cancel."""
    return lambda x: mp.fsum(coefficient(i) * x**i for i in range(40))


def asinh_rest(z: mpf) -> mpf:
    """P in asinh(x) = x + x * z * P(z), z = x**2."""
    x = mp.sqrt(z)
    return (mp.asinh(x) / x - 1) / z


sinh_rest = series(lambda i: 1 / mp.factorial(2 * i + 3))  # sinh(r) = r + r * z * P(z), z = r**2
cosh_rest = series(lambda i: 1 / mp.factorial(2 * i + 2))  # cosh(r) = 1 + z * P(z)


def show(name: str, made: tuple[list[float], float]) -> None:
    """Print a table as it stands in the source."""
    coefficients, error = made
    print(f"{name}: {len(coefficients)} coefficients, error 2**{float(mp.log(error, 2)):.1f}")
    for coefficient in coefficients:
        print(f"    {coefficient!r},")


def main() -> None:
    """Print every table."""
    square = (HALF**2 / 10**6, HALF**2)
    small = (mpf(10) ** -7, mpf(1) / 4)
    for dtype, counts in ((FLOAT32, (2, 3, 5)), (FLOAT64, (5, 5, 11))):
        sinh, cosh, asinh = counts
        name = dtype.__name__
        weight = lambda z: z * mp.sqrt(z) / mp.sinh(mp.sqrt(z))  # noqa: E731
        show(f"SINH {name}", polynomial(sinh_rest, sinh, square, dtype, weight))
        show(f"COSH {name}", polynomial(cosh_rest, cosh, square, dtype, lambda z: z))
        weight = lambda z: z * mp.sqrt(z) / mp.asinh(mp.sqrt(z))  # noqa: E731
        show(f"ASINH {name}", polynomial(asinh_rest, asinh, small, dtype, weight))


if __name__ == "__main__":
    main()
