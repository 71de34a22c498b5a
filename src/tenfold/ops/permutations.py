"""Random choices: permutations by the order of random keys, choices, and random vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tenfold._native import Array, Type
from tenfold.core.op import BoundCall, Inferred, SampleCall
from tenfold.core.op_decorators import array, derived, operation
from tenfold.core.shape_rules import Shape, normalize_axis, product
from tenfold.dtypes import INT64
from tenfold.errors import ShapeError, message
from tenfold.ops import philox
from tenfold.ops.arange import arange
from tenfold.ops.bounds_checks import known_values
from tenfold.ops.contract import matmul
from tenfold.ops.cumulative import cumulative_sum
from tenfold.ops.elementary import sqrt
from tenfold.ops.gathering import take, take_along_axis
from tenfold.ops.indexing import get_item
from tenfold.ops.linalg import cholesky, eigh, svd
from tenfold.ops.movement import matrix_transpose
from tenfold.ops.philox import SAMPLE_KEY
from tenfold.ops.random import (
    array_operand,
    bits,
    draw_members,
    draw_rule,
    element_size,
    integers,
    operand,
    random,
    standard_exponential,
    standard_normal,
)
from tenfold.ops.reshaping import reshape
from tenfold.ops.selection import minimum
from tenfold.ops.sorting import argsort, searchsorted
from tenfold.settings import checked_device

SPARSE_SHARE = 16
"""The elements for each chosen one from which a choice draws numbers until they are distinct."""
SPARSE_COUNT = 4096
"""The elements below which it sorts keys all the same."""
SMALL_SCALE = 2.0**-60
"""Scales exponential numbers so that their quotient by any probability but 0 is finite."""
PROBABILITY_ERROR = 1e-8
"""How far from 1 the sum of probabilities may be."""


def _population(x: Any) -> Array:
    """Return an array, or the numbers below an int."""
    if isinstance(x, (int, np.integer)):
        return arange(operator.index(x))
    return array_operand(x)


@derived(namespace="random", samples=[SampleCall((), {}, (*SAMPLE_KEY, 7))])
def permutation(key: int | Array, draw: int | Array, /, x: int | Array, *, axis: int = 0) -> Array:
    """Return `x`, or the ints below it, with its parts along an axis in random order.

    The order is that of random keys of 64 bits.

    >>> import tenfold as tn
    >>> sorted(tn.random.permutation(1, 2, 4).tolist())
    [0, 1, 2, 3]
    """
    x = _population(x)
    position = normalize_axis(axis, x.ndim)
    return take(x, argsort(bits(key, draw, x.shape[position])), axis=position)


@derived(namespace="random", samples=[SampleCall((), {}, (*SAMPLE_KEY, 7))])
def permuted(key: int | Array, draw: int | Array, /, x: Array, *, axis: int | None = None) -> Array:
    """Return `x` with the elements of each line along an axis in a random order of its own; of all
    elements if `axis` is None.

    >>> import tenfold as tn
    >>> sorted(tn.random.permuted(1, 2, tn.arange(4)).tolist())
    [0, 1, 2, 3]
    """
    x = _population(x)
    if axis is None:
        return reshape(permutation(key, draw, reshape(x, (-1,))), x.shape)
    position = normalize_axis(axis, x.ndim)
    order = argsort(bits(key, draw, x.shape), axis=position)
    return take_along_axis(x, order, axis=position)


def _probabilities(p: Any, count: int, distinct: int) -> Array:
    """Return the probabilities of a choice of so many distinct elements; known ones are checked."""
    p = p if isinstance(p, Array) else array(np.asarray(p, np.float64))
    if p.shape != (count,):
        rule = f"probabilities of shape {p.shape} do not fit {count} elements"
        raise ShapeError("", rule, remedy="give one for each element")
    values = known_values(p)
    if values is None:
        return p
    if np.any(values < 0) or not abs(values.sum(dtype=np.float64) - 1.0) < PROBABILITY_ERROR:
        rule = "probabilities are not negative, and their sum is 1"
        raise ValueError(message("choice", rule, (), "divide them by their sum"))
    possible = int(np.count_nonzero(values))
    if possible < distinct:
        rule = f"Fewer non-zero entries in p than size: {possible} of {count}, not {distinct}"
        raise ValueError(message("choice", rule, (), "give replace=True"))
    return p


@derived(namespace="random", samples=[SampleCall((), {"size": (2, 3)}, (*SAMPLE_KEY, 7))])
def choice(
    key: int | Array,
    draw: int | Array,
    /,
    a: int | Array,
    size: int | Shape | None = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Array:
    """Return random elements of `a` along an axis, or of the ints below it, with probabilities `p`.

    Without replacement the first ones in the order of random keys, or few of many: the first
    distinct ones of those with replacement. With probabilities the keys are exponential numbers of
    these rates (Efraimidis and Spirakis 2006).

    >>> import tenfold as tn
    >>> sorted(tn.random.choice(1, 2, 3, 3, replace=False).tolist())
    [0, 1, 2]
    """
    population = None if isinstance(a, (int, np.integer)) else _population(a)
    position = 0 if population is None else normalize_axis(axis, population.ndim)
    count = int(a) if population is None else population.shape[position]
    lengths = element_size(size)
    if count < 1 and product(lengths):
        raise ValueError(
            message(
                "choice", "there is no element to choose from", remedy="give an array with elements"
            )
        )
    distinct = 0 if replace else product(lengths)
    weights = None if p is None else _probabilities(p, count, distinct)
    if replace:
        chosen = _with_replacement(key, draw, count, lengths, weights)
    else:
        if distinct > count:
            rule = f"{distinct} elements of {count} need replacement"
            raise ValueError(message("choice", rule, (), "give replace=True"))
        chosen = reshape(_without_replacement(key, draw, count, distinct, weights), lengths)
    return chosen if population is None else take(population, chosen, axis=position)


def _without_replacement(
    key: Any, draw: Any, count: int, total: int, weights: Array | None
) -> Array:
    if weights is not None:
        keys = standard_exponential(key, draw, count) * SMALL_SCALE / weights
    elif count >= max(total * SPARSE_SHARE, SPARSE_COUNT):
        return distinct_integers(key, draw, count, total)
    else:
        keys = bits(key, draw, count)
    return get_item(argsort(keys), slice(total))


def _distinct_reference(
    key: np.ndarray, draw: np.ndarray, count: np.ndarray, *params: Any
) -> np.ndarray:
    (total,), stream, *_ = params
    rows = np.broadcast_arrays(key, draw, count)
    result = [
        _first_distinct(np.asarray(k), np.asarray(d), np.asarray([n], np.uint64), total, stream)
        for k, d, n in zip(*(x.reshape(-1) for x in rows), strict=True)
    ]
    return np.concatenate([*result, np.empty(0, np.int64)]).reshape(*rows[0].shape, total)


def _first_distinct(
    key: np.ndarray, draw: np.ndarray, count: np.ndarray, total: int, stream: int
) -> np.ndarray:
    length = total
    while True:
        length += length // 8 + SPARSE_SHARE
        numbers = philox.bounded(philox.array_block(key, draw, (length,), stream), count)
        first = np.sort(np.unique(numbers, return_index=True)[1])
        if first.size >= total:
            return np.asarray(numbers[first[:total]], np.int64)


def _distinct_rule(types: tuple[Type, ...], *params: Any) -> Inferred:
    return Inferred(draw_rule(types[:2], *params).results, (INT64,) * 3)


@operation(
    public=False,
    namespace="random",
    rule=_distinct_rule,
    reference=_distinct_reference,
    batch=draw_members,
    creates=True,
)
def distinct_integers(key: Any, draw: Any, count: int, total: int) -> BoundCall:
    """Return the first `total` distinct ones of random integers below `count`, int64.

    In the order of their first draw: each sequence of distinct integers is as probable as another.
    """
    operands = (operand(key, "key"), operand(draw, "draw number"), count)
    return BoundCall(operands, ((total,), 0, np.dtype(INT64), checked_device(None)))


def _with_replacement(
    key: Any, draw: Any, count: int, lengths: Shape, weights: Array | None
) -> Array:
    if weights is None:
        return integers(key, draw, 0, max(count, 1), lengths)
    bounds = cumulative_sum(weights)
    numbers = random(key, draw, lengths) * get_item(bounds, -1)
    return minimum(searchsorted(bounds, numbers, side="right"), count - 1)


@derived(
    namespace="random",
    samples=[SampleCall((), {"size": 4}, (*SAMPLE_KEY, (1.0, 2.0), ((2.0, 1.0), (1.0, 3.0))))],
)
def multivariate_normal(
    key: int | Array,
    draw: int | Array,
    /,
    mean: Any,
    cov: Any,
    size: int | Shape | None = None,
    *,
    method: str = "svd",
) -> Array:
    """Return vectors of the normal distribution of mean `mean` (k,) and covariance `cov` (k, k), by
    the factor that `method` names: "svd", "eigh" or "cholesky". Shape: `size`, then k.

    >>> import tenfold as tn
    >>> tn.random.multivariate_normal(1, 2, [0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]], 3).shape
    (3, 2)
    """
    center, covariance = _population(mean), _population(cov)
    if method == "cholesky":
        factor = matrix_transpose(cholesky(covariance))
    elif method == "eigh":
        squares, vectors = eigh(covariance)
        factor = matrix_transpose(vectors * sqrt(squares))
    elif method == "svd":
        _, squares, vectors = svd(covariance)
        factor = reshape(sqrt(squares), (-1, 1)) * vectors
    else:
        rule = f"method {method!r} is not 'svd', 'eigh' or 'cholesky'"
        raise ValueError(message("multivariate_normal", rule, remedy="give one of them"))
    numbers = standard_normal(key, draw, (*element_size(size), center.shape[-1]))
    if numbers.ndim == 1:
        return center + reshape(matmul(reshape(numbers, (1, -1)), factor), (-1,))
    return center + matmul(numbers, factor)
