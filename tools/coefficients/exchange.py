"""Best approximations by Remez' exchange, for the scripts of coefficients beside this file.

Takes a function and an interval, hands on the coefficients of the polynomial whose largest weighted
error is least, rounded to a dtype.

    >>> coefficients, error = polynomial(mp.exp, 4, (-0.1, 0.11), FLOAT32)
    >>> error < 1e-6
    True

Remez' second algorithm (E. W. Cheney, Introduction to Approximation Theory, 1966, chapter 3,
section 8): solve for an error that alternates on n + 1 points, move the points to the extrema of
the error found, again. Coefficients are rounded one by one: in most that is fitted here the leading
terms are exact and stand outside, so that half a unit in a coefficient is a small part of one in
the result. The error that is returned is that of the rounded ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from mpmath import mp, mpf

mp.dps = 50
Function = Callable[[mpf], mpf]
Interval = tuple[float | mpf, float | mpf]
FLOAT32, FLOAT64 = np.float32, np.float64


def rounded(value: mpf, dtype: type) -> mpf:
    """The nearest number of a dtype; a float32 goes by one rounding of 60 digits."""
    if dtype is FLOAT64:
        return mpf(float(value))
    with mp.workprec(24):
        return +value


def chebyshev(interval: Interval, count: int) -> list[mpf]:
    """The zeros of a Chebyshev polynomial on an interval, ascending."""
    low, high = mpf(interval[0]), mpf(interval[1])
    middle, half = (high + low) / 2, (high - low) / 2
    return [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def extrema(error: Function, points: list[mpf], interval: Interval) -> list[mpf]:
    """Where the error is largest between its changes of sign, one point for each of `points`."""
    low, high = mpf(interval[0]), mpf(interval[1])
    grid = sorted({*chebyshev(interval, 16 * len(points)), *points, low, high})
    values = [error(x) for x in grid]
    peaks: list[tuple[mpf, mpf]] = []
    for x, value in zip(grid, values, strict=True):
        if peaks and (value < 0) == (peaks[-1][1] < 0):
            if abs(value) > abs(peaks[-1][1]):
                peaks[-1] = (x, value)
        else:
            peaks.append((x, value))
    while len(peaks) > len(points):
        peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
    return [x for x, _ in peaks] if len(peaks) == len(points) else points


def polynomial(
    function: Function,
    count: int,
    interval: Interval,
    dtype: type,
    weight: Function | None = None,
) -> tuple[list[float], float]:
    """The `count` coefficients of a polynomial, and the largest error times `weight` (positive).

    Without a weight the error is relative. The interval may hold 0, but not in its middle: there
    a function that is known as a quotient by x could not be computed.
    """
    weight = weight or (lambda x: 1 / abs(function(x)))

    def error(x: mpf, found: list[mpf]) -> mpf:
        return (mp.polyval(found[::-1], x) - function(x)) * weight(x)

    points, coefficients = chebyshev(interval, count + 1), list[mpf]()
    for _ in range(6):
        rows = [
            [*(weight(x) * x**p for p in range(count)), (-1) ** i] for i, x in enumerate(points)
        ]
        wanted = [weight(x) * function(x) for x in points]
        *coefficients, _level = mp.lu_solve(mp.matrix(rows), mp.matrix(wanted))
        points = extrema(partial(error, found=coefficients), points, interval)
    held = [rounded(c, dtype) for c in coefficients]
    worst = max(abs(error(x, held)) for x in chebyshev(interval, 400))
    return [float(c) for c in held], float(worst)
