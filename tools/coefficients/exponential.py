"""Fits the polynomials of `tenfold.codegen.vecmath` for powers of e and 2 and for logarithms.

Takes nothing, hands on (prints) the name of each tuple of coefficients, what the polynomial adds to
the relative error of the function, as a power of 2, and the coefficients as the dtype holds them.
Needs mpmath.

Example: `python tools/coefficients/exponential.py` prints

    EXPM1: (exp(r) - 1 - r) / r**2 float32 2^-25.8 (0.49999997, 0.16666543, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from exchange import FLOAT32, FLOAT64, Function, Interval, polynomial
from mpmath import mp, mpf

HALF_LOG = mp.log(2) / 2 * (1 + mpf(2) ** -20)
"""Where the argument of exp ends after a multiple of log(2) is taken away."""
TERMS = 60


def series(term: Callable[[int], mpf]) -> Function:
    """The function with these coefficients at 0: a quotient that would be 0/0 there."""
    terms = [term(i) for i in range(TERMS)][::-1]
    return lambda x: mp.polyval(terms, x)


def fits() -> Iterator[tuple[str, Function, Function, Interval, dict[type, int]]]:
    """Name, function, weight, interval and number of coefficients of each polynomial."""
    yield (
        "EXPM1: (exp(r) - 1 - r) / r**2",
        series(lambda i: 1 / mp.factorial(i + 2)),
        lambda r: abs(r) / series(lambda i: 1 / mp.factorial(i + 1))(r),
        (-HALF_LOG, HALF_LOG),
        {FLOAT32: 5, FLOAT64: 10},
    )
    yield (
        "EXP2: (2**r - 1) / r",
        series(lambda i: mp.log(2) ** (i + 1) / mp.factorial(i + 1)),
        lambda r: abs(r) / mpf(2) ** r,
        (-mpf(1) / 2, mpf(1) / 2),
        {FLOAT32: 6, FLOAT64: 11},
    )
    yield (
        "LOG1P: (log(1 + f) - f + f**2 / 2) / f**3",
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
        lambda f: abs(f**3 / mp.log1p(f)),
        (-mpf(1) / 3, mpf(1) / 3 * (1 + mpf(2) ** -20)),
        {FLOAT32: 8},
    )
    limit = (mp.sqrt(2) - 1) ** 2 / (mp.sqrt(2) + 1) ** 2 * (1 + mpf(2) ** -20)
    yield (
        "ATANH: (2 * atanh(s) - 2 * s) / s**3 in s**2",
        series(lambda i: mpf(2) / (2 * i + 3)),
        lambda z: z / 2,
        (0, limit),
        {FLOAT64: 7},
    )
    yield (
        "POW: (2 * atanh(s) / log(2) - 2 * s / log(2) * (1 + s**2 / 3)) / s**5 in s**2",
        series(lambda i: mpf(2) / (2 * i + 5) / mp.log(2)),
        lambda z: z * z * mp.log(2) / 2,
        (0, limit),
        {FLOAT64: 8},
    )
    yield (
        "SHORT_POW: (2 * atanh(s) / log(2) - 2 * s / log(2)) / s**3 in s**2",
        series(lambda i: mpf(2) / (2 * i + 3) / mp.log(2)),
        lambda z: z * mp.log(2) / 2,
        (0, limit),
        {FLOAT64: 4},
    )
    yield (
        "SHORT_EXP2: (2**r - 1) / r",
        series(lambda i: mp.log(2) ** (i + 1) / mp.factorial(i + 1)),
        lambda r: abs(r) / mpf(2) ** r,
        (-mpf(1) / 2, mpf(1) / 2),
        {FLOAT64: 7},
    )


def main() -> None:
    """Print what is quoted in the modules."""
    for name, function, weight, interval, counts in fits():
        for dtype, count in counts.items():
            found, error = polynomial(function, count, interval, dtype, weight)
            shown = ", ".join(str(dtype(each)) for each in found)
            print(f"{name} {np.dtype(dtype)} 2^{np.log2(error):.1f} ({shown})")


if __name__ == "__main__":
    main()
