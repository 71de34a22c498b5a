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
from tenfold.ops.index_parsing import constant_array
from tenfold.ops.sorting import sortable, sorted_positions, sorted_values


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


def _run_starts(ascending: np.ndarray) -> np.ndarray:
    """Return where in sorted values a run of equal ones begins: bool."""
    starts = np.ones(ascending.shape, bool)
    np.not_equal(ascending[1:], ascending[:-1], out=starts[1:])
    return starts


def _run_lengths(starts: np.ndarray) -> np.ndarray:
    """Return how often each value occurs."""
    return np.diff(np.flatnonzero(starts), append=starts.size)


def _sort_flat(flat: np.ndarray) -> np.ndarray:
    """Return flat values sorted; complex ones by their real, then their imaginary parts."""
    if flat.dtype.kind == "c":
        return flat[sorted_positions(flat)]
    return sorted_values(flat).astype(flat.dtype, copy=False)


def _unique_with_positions(x: Array, operation: str) -> tuple[np.ndarray, ...]:
    """Return the values of `x`, their first positions, the inverse positions and the counts."""
    flat = values(x, operation).reshape(-1)
    sort_keys = sortable(flat)
    order = sorted_positions(sort_keys)
    starts = _run_starts(sort_keys[order])
    inverse = np.empty(flat.shape, np.int64)
    inverse[order] = np.cumsum(starts) - 1
    first_positions = order[starts]
    return flat[first_positions], first_positions, inverse.reshape(x.shape), _run_lengths(starts)


@derived(
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
    return UniqueAll(
        *(constant_array(x, field) for field in _unique_with_positions(x, "unique_all"))
    )


@derived(
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
    ascending = _sort_flat(values(x, "unique_counts").reshape(-1))
    starts = _run_starts(ascending)
    return UniqueCounts(
        constant_array(x, ascending[starts]), constant_array(x, _run_lengths(starts))
    )


@derived(
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
    unique, _, inverse, _ = _unique_with_positions(x, "unique_inverse")
    return UniqueInverse(constant_array(x, unique), constant_array(x, inverse))


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
    ascending = _sort_flat(values(x, "unique_values").reshape(-1))
    return constant_array(x, ascending[_run_starts(ascending)])


@derived(
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
        constant_array(x, positions.astype(INT64, copy=False))
        for positions in values(x, "nonzero").nonzero()
    )


def _isin_rule(types: tuple[Type, ...], invert: bool) -> Inferred:
    common = promote(types)
    mixes_signs = kind_of(common) == "f" and all(kind_of(type_.dtype) in "iu" for type_ in types)
    operands = tuple(type_.dtype for type_ in types) if mixes_signs else (common, common)
    return Inferred(((types[0].shape, BOOL),), operands)


def _isin_reference(x: np.ndarray, candidates: np.ndarray, invert: bool) -> np.ndarray:
    if x.dtype == candidates.dtype:
        return np.isin(sortable(x), sortable(candidates), invert=invert)
    # A signed and a 64-bit unsigned integer: only nonnegative numbers can be equal.
    signed = x if x.dtype.kind == "i" else candidates
    if signed is x:
        contained = np.isin(x.astype(np.uint64), candidates) & (x >= 0)
    else:
        contained = np.isin(x, candidates[candidates >= 0].astype(np.uint64))
    return contained ^ invert


def _isin_members(members: Members, invert: bool) -> Any:
    """Batch rule: candidates must be shared."""
    return NotImplemented if members.batched[1] else members.call(members.operands, (invert,))


@operation(
    rule=_isin_rule,
    reference=_isin_reference,
    kind=Kind.CONTRACTION,
    promotes=True,
    numpy=(np.isin,),
    batch=_isin_members,
    samples=[
        SampleCall(((2, 3), (4,))),
        SampleCall(((2,), (0,)), {"invert": True}),
        SampleCall(((), (2, 2))),
    ],
)
def isin(x1: Array, x2: Array, /, *, invert: bool = False) -> BoundCall:
    """Return for each element of `x1` whether it is equal to any element of `x2`; or, inverted, to
    none: bool, the shape of `x1`. NaN equals nothing. `x2` may be a list.

    >>> import tenfold as tn
    >>> tn.isin(tn.asarray([1, 2, 3]), tn.asarray([3, 1])).tolist()
    [True, False, True]
    """
    return BoundCall((_to_strong_dtype(x1), _to_strong_dtype(x2)), (bool(invert),))


def _to_strong_dtype(operand: Any) -> Any:
    """Return an int as an array, so that 300 can be tested against uint8 without an error; a list
    too.
    """
    if isinstance(operand, (list, tuple)):
        return array(np.asarray(operand))
    return array(operand) if isinstance(operand, int) else operand
