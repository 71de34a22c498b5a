"""Rows by index: one-hot, masks, choices, softmax gradients, sorting by key, segments; against
NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from grid import ALL_DTYPES, HALVES
from tenfold.core.op import OPS, SampleCall
from tenfold.dtypes import DTYPES, kind_of
from tenfold.errors import DTypeError, ShapeError

NAMES = (
    "one_hot", "mask_rows", "choose_at", "fill_at", "softmax_gradient", "sort_by_key",
    "segment_sort", "segment_max", "segment_min", "segment_prod", "segment_mean",
)  # fmt: skip
SAMPLES = [
    pytest.param(name, sample, id=f"{name}:{number}")
    for name in NAMES
    for number, sample in enumerate(OPS[name].samples)
]
ORDERED = ("sort_by_key", "segment_sort", "segment_max", "segment_min")


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    kind = kind_of(DTYPES[dtype])
    values = rng.integers(0, 2 if kind == "b" else 5, shape)
    values = values if kind in "bu" else values - 2
    return values.astype(DTYPES[dtype])


def taken(name: str, dtype: str) -> bool:
    kind = kind_of(DTYPES[dtype])
    if name == "softmax_gradient":
        return kind == "f"
    return kind != "c" if name in ORDERED else True


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("name", "sample"), SAMPLES)
def test_samples_equal_numpy_in_every_dtype(name: str, sample: SampleCall, dtype: str) -> None:
    arrays = [drawn(shape, dtype, seed) for seed, shape in enumerate(sample.shapes)]
    function, reference = getattr(tn, name), OPS[name].reference
    assert reference is not None
    converted = [tn.asarray(x) for x in sample.positional if isinstance(x, np.ndarray)]
    positional = converted + [x for x in sample.positional if not isinstance(x, np.ndarray)]

    def call() -> list[np.ndarray]:
        result = function(*map(tn.asarray, arrays), *positional, **sample.arguments)
        results = result if isinstance(result, tuple) else (result,)
        return [np.asarray(each) for each in results]

    if not taken(name, dtype):
        with pytest.raises(DTypeError):
            call()
        return
    found = [call() for _ in range(2)][1]  # the second run
    operands = arrays
    if name in ORDERED and (dtype == "bfloat16" or "descending" in sample.arguments):
        operands = [x.astype("float64") for x in arrays]  # the reference negates
    if name == "segment_prod" and arrays[0].dtype.kind != "c":
        from tenfold.dtypes import accumulator, compute_dtype

        operands = [x.astype(compute_dtype(accumulator(x.dtype))) for x in arrays]
    expected = reference(*operands, *sample.positional, **sample.arguments)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        if dtype in HALVES:
            np.testing.assert_allclose(one.astype("f8"), other.astype("f8"), rtol=1e-2)
        else:
            assert np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("one_hot", "segment_sort", "sort_by_key")]
)
def test_members_of_a_batch_have_the_bits_of_single_calls(name: str) -> None:
    for sample in OPS[name].samples:
        (shape,) = sample.shapes
        x = drawn((3, *shape), "float64")
        first, *rest = sample.positional
        rows = np.stack([np.asarray(first)] * 3)

        def one(
            x: tn.Array, first: tn.Array, rest: list[Any] = rest, sample: SampleCall = sample
        ) -> tn.Array:
            found: tn.Array = getattr(tn, name)(x, first, *rest, **sample.arguments)
            return found

        batch = np.asarray(tn.vmap(one)(tn.asarray(x), tn.asarray(rows)))
        for i in range(3):
            single = np.asarray(one(tn.asarray(x[i]), tn.asarray(rows[i])))
            assert batch[i].tobytes() == single.tobytes()


def test_gradients_of_softmax_agree_with_differences() -> None:
    rng = np.random.default_rng(0)
    logits, labels, s = rng.normal(size=(5, 4)), np.array([0, 3, -1, 2, 1]), 0.2

    def loss(z: np.ndarray) -> float:
        logs = z - np.log(np.exp(z).sum(1, keepdims=True))
        target = np.full((5, 4), s / 3)
        rows = np.flatnonzero(labels >= 0)
        target[rows, labels[rows]] = 1 - s
        return float(-(target * logs)[rows].sum())

    p = tn.softmax(tn.asarray(logits))
    found = np.asarray(tn.softmax_gradient(p, labels, smoothing=s, ignore_label=-1))
    step = 1e-6
    for at in np.ndindex(5, 4):
        up, down = logits.copy(), logits.copy()
        up[at] += step
        down[at] -= step
        assert abs((loss(up) - loss(down)) / (2 * step) - found[at]) < 1e-8


def test_label_operations_are_one_fused_kernel() -> None:
    p, labels = tn.asarray(np.full((64, 32), 1 / 32)), tn.asarray(np.arange(64) % 32)
    with tn.options(tier=1), tn.profile() as profile:
        (tn.softmax_gradient(p, labels, smoothing=0.1, ignore_label=0) * 2.0).wait()
    assert (profile.kernels, profile.calls) == (1, 0)
    with tn.options(tier=1), tn.profile() as profile:
        (tn.choose_at(p, labels) + 1).wait()
    assert (profile.kernels, profile.calls, profile.temporaries) == (1, 0, 0)


def test_nan_and_infinities_do_not_leak_through_masks() -> None:
    x = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    found = tn.mask_rows(tn.asarray(x), tn.asarray([False, True]))
    assert np.array_equal(np.asarray(found), [[0, 0], [np.inf, 2]])
    filled = tn.fill_at(tn.asarray(x), tn.asarray([0, 0]), 7.0)
    assert filled.tolist() == [[7.0, 1.0], [7.0, 2.0]]


def test_nan_is_sorted_last_within_its_segment() -> None:
    x, ids = np.array([2.0, np.nan, 1.0, 3.0, np.nan, 0.0]), np.array([0, 0, 0, 1, 1, 1])
    for descending, expected in ((False, [1, 2, np.nan, 0, 3, np.nan]),
                                 (True, [2, 1, np.nan, 3, 0, np.nan])):  # fmt: skip
        found = tn.segment_sort(tn.asarray(x), tn.asarray(ids), descending=descending)
        assert np.array_equal(np.asarray(found), expected, equal_nan=True)


def test_nan_reaches_the_extreme_of_its_segment_only() -> None:
    x, ids = tn.asarray([np.nan, 1.0, 2.0]), tn.asarray([0, 0, 1])
    assert np.array_equal(np.asarray(tn.segment_max(x, ids, 2)), [np.nan, 2], equal_nan=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tn.choose_at(tn.zeros((2, 3)), tn.asarray([0, 3])),
        lambda: tn.fill_at(tn.zeros((2, 3)), tn.asarray([0, -4]), 1.0),
        lambda: tn.segment_max(tn.zeros(2), tn.asarray([0, 2]), 2),
    ],
)
def test_an_index_out_of_range_is_an_index_error(call: Any) -> None:
    with pytest.raises(IndexError):
        call().wait()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: tn.one_hot(tn.asarray([0.5]), 2), DTypeError, "indices are integers"),
        (lambda x: tn.mask_rows(x, tn.asarray([True])), ShapeError, "does not name the rows"),
        (lambda x: tn.mask_rows(x, tn.asarray([1, 0])), DTypeError, "is not bool"),
        (lambda x: tn.choose_at(x, tn.asarray([0])), ShapeError, "not one for each row"),
        (lambda x: tn.fill_at(x, tn.asarray([0, 0]), tn.zeros(3)), ShapeError, "do not broadcast"),
        (lambda x: tn.fill_at(x, tn.asarray([0, 0]), tn.asarray(1j)), DTypeError, "same-kind"),
        (lambda x: tn.fill_at(x, tn.asarray([0, 0]), 1j), DTypeError, "same-kind"),
        (lambda x: tn.sort_by_key(x, tn.zeros(2)), ShapeError, "not one for each key"),
        (lambda x: tn.segment_sort(x, tn.asarray([0, 1])), ShapeError, "do not name the elements"),
        (lambda x: tn.segment_max(x, tn.asarray([0.0, 1]), 2), DTypeError, "need integers"),
        (lambda x: tn.softmax_gradient(x, tn.asarray([[1]])), ShapeError, "labels of shape"),
    ],
)
def test_misfit_is_named(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(tn.zeros((2, 3)))
