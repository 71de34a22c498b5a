"""Assumptions (`tn.assume`): promise a matrix's structure to the rewrite rules, values unchanged.

Takes an array and the name of a structure, hands on an array of the same values; under
`tn.options(verify=True)` one that is checked before it is used.

>>> import tenfold as tn
>>> assume(tn.eye(2), "diagonal").tolist()
[[1.0, 0.0], [0.0, 1.0]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, as_stack, derived, operation
from tenfold.core.structure import Structure, same_structure
from tenfold.dtypes import real_part
from tenfold.errors import ShapeError
from tenfold.ops.diagonal_tril_triu import tril, triu
from tenfold.ops.linalg import square
from tenfold.settings import get

TOLERANCE_FACTOR = 100
"""How many roundings of n terms a product may differ from the assumed structure."""


def _unequal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ~((x == y) | ((x != x) & (y != y)))


def _tolerance(x: np.ndarray, scale: Any) -> Any:
    """The tolerance for rounding in sums of as many terms as rows, of magnitude `scale`."""
    dtype = real_part(x.dtype)
    unit = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
    return TOLERANCE_FACTOR * x.shape[-1] * unit * scale


def _asymmetric(x: np.ndarray) -> np.ndarray:
    return _unequal(x, x.swapaxes(-1, -2))


def _off_diagonal(x: np.ndarray) -> np.ndarray:
    return (x != 0) & ~np.eye(x.shape[-1], dtype=bool)


def _off_triangle(x: np.ndarray) -> np.ndarray:
    """The nonzero elements in the triangle of a matrix that has fewer of them."""
    upper, lower = np.triu(x, 1) != 0, np.tril(x, -1) != 0
    is_lower = np.count_nonzero(upper, (-1, -2)) <= np.count_nonzero(lower, (-1, -2))
    return np.where(is_lower[..., None, None], upper, lower)


def _not_orthogonal(x: np.ndarray) -> np.ndarray:
    product = np.conj(x.swapaxes(-1, -2)) @ x
    return ~(np.abs(product - np.eye(x.shape[-1])) <= _tolerance(x, 1))


def _not_positive_definite(x: np.ndarray) -> np.ndarray:
    """Where it is not Hermitian up to rounding; else the diagonal element of a pivot below 0."""
    scale = np.abs(x).max((-1, -2), keepdims=True, initial=0)
    failing = ~(np.abs(x - np.conj(x.swapaxes(-1, -2))) <= _tolerance(x, scale))
    for at in np.ndindex(x.shape[:-2]):
        if not failing[at].any():
            pivot = _failing_pivot(x[at])
            if pivot is not None:
                failing[at][pivot, pivot] = True
    return np.asarray(failing)


def _failing_pivot(x: np.ndarray) -> int | None:
    """The order, less one, of the first leading part that is not positive definite."""
    try:
        np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        low, high = 0, len(x)  # the part of order low is, that of order high is not
        while high - low > 1:
            middle = (low + high) // 2
            try:
                np.linalg.cholesky(x[:middle, :middle])
                low = middle
            except np.linalg.LinAlgError:
                high = middle
        return low
    return None


class Promise(NamedTuple):
    """What an assumption states."""

    structure: Structure
    statement: str
    violations: Callable[[np.ndarray], np.ndarray]
    """Where it does not hold."""


PROMISES = {
    "symmetric": Promise(Structure.SYMMETRIC, "x[i, j] equals x[j, i]", _asymmetric),
    "lower": Promise(
        Structure.LOWER, "all elements above the diagonal are 0", lambda x: np.triu(x, 1) != 0
    ),
    "upper": Promise(
        Structure.UPPER, "all elements below the diagonal are 0", lambda x: np.tril(x, -1) != 0
    ),
    "triangular": Promise(
        Structure.TRIANGULAR,
        "all elements above the diagonal are 0, or all below it",
        _off_triangle,
    ),
    "positive-definite": Promise(
        Structure.POSITIVE_DEFINITE,
        "conj(x.T) equals x, and every pivot is positive",
        _not_positive_definite,
    ),
    "orthogonal": Promise(
        Structure.ORTHOGONAL, "conj(x.T) @ x is the identity, up to rounding", _not_orthogonal
    ),
    "diagonal": Promise(
        Structure.DIAGONAL, "all elements beside the diagonal are 0", _off_diagonal
    ),
}


def false_promise(x: np.ndarray, structure: Structure) -> str | None:
    """Return the word of a fact that does not hold for finite values, up to rounding, or None."""
    if not np.isfinite(x).all():
        return None
    adjoint, diagonal = np.conj(x.swapaxes(-1, -2)), np.diagonal(x, 0, -2, -1)
    tolerance = _tolerance(x, np.abs(x).max(initial=0))
    holds: dict[Structure, Callable[[], np.ndarray]] = {
        # the default binds the promise of each turn
        promise.structure: lambda test=promise.violations: ~test(x)  # type: ignore[misc]
        for promise in PROMISES.values()
    }
    holds |= {
        Structure.SYMMETRIC: lambda: np.abs(x - x.swapaxes(-1, -2)) <= tolerance,
        Structure.HERMITIAN: lambda: np.abs(x - adjoint) <= tolerance,
        Structure.UNIT: lambda: diagonal == 1,
        Structure.SELECTION: lambda: ((x != 0) == (x == 1)) & ((x != 0).sum(-1) == 1)[..., None],
    }
    facts = [fact for fact in holds if fact in structure and not holds[fact]().all()]
    return facts[0].word if facts else None


def _cotangent(g: Array, structure: str) -> Array:
    """The cotangent of the elements that a promise leaves: those of a triangle or a diagonal."""
    promised = PROMISES[structure].structure
    if Structure.LOWER in promised:
        g = tril(g)
    return triu(g) if Structure.UPPER in promised else g


def _rule(types: tuple[Type, ...], structure: str) -> Inferred:
    square(types[0].shape)
    return Inferred(((types[0].shape, types[0].dtype),), (types[0].dtype,))


def _promised(structure: str) -> tuple[Structure]:
    return (PROMISES[structure].structure,)


@operation(
    rule=_rule,
    structure=same_structure,
    makes=_promised,
    reference=lambda x, _: x,
    kind=Kind.VIEW,
    index_map=lambda shape, _: tuple((axis, 1, 0) for axis in range(len(shape))),
    public=False,
    portable=True,
    batch_params=as_stack,
    vjp=lambda g, y, x, structure: (_cotangent(g, structure),),
)
def declared(x: Array, /, structure: str) -> BoundCall:
    """Return the values of `x` with an assumed structure."""
    return BoundCall((x,), (structure,))


def _verified(x: np.ndarray, structure: str) -> np.ndarray:
    _, statement, violations = PROMISES[structure]
    failing = violations(x)
    if failing.any():
        at = tuple(int(i) for i in np.argwhere(failing)[0])
        value = x[at].item()
        raise ValueError(
            f"the promise {structure!r} is false at {at}, where x is {value!r}: {statement}"
        )
    return x.copy()


@operation(
    rule=_rule,
    structure=same_structure,
    makes=_promised,
    reference=_verified,
    can_fail=True,
    remedy="assume only what holds, or leave the assumption out",
    name="assume",
    public=False,
    portable=True,
    batch_params=as_stack,
    vjp=lambda g, y, x, structure: (_cotangent(g, structure),),
)
def verified(x: Array, /, structure: str) -> BoundCall:
    """Return the values of `x` after a check of the assumed structure."""
    return BoundCall((x,), (structure,))


@derived(
    reference=lambda x, _: x,
    samples=[SampleCall(((2, 2),), positional=("symmetric",))],
)
def assume(x: Array, structure: str, /) -> Array:
    """Return an array of the same values with the promise that its matrices, (..., n, n), have a
    structure: "symmetric", "lower", "upper", "triangular" (either way), "positive-definite" (and
    Hermitian), "orthogonal" (or unitary) or "diagonal". `x.storage` names it.

    Rules of class linear-algebra rely on it, and compute nothing that follows from it: a solve with
    a triangular matrix is a substitution, the inverse of an orthogonal one its transpose. If the
    promise is false, results may be wrong. Declared under `tn.options(verify=True)`, a false
    promise raises ValueError at the wait: it names the promise, the first index where it fails and
    the line; "orthogonal" and "positive-definite" hold up to rounding.

    Raises ShapeError for another structure and for matrices that are not square.

    >>> import tenfold as tn
    >>> x = tn.assume(tn.asarray([[2.0, 0.0], [1.0, 4.0]]), "triangular")
    >>> tn.linalg.solve(x, tn.asarray([2.0, 5.0])).tolist()
    [1.0, 1.0]
    """
    x = array(x)
    if structure not in PROMISES:
        structures = ", ".join(repr(name) for name in PROMISES)
        raise ShapeError("", f"{structure!r} is not a structure", remedy=f"use one of {structures}")
    square(x.shape)
    result = declared(x, structure)
    return verified(result, structure) if get("verify") else result
