"""Conjugate gradients (`tn.linalg.cg`): equations with a large positive definite matrix, as one
loop.

Takes the matrix, of any storage kind, or the function that multiplies by it; hands on the solution.

>>> import tenfold as tn
>>> result = cg(tn.diagonal_matrix(tn.asarray([1.0, 4.0])), tn.asarray([1.0, 1.0]))
>>> [round(x, 12) for x in result.x.tolist()], result.iterations.item()
([1.0, 0.25], 2)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tenfold._native import Array
from tenfold.dtypes import INT64, kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.interop.asarray import asarray
from tenfold.ops.cast import convert
from tenfold.ops.complex import real
from tenfold.ops.contract import matmul, vecdot
from tenfold.ops.create import zeros
from tenfold.ops.elementary import sqrt
from tenfold.ops.selection import maximum, where
from tenfold.transforms.control_flow import while_loop


class CGResult(NamedTuple):
    """What `linalg.cg` returns."""

    x: Array
    iterations: Array
    residual: Array


def cg(
    A: Array | Callable[[Array], Array],  # noqa: N803  # SciPy's name
    b: Array,
    x0: Array | None = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Array | Callable[[Array], Array] | None = None,  # noqa: N803  # SciPy's name
) -> tuple[Array, Array, Array]:
    """Solve `A @ x = b` for a symmetric (Hermitian) positive definite `A`: (n, n), `b` (n,).

    `A` is an array of any storage kind, or a function that returns `A @ x`; so is `M`, which
    approximates the inverse of `A`. It begins at `x0`, 0 by default, and ends once the norm of the
    residual `b - A @ x` is at most `max(rtol * norm(b), atol)`, or after `maxiter` steps, 10 n by
    default. Returns (x, iterations, residual), named: the residual is its norm as the recurrence
    keeps it. Look at it: nothing is raised where the steps do not suffice.

    Lazy: one `tn.while_loop`, of one plan. Raises ShapeError for shapes that do not fit, and
    DTypeError for integers and halves. Hestenes and Stiefel 1952; the names are SciPy's.

    >>> import tenfold as tn
    >>> A = tn.asarray([[4.0, 1.0], [1.0, 3.0]])
    >>> x, steps, residual = tn.linalg.cg(A, tn.asarray([1.0, 2.0]), rtol=1e-12)
    >>> [round(value, 9) for value in x.tolist()], steps.item()
    ([0.090909091, 0.636363636], 2)
    """
    b = asarray(b)
    x = zeros(b.shape, dtype=b.dtype, device=b.device) if x0 is None else asarray(x0)
    _check(b, x)
    times, precondition = _multiply_by("A", A, b), _multiply_by("M", M, b)
    norm_of_b = _norm(b)
    x = where(norm_of_b == 0, zeros((), dtype=b.dtype, device=b.device), convert(x, b.dtype))
    r = b if x0 is None else b - times(x)
    z = precondition(r)
    tolerance = maximum(rtol * norm_of_b, atol)
    start = {
        "x": x, "r": r, "p": z, "rho": vecdot(r, z), "norm": _norm(r),
        "steps": zeros((), dtype=INT64, device=b.device),
    }  # fmt: skip

    def is_far(state: dict[str, Array]) -> Array:
        return (state["norm"] > tolerance) & (
            state["steps"] < (10 * b.shape[0] if maxiter is None else maxiter)
        )

    def step(state: dict[str, Array]) -> dict[str, Array]:
        p = state["p"]
        q = times(p)
        alpha = state["rho"] / vecdot(p, q)
        r = state["r"] - alpha * q
        z = precondition(r)
        rho = vecdot(r, z)
        return {
            "x": state["x"] + alpha * p, "r": r, "p": z + rho / state["rho"] * p, "rho": rho,
            "norm": _norm(r), "steps": state["steps"] + 1,
        }  # fmt: skip

    final = while_loop(is_far, step, start)
    return CGResult(*(final[name] for name in ("x", "steps", "norm")))


def _check(b: Array, x: Array) -> None:
    """Raise ShapeError or DTypeError for a right side, or a first solution, that does not fit."""
    if b.ndim != 1:
        rule = f"b of shape {b.shape} is not a vector"
        raise ShapeError("linalg.cg", rule, [b], "solve for one right side at a time")
    if kind_of(b.dtype) not in "fc" or b.dtype.itemsize < 4:
        rule = f"b of {b.dtype} has too few digits"
        raise DTypeError("linalg.cg", rule, [b], "convert it with tn.astype(b, tn.float64)")
    if x.shape != b.shape:
        rule = f"x0 of shape {x.shape} does not fit b"
        raise ShapeError("linalg.cg", rule, [b], "give one number for each equation")


def _norm(r: Array) -> Array:
    square = vecdot(r, r)
    return sqrt(real(square) if kind_of(r.dtype) == "c" else square)


def _multiply_by(name: str, matrix: Any, b: Array) -> Callable[[Array], Array]:
    """Return the function that multiplies a vector by a matrix, in the dtype of `b`."""
    if matrix is None:
        return lambda x: x
    if not isinstance(matrix, Array) and callable(matrix):
        return lambda x: convert(asarray(matrix(x)), b.dtype)
    array = asarray(matrix)
    if array.shape != (*b.shape, *b.shape):
        rule = f"{name} of shape {array.shape} is not square, or does not fit b"
        raise ShapeError("linalg.cg", rule, [array, b], "give a matrix (n, n) and b of length n")
    return lambda x: convert(matmul(array, x), b.dtype)


__all__ = ["CGResult", "cg"]
