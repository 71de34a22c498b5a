"""BLAS by hand: what somebody writes who knows its routines, their flags and the best order.

Takes a dtype; hands on `Blas`, whose methods call `scipy.linalg.blas` and `scipy.linalg.lapack` for
arrays in C order without a copy that could be spared: to Fortran the array is its transpose, and
`X @ Y` is the transpose of `Y.T @ X.T`. Results are newly allocated and may be in Fortran's order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

Matrix = np.ndarray
LETTERS = {"float32": "s", "float64": "d"}
SIDE = 96
"""Rows of the blocks in which a triangle is mirrored: two of them stay in the first cache."""


def lying(x: Matrix) -> tuple[Matrix, int]:
    """A matrix as Fortran has it in memory, and whether that is its transpose."""
    return (x, 0) if x.flags.f_contiguous else (x.T, 1)


class Blas:
    """The routines for one dtype."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.double = self.dtype == np.float64
        letter = LETTERS[self.dtype.name]
        self.blas = {name: getattr(blas, letter + name) for name in BLAS}
        self.lapack = {name: getattr(lapack, letter + name) for name in LAPACK}

    def product(
        self, x: Matrix, y: Matrix, alpha: float = 1, onto: Matrix | None = None, beta: float = 1
    ) -> Matrix:
        """alpha x @ y, plus beta times what it is put onto, which is overwritten."""
        out = np.empty((len(x), y.shape[1]), self.dtype) if onto is None else onto
        beta = 0 if onto is None else beta
        (first, turned), (second, other) = lying(y.T), lying(x.T)
        self.blas["gemm"](alpha, first, second, beta, out.T, turned, other, overwrite_c=1)
        return out

    def times_vector(self, x: Matrix, v: Matrix, alpha: float = 1) -> Matrix:
        """x @ v."""
        first, turned = lying(x)
        return np.asarray(self.blas["gemv"](alpha, first, v, trans=turned))

    def triangle_of_gram(self, x: Matrix) -> Matrix:
        """The upper triangle, in Fortran's order, of x @ x.T."""
        first, turned = lying(x)
        out = np.empty((len(x), len(x)), self.dtype).T
        self.blas["syrk"](1, first, 0, out, turned, overwrite_c=1)
        return out

    def gram(self, x: Matrix) -> Matrix:
        """x @ x.T."""
        return mirrored(self.triangle_of_gram(x))

    def lower_times(self, lower: Matrix, y: Matrix) -> Matrix:
        """The lower triangle of a matrix, times y."""
        return np.asarray(self.blas["trmm"](1, lower.T, y.copy().T, 1, 0, overwrite_b=1).T)

    def lower_solve(self, lower: Matrix, y: Matrix) -> Matrix:
        """What the lower triangle of a matrix is multiplied with to give y."""
        return np.asarray(self.blas["trsm"](1, lower.T, y.copy().T, 1, 0, overwrite_b=1).T)

    def solve(self, x: Matrix, y: Matrix) -> Matrix:
        """inv(x) @ y."""
        packed, pivots, _ = self.lapack["getrf"](x.copy().T, overwrite_a=1)
        right = y.copy() if y.ndim == 1 else np.array(y, order="F")
        return np.asarray(self.lapack["getrs"](packed, pivots, right, 1, overwrite_b=1)[0])

    def solve_from_right(self, y: Matrix, x: Matrix) -> Matrix:
        """y @ inv(x)."""
        packed, pivots, _ = self.lapack["getrf"](x.copy().T, overwrite_a=1)
        right = y.copy().T
        return np.asarray(self.lapack["getrs"](packed, pivots, right, 0, overwrite_b=1)[0].T)

    def definite_solve(self, triangle: Matrix, y: Matrix) -> Matrix:
        """inv(x) @ y, of which the upper triangle, in Fortran's order, is overwritten."""
        packed, _ = self.lapack["potrf"](triangle, lower=0, clean=0, overwrite_a=1)
        right = y.copy() if y.ndim == 1 else np.array(y, order="F")
        return np.asarray(self.lapack["potrs"](packed, right, lower=0, overwrite_b=1)[0])

    def symmetric_solve(self, x: Matrix, y: Matrix) -> Matrix:
        """inv(x) @ y of a symmetric x."""
        length = int(self.lapack["sysv_lwork"](len(x))[0].real)
        right = np.array(y, order="F")
        found: Any = self.lapack["sysv"](
            x.copy().T, right, lwork=length, overwrite_a=1, overwrite_b=1
        )
        return np.asarray(found[2])

    def onto_outer(self, v: Matrix, onto: Matrix) -> Matrix:
        """What it is put onto plus outer(v, v), in place."""
        self.blas["ger"](1, v, v, a=onto.T, overwrite_a=1)
        return onto

    def dot(self, x: Matrix, y: Matrix) -> Any:
        """The product of two vectors, which SciPy gives as a float of Python's."""
        found = self.blas["dot"](x, y)
        return found if self.double else self.dtype.type(found)


BLAS = ("gemm", "gemv", "ger", "dot", "syrk", "trmm", "trsm")
LAPACK = ("getrf", "getrs", "potrf", "potrs", "sysv", "sysv_lwork")


def mirrored(x: Matrix) -> Matrix:
    """A matrix of which the upper triangle is there, with its mirror image below."""
    for first in range(0, len(x), SIDE):
        last = min(first + SIDE, len(x))
        for low in range(last, len(x), SIDE):
            high = min(low + SIDE, len(x))
            x[low:high, first:last] = x[first:last, low:high].T
        block = np.triu(x[first:last, first:last])
        x[first:last, first:last] = block + np.triu(block, 1).T
    return x


def with_transpose(x: Matrix) -> Matrix:
    """A matrix plus its transpose, in its own memory."""
    for first in range(0, len(x), SIDE):
        last = min(first + SIDE, len(x))
        for low in range(first, len(x), SIDE):
            high = min(low + SIDE, len(x))
            block = x[first:last, low:high] + x[low:high, first:last].T
            x[first:last, low:high] = block
            x[low:high, first:last] = block.T
    return x
