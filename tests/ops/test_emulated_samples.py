"""Every sample of an operation has the bits of the CPU on a device whose memory the host cannot
read, with queues that run late and at random moments.
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
from tenfold.errors import ExplainedError
from tenfold.testing import assert_equal_bits

ROWS = [
    pytest.param(operation, sample, id=f"{operation.full_name}-{number}")
    for operation in OPS.values()
    if operation.public
    for number, sample in enumerate(operation.samples)
]
DTYPES = ("float64", "int32", "complex64", "bool")


@pytest.fixture(scope="module", autouse=True)
def random_moments() -> Iterator[None]:
    _native.seed_emulated_queues(5)
    yield
    _native.seed_emulated_queues(0)


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    random = np.random.default_rng(len(shape) + sum(shape))
    if dtype == "bool":
        return random.random(shape) < 0.5
    whole = random.integers(1, 9, shape)
    return (whole if dtype == "int32" else whole / 8).astype(dtype)


def outcome(
    device: str, operation: Operation[...], sample: SampleCall, dtype: str
) -> tuple[str, list[np.ndarray]]:
    """The device and the values of a call, or the name of its error."""
    with tn.options(device=device):
        arrays = [tn.asarray(values(shape, dtype)) for shape in sample.shapes]
        try:
            result: Any = called(operation, operation.public_signature, arrays, sample)
            several = result if isinstance(result, (tuple, list)) else [result]
            results = [each for each in several if isinstance(each, tn.Array)]
            assert {each.device for each in results} <= {device}
            return "", [np.asarray(each) for each in results]
        except (ExplainedError, np.linalg.LinAlgError, TypeError, ValueError) as error:
            return type(error).__name__, []


@pytest.mark.exhaustive
@pytest.mark.parametrize(("operation", "sample"), ROWS)
def test_sample_has_the_bits_of_the_cpu(operation: Operation[...], sample: SampleCall) -> None:
    for dtype in DTYPES:
        error, found = outcome("emulated:0", operation, sample, dtype)
        expected_error, expected = outcome("cpu", operation, sample, dtype)
        assert error == expected_error, dtype
        for one, other in zip(found, expected, strict=True):
            assert_equal_bits(one, other)
