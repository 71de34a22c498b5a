"""What is set side by side, and what is read at computed indices, by kernels: against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Step

DTYPES = ["bool", "uint8", "int16", "float16", "int32", "float32", "float64", "int64"]
COMPLEX = ["complex64", "complex128"]


@pytest.fixture(autouse=True)
def _on_cpu():
    with tn.options(device="cpu"):
        yield


def steps(array: tn.Array) -> list[Step]:
    """Return the steps of the plan of a pending array."""
    return list(schedule_graph(Graph.of([_native.node_of(array)])).steps)


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Return small whole numbers, all of which every dtype has."""
    values = np.random.default_rng(seed).integers(0, 100, shape)
    return (values % 2 if dtype == "bool" else values).astype(dtype)


Case = Callable[[Any, Any], Any]
CASES: dict[str, Case] = {
    "concat": lambda xp, x: xp.concatenate([x, x[:2], x], axis=0),
    "concat of the last axis": lambda xp, x: xp.concatenate([x, x[:, :1]], axis=1),
    "stack": lambda xp, x: xp.stack([x, x[::-1]], axis=1),
    "stack of the last axis": lambda xp, x: xp.stack([x, x], axis=-1),
    "pad": lambda xp, x: xp.pad(x, ((1, 2), (0, 3)), constant_values=1),
    "pad edge": lambda xp, x: xp.pad(x, 3, mode="edge"),
    "pad reflect": lambda xp, x: xp.pad(x, ((1, 2), (3, 0)), mode="reflect"),
    "pad symmetric": lambda xp, x: xp.pad(x, 2, mode="symmetric"),
    "pad wrap": lambda xp, x: xp.pad(x, 3, mode="wrap"),
    "tile": lambda xp, x: xp.tile(x, (2, 1, 3)),
    "roll": lambda xp, x: xp.roll(x, 3, axis=1),
    "roll of two axes": lambda xp, x: xp.roll(x, (-1, 2), axis=(0, 1)),
    "roll of all": lambda xp, x: xp.roll(x, 5),
    "tril": lambda xp, x: xp.tril(x, 1),
    "triu": lambda xp, x: xp.triu(x, -1),
    "take rows": lambda xp, x: xp.take(x, [3, -1, 0, 3], axis=0),
    "take columns": lambda xp, x: xp.take(x, [[0, -2], [1, 1]], axis=1),
    "take then slice": lambda xp, x: xp.take(x, [3, -1, 0, 3], axis=0)[::-2, 1:],
    "take of transposed": lambda xp, x: xp.take(x.T, [3, -1, 0], axis=1),
    "all after a sum": lambda xp, x: xp.tril(xp.concatenate([x ^ x, x | x])),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES + COMPLEX)
@pytest.mark.parametrize("name", CASES)
def test_result_is_that_of_numpy(name, dtype):
    if name == "all after a sum" and np.dtype(dtype).kind in "fc":
        dtype = "int8"
    x = numbers((5, 20), dtype)
    result = np.asarray(CASES[name](np, tn.asarray(x)))
    expected = CASES[name](np, x)
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected)


def test_joined_parts_are_computed_where_they_lie():
    x = tn.asarray(numbers((100,)))
    joined = tn.concat([x * 2, x + 1])
    assert [step.launch.kernel.traversal for step in steps(joined)] == ["linear"]
    expected = numbers((100,))
    assert np.array_equal(np.asarray(joined), np.concatenate([expected * 2, expected + 1]))


def test_joined_parts_of_other_dtypes_meet_in_one():
    x, y = numbers((4,), "int8"), numbers((3,), "float32")
    joined = np.asarray(tn.concat([tn.asarray(x), tn.asarray(y), tn.zeros(2, dtype="int8")]))
    assert np.array_equal(joined, np.concatenate([x, y, np.zeros(2, "f4")]))
    assert joined.dtype == np.float32


def test_whole_and_a_part_of_it_are_both_kept():
    x = tn.asarray(numbers((30,)))
    part = x * 3
    whole = tn.concat([part, part[:7]])
    tn.eval(part, whole)
    expected = numbers((30,)) * 3
    assert np.array_equal(np.asarray(part), expected)
    assert np.array_equal(np.asarray(whole), np.concatenate([expected, expected[:7]]))


def test_whole_is_read_after_all_its_parts():
    x = numbers((6, 9))
    a = tn.asarray(x)
    result = tn.sum(tn.concat([a, a * 2]) * tn.stack([tn.concat([a, a])] * 2), axis=1)
    expected = np.concatenate([x, x * 2]) * np.stack([np.concatenate([x, x])] * 2)
    assert np.array_equal(np.asarray(result), expected.sum(axis=1))


def test_part_that_dies_in_its_whole_is_not_written_over():
    x = numbers((10,), "float64")
    twice = tn.asarray(x) * 2
    again = tn.sqrt(twice)
    result = tn.concat([twice[:5], again[:5]]) + twice
    expected = np.concatenate([(x * 2)[:5], np.sqrt(x * 2)[:5]]) + x * 2
    del twice, again
    assert np.array_equal(np.asarray(result), expected)


def test_empty_parts_leave_the_others():
    x, nothing = numbers((2, 3)), numbers((2, 0))
    joined = tn.concat([tn.asarray(nothing), tn.asarray(x), tn.asarray(nothing)], axis=1)
    assert np.array_equal(np.asarray(joined), x)


def test_many_arrays_are_joined_by_a_call():
    x = numbers((3,))
    joined = tn.concat([tn.asarray(x)] * 40)
    assert [step.kind for step in steps(joined)] == ["call"]
    assert np.array_equal(np.asarray(joined), np.concatenate([x] * 40))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_indices_of_every_dtype_find_their_elements(dtype):
    x, index = numbers((50,)), numbers((70,), dtype, 1) % 50
    taken = tn.take(tn.asarray(x), tn.asarray(index) + tn.asarray(np.zeros(1, dtype)))
    assert np.array_equal(np.asarray(taken), x[index])


def test_take_is_a_gather_within_the_map_that_reads_it():
    x, index = numbers((50,)), numbers((70,), "int64", 1) % 50
    result = tn.take(tn.asarray(x), tn.asarray(index)) * 2 + 1
    assert [step.launch.kernel.traversal for step in steps(result)] == ["gather"]
    assert np.array_equal(np.asarray(result), x[index] * 2 + 1)


def test_take_of_rows_in_a_reduction():
    x, index = numbers((50, 40)), numbers((70,), "int64", 1) % 50
    for axis in (0, 1):
        result = tn.sum(tn.take(tn.asarray(x), tn.asarray(index), axis=0), axis=axis)
        assert np.array_equal(np.asarray(result), x[index].sum(axis=axis))


@pytest.mark.parametrize("index", [[50], [-51], [0, 1, 2, 99], [2**63 + 1]])
def test_index_out_of_bounds_raises(index):
    x = tn.asarray(numbers((50,)))
    index = np.asarray(index)
    pending = tn.asarray(index) + tn.asarray(np.zeros(1, index.dtype))
    with pytest.raises(IndexError):
        (tn.take(x, pending) + 1).wait()


def test_index_into_nothing_raises():
    pending = tn.asarray(np.zeros(3, "int64")) + 0
    with pytest.raises(IndexError):
        tn.take(tn.asarray(np.zeros(0)), pending).wait()


def test_elements_along_an_axis_are_found():
    x, index = numbers((20, 30)), numbers((20, 25), "int64", 1) % 30 - 30
    found = tn.take_along_axis(tn.asarray(x), tn.asarray(index), axis=1)
    assert np.array_equal(np.asarray(found), np.take_along_axis(x, index, axis=1))


def test_identity_and_diagonal_matrices_are_kernels():
    x = numbers((6,))
    result = tn.eye(6) * 2 + tn.diag_embed(tn.asarray(x))
    assert [step.kind for step in steps(result)] == ["kernel"]
    assert np.array_equal(np.asarray(result), np.eye(6) * 2 + np.diag(x))


def test_other_lengths_are_no_other_kernel():
    kernels = {
        steps(tn.take(tn.asarray(numbers((n,))), tn.asarray(np.arange(n - 3))))[0].launch.kernel
        for n in (50, 70, 90)
    }
    assert len(kernels) == 1


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize(
    "bounds", [(0, 1000, 1), (5, -300, -3), (0.1, 7.3, 0.1), (-0.0, 9.0, 1), (-3, 4e6, 7777.5)]
)
def test_ranges_have_the_bits_of_numpy(dtype, bounds):
    if np.dtype(dtype).kind == "i" and not all(float(each).is_integer() for each in bounds):
        bounds = (2, 90, 4)
    found = np.asarray(tn.arange(*bounds, dtype=dtype))
    assert found.tobytes() == np.arange(*bounds, dtype=dtype).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("bounds", [(0, 1), (1.5, -2e9), (-0.0, 5), (1e-300, 3e-300), (2, 2)])
def test_linear_spaces_have_the_bits_of_numpy(dtype, endpoint, bounds):
    for length in (1, 2, 7, 1001):
        found = np.asarray(tn.linspace(*bounds, length, dtype=dtype, endpoint=endpoint))
        expected = np.linspace(*bounds, length, dtype=dtype, endpoint=endpoint)
        assert found.tobytes() == expected.tobytes()


def test_range_is_computed_where_it_is_read():
    result = tn.arange(1000.0) * 2 + tn.linspace(0, 1, 1000)
    assert [step.kind for step in steps(result)] == ["kernel"]
    assert np.array_equal(np.asarray(result), np.arange(1000.0) * 2 + np.linspace(0, 1, 1000))
