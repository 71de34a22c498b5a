"""Every operation has the same bits in both tiers: planned with its neighbours, as what is seen
seldom is computed node by node, and once it has been seen often.

The rows are the samples of all operations. Each stands between operations on elements, so that
there is something to fuse, and something to compute by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from movement_samples import called
from tenfold import _native
from tenfold.core.op import OPS, Operation, SampleCall
from tenfold.dtypes import kind_of
from tenfold.errors import ExplainedError
from tenfold.testing import assert_equal_bits

ROWS = [
    pytest.param(operation, sample, id=f"{operation.full_name}-{number}")
    for operation in OPS.values()
    if operation.public
    for number, sample in enumerate(operation.samples)
]
DTYPES = ("float64", "int32", "complex64", "bool")
WAYS = ({"tier": "0"}, {"tier": "auto"}, {"tier": "0", "fuse": False})
"""By kernels of plans, by loops for any shape, and by a kernel for each operation."""


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    whole = rng.integers(1, 9, shape)
    return (whole if dtype == "int32" else whole / 8).astype(dtype)


def before(x: tn.Array) -> tn.Array:
    """An operation on elements that is pending; twice its operand, which it leaves a bool."""
    return tn.logical_not(x) if kind_of(x.dtype) == "b" else x + x


def after(made: Any) -> Iterator[tn.Array]:
    """The arrays of a result, and what is made of each in the same graph."""
    results = made if isinstance(made, (tuple, list)) else (made,)
    for each in results:
        if isinstance(each, tn.Array):
            yield each
            yield before(each)


def outcome(operation: Operation[...], sample: SampleCall, dtype: str) -> list[np.ndarray] | str:
    """The values, or what is wrong with the call."""
    given: list[Any] = [before(tn.asarray(values(shape, dtype))) for shape in sample.shapes]
    try:
        arrays = [*after(called(operation, operation.public_signature, given, sample))]
        tn.eval(*arrays)
        return [np.asarray(each) for each in arrays]
    except (ExplainedError, np.linalg.LinAlgError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:Matrix is singular")  # of sqrtm
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("operation", "sample"), ROWS)
def test_sample_has_the_same_bits_in_both_tiers(
    operation: Operation[...], sample: SampleCall, dtype: str
) -> None:
    found = []
    for way in WAYS:
        with tn.options(**way):
            found.append(outcome(operation, sample, dtype))
    wanted, *others = found
    for other in others:
        if isinstance(wanted, str) or isinstance(other, str):
            assert other == wanted
            continue
        for one, two in zip(wanted, other, strict=True):
            assert_equal_bits(two, one)


@pytest.mark.parametrize(("operation", "sample"), ROWS[::7])
def test_sample_has_the_same_bits_once_it_has_been_seen_often(
    operation: Operation[...], sample: SampleCall
) -> None:
    first = outcome(operation, sample, "float64")
    for _ in range(_native.HOT_THRESHOLD + 1):
        again = outcome(operation, sample, "float64")
        if isinstance(first, str) or isinstance(again, str):
            assert again == first
            continue
        for one, two in zip(first, again, strict=True):
            assert_equal_bits(two, one)
