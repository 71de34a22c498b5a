"""The table of movements: every sample of every one against NumPy, dtypes by layouts in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from grid import ALL_DTYPES, shared
from movement_samples import called, same_bits, special
from tenfold.core.op import OPS, Kind, Op, Operation, SampleCall
from tenfold.dtypes import promote_dtypes

PAGES = {"movement", "reshaping", "indexing", "gathering", "joining", "padding", "repetition"} | {
    "diagonals",
    "windows",
}
SUMS = {"col2im"}
"""Operations of these pages that are no movement."""


def middle(x: np.ndarray, shape: Any, start: Any = None) -> np.ndarray:
    begin = start or [(n - m) // 2 for n, m in zip(x.shape, shape, strict=True)]
    return x[tuple(slice(b, b + m) for b, m in zip(begin, shape, strict=True))]


def picked(x: np.ndarray, *indices: Any, axes: Any = None, place: Any = None) -> np.ndarray:
    axes = tuple(range(len(indices))) if axes is None else axes
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    taken = x.transpose(*axes, *rest)[tuple(np.array(i, np.int64) for i in indices)]
    among = np.broadcast(*indices).ndim
    at = min(min(axes), len(rest)) if place is None else place
    front, back = range(among), range(among, taken.ndim)
    return taken.transpose(*[*back][:at], *front, *[*back][at:])


def embedded(x: np.ndarray, offset: int = 0) -> np.ndarray:
    side = x.shape[-1] + abs(offset)
    result = np.zeros((*x.shape[:-1], side, side), x.dtype)
    for position in range(x.shape[-1]):
        result[..., position + max(-offset, 0), position + max(offset, 0)] = x[..., position]
    return result


def taken(x: np.ndarray, indices: Any, axis: int | None = None) -> np.ndarray:
    return np.take(x, np.array(indices, np.int64), axis)


def along(x: np.ndarray, indices: Any, axis: int = -1) -> np.ndarray:
    """NumPy does not broadcast the indices with x."""
    indices = np.asarray(indices)
    rest = [(1 if a == axis % x.ndim else n) for a, n in enumerate(x.shape)]
    return np.take_along_axis(
        x, np.broadcast_to(indices, np.broadcast_shapes(rest, indices.shape)), axis
    )


EXPECTED: dict[str, Callable[..., Any]] = {
    "index": lambda x, key: x[key],
    "crop": middle,
    "gather": picked,
    "diag_embed": embedded,
    "take": taken,
    "take_along_axis": along,
}
"""What NumPy has no function for, or none that takes lists."""


def numpy_of(operation: Operation[...]) -> Callable[..., Any]:
    if operation.name == "im2col":
        assert operation.reference is not None
        return operation.reference
    return EXPECTED.get(operation.name) or operation.numpy[0]


MOVEMENTS = [
    operation
    for operation in OPS.values()
    if operation.page in PAGES and operation.samples and operation.name not in SUMS
]
ROWS = [
    pytest.param(operation, sample, id=f"{operation.name}-{number}")
    for operation in MOVEMENTS
    for number, sample in enumerate(operation.samples)
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("operation", "sample"), ROWS)
def test_sample_equals_numpy_in_every_layout(
    operation: Operation[...], sample: SampleCall, dtype: str, layouts: Any
) -> None:
    values = [special(shape, dtype) for shape in sample.shapes]
    expected = called(numpy_of(operation), operation.public_signature, values, sample)
    every = [layouts(value) for value in values]
    for layout in every[0]:
        arrays = [shared(each[layout]) for each in every]
        same_bits(called(operation, operation.public_signature, arrays, sample), expected)


@pytest.mark.parametrize(("operation", "sample"), ROWS)
def test_sample_equals_numpy_on_a_pending_and_on_a_broadcast_input(
    operation: Operation[...], sample: SampleCall
) -> None:
    values = [special(shape, "float32") for shape in sample.shapes]
    expected = called(numpy_of(operation), operation.public_signature, values, sample)
    pending = [tn.permute_dims(tn.asarray(value.T)) for value in values]
    same_bits(called(operation, operation.public_signature, pending, sample), expected)
    ones = [np.broadcast_to(np.float32(7), shape) for shape in sample.shapes]
    expected = called(numpy_of(operation), operation.public_signature, ones, sample)
    repeated = [tn.broadcast_to(tn.asarray(np.float32(7)), shape) for shape in sample.shapes]
    same_bits(called(operation, operation.public_signature, repeated, sample), expected)


LAZY = [row for row in ROWS if row.id != "repeat-2"]
"""All but the one whose counts stand in an array, which is computed: it says the shape."""


@pytest.mark.parametrize(("operation", "sample"), LAZY)
def test_sample_computes_nothing_at_the_call(operation: Operation[...], sample: SampleCall) -> None:
    with tn.profile() as profile:
        arrays = [tn.zeros(shape) for shape in sample.shapes]
        called(operation, operation.public_signature, arrays, sample)
    assert (profile.kernels, profile.calls, profile.host_syncs) == (0, 0, 0)


@pytest.mark.parametrize("operation", [o for o in MOVEMENTS if isinstance(o, Op)], ids=str)
def test_movement_is_of_kind_view(operation: Op[...]) -> None:
    assert operation.semantics.kind == Kind.VIEW


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["concat", "stack"])
@pytest.mark.parametrize("other", ALL_DTYPES)
@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_join_has_the_common_dtype(name: str, dtype: str, other: str) -> None:
    x, y = special((3,), dtype), special((3,), other)
    with np.errstate(all="ignore"):
        common = promote_dtypes(x.dtype, y.dtype)
    result = OPS[name]([tn.asarray(x), tn.asarray(y)])
    assert result.dtype == common
    expected = [tn.astype(tn.asarray(part), common) for part in (x, y)]
    same_bits(result, OPS[name].numpy[0]([np.asarray(part) for part in expected]))
