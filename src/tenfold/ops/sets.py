"""Set operations: the unique values of an array, and where values are.

All but `isin` compute at the call, since the shapes of their results depend on the values. NaNs are
not equal: each counts as a value of its own. -0.0 equals 0.0; the first that occurs stands for
both. Values come in rising order, NaNs last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, Kind, SampleCall
from tenfold.core.op_decorators import array, derived, operation, values
from tenfold.dtypes import BOOL, INT64, kind_of, promote
from tenfold.errors import ShapeError
from tenfold.ops.batch_rules import Members
from tenfold.ops.index_parsing import constant
from tenfold.ops.sorting import exact, sorted_positions, sorted_values


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def _starts(rising: np.ndarray) -> np.ndarray:
    """Return where in sorted values another one begins: bool."""
    starts = np.ones(rising.shape, bool)
    np.not_equal(rising[1:], rising[:-1], out=starts[1:])
    return starts


def _lengths(starts: np.ndarray) -> np.ndarray:
    """Return how often each value occurs."""
    return np.diff(np.flatnonzero(starts), append=starts.size)


def _rising(given: np.ndarray) -> np.ndarray:
    """Return flat values sorted; complex ones by their real, then their imaginary parts."""
    if given.dtype.kind == "c":
        return given[sorted_positions(given)]
    return sorted_values(given).astype(given.dtype, copy=False)


def _with_positions(x: Array, operation: str) -> tuple[np.ndarray, ...]:
    """Return the values of `x`, their first positions, the inverse positions and the counts."""
    given = values(x, operation).reshape(-1)
    keys = exact(given)
    order = sorted_positions(keys)
    starts = _starts(keys[order])
    inverse = np.empty(given.shape, np.int64)
    inverse[order] = np.cumsum(starts) - 1
    first = order[starts]
    return given[first], first, inverse.reshape(x.shape), _lengths(starts)


@derived(
    reference=np.unique_all,
    numpy=(np.unique_all,),
    samples=[SampleCall(((2, 3),)), SampleCall(((0,),))],
)
def unique_all(x: Array, /) -> UniqueAll:
    """Return the different `values` of `x` (u,), the `indices` (u,) of their first occurrences in
    `x` flattened, the `inverse_indices` with the shape of `x` that give `x` back from the values,
    and the `counts` (u,). Computes `x`.

    >>> import tenfold as tn
    >>> found = tn.unique_all(tn.asarray([3, 1, 3]))
    >>> found.values.tolist(), found.indices.tolist(), found.inverse_indices.tolist()
    ([1, 3], [1, 0], [1, 0, 1])
    """
    x = array(x)
    return UniqueAll(*(constant(x, part) for part in _with_positions(x, "unique_all")))


@derived(
    reference=np.unique_counts,
    numpy=(np.unique_counts,),
    samples=[SampleCall(((2, 3),)), SampleCall(((),))],
)
def unique_counts(x: Array, /) -> UniqueCounts:
    """Return the different `values` of `x` (u,) and how often each occurs, `counts` (u,). Computes
    `x`.

    >>> import tenfold as tn
    >>> tn.unique_counts(tn.asarray([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    x = array(x)
    rising = _rising(values(x, "unique_counts").reshape(-1))
    starts = _starts(rising)
    return UniqueCounts(constant(x, rising[starts]), constant(x, _lengths(starts)))


@derived(
    reference=np.unique_inverse,
    numpy=(np.unique_inverse,),
    samples=[SampleCall(((2, 3),)), SampleCall(((),))],
)
def unique_inverse(x: Array, /) -> UniqueInverse:
    """Return the different `values` of `x` (u,) and the `inverse_indices` with the shape of `x`
    that give `x` back: `tn.take(values, inverse_indices)`. Computes `x`.

    >>> import tenfold as tn
    >>> tn.unique_inverse(tn.asarray([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    x = array(x)
    different, _, inverse, _ = _with_positions(x, "unique_inverse")
    return UniqueInverse(constant(x, different), constant(x, inverse))


@derived(
    reference=lambda x: np.unique(x, equal_nan=False),
    numpy=(np.unique_values,),
    samples=[SampleCall(((2, 3),)), SampleCall(((0, 2),))],
)
def unique_values(x: Array, /) -> Array:
    """Return the different values of `x` (u,) in rising order. Computes `x`.

    >>> import tenfold as tn
    >>> tn.unique_values(tn.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    x = array(x)
    rising = _rising(values(x, "unique_values").reshape(-1))
    return constant(x, rising[_starts(rising)])


@derived(
    reference=np.nonzero,
    numpy=(np.nonzero,),
    samples=[SampleCall(((2, 3),)), SampleCall(((0,),))],
    section="searching",
)
def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return where `x` is not 0: for each axis an int64 array (n,) of the positions, in row-major
    order. NaN is not 0. Computes `x`. Raises ShapeError for an array without axes.

    >>> import tenfold as tn
    >>> [where.tolist() for where in tn.nonzero(tn.asarray([[0, 7], [8, 0]]))]
    [[0, 1], [1, 0]]
    """
    x = array(x)
    if x.ndim == 0:
        raise ShapeError("", "an array without axes has no positions", remedy="compare with 0")
    return tuple(
        constant(x, where.astype(INT64, copy=False)) for where in values(x, "nonzero").nonzero()
    )


def _membership(types: tuple[Type, ...], invert: bool) -> Inferred:
    common = promote(types)
    mixed = kind_of(common) == "f" and all(kind_of(type_.dtype) in "iu" for type_ in types)
    operands = tuple(type_.dtype for type_ in types) if mixed else (common, common)
    return Inferred(((types[0].shape, BOOL),), operands)


def _isin(x: np.ndarray, candidates: np.ndarray, invert: bool) -> np.ndarray:
    if x.dtype == candidates.dtype:
        return np.isin(exact(x), exact(candidates), invert=invert)
    # A signed and a 64-bit unsigned integer: only what is not negative can be equal.
    signed = x if x.dtype.kind == "i" else candidates
    if signed is x:
        found = np.isin(x.astype(np.uint64), candidates) & (x >= 0)
    else:
        found = np.isin(x, candidates[candidates >= 0].astype(np.uint64))
    return found ^ invert


def _members_in_all(members: Members, invert: bool) -> Any:
    """With candidates of their own the members have nothing in common."""
    return NotImplemented if members.batched[1] else members.call(members.operands, (invert,))


@operation(
    rule=_membership,
    reference=_isin,
    kind=Kind.CONTRACTION,
    promotes=True,
    numpy=(np.isin,),
    batch=_members_in_all,
    samples=[
        SampleCall(((2, 3), (4,))),
        SampleCall(((2,), (0,)), {"invert": True}),
        SampleCall(((), (2, 2))),
    ],
)
def isin(x1: Array, x2: Array, /, *, invert: bool = False) -> BoundCall:
    """Return for each element of `x1` whether it is equal to any element of `x2`; or, inverted, to
    none: bool, the shape of `x1`. NaN equals nothing.

    >>> import tenfold as tn
    >>> tn.isin(tn.asarray([1, 2, 3]), tn.asarray([3, 1])).tolist()
    [True, False, True]
    """
    return BoundCall((_strong(x1), _strong(x2)), (bool(invert),))


def _strong(operand: Any) -> Any:
    """Return an int as an array of its own dtype: 300 is in no uint8 array, but no mistake."""
    return array(operand) if isinstance(operand, int) else operand
