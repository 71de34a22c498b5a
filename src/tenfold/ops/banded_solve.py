"""Banded and triangular solves under SciPy's names: `solve_banded` and `solve_triangular`.

>>> import tenfold as tn
>>> solve_banded((0, 0), tn.asarray([[2.0, 4.0]]), tn.asarray([2.0, 2.0])).tolist()
[1.0, 0.5]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred
from tenfold.core.op_decorators import array, derived, operation
from tenfold.core.shape_rules import broadcast, normalize_count, product
from tenfold.errors import ShapeError
from tenfold.ops import reduce
from tenfold.ops.complex import conj
from tenfold.ops.joining import stack
from tenfold.ops.linalg import (
    SINGULAR,
    check_rhs,
    computation_dtype,
    matrices,
    refuse_singular,
    solve_members,
)
from tenfold.ops.lu_and_triangular import triangular_solve
from tenfold.ops.movement import expand_dims, matrix_transpose, squeeze
from tenfold.ops.pad import pad


def _banded_rule(types: tuple[Type, ...], lower: int, upper: int) -> Inferred:
    lengths, rows, order = matrices(types[0].shape)
    rhs = types[1].shape
    if rows != lower + upper + 1:
        rule = f"{rows} diagonals are not {lower} below and {upper} above the main one"
        raise ShapeError("", rule, remedy="give bands (..., lower + upper + 1, n)")
    check_rhs(order, rhs)
    dtype = computation_dtype(types)
    shape = rhs if len(rhs) == 1 else (*broadcast(lengths, rhs[:-2]), *rhs[-2:])
    shape = (*lengths, *rhs) if len(rhs) == 1 else shape
    return Inferred(((shape, dtype),), (dtype, dtype))


def _banded_reference(bands: np.ndarray, x2: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """SciPy's, matrix by matrix."""
    from scipy import linalg  # imported only where it is used

    rhs = x2[:, None] if x2.ndim == 1 else x2
    lengths = np.broadcast_shapes(bands.shape[:-2], rhs.shape[:-2])
    every = np.broadcast_to(bands, (*lengths, *bands.shape[-2:]))
    result = np.array(np.broadcast_to(rhs, (*lengths, *rhs.shape[-2:])))
    for at in np.ndindex(*lengths) if result.size else ():
        try:
            result[at] = linalg.solve_banded(
                (lower, upper), every[at], result[at], check_finite=False
            )
        except np.linalg.LinAlgError:
            singular = np.zeros(lengths, bool)
            singular[at] = True
            raise refuse_singular("the bands", bands.shape, bands.dtype, singular) from None
    return result[..., 0] if x2.ndim == 1 else result


def _banded_multiply_adds(types: tuple[Type, ...], lower: int, upper: int) -> int:
    """Golub and Van Loan 2013, 4.3.1 and 4.3.2."""
    rhs = types[1].shape
    columns = 1 if len(rhs) == 1 else rhs[-1]
    per_row = lower * (lower + upper) + columns * (2 * lower + upper + 1)
    return product(types[0].shape[:-2]) * types[0].shape[-1] * per_row


def _shifted(x: Array, by: int) -> Array:
    """Return matrices whose row j is row j + `by` of `x`, 0 where there is none."""
    n = x.shape[-2]
    by = max(-n, min(by, n))
    padded = pad(x, [(0, 0)] * (x.ndim - 2) + [(max(-by, 0), max(by, 0)), (0, 0)])
    return padded[..., max(by, 0) : max(by, 0) + n, :]


def _banded_back(
    g: Array, y: Array, bands: Array, x2: Array, lower: int, upper: int
) -> tuple[Array, Array]:
    """As for other matrices, of whose elements those on the diagonals are kept."""
    vector, count = x2.ndim == 1, lower + upper + 1
    columns, solution = (expand_dims(z, -1) if vector else z for z in (g, y))
    rows = conj(bands[..., None])
    adjoints = [_shifted(rows[..., count - 1 - i, :, :], i - lower) for i in range(count)]
    rhs = solve_banded((upper, lower), stack([x[..., 0] for x in adjoints], axis=-2), columns)
    products = [_shifted(rhs, i - upper) * conj(solution) for i in range(count)]
    diagonals = stack([reduce.sum(x, axis=-1) for x in products], axis=-2)
    return -diagonals, squeeze(rhs, -1) if vector else rhs


@operation(
    rule=_banded_rule,
    # it stands below
    rebind=lambda ab, b, *n: solve_banded.signature.bind(n, ab, b),  # type: ignore[has-type]
    reference=_banded_reference,
    promotes=True,
    can_fail=True,
    remedy=SINGULAR,
    multiply_adds=_banded_multiply_adds,
    namespace="linalg",
    batch=solve_members,
    vjp=_banded_back,
)
def solve_banded(l_and_u: tuple[int, int], ab: Array, b: Array, /) -> BoundCall:
    """Solve equations whose matrices have `l_and_u` = (l, u) diagonals below and above the main
    one: (..., l + u + 1, n) and (n,) or (..., n, k), floating dtypes.

    `ab[..., u + i - j, j]` is the element (i, j) of the matrix, as in SciPy and LAPACK; the corners
    of `ab` outside of the matrix are not read. `b` is a vector when it has exactly one axis; stacks
    broadcast. Raises ShapeError for shapes that do not fit, DTypeError for halves, and LinAlgError
    at the wait for a singular matrix. By elimination with row exchanges: Golub and Van Loan 2013,
    4.3.

    >>> import tenfold as tn
    >>> ab = tn.asarray([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0, 0.0]])
    >>> tn.linalg.solve_banded((1, 1), ab, tn.asarray([5.0, 6.0, 5.0])).tolist()
    [1.0, 1.0, 1.0]
    """
    try:
        lower, upper = l_and_u
    except (TypeError, ValueError):
        rule = f"l_and_u {l_and_u!r} is not a pair"
        raise ShapeError("", rule, remedy="give the diagonals below and above, as (1, 1)") from None
    params = normalize_count(lower, "l"), normalize_count(upper, "u")
    return BoundCall((array(ab), array(b)), params)


TRANSPOSITIONS: dict[Any, str] = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


@derived(namespace="linalg")
def solve_triangular(
    a: Array, b: Array, /, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """Solve `a @ x = b` for triangular matrices, upper ones unless `lower`, with the arguments of
    SciPy's function; `linalg.triangular_solve` takes lower ones unless `upper`.

    `trans` 1 or "T" solves with the transposed matrices, 2 or "C" with the conjugate transposed
    ones. Shapes and errors are those of `linalg.triangular_solve`; ShapeError for another `trans`.

    >>> import tenfold as tn
    >>> x = tn.asarray([[2.0, 1.0], [9.0, 4.0]])  # the 9 is not read
    >>> tn.linalg.solve_triangular(x, tn.asarray([3.0, 4.0])).tolist()
    [1.0, 1.0]
    """
    a = array(a)
    if trans not in TRANSPOSITIONS:
        rule = f"trans {trans!r} is none of 0, 1, 2, 'N', 'T', 'C'"
        raise ShapeError("", rule, remedy="use one of them")
    kind = TRANSPOSITIONS[trans]
    if kind != "N":
        a = matrix_transpose(conj(a) if kind == "C" else a)
    upper = bool(lower) == (kind != "N")
    return triangular_solve(a, b, upper=upper, unit_diagonal=unit_diagonal)
