"""Windows: views, columns and their adjoint, pooling and its gradient, against NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from grid import ALL_DTYPES, HALVES
from tenfold.core.op import OPS, SampleCall
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops import pooling, windows

GRIDS = list(itertools.product((2, 3), (1, 2, 4), (1, 2, 3), (0, 1, ((1, 2), (0, 1)))))
"""Windows, strides, dilations and paddings."""
NAMES = ("im2col", "col2im", "pool", "unpool", "upsample_nearest")
SAMPLES = [
    pytest.param(name, sample, id=f"{name}:{number}")
    for name in NAMES
    for number, sample in enumerate(OPS[name].samples)
]
COLUMNS, IMAGE = OPS["im2col"].reference, OPS["col2im"].reference
POOLED, UNPOOLED = OPS["pool"].reference, OPS["unpool"].reference


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 3) -> np.ndarray:
    """Small integers of few values, so that sums are exact and extremes are tied."""
    rng = np.random.default_rng(seed)
    low = 0 if kind_of(DTYPES[dtype]) in "bu" else -3
    high = 2 if kind_of(DTYPES[dtype]) == "b" else 4
    return rng.integers(low, high, shape).astype(DTYPES[dtype])


@pytest.fixture(params=["short", "long"])
def lengths_of_windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows on both sides of the threshold between an expression and a reduction."""
    if request.param == "long":
        monkeypatch.setattr(windows, "MAX_UNROLLED", 0)
        monkeypatch.setattr(pooling, "MAX_UNROLLED", 0)


def twice(function: Any, *args: Any, **options: Any) -> np.ndarray:
    """The result of a second run, which must have the bits of the first."""
    first, second = (np.asarray(function(*args, **options)) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    return second


def expected_of(name: str, arrays: list[np.ndarray], sample: SampleCall) -> np.ndarray:
    reference = OPS[name].reference
    assert reference is not None
    with np.errstate(all="ignore"):
        return np.asarray(reference(*arrays, *sample.positional, **sample.arguments))


@pytest.mark.exhaustive
@pytest.mark.usefixtures("lengths_of_windows")
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("name", "sample"), SAMPLES)
def test_samples_equal_numpy_in_every_dtype(name: str, sample: SampleCall, dtype: str) -> None:
    arrays = [drawn(shape, dtype) for shape in sample.shapes]
    mode = sample.arguments.get("mode", "max")
    kind = kind_of(DTYPES[dtype])
    function = getattr(tn, name)
    if kind == "c" and name in ("pool", "unpool") and mode in ("max", "min"):
        with pytest.raises(DTypeError):
            function(*map(tn.asarray, arrays), *sample.positional, **sample.arguments)
        return
    widened = [x.astype("float32") for x in arrays] if dtype in HALVES else [*arrays]
    if kind == "b" and name in ("col2im", "unpool"):  # sums, of the first operand
        widened[0] = widened[0].astype("int64")
    expected = expected_of(name, widened, sample)
    found = twice(function, *map(tn.asarray, arrays), *sample.positional, **sample.arguments)
    if dtype in HALVES:
        expected = expected.astype(DTYPES[dtype])
    assert found.shape == expected.shape
    if mode == "mean":
        tolerance = 1e-2 if dtype in HALVES else 1e-6
        np.testing.assert_allclose(
            found.astype("c16"), expected.astype("c16"), rtol=tolerance, atol=tolerance
        )
        return
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("lengths_of_windows")
@pytest.mark.parametrize(("k", "s", "d", "p"), GRIDS)
def test_columns_and_their_sums_are_adjoint_exactly(k: int, s: int, d: int, p: Any) -> None:
    grid = {"stride": s, "dilation": d, "padding": p if p == 0 else (p, p) if p == 1 else p}
    x = drawn((2, 3, 9, 10), "int64")
    columns = twice(tn.im2col, tn.asarray(x), (k, k), **grid)
    assert np.array_equal(columns, COLUMNS(x, (k, k), **grid))
    y = drawn(columns.shape, "int64", seed=4)
    image = twice(tn.col2im, tn.asarray(y), (9, 10), (k, k), **grid)
    assert np.array_equal(image, IMAGE(y, (9, 10), (k, k), **grid))
    assert (columns * y).sum() == (x * image).sum()


def modes() -> Iterator[Any]:
    for mode, ceil, (stride, padding) in itertools.product(
        ("max", "min", "sum", "mean"), (False, True), ((None, 0), (1, 1), (2, (0, 1)), (3, 1))
    ):
        yield {"mode": mode, "ceil_mode": ceil, "stride": stride, "padding": padding}


@pytest.mark.exhaustive
@pytest.mark.usefixtures("lengths_of_windows")
@pytest.mark.parametrize("options", [*modes()], ids=str)
def test_pooling_and_its_gradient_equal_each_window_in_turn(options: dict[str, Any]) -> None:
    x = drawn((2, 7, 8), "float64")
    x[0, 2, 3], x[1, 0, 0], x[1, 1, :4] = np.nan, np.inf, -np.inf
    found = twice(tn.pool, tn.asarray(x), (2, 3), **options)
    with np.errstate(invalid="ignore"):
        expected = POOLED(x, (2, 3), **options)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    gradient = drawn(found.shape, "float64", seed=8)
    for ties in ("first", "all"):
        shares = twice(tn.unpool, tn.asarray(gradient), tn.asarray(x), (2, 3), ties=ties, **options)
        expected = UNPOOLED(gradient, x, (2, 3), ties=ties, **options)
        np.testing.assert_allclose(shares, expected, rtol=1e-14, atol=1e-14)


def test_pooled_table_has_the_maxima_of_its_blocks() -> None:
    x = 0.1 * np.add.outer(np.arange(6), np.arange(6))
    found = np.asarray(tn.pool(tn.asarray(x), (2, 2)))
    np.testing.assert_allclose(found, [[0.2, 0.4, 0.6], [0.4, 0.6, 0.8], [0.6, 0.8, 1]])


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("window", [(2, 2), (8, 8)])
def test_pooling_stores_no_columns(window: tuple[int, int]) -> None:
    x = tn.asarray(np.random.default_rng(0).standard_normal((4, 64, 64)))
    with tn.options(tier=1), tn.profile() as profile:
        tn.pool(tn.exp(x) + 1, window, stride=1).wait()
    columns = 4 * (65 - window[0]) ** 2 * window[0] * window[1] * 8
    assert profile.bytes_allocated < columns
    if window == (2, 2):
        assert (profile.kernels, profile.temporaries) == (2, 1)  # exp(x) + 1 is read four times


def test_pooling_of_an_array_is_one_kernel() -> None:
    x = tn.asarray(np.random.default_rng(0).standard_normal((4, 64, 64)))
    with tn.options(tier=1), tn.profile() as profile:
        (tn.pool(x, (3, 3), stride=2) * 2.0).wait()
    assert (profile.kernels, profile.calls, profile.temporaries) == (1, 0, 0)


def test_channels_are_pooled_on_their_own_axis() -> None:
    x = drawn((2, 5, 3, 4), "int64")
    found = np.asarray(tn.pool(tn.asarray(x), 3, axis=1, stride=1, padding=1, mode="sum"))
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    assert np.array_equal(found, padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:])


def test_upsampling_is_the_adjoint_of_a_pooled_sum() -> None:
    x, y = drawn((3, 2, 4), "int64"), drawn((3, 4, 12), "int64", seed=9)
    up = np.asarray(tn.upsample_nearest(tn.asarray(x), (2, 3), axis=(1, 2)))
    down = np.asarray(tn.pool(tn.asarray(y), (2, 3), mode="sum"))
    assert (up * y).sum() == (x * down).sum()


@pytest.mark.parametrize("name", ["sliding_window_view", *NAMES])
def test_members_of_a_batch_have_the_bits_of_single_calls(name: str) -> None:
    for sample in OPS[name].samples:
        arrays = [drawn((3, *shape), "float64") for shape in sample.shapes]

        def one(*each: tn.Array, sample: SampleCall = sample) -> tn.Array:
            found: tn.Array = getattr(tn, name)(*each, *sample.positional, **sample.arguments)
            return found

        batch = np.asarray(tn.vmap(one)(*map(tn.asarray, arrays)))
        for i in range(3):
            single = np.asarray(one(*(tn.asarray(x[i]) for x in arrays)))
            assert batch[i].tobytes() == single.tobytes()


def test_windows_of_a_view_of_windows_are_read_in_place() -> None:
    x = np.arange(40.0).reshape(5, 8)
    view = tn.sliding_window_view(tn.asarray(x).T[::2], 2, axis=0)
    expected = np.lib.stride_tricks.sliding_window_view(x.T[::2], 2, axis=0)
    assert np.array_equal(np.asarray(view), expected)
    again = tn.sliding_window_view(view, (3,), axis=(1,))
    assert np.array_equal(
        np.asarray(again), np.lib.stride_tricks.sliding_window_view(expected, 3, axis=1)
    )
    assert view.base is not None


def test_an_array_updated_by_its_own_windows_reads_old_values() -> None:
    x = np.arange(50.0)
    y = tn.asarray(x)
    y[2:] = tn.sum(tn.sliding_window_view(y, 3), axis=1)
    assert np.array_equal(
        np.asarray(y), [*x[:2], *np.lib.stride_tricks.sliding_window_view(x, 3).sum(1)]
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: tn.sliding_window_view(x, (5, 1)), "a window of 5 does not fit axis 0"),
        (lambda x: tn.sliding_window_view(x, 2), "1 lengths of a window do not fit 2 axes"),
        (lambda x: tn.pool(x, (2, 2), mode="median"), "mode 'median' is none of"),
        (lambda x: tn.pool(x, (2, 2), stride=0), "stride 0 is below 1"),
        (lambda x: tn.pool(x, 2, padding=((2, 0),)), "shows only padding"),
        (lambda x: tn.im2col(x, (2, 2)), "has no axis of channels"),
        (lambda x: tn.im2col(x, 9), "does not fit 4 elements"),
        (lambda x: tn.col2im(x, 4, 3), "are not windows of 3 elements"),
        (lambda x: tn.unpool(x, x, (2, 2)), "is not that of windows"),
        (lambda x: tn.unpool(x, x, (1, 1), ties="last"), "ties 'last'"),
        (lambda x: tn.upsample_nearest(x, (2, 0)), "factor"),
    ],
)
def test_misfit_is_named(call: Any, text: str) -> None:
    with pytest.raises(ShapeError, match=text):
        call(tn.zeros((4, 4)))


@pytest.mark.parametrize("length", [3, 5, 9])
def test_windows_inside_a_traced_function_follow_new_lengths(length: int) -> None:
    traced = tn.function(lambda x: tn.pool(tn.sin(x), 3, stride=1, padding=1, mode="sum"))
    for n in (length, length + 1):
        x = np.linspace(0, 1, n)
        np.testing.assert_allclose(
            np.asarray(traced(tn.asarray(x))), POOLED(np.sin(x), 3, stride=1, padding=1, mode="sum")
        )
