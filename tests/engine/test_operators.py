"""Every operation that is pushed gives the bits that its call gives, however its inputs lie.

The rows are the samples of all operations; each is pushed five times under hold, so that what can
be batched is one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from movement_samples import called
from tenfold.core.op import OPS, Operation, SampleCall
from tenfold.errors import ExplainedError
from tenfold.testing import assert_equal_bits

ROWS = [
    pytest.param(operation, sample, id=f"{operation.full_name}-{number}")
    for operation in OPS.values()
    if operation.public
    for number, sample in enumerate(operation.samples)
]
DTYPES = ("float64", "int32", "complex64", "bool")
TIMES = 5


@pytest.fixture(scope="module")
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    random = np.random.default_rng(len(shape) + sum(shape))
    if dtype == "bool":
        return random.random(shape) < 0.5
    whole = random.integers(1, 9, shape)
    return (whole if dtype == "int32" else whole / 8).astype(dtype)


def in_order(array: np.ndarray) -> tn.Array:
    return tn.asarray(array)


def turned(array: np.ndarray) -> tn.Array:
    """In the opposite order of axes, every other element along each."""
    wide = np.zeros([2 * length for length in reversed(array.shape)], array.dtype)
    steps = (*(slice(None, None, 2),) * array.ndim, ...)
    wide[steps] = array.transpose()
    return tn.eval(tn.permute_dims(tn.asarray(wide)[steps], tuple(reversed(range(array.ndim)))))


def arrays_of(result: Any) -> list[np.ndarray]:
    """Of one result, or of several: copies, since a call may make another's view."""
    several = isinstance(result, (tuple, list))
    results = [each for each in result if isinstance(each, tn.Array)] if several else [result]
    return [np.array(each) for each in results]


def outcome(function: Callable[..., Any], *given: Any) -> list[np.ndarray] | str:
    """What a function gives, or which error."""
    try:
        return arrays_of(function(*given))
    except (ExplainedError, np.linalg.LinAlgError, TypeError, ValueError, OverflowError) as error:
        return type(error).__name__


def same(found: list[np.ndarray] | str, wanted: list[np.ndarray] | str) -> None:
    if isinstance(wanted, str):
        assert isinstance(found, str)
        return
    assert not isinstance(found, str), found
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_equal_bits(one, other)


@pytest.mark.exhaustive
@pytest.mark.parametrize("lay", [in_order, turned])
@pytest.mark.parametrize(("operation", "sample"), ROWS)
def test_pushed_operation_has_the_bits_of_its_call(
    engine: tn.Engine,
    operation: Operation[...],
    sample: SampleCall,
    lay: Callable[[np.ndarray], tn.Array],
) -> None:
    def pushed(*inputs: Any, **params: Any) -> tn.Handle:
        return engine.push(operation, *inputs, **params)

    signature = operation.public_signature
    for dtype in DTYPES:
        arrays = [lay(values(shape, dtype)) for shape in sample.shapes]
        wanted = outcome(called, operation, signature, arrays, sample)
        try:
            with engine.hold():
                handles = [called(pushed, signature, arrays, sample) for _ in range(TIMES)]
        except TypeError:  # no input that an operator takes
            continue
        for handle in handles:
            same(outcome(handle.get), wanted)
