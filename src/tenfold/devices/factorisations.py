"""Factorisations: operations of linear algebra by LAPACK, from arrays to arrays.

Takes a stack of matrices of float64 or complex128, contiguous or not, hands on new arrays in
row-major order; None where LAPACK reports that there is no answer. LAPACK takes matrices by
columns: those by rows are copied transposed, as the results are back.

>>> x = np.array([[2.0, 0.0], [0.0, 4.0]])
>>> solve(x, np.array([2.0, 2.0]))[0].tolist()
[1.0, 0.5]
>>> solve(np.zeros((2, 2)), np.array([2.0, 2.0])) is None
True
"""

from __future__ import annotations

import numpy as np

from tenfold.devices.lapack import placed, run, work_length
from tenfold.dtypes import COMPLEX128, DTYPES, FLOAT64, kind_of
from tenfold.render.library_call import Routine

Values = tuple[np.ndarray, ...]
LETTERS = {FLOAT64: "d", COMPLEX128: "z"}
INT32 = DTYPES["int32"]


def cholesky(x: np.ndarray, upper: bool) -> Values | None:
    """Return the triangular factor. By rows a lower triangle is an upper one by columns."""
    n, result = x.shape[-1], x.copy(order="C")
    matrices = flat(result)
    read, other = "LU" if upper else "UL"
    cleared = matrices[:, 1:, :1] if upper else matrices[:, :1, 1:]
    routines = (
        Routine(name_of(x, "potrf"), f"'{read} n0 m0 n0 report", fails=True),
        Routine(name_of(x, "laset"), f"'{other} n1 n1 zero zero m1 n0"),
    )
    done = run(routines, (matrices, cleared), (n, n - 1), multiply_adds=n**3 // 6)
    return (result,) if done else None


def inverse(x: np.ndarray) -> Values | None:
    """Return the inverse, from the factors of x."""
    n, name = x.shape[-1], name_of(x, "getri")
    factors, pivots = by_columns(x), _pivots(x)
    length = work_length(name, (n, None, n, None, None, -1))
    (at,), scratch = placed((x.dtype, length))
    routines = (_factor(x), Routine(name, "n0 m0 n0 m1 w1 n2 report", fails=True))
    numbers = (n, at, length)
    done = run(routines, (factors, pivots), numbers, work=scratch, multiply_adds=n**3)
    return (by_rows(factors, x.shape),) if done else None


def solve(x1: np.ndarray, x2: np.ndarray) -> Values | None:
    """Return the solutions: x2 is a vector when it has one axis, else a stack of matrices."""
    n, right = x1.shape[-1], x2[:, None] if x2.ndim == 1 else x2
    stack, count = np.broadcast_shapes(x1.shape[:-2], right.shape[:-2]), right.shape[-1]
    factors = by_columns(np.broadcast_to(x1, (*stack, n, n)))
    solutions = by_columns(np.broadcast_to(right, (*stack, n, count)))
    routines = (
        _factor(x1),
        Routine(name_of(x1, "getrs"), "'N n0 n1 m0 n0 m1 m2 n0 report", fails=True),
    )
    arrays = (factors, _pivots(factors), solutions)
    cost = n**3 // 3 + n * n * count
    if not run(routines, arrays, (n, count), multiply_adds=cost):
        return None
    return (by_rows(solutions, (*stack, n) if x2.ndim == 1 else (*stack, n, count)),)


def determinant(x: np.ndarray) -> Values:
    """Return the determinant by logarithms of the diagonal, so that no product overflows."""
    n = x.shape[-1]
    factors, pivots = by_columns(x), _pivots(x)
    run((_factor(x)._replace(fails=False),), (factors, pivots), (n,), multiply_adds=n**3 // 3)
    diagonal = np.einsum("...ii->...i", factors)
    odd = np.count_nonzero(pivots != np.arange(1, n + 1), axis=-1) % 2 == 1
    sizes = np.abs(diagonal)
    signs = np.sign(diagonal) if kind_of(x.dtype) == "f" else diagonal / np.where(sizes, sizes, 1)
    values = signs.prod(-1) * np.exp(np.log(sizes).sum(-1))
    return (np.where(odd, -values, values).reshape(x.shape[:-2]),)


def qr(x: np.ndarray, mode: str) -> Values | None:
    """Return Q and R by Householder's reflections."""
    *stack, m, n = x.shape
    short, inner = min(m, n), m if mode == "complete" else min(m, n)
    factors = by_columns(x)
    scales = np.empty((len(factors), short), x.dtype)
    cost = short * short * (3 * max(m, n) - short) // 3
    name = name_of(x, "geqrf")
    length = work_length(name, (m, n, None, m, None, None, -1))
    (at,), scratch = placed((x.dtype, length))
    reflect = Routine(name, "n0 n1 m0 n0 m1 w2 n3 report", fails=True)
    numbers = [m, n, at, length]
    if not run((reflect,), (factors, scales), numbers, work=scratch, multiply_adds=cost):
        return None
    r = np.triu(by_rows(factors[:, :, :inner], (*stack, inner, n)))
    q = np.empty((len(factors), inner, m), x.dtype)
    q[:, :n] = factors[:, :inner]
    name = name_of(x, "ungqr" if kind_of(x.dtype) == "c" else "orgqr")
    length = work_length(name, (m, inner, short, None, m, None, None, -1))
    (at,), scratch = placed((x.dtype, length))
    expand = Routine(name, "n0 n1 n2 m0 n0 m1 w3 n4 report", fails=True)
    numbers = [m, inner, short, at, length]
    done = run((expand,), (q, scales), numbers, work=scratch, multiply_adds=cost)
    return (by_rows(q, (*stack, m, inner)), r) if done else None


def eigh(x: np.ndarray) -> Values | None:
    """Return eigenvalues and eigenvectors, by dividing and conquering, of the lower triangle."""
    n, is_complex = x.shape[-1], kind_of(x.dtype) == "c"
    vectors = by_columns(x)
    values = np.empty((len(vectors), n))
    name = name_of(x, "heevd" if is_complex else "syevd")
    # the lengths of what is no main work array are those of LAPACK's documentation
    others = [(FLOAT64, 1 + 5 * n + 2 * n * n)] if is_complex else []
    others.append((INT32, 3 + 5 * n))
    asked = ("V", "L", n, None, n, None, None, -1, *[None, -1] * len(others))
    length = work_length(name, asked)
    areas = [(x.dtype, length), *others]
    offsets, scratch = placed(*areas)
    lengths = [length for _, length in areas]
    words = " ".join(f"w{1 + i} n{1 + len(areas) + i}" for i in range(len(areas)))
    decompose = Routine(name, f"'V 'L n0 m0 n0 m1 {words} report", fails=True)
    numbers = (n, *offsets, *lengths)
    cost = 9 * n**3 // 2
    if not run((decompose,), (vectors, values), numbers, work=scratch, multiply_adds=cost):
        return None
    return values.reshape(x.shape[:-1]), by_rows(vectors, x.shape)


def svd(x: np.ndarray, full_matrices: bool) -> Values | None:
    """Return U, S and Vh, by dividing and conquering."""
    *stack, m, n = x.shape
    short, long = min(m, n), max(m, n)
    left, right = (m, n) if full_matrices else (short, short)
    given = by_columns(x)
    count = len(given)
    u, vh = np.empty((count, left, m), x.dtype), np.empty((count, n, right), x.dtype)
    s = np.empty((count, short))
    name, job = name_of(x, "gesdd"), "A" if full_matrices else "S"
    # the lengths of what is no main work array are those of LAPACK's documentation
    others = [(INT32, 8 * short)]
    if kind_of(x.dtype) == "c":
        others.insert(0, (FLOAT64, short * max(5 * short + 7, 2 * long + 2 * short + 1)))
    unread = [None] * len(others)
    asked = (job, m, n, None, m, None, None, m, None, right, None, -1, *unread)
    length = work_length(name, asked)
    offsets, scratch = placed((x.dtype, length), *others)
    words = " ".join(f"w{5 + i}" for i in range(len(others)))
    decompose = Routine(name, f"'{job} n0 n1 m0 n0 m1 m2 n0 m3 n2 w4 n3 {words} report", fails=True)
    numbers, cost = (m, n, right, length, *offsets), 7 * long * short * short + 4 * short**3
    if not run((decompose,), (given, s, u, vh), numbers, work=scratch, multiply_adds=cost):
        return None
    return (
        by_rows(u, (*stack, m, left)),
        s.reshape(*stack, short),
        by_rows(vh, (*stack, right, n)),
    )


def singular_values(x: np.ndarray) -> Values | None:
    """Return S alone."""
    *stack, m, n = x.shape
    short, long = min(m, n), max(m, n)
    given = by_columns(x)
    s = np.empty((len(given), short))
    name = name_of(x, "gesdd")
    # the lengths of what is no main work array are those of LAPACK's documentation
    others = [(INT32, 8 * short)]
    if kind_of(x.dtype) == "c":
        others.insert(0, (FLOAT64, 7 * short))
    asked = ("N", m, n, None, m, None, None, 1, None, 1, None, -1, *[None] * len(others))
    length = work_length(name, asked)
    # U and Vh are not asked for: the last area stands for them
    areas = [(x.dtype, length), *others, (x.dtype, 1)]
    offsets, scratch = placed(*areas)
    last = 2 + len(areas)
    inner = " ".join(f"w{4 + i}" for i in range(len(others)))
    words = f"'N n0 n1 m0 n0 m1 w{last} n2 w{last} n2 w3 n{last + 1} {inner} report"
    decompose = Routine(name, words, fails=True)
    numbers = (m, n, 1, *offsets, length)
    cost = 2 * long * short * short
    if not run((decompose,), (given, s), numbers, work=scratch, multiply_adds=cost):
        return None
    return (s.reshape(*stack, short),)


def name_of(x: np.ndarray, routine: str) -> str:
    """Return the name of a routine for the dtype of an array."""
    return LETTERS[x.dtype] + routine


def _factor(x: np.ndarray) -> Routine:
    return Routine(name_of(x, "getrf"), "n0 n0 m0 n0 m1 report", fails=True)


def flat(x: np.ndarray) -> np.ndarray:
    """Return a view or a copy with one axis of the stack."""
    return x.reshape(-1, *x.shape[-2:])


def by_columns(x: np.ndarray) -> np.ndarray:
    """Return a copy by columns: (count, n, m) of (..., m, n), contiguous."""
    return flat(x).swapaxes(1, 2).copy(order="C")


def by_rows(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return a copy by rows of what is by columns, with the stack's axes again."""
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(shape)


def _pivots(x: np.ndarray) -> np.ndarray:
    """Return room for the pivots of square matrices."""
    order = x.shape[-1]
    return np.empty((x.size // order**2, order), INT32)
