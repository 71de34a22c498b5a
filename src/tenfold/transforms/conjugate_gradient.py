"""Conjugate gradients (`tn.linalg.cg`): equations with a large positive definite matrix, as one
loop.

Takes the matrix, of any storage kind, or the function that multiplies by it; hands on the solution.

>>> import tenfold as tn
>>> result = cg(tn.diagonal_matrix(tn.asarray([1.0, 4.0])), tn.asarray([1.0, 1.0]))
>>> [round(x, 12) for x in result.x.tolist()], result.iterations.item()
([1.0, 0.25], 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from tenfold._native import Array
from tenfold.caches import LruCache
from tenfold.core.op import exact_params
from tenfold.core.pytree import flatten
from tenfold.dtypes import INT64, kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.interop.asarray import asarray
from tenfold.ops.cast import convert
from tenfold.ops.complex import real
from tenfold.ops.contract import matmul, vecdot
from tenfold.ops.create import zeros, zeros_like
from tenfold.ops.elementary import sqrt
from tenfold.ops.selection import maximum, where
from tenfold.ops.stop_gradient import stop_gradient
from tenfold.transforms.control_flow import while_loop
from tenfold.transforms.custom_vjp import custom_vjp
from tenfold.transforms.derivatives import vjp
from tenfold.transforms.trace_cache import cached_trace


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

    The derivative of x by `b`, `A` and what the function `A` reads is by a solve of the same
    tolerance; the solution does not depend on `x0` and `M`, and the other results are constants.

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
    matrix, preconditioner = _operator("A", A, b), _operator("M", M, b)
    loop = partial(_iterate, matrix, preconditioner, rtol, atol, maxiter)
    found = loop(b, x, matrix.arrays, preconditioner.arrays, from_zero=x0 is None)
    limits: tuple[Any, ...] = (rtol, atol, maxiter)
    key = matrix.key, preconditioner.key, exact_params(limits)
    is_known = not any(isinstance(value, Array) for value in limits)
    solved = _solved.get(key) if is_known else None
    if solved is None:
        solved = _solved[key] = _differentiated(loop, matrix)
    values = stop_gradient(found[0])
    return CGResult(solved(values, b, matrix.arrays, preconditioner.arrays), *found[1:])


class _Operator(NamedTuple):
    """A linear function of vectors, and the arrays that it reads."""

    times: Callable[[Array, Sequence[Array]], Array]
    arrays: Sequence[Array]
    key: Any


_solved: LruCache[Any, custom_vjp] = LruCache(
    64, "conjugate gradients", "equal solves have one operation, so that these are batched"
)


def _differentiated(loop: Callable[..., tuple[Array, ...]], matrix: _Operator) -> custom_vjp:
    """Return the function from a solution to itself, with the derivative of `A @ x = b`."""

    @custom_vjp
    def solved(values: Array, *_: Any) -> Array:
        return values

    def forward(values: Array, b: Array, arrays: Any, others: Any) -> Any:
        return values, (solved(values, b, arrays, others), arrays, others)

    def backward(residuals: Any, g: Array) -> Any:
        x, arrays, others = residuals
        values = loop(g, zeros_like(x), arrays, others, from_zero=True)[0]
        rhs = solved(stop_gradient(values), g, arrays, others)
        leaves, structure = flatten(arrays)  # of a storage kind the components
        floating = [at for at, leaf in enumerate(leaves) if kind_of(leaf.dtype) in "fc"]

        def product(*parts: Array) -> Array:
            replaced = dict(zip(floating, parts, strict=True))
            values = [replaced.get(at, leaf) for at, leaf in enumerate(leaves)]
            return matrix.times(x, structure.unflatten(values))

        terms = list(map(zeros_like, leaves))
        pulled = vjp(product, *(leaves[at] for at in floating))[1](-rhs) if floating else ()
        for at, term in zip(floating, pulled, strict=True):
            terms[at] = term
        return None, rhs, structure.unflatten(terms), None

    solved.defvjp(forward, backward)
    return solved


def _iterate(
    matrix: _Operator,
    preconditioner: _Operator,
    rtol: Any,
    atol: Any,
    maxiter: int | None,
    b: Array,
    x: Array,
    arrays: Sequence[Array],
    others: Sequence[Array],
    *,
    from_zero: bool,
) -> tuple[Array, ...]:
    def times(y: Array) -> Array:
        return matrix.times(y, arrays)

    norm_of_b = _norm(b)
    x = where(norm_of_b == 0, zeros((), dtype=b.dtype, device=b.device), convert(x, b.dtype))
    r = b if from_zero else b - times(x)
    z = preconditioner.times(r, others)
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
        z = preconditioner.times(r, others)
        rho = vecdot(r, z)
        return {
            "x": state["x"] + alpha * p, "r": r, "p": z + rho / state["rho"] * p, "rho": rho,
            "norm": _norm(r), "steps": state["steps"] + 1,
        }  # fmt: skip

    final = while_loop(is_far, step, start)
    return tuple([final[name] for name in ("x", "steps", "norm")])


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


def _operator(name: str, matrix: Any, b: Array) -> _Operator:
    """Return the function that multiplies a vector by a matrix, in the dtype of `b`."""
    if matrix is None:
        return _Operator(lambda x, _: x, (), None)
    if not isinstance(matrix, Array) and callable(matrix):
        traced = cached_trace("tn.linalg.cg", lambda x: asarray(matrix(x)), (b,))
        body = traced.callee.subgraph
        return _Operator(
            lambda x, arrays: convert(body.apply([x, *arrays])[0], x.dtype),
            tuple(traced.trace.captured_arrays()),
            traced.callee,
        )
    array = asarray(matrix)
    if array.shape != (*b.shape, *b.shape):
        rule = f"{name} of shape {array.shape} is not square, or does not fit b"
        raise ShapeError("linalg.cg", rule, [array, b], "give a matrix (n, n) and b of length n")
    return _Operator(lambda x, arrays: convert(matmul(arrays[0], x), x.dtype), (array,), "a matrix")


__all__ = ["CGResult", "cg"]
