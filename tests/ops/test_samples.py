"""The samples of every operation have the same bits in every mode: planned with its neighbours,
interpreted as what is seen seldom, by a kernel for each operation, seen often, and pushed to an
engine, however its inputs lie; under `make emulated` on a device whose memory the host cannot read.

Where it is no single call, an operation stands between operations on elements, so that there is
something to fuse, and something to compute by itself. What is pushed is pushed five times under
hold, so that what can be batched is one batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

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
MODES = ("interpreted", "unfused", "often", "pushed", "pushed turned")
if os.environ.get("TENFOLD_DEVICE", "cpu") != "cpu":
    MODES = ("emulated",)  # `make emulated`
TIMES = 5
"""Pushes of one operation."""
Outcome = list[np.ndarray] | str
"""The values, or what is wrong with the call."""


@pytest.fixture(scope="module")
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


@pytest.fixture(scope="module", autouse=True)
def random_moments() -> Iterator[None]:
    """Queues of emulated devices run launches at random moments."""
    _native.seed_emulated_queues(5)
    yield
    _native.seed_emulated_queues(0)


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    if dtype == "bool":
        return rng.random(shape) < 0.5
    whole = rng.integers(1, 9, shape)
    return (whole if dtype == "int32" else whole / 8).astype(dtype)


def before(x: tn.Array) -> tn.Array:
    """An operation on elements that is pending; twice its operand, which it leaves a bool."""
    return tn.logical_not(x) if kind_of(x.dtype) == "b" else x + x


def arrays_of(made: Any) -> list[tn.Array]:
    results = made if isinstance(made, (tuple, list)) else (made,)
    return [each for each in results if isinstance(each, tn.Array)]


def outcome(compute: Callable[[], list[tn.Array]]) -> Outcome:
    try:
        arrays = compute()
        tn.eval(*arrays)
        return [np.array(each) for each in arrays]  # copies: a call may make another's view
    except (ExplainedError, np.linalg.LinAlgError, TypeError, ValueError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"


def fused(operation: Operation[...], sample: SampleCall, dtype: str, **options: Any) -> Outcome:
    """What comes of a call amid operations on elements, under options."""

    def compute() -> list[tn.Array]:
        given = [before(tn.asarray(values(shape, dtype))) for shape in sample.shapes]
        made = arrays_of(called(operation, operation.public_signature, given, sample))
        device = sample.arguments.get("device") or options.get("device", "cpu")
        assert {each.device for each in made} <= {device}
        return [each for one in made for each in (one, before(one))]

    with tn.options(**options):
        return outcome(compute)


def turned(array: np.ndarray) -> tn.Array:
    """In the opposite order of axes, every other element along each."""
    wide = np.zeros([2 * length for length in reversed(array.shape)], array.dtype)
    steps = (*(slice(None, None, 2),) * array.ndim, ...)
    wide[steps] = array.transpose()
    return tn.eval(tn.permute_dims(tn.asarray(wide)[steps], tuple(reversed(range(array.ndim)))))


def pushed(
    engine: tn.Engine, operation: Operation[...], sample: SampleCall, arrays: list[tn.Array]
) -> list[Outcome]:
    """What comes of pushes of one call that are held together."""

    def push(*inputs: Any, **params: Any) -> tn.Handle:
        return engine.push(operation, *inputs, **params)

    try:
        with engine.hold():
            signature = operation.public_signature
            handles = [called(push, signature, arrays, sample) for _ in range(TIMES)]
    except TypeError:  # no input that an operator takes
        return []
    return [outcome(lambda handle=handle: arrays_of(handle.get())) for handle in handles]


def found_and_wanted(
    mode: str, engine: tn.Engine, operation: Operation[...], sample: SampleCall, dtype: str
) -> tuple[list[Outcome], Outcome]:
    if "pushed" in mode:
        lay = turned if "turned" in mode else tn.asarray
        arrays = [lay(values(shape, dtype)) for shape in sample.shapes]
        signature = operation.public_signature
        wanted = outcome(lambda: arrays_of(called(operation, signature, arrays, sample)))
        return pushed(engine, operation, sample, arrays), wanted
    if mode == "often":
        first, *others = [
            fused(operation, sample, dtype) for _ in range(_native.TIERS.hot_runs + 2)
        ]
        return others, first
    options: dict[str, Any] = {"tier": "0", "fuse": False} if mode == "unfused" else {}
    if mode == "emulated":
        options = {"device": "emulated:0"}
    wanted = fused(operation, sample, dtype, tier="0", device="cpu")
    return [fused(operation, sample, dtype, **options)], wanted


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:Matrix is singular")  # of sqrtm
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("operation", "sample"), ROWS)
def test_sample_has_the_same_bits_in_every_mode(
    operation: Operation[...], sample: SampleCall, mode: str, engine: tn.Engine, part: Part
) -> None:
    for dtype in part(DTYPES):
        found, wanted = found_and_wanted(mode, engine, operation, sample, dtype)
        for each in found:
            if isinstance(wanted, str) or isinstance(each, str):
                assert isinstance(each, str)
                assert isinstance(wanted, str)
                # a push tells the same, and where it was pushed
                assert each.split(":")[0] == wanted.split(":")[0]
                assert "pushed" in mode or each.replace("emulated:0", "cpu") == wanted
                continue
            for one, other in zip(each, wanted, strict=True):
                assert_equal_bits(one, other)
