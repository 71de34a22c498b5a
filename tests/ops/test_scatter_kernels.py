"""Scatters as kernels: against loops over elements, below and above every threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.loop_ir import SCATTER_CHUNK
from tenfold.schedule.target import DEFAULT

SCATTER_IN_PARTS = DEFAULT.work.scatter_elements

COUNTS = [
    1,
    7,
    SCATTER_CHUNK - 1,
    SCATTER_CHUNK + 3,
    SCATTER_IN_PARTS - 1,
    SCATTER_IN_PARTS,
    3 * SCATTER_IN_PARTS + 11,
]
REDUCERS: dict[str, tuple[Any, np.ufunc, float]] = {
    "sum": (tn.segment_sum, np.add, 0),
    "prod": (tn.segment_prod, np.multiply, 1),
    "max": (tn.segment_max, np.maximum, -np.inf),
    "min": (tn.segment_min, np.minimum, np.inf),
}


def orders(count: int, cells: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the ids of elements in several orders."""
    random = np.random.default_rng(count)
    ids = random.integers(0, cells, count)
    yield "unsorted", ids
    yield "sorted", np.sort(ids)
    yield "sorted with gaps", np.sort(ids) // 7 * 7
    yield "one cell", np.full(count, cells - 1)
    yield "descending", np.sort(ids)[::-1].copy()
    late = np.sort(ids)
    late[-1] = 0
    yield "unsorted at the end", late


def reduced(combine: np.ufunc, first: np.ndarray, ids: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return cells combined with the elements in their order."""
    result = first.copy()
    with np.errstate(all="ignore"):
        combine.at(result, ids, x)
    return result


@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", REDUCERS)
def test_cells_are_combined_in_order_for_any_number_of_threads(
    name: str, count: int, threads: int
) -> None:
    function, combine, begin = REDUCERS[name]
    x = np.random.default_rng(1).standard_normal(count)
    x[count // 2] = np.nan
    for order, ids in orders(count, 61):
        expected = reduced(combine, np.full(61, float(begin)), ids, x)
        with tn.options(threads=threads):
            for _ in range(2):
                found = np.asarray(function(tn.asarray(x), tn.asarray(ids), 61))
                assert found.tobytes() == expected.tobytes(), order


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("width", [2, 3, 8, 16, 17, 64, 200])
def test_rows_are_combined_in_order_for_any_number_of_threads(width: int, threads: int) -> None:
    for count in (5, 2 * SCATTER_IN_PARTS // width + 3):
        x = np.random.default_rng(1).standard_normal((count, width))
        ids = np.random.default_rng(2).integers(0, 40, count)
        expected = reduced(np.add, np.zeros((40, width)), ids, x)
        with tn.options(threads=threads):
            for _ in range(2):
                found = np.asarray(tn.segment_sum(tn.asarray(x), tn.asarray(ids), 40))
                assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("count", [50, SCATTER_IN_PARTS + 5])
def test_producers_of_elements_and_ids_are_in_the_kernel(count: int) -> None:
    random = np.random.default_rng(3)
    x, data = random.standard_normal(300), random.standard_normal(count)
    columns, rows = random.integers(-300, 300, count), np.sort(random.integers(0, 40, count))
    expected = reduced(np.add, np.zeros(80), 2 * rows + 1, data * x[columns])
    for _ in range(2):
        terms = tn.asarray(data) * tn.asarray(x)[tn.asarray(columns)]
        sums = tn.segment_sum(terms, tn.asarray(rows) * 2 + 1, 80)
        with tn.profile() as profile:
            found = np.asarray(sums)
        assert (profile.kernels, profile.calls, profile.temporaries) == (1, 0, 0)
        assert found.tobytes() == expected.tobytes()


def test_a_fused_bad_column_and_a_bad_row_are_reported_as_each() -> None:
    x, data = tn.ones(10), tn.ones(4)
    bad_column = tn.asarray(np.array([0, 1, 10, 2])) + 0
    good = tn.asarray(np.array([0, 1, 2, 3])) + 0
    with pytest.raises(IndexError, match="index 10"):
        tn.segment_sum(data * x[bad_column], good, 4).wait()
    with pytest.raises(IndexError, match=r"segment id 3 at \[3\]"):
        tn.segment_sum(data * x[good], good, 3).wait()


@pytest.mark.parametrize("place", [0, SCATTER_IN_PARTS, 2 * SCATTER_IN_PARTS + 5])
def test_a_bad_id_of_any_part_is_an_error(place: int) -> None:
    ids = np.sort(np.random.default_rng(4).integers(0, 50, 2 * SCATTER_IN_PARTS + 6))
    ids[place] = 50
    with pytest.raises(IndexError, match=rf"segment id 50 at \[{place}\]"):
        tn.segment_sum(tn.ones(len(ids)), tn.asarray(ids), 50).wait()


@pytest.mark.parametrize("count", [40, SCATTER_IN_PARTS + 9])
def test_last_element_put_in_a_cell_stays(count: int) -> None:
    x, values = np.zeros(30), np.arange(float(count))
    for order, indices in orders(count, 30):
        for each in (indices, indices - 30):
            expected = x.copy()
            for i, value in zip(each.tolist(), values.tolist(), strict=True):
                expected[i] = value
            found = tn.put_at(tn.asarray(x), tn.asarray(each), tn.asarray(values))
            assert found.tolist() == expected.tolist(), order


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex64"])
def test_rows_put_at_indices_keep_their_bits(dtype: str) -> None:
    random = np.random.default_rng(5)
    x = tn.astype(tn.asarray(random.integers(0, 2, (9, 5))), tn.dtypes.DTYPES[dtype])
    values = tn.astype(tn.asarray(random.integers(0, 2, (70, 5))), x.dtype)
    indices = random.integers(-9, 9, 70)
    expected = np.asarray(x).copy()
    for i, row in zip(indices.tolist(), np.asarray(values), strict=True):
        expected[i] = row
    found = np.asarray(tn.put_at(x, tn.asarray(indices), values))
    assert found.tobytes() == expected.tobytes()


def test_columns_put_at_two_index_arrays_are_those_of_numpy() -> None:
    x = np.arange(60.0).reshape(3, 4, 5)
    i, j = np.array([2, 0, -1]), np.array([[1], [3]])
    for key in ((i, j), (slice(None), j, i), (i, slice(None), j)):
        expected = x.copy()
        values = np.arange(float(expected[key].size)).reshape(expected[key].shape)
        expected[key] = values
        found = tn.asarray(x)
        found[tuple(tn.asarray(k) if isinstance(k, np.ndarray) else k for k in key)] = values
        assert found.tolist() == expected.tolist()


def test_the_first_values_of_any_layout_and_dtype_are_read(layouts: Callable[..., Any]) -> None:
    x = np.random.default_rng(6).standard_normal((6, 8)).astype(np.float32)
    indices, rows = np.array([5, 0, 5]), np.ones((3, 8), np.float32)
    expected = reduced(np.add, x, indices, rows)
    for variant in layouts(x).values():
        for first in (tn.asarray(variant), tn.asarray(variant) * 1, tn.asarray(variant).T.T):
            found = tn.add_at(first, tn.asarray(indices), tn.asarray(rows))
            assert np.asarray(found).tobytes() == expected.tobytes()
        turned = tn.add_at(tn.asarray(variant).T, tn.asarray(indices), 1.0)
        assert np.asarray(turned).tolist() == reduced(np.add, x.T, indices, np.float32(1)).tolist()


def test_zeros_of_both_signs_are_ordered_as_in_a_reduction() -> None:
    x, ids = tn.asarray([0.0, -0.0, -0.0, 0.0, -0.0]), tn.asarray([0, 0, 1, 1, 2])
    largest = np.signbit(np.asarray(tn.segment_max(x, ids, 3))).tolist()
    assert largest == [False, False, True]
    assert np.signbit(np.asarray(tn.segment_min(x, ids, 3))).tolist() == [True, True, True]


def test_the_plan_of_a_scatter_says_what_it_is() -> None:
    ids = tn.asarray(np.arange(100))
    text = tn.segment_sum(tn.ones(100) * 2, ids, 100).explain("scheduled")
    assert "elements combined with the cells that they name" in text
    assert _native.node_of(ids) is not None


def test_a_scatter_is_verified_beside_the_reference() -> None:
    ids = tn.asarray(np.sort(np.random.default_rng(8).integers(0, 90, 2 * SCATTER_IN_PARTS)))
    x = tn.asarray(np.random.default_rng(9).standard_normal(2 * SCATTER_IN_PARTS))
    plain = np.asarray(tn.segment_sum(tn.exp(x), ids, 90))
    for options in ({"verify": True}, {"fuse": False}, {"tier": 0}, {"tier": 1}):
        with tn.options(**options):
            assert np.asarray(tn.segment_sum(tn.exp(x), ids, 90)).tobytes() == plain.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32"])
def test_bincount_is_that_of_numpy_and_lazy_beyond_its_length(dtype: str) -> None:
    keys = np.random.default_rng(10).integers(0, 100, 5000).astype(dtype)
    weights = np.random.default_rng(11).standard_normal(5000).astype(np.float32)
    for minlength in (0, 7, 200):
        for w in (None, weights, keys):
            expected = np.bincount(keys, w, minlength)
            found = tn.numpy.bincount(
                tn.asarray(keys), None if w is None else tn.asarray(w), minlength
            )
            assert found.dtype == expected.dtype
            assert np.asarray(found).tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match="negative"):
        tn.numpy.bincount(tn.asarray([-1, 2]))
    with pytest.raises(ValueError, match="negative"):
        tn.numpy.bincount(tn.asarray([1]), minlength=-1)
    with pytest.raises(TypeError):
        tn.numpy.bincount(tn.asarray([1.5]))
    assert tn.numpy.bincount(tn.asarray(np.zeros(0, np.int64)), minlength=3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "dtype", [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
)
def test_known_indices_are_checked_at_the_call_again_and_again(dtype: str) -> None:
    indices = tn.asarray(np.array([3, 0, 9], dtype))
    for _ in range(2):
        assert tn.take(tn.ones(10), indices).tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(IndexError, match="index 9"):
            tn.take(tn.ones(9), indices)
    for tier in ("auto", "1"):  # with a plan, the memory that was checked is written in place
        indices[0] = 9
        indices.wait()
        assert tn.take(tn.ones(10), indices).tolist() == [1.0, 1.0, 1.0]
        with tn.options(tier=tier):
            indices[0] = 10
            indices.wait()
        with pytest.raises(IndexError, match="index 10"):
            tn.put_at(tn.ones(10), indices, 1.0)
        with pytest.raises(IndexError, match="index 10"):
            tn.take(tn.ones(10), indices)
    if dtype == "uint64":
        with pytest.raises(IndexError, match="18446744073709551615"):
            tn.take(tn.ones(10), tn.asarray(np.array([2**64 - 1], dtype)))


def test_indices_that_change_in_wrapped_memory_are_checked_at_the_wait() -> None:
    memory = np.array([0, 1])
    indices = tn.wrap(memory)
    tn.ones(2)[indices].wait()
    memory[1] = 5
    with pytest.raises(IndexError):
        tn.ones(2)[indices].wait()


@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("share_of_gaps", [0.0, 1e-4, 0.01])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex128"])
def test_sums_of_ascending_cells_are_right_wherever_a_chunk_ends(
    dtype: str, share_of_gaps: float, threads: int
) -> None:
    rng = np.random.default_rng(int(1e6 * share_of_gaps))
    for share_of_new in (0.05, 0.3, 0.95):
        steps = (rng.random(120_000) < share_of_new).astype(np.int64)
        steps += 3 * (rng.random(120_000) < share_of_gaps)
        ids, elements = np.cumsum(steps), rng.integers(-9, 9, size=120_000).astype(dtype)
        cells = int(ids[-1]) + 3
        expected = np.zeros(cells, np.int64 if dtype == "int32" else dtype)
        np.add.at(expected, ids, elements)
        with tn.options(threads=threads):
            for _ in range(2):
                found = tn.segment_sum(tn.asarray(elements), tn.asarray(ids), cells)
                np.testing.assert_array_equal(np.asarray(found), expected)
                if dtype != "complex128":
                    most = tn.segment_max(tn.asarray(elements), tn.asarray(ids), cells)
                    named = np.unique(ids)
                    starts = np.flatnonzero(np.diff(ids, prepend=-1))
                    wanted = np.maximum.reduceat(elements, starts)
                    np.testing.assert_array_equal(np.asarray(most)[named], wanted)
