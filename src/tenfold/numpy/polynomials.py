"""Polynomials by their coefficients, the highest power first, and windows of signals.

Takes NumPy's arguments, hands on Arrays. Fits, roots and windows compute at the call.

>>> polyval([1, 0, 2], [0, 3]).tolist()
[2, 11]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.numpy.arguments import Immediate, as_array
from tenfold.ops.arithmetic import add, multiply
from tenfold.ops.create import zeros_like

__all__ = [
    "bartlett", "blackman", "hamming", "hanning", "kaiser", "poly", "polyadd", "polyder", "polydiv",
    "polyfit", "polyint", "polymul", "polysub", "polyval", "roots",
]  # fmt: skip


def polyval(p: Any, x: Any) -> Array:
    """Return the values of a polynomial, by Horner's rule."""
    coefficients, points = as_array(p), as_array(x)
    result = zeros_like(points)
    for i in range(coefficients.shape[0]):
        result = add(multiply(result, points), coefficients[i])
    return result


bartlett = Immediate(np.bartlett)
blackman = Immediate(np.blackman)
hamming = Immediate(np.hamming)
hanning = Immediate(np.hanning)
kaiser = Immediate(np.kaiser)
poly = Immediate(np.poly)
polyadd = Immediate(np.polyadd)
polyder = Immediate(np.polyder)
polydiv = Immediate(np.polydiv)
polyfit = Immediate(np.polyfit)
polyint = Immediate(np.polyint)
polymul = Immediate(np.polymul)
polysub = Immediate(np.polysub)
roots = Immediate(np.roots)
