"""Fits the polynomials of sines, cosines and their inverses; prints the parts of pi they use.

Takes nothing, prints one line for each polynomial and dtype: the largest relative error of the
function that is made of it, and the coefficients as the dtype holds them; then the parts of pi / 2
and the bits of 2 / pi of `tenfold.codegen.vecmath.argument_reduction`. Needs mpmath.

Example: `python tools/coefficients/trigonometric.py` prints, among others,

    sine float32 2^-28.0 (-0.16666667, 0.008333329, -0.0001983926, 2.717632e-06)
"""

from __future__ import annotations

import numpy as np
from exchange import FLOAT32, FLOAT64, Function, polynomial
from mpmath import mp, mpf

QUARTER = mpf("0.7905") ** 2
"""Past pi / 4 by what the reduction of the largest arguments of its usual path misses."""
BITS = 1152
"""What the largest float64 needs of 2 / pi."""


def odd(function: Function) -> tuple[Function, Function]:
    """The P in f(x) = x + x * s * P(s), s = x * x, and what its error weighs in f."""

    def target(s: mpf) -> mpf:
        x = mp.sqrt(s)
        return (function(x) / x - 1) / s

    def weight(s: mpf) -> mpf:
        x = mp.sqrt(s)
        return s * x / function(x)

    return target, weight


def cosine() -> tuple[Function, Function]:
    """The C in cos(x) = 1 + s * C(s), s = x * x, and what its error weighs in cos."""

    def target(s: mpf) -> mpf:
        return (mp.cos(mp.sqrt(s)) - 1) / s

    def weight(s: mpf) -> mpf:
        return s / mp.cos(mp.sqrt(s))

    return target, weight


FITS = (
    ("sine", odd(mp.sin), QUARTER, 4, 6),
    ("cosine", cosine(), QUARTER, 4, 7),
    ("arcsine", odd(mp.asin), mpf("0.25"), 5, 12),
    ("arctangent", odd(mp.atan), mpf("0.25"), 6, 13),
)
"""Name, what is fitted, the largest s, and how many coefficients float32 and float64 have."""


def two_over_pi() -> str:
    """The first BITS bits of 2 / pi behind the binary point, in base 16."""
    with mp.workprec(BITS + 64):
        return f"{int(mp.floor(2 / mp.pi * mpf(2) ** BITS)):X}"


def parts(precision: int) -> list[float]:
    """Three numbers of so many bits, cut off and not rounded, whose sum is pi / 2."""
    found, left = [], mp.pi / 2
    for _ in range(3):
        with mp.workprec(precision):
            found.append(mp.fmul(left, 1, rounding="d"))
        left -= found[-1]
    return [float(part) for part in found]


def main() -> None:
    """Print every polynomial and the words of 2 / pi."""
    for name, (target, weight), end, single, double in FITS:
        for dtype, count in ((FLOAT32, single), (FLOAT64, double)):
            held, error = polynomial(target, count, (mpf(2) ** -24, end), dtype, weight)
            values = ", ".join(str(dtype(value)) for value in held)
            print(f"{name} {dtype.__name__} 2^{np.log2(error):.1f} ({values})")
    print("pi / 2 float32", parts(24))
    print("pi / 2 float64", parts(53))
    print("2 / pi", two_over_pi())


if __name__ == "__main__":
    main()
