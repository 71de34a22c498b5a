"""Ragged reductions and repeats: against loops over rows, and as kernels with their readers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.loop_ir import SEGMENT_CHUNK
from tenfold.dtypes import DTYPES, HALF_DTYPES, accumulator, compute_dtype, kind_of
from tenfold.errors import DTypeError, ShapeError
from tenfold.ops.segments import ragged_max, ragged_min, ragged_prod, ragged_repeat, ragged_sum

SHAPES = {
    "one entry a row": [1] * 40,
    "empty rows": [0, 3, 0, 0, 5, 1, 0],
    "one long row": [2, 3 * SEGMENT_CHUNK + 5, 0, 4],
    "one row": [7],
    "one entry": [0, 1, 0],
    "no entries": [0, 0, 0],
    "long rows": [700, 900, 800],
    "many rows": [*range(9)] * 300,
}


def offsets_of(lengths: list[int], dtype: str = "int32") -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(dtype)


def drawn(shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(5)
    kind = kind_of(DTYPES[dtype])
    if kind in "biu":
        return rng.integers(0, 2 if kind == "b" else 100, shape).astype(dtype)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    if kind == "c":
        values = values * (1 + 1j)
    return values.astype("float32" if DTYPES[dtype] in HALF_DTYPES else dtype).astype(DTYPES[dtype])


def folded(combine: Any, x: np.ndarray, offsets: np.ndarray, identity: Any) -> np.ndarray:
    """Fold each row in order, beginning with the identity."""
    result = np.full((len(offsets) - 1, *x.shape[1:]), identity, x.dtype)
    with np.errstate(all="ignore"):
        for row, (begin, end) in enumerate(pairwise(offsets)):
            for entry in x[begin:end]:
                result[row] = combine(result[row], entry)
    return result


def summed(x: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return folded(np.add, x, offsets, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rest", [(), (1,), (3,), (16,), (33,), (2, 2)])
@pytest.mark.parametrize("name", SHAPES)
def test_ragged_sum_adds_the_entries_of_a_row_in_order(
    name: str, rest: tuple[int, ...], dtype: str
) -> None:
    offsets = offsets_of(SHAPES[name])
    x = drawn((int(offsets[-1]), *rest), dtype)
    with tn.options(verify=True):
        found = np.asarray(ragged_sum(tn.asarray(x), tn.asarray(offsets)))
    result = accumulator(DTYPES[dtype])
    expected = summed(x.astype(compute_dtype(result)), offsets).astype(result)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint64", "int16", "int64"])
def test_offsets_may_have_any_integer_dtype(dtype: str) -> None:
    offsets = offsets_of([3, 0, 50, 2], dtype)
    x = drawn((55,))
    found = np.asarray(ragged_sum(tn.asarray(x), tn.asarray(offsets)))
    assert found.tobytes() == summed(x, offsets).tobytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", [d for d in DTYPES if kind_of(DTYPES[d]) != "c"])
@pytest.mark.parametrize("rest", [(), (5,)])
def test_ragged_extremes_are_those_of_numpy(rest: tuple[int, ...], dtype: str) -> None:
    offsets = offsets_of([3, 0, 1, 600, 7])
    x = drawn((611, *rest), dtype)
    exact = x.astype(compute_dtype(x.dtype))
    info: Any = None
    if kind_of(x.dtype) in "iu":
        info = np.iinfo(x.dtype)
    lowest, highest = (info.min, info.max) if info else (-np.inf, np.inf)
    if kind_of(x.dtype) == "b":
        lowest, highest = False, True
    for reduced, combine, identity in (
        (ragged_max, np.maximum, lowest),
        (ragged_min, np.minimum, highest),
    ):
        expected = folded(combine, exact, offsets, identity).astype(x.dtype)
        found = np.asarray(reduced(tn.asarray(x), tn.asarray(offsets)))
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


def test_nan_propagates_and_negative_zero_is_below_zero() -> None:
    x = tn.asarray([1.0, np.nan, -0.0, 0.0, 0.0, -0.0])
    offsets = tn.asarray([0, 2, 4, 6])
    largest, smallest = np.asarray(ragged_max(x, offsets)), np.asarray(ragged_min(x, offsets))
    assert np.isnan(largest[0])
    assert np.isnan(smallest[0])
    assert not np.signbit(largest[1:]).any()
    assert np.signbit(smallest[1:]).all()


def test_a_sum_begins_with_positive_zero() -> None:
    found = np.asarray(ragged_sum(tn.asarray([-0.0, -0.0]), tn.asarray([0, 2, 2])))
    assert not np.signbit(found).any()


def test_ragged_prod_multiplies_the_entries_of_a_row_in_order() -> None:
    offsets, x = offsets_of([3, 0, 5]), drawn((8, 2))
    found = np.asarray(ragged_prod(tn.asarray(x), tn.asarray(offsets)))
    assert found.tobytes() == folded(np.multiply, x, offsets, 1).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rest", [(), (3,), (16,)])
@pytest.mark.parametrize("name", SHAPES)
def test_ragged_repeat_repeats_rows(name: str, rest: tuple[int, ...], dtype: str) -> None:
    lengths = SHAPES[name]
    rows, offsets = drawn((len(lengths), *rest), dtype), offsets_of(lengths)
    with tn.options(verify=True):
        found = np.asarray(ragged_repeat(tn.asarray(rows), tn.asarray(offsets), int(offsets[-1])))
    expected = np.repeat(rows, lengths, axis=0)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


class Sparse:
    """The parts of a random matrix in compressed sparse rows, as NumPy's and as Tenfold's."""

    def __init__(self, lengths: list[int], columns: int, index: str = "int32") -> None:
        rng = np.random.default_rng(len(lengths))
        self.offsets = offsets_of(lengths, index)
        self.entries, self.rows = int(self.offsets[-1]), len(lengths)
        self.indices = rng.integers(0, columns, self.entries).astype(index)
        self.data = drawn((self.entries,))
        self.arrays = tuple(map(tn.asarray, (self.data, self.indices, self.offsets)))

    def times(self, x: np.ndarray) -> np.ndarray:
        data = self.data if x.ndim == 1 else self.data[:, None]
        return summed(data * x[self.indices], self.offsets)


def product(matrix: Sparse, x: tn.Array) -> tn.Array:
    data, indices, offsets = matrix.arrays
    taken = tn.take(x, indices, axis=0)
    return ragged_sum((data if x.ndim == 1 else data[:, None]) * taken, offsets)


LENGTHS = [*range(12)] * 200


def plan(*arrays: tn.Array) -> str:
    return tn.explain(*arrays, stage="scheduled")


@pytest.mark.parametrize("rest", [(), (3,), (16,)])
@pytest.mark.parametrize("name", SHAPES)
def test_products_are_those_of_a_loop(name: str, rest: tuple[int, ...]) -> None:
    matrix, x = Sparse(SHAPES[name], 50), drawn((50, *rest))
    with tn.options(verify=True):
        found = np.asarray(product(matrix, tn.asarray(x)))
    assert found.tobytes() == matrix.times(x).tobytes()


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("rest", [(), (16,), (21,)])
def test_a_product_with_its_epilogue_is_one_kernel(rest: tuple[int, ...], threads: int) -> None:
    matrix, x = Sparse(LENGTHS, 300), drawn((300, *rest))
    b = drawn((matrix.rows, *rest))
    with tn.options(verify=True, threads=threads):
        y = 2.5 * product(matrix, tn.asarray(x)) + tn.asarray(b)
        text = plan(y)
        found = np.asarray(y)
    assert "scheduled: 1 kernel, 0 calls, 0 temporaries" in text
    assert "kernel, segments: " in text
    assert found.tobytes() == (2.5 * matrix.times(x) + b).tobytes()


def test_a_product_by_few_columns_is_one_kernel_however_many_entries() -> None:
    matrix, x = Sparse(LENGTHS, 300), drawn((300, 4))
    y = product(matrix, tn.asarray(x))
    assert "scheduled: 1 kernel, 0 calls" in plan(y)
    assert np.asarray(y).tobytes() == matrix.times(x).tobytes()


def softmax(data: tn.Array, offsets: tn.Array) -> tn.Array:
    nnz = data.shape[0]
    powers = tn.exp(data - ragged_repeat(ragged_max(data, offsets), offsets, nnz))
    return powers / ragged_repeat(ragged_sum(powers, offsets), offsets, nnz)


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("lengths", [LENGTHS, SHAPES["one long row"]])
@pytest.mark.parametrize("rest", [(), (4,), (16,)])
def test_a_softmax_of_rows_is_one_kernel(rest: tuple[int, ...], lengths: list[int]) -> None:
    offsets = offsets_of(lengths)
    x = drawn((int(offsets[-1]), *rest)) / 1000
    with tn.options(verify=True):
        y = softmax(tn.asarray(x), tn.asarray(offsets))
        assert "scheduled: 1 kernel, 0 calls, 0 temporaries" in plan(y)
        found = np.asarray(y)
    for begin, end in pairwise(offsets):
        powers = np.exp(x[begin:end] - x[begin:end].max(axis=0, initial=-np.inf))
        np.testing.assert_allclose(found[begin:end], powers / powers.sum(axis=0), rtol=1e-12)
    with tn.options(fuse=False):
        unfused = softmax(tn.asarray(x), tn.asarray(offsets))
        assert np.asarray(unfused).tobytes() == found.tobytes()


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("lengths", [LENGTHS, SHAPES["one long row"]])
def test_elementary_functions_of_entries_are_folded_in_the_same_kernel(lengths: list[int]) -> None:
    matrix = Sparse(lengths, 40)
    data, indices, offsets = matrix.arrays
    rows, x = tn.asarray(drawn((matrix.rows,))), tn.asarray(drawn((40,)))
    with tn.options(verify=True):
        entries = tn.tanh(data * tn.take(x, indices))
        scaled = tn.tanh(data * ragged_repeat(rows, offsets, matrix.entries))
        for values in (entries, scaled):
            y = ragged_sum(values, offsets)
            assert "scheduled: 1 kernel, 0 calls, 0 temporaries" in plan(y)
            found = np.asarray(y)
            with tn.options(fuse=False):
                expected = np.asarray(ragged_sum(values, offsets))
            assert found.tobytes() == expected.tobytes()
            assert found.tobytes() == summed(np.asarray(values), matrix.offsets).tobytes()


def test_rows_are_scaled_in_the_kernel_of_what_reads_them() -> None:
    matrix = Sparse(LENGTHS, 10)
    data, _, offsets = matrix.arrays
    scales = drawn((matrix.rows,))
    y = 3 * (data * ragged_repeat(tn.asarray(scales), offsets, matrix.entries))
    assert "scheduled: 1 kernel, 0 calls, 0 temporaries" in plan(y)
    expected = 3 * (matrix.data * np.repeat(scales, LENGTHS))
    assert np.asarray(y).tobytes() == expected.tobytes()


def test_repeated_rows_are_read_at_other_entries_too() -> None:
    matrix = Sparse([4, 0, 3, 5], 12)
    _, indices, offsets = matrix.arrays
    rows = drawn((4,))
    repeated = ragged_repeat(tn.asarray(rows), offsets, 12)
    expected = np.repeat(rows, [4, 0, 3, 5])
    with tn.options(verify=True):
        assert np.array_equal(repeated[::-1], expected[::-1])
        assert np.array_equal(tn.take(repeated, indices), expected[matrix.indices])
        assert np.array_equal(repeated[:, None] * repeated, expected[:, None] * expected)
        assert np.array_equal(tn.sum(repeated[:, None] * tn.ones((12, 3)), axis=1), 3 * expected)
        assert np.array_equal(tn.concat([repeated, repeated]), np.tile(expected, 2))


def test_segments_of_other_offsets_are_other_kernels() -> None:
    x, first, second = drawn((9,)), offsets_of([4, 5]), offsets_of([1, 6, 2])
    rows, data = tn.asarray(np.asarray([2.0, 3.0])), tn.asarray(x)
    with tn.options(verify=True):
        scaled = data * ragged_repeat(rows, tn.asarray(first), 9)
        found = np.asarray(ragged_sum(scaled, tn.asarray(second)))
    expected = summed(x * np.repeat([2.0, 3.0], [4, 5]), second)
    assert found.tobytes() == expected.tobytes()


def test_as_many_rows_as_entries_are_no_entries() -> None:
    offsets, x = offsets_of([2, 0, 1]), drawn((3,))
    data, bounds = tn.asarray(x), tn.asarray(offsets)
    with tn.options(verify=True):
        sums = ragged_sum(data, bounds)
        y, z = sums + data, sums * ragged_repeat(sums, bounds, 3)
        tn.eval(y, z)
    expected = summed(x, offsets)
    assert np.asarray(y).tobytes() == (expected + x).tobytes()
    assert np.asarray(z).tobytes() == (expected * np.repeat(expected, [2, 0, 1])).tobytes()


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_batches_are_their_members(count: int) -> None:
    x, offsets = drawn((count, 9, 2)), np.stack([offsets_of([4, 0, 5])] * count)
    rows = drawn((count, 3, 2))
    for shared in (False, True):
        bounds = tn.asarray(offsets[0] if shared else offsets)
        axes = (0, None if shared else 0)
        sums = tn.vmap(ragged_sum, in_axes=axes)(tn.asarray(x), bounds)
        repeated = tn.vmap(lambda a, b: ragged_repeat(a, b, 9), in_axes=axes)(
            tn.asarray(rows), bounds
        )
        assert np.array_equal(sums, np.stack([summed(a, offsets[0]) for a in x]))
        assert np.array_equal(repeated, np.repeat(rows, [4, 0, 5], axis=1))


def test_an_index_out_of_range_is_an_index_error_at_the_wait() -> None:
    matrix = Sparse(LENGTHS, 300)
    data, _, offsets = matrix.arrays
    for at in (0, matrix.entries - 1):
        indices = matrix.indices.copy()
        indices[at] = 300
        for x in (tn.ones((300,)), tn.ones((300, 16))):
            pending = tn.asarray(indices) + 0
            factor = data if x.ndim == 1 else data[:, None]
            y = ragged_sum(factor * tn.take(x, pending, axis=0), offsets)
            with pytest.raises(IndexError, match="300"):
                y.wait()


@pytest.mark.parametrize("rest", [(), (16,)])
def test_offsets_that_are_wrong_read_nothing_outside(rest: tuple[int, ...]) -> None:
    x = tn.ones((2000, *rest))
    for offsets in ([0, 5000, 2000], [-7, 3, 2000], [0, 1500, 30, 2000], [5, 2000, 10**9]):
        bounds = np.asarray([*offsets, *[2000] * 300])
        sums = np.asarray(ragged_sum(x * 2, tn.asarray(bounds)))
        counts = np.diff(np.clip(bounds, 0, 2000)).clip(0)
        assert np.array_equal(
            sums, np.broadcast_to(2.0 * counts[(...,) + (None,) * len(rest)], sums.shape)
        )


@pytest.mark.parametrize("device", ["reference", "emulated"])
def test_other_devices_have_the_same_bits(device: str) -> None:
    matrix, x = Sparse(LENGTHS, 300), drawn((300,))
    with tn.options(device=device):
        data, indices, offsets = map(tn.asarray, (matrix.data, matrix.indices, matrix.offsets))
        y = ragged_sum(data * tn.take(tn.asarray(x), indices), offsets)
        repeated = ragged_repeat(y, offsets, matrix.entries)
        found, scaled = np.asarray(y.to_device("cpu")), np.asarray(repeated.to_device("cpu"))
    expected = matrix.times(x)
    assert found.tobytes() == expected.tobytes()
    assert scaled.tobytes() == np.repeat(expected, LENGTHS).tobytes()


@pytest.mark.parametrize("call", [ragged_sum, ragged_max, lambda x, o: ragged_repeat(x, o, 3)])
def test_offsets_that_do_not_fit_are_refused(call: Callable[..., Any]) -> None:
    x = tn.ones((3,))
    with pytest.raises(DTypeError, match="offsets need integers"):
        call(x, tn.asarray([0.0, 3.0]))
    with pytest.raises(ShapeError, match="do not divide"):
        call(x, tn.asarray([[0, 3]]))
    with pytest.raises(ShapeError, match="do not divide"):
        call(x, tn.asarray(np.zeros((0,), int)))


def test_a_plan_of_a_ragged_sum_holds_for_other_lengths() -> None:
    def run(lengths: list[int]) -> None:
        offsets = offsets_of(lengths)
        x = drawn((int(offsets[-1]),))
        y = 2 * ragged_sum(tn.asarray(x) * 3, tn.asarray(offsets))
        assert np.asarray(y).tobytes() == (2 * summed(x * 3, offsets)).tobytes()

    with tn.options(tier=1):
        for lengths in ([3, 4, 5], [4, 4, 9, 2], [8, 0, 30, 1, 1]):
            run(lengths)
        with tn.profile() as p:
            before = _native.num_cached_templates()
            run(LENGTHS)
        assert _native.num_cached_templates() == before
        assert p.compiles == 0


def test_one_kernel_serves_all_lengths_of_a_product() -> None:
    for lengths in ([4, 5], [1, 2, 3]):
        np.asarray(product(Sparse(lengths, 9), tn.asarray(drawn((9,)))))
    with tn.options(tier=1), tn.profile() as p:
        np.asarray(product(Sparse([4, 0, 7, 2], 13), tn.asarray(drawn((13,)))))
        before = p.compiles
        np.asarray(product(Sparse(LENGTHS, 31), tn.asarray(drawn((31,)))))
        assert p.compiles == before
