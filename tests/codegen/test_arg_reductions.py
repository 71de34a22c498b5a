"""Positions along rows, against NumPy: every dtype, ends of chunks and parts, ties, NaN, zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.dtypes import DTYPES, kind_of
from tenfold.schedule.schedule import schedule_graph

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
HALVES = ["float16", "bfloat16"]
LENGTHS = [1, 63, 64, 257, 1024, 1025, 5000]
PARTS = 1 << 16
"""Elements from which a row that is alone is searched in parts."""


@pytest.fixture(autouse=True)
def _on_cpu():
    with tn.options(device="cpu"):
        yield


def numbers(shape: int | tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Return numbers among which are equals."""
    found = np.random.default_rng(seed).integers(0, 100, shape)
    if kind_of(DTYPES[dtype]) not in "bu":
        found = found - 50
    return (found > 98 if dtype == "bool" else found).astype(DTYPES[dtype])


def check(x: np.ndarray, **options: Any) -> None:
    """Compare the first largest and smallest with NumPy's."""
    for find, expected in ((tn.argmax, np.argmax), (tn.argmin, np.argmin)):
        found = np.asarray(find(tn.asarray(x), **options))
        assert found.dtype == np.int64
        assert np.array_equal(found, expected(x, **options))


def form(array: tn.Array) -> str:
    """Return how the kernel of an array goes."""
    (step,) = schedule_graph(Graph.of([_native.node_of(array)])).steps
    assert step.launch is not None
    return step.launch.kernel.traversal


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, *HALVES])
@pytest.mark.parametrize("length", LENGTHS)
def test_first_of_equals_wins_in_a_row(dtype, length):
    x = numbers((5, length), dtype)
    check(x, axis=1)
    check(x, axis=1, keepdims=True)
    check(x[2], axis=0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("length", [PARTS, 3 * PARTS + 5])
def test_first_of_equals_wins_among_parts(dtype, length):
    x = numbers(length, dtype)
    check(x)
    for place in (0, 1024, PARTS // 2 - 1, length - 1):
        alone = np.zeros(length, bool) if dtype == "bool" else x.copy()
        alone[place:] = 1 if dtype == "bool" else 101
        check(alone)
        check(~alone if dtype == "bool" else -alone.astype(np.int64))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_row_of_one_number_has_its_position_at_the_beginning(dtype):
    limits = [0, 1]
    if dtype in INTEGERS:
        limits = [np.iinfo(dtype).min, np.iinfo(dtype).max]
    elif dtype in FLOATS:
        limits = [-np.inf, np.inf, np.nan]
    for number in limits:
        for length in (1, 300, 2 * PARTS):
            check(np.full(length, number, dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_end_of_the_range_ends_the_search_at_its_first_place(dtype):
    for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        for place in (0, 700, 4999):
            x = numbers(5000, dtype)
            x[place] = x[-1] = limit
            check(x)


@pytest.mark.parametrize("dtype", [*FLOATS, *HALVES])
@pytest.mark.parametrize("length", [40, 3000, 2 * PARTS + 100])
def test_first_nan_is_both_the_largest_and_the_smallest(dtype, length):
    for places in ([0], [length - 1], [length // 2, length - 2], [7, length // 3]):
        for sign in (1, -1):
            x = numbers(length, dtype)
            x[places] = np.copysign(np.nan, sign)
            x[3] = np.inf
            x[4] = -np.inf
            check(x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [30, 2000, 2 * PARTS])
def test_zeros_are_equal_whatever_their_signs(dtype, length):
    x = np.zeros(length, dtype)
    x[::3] = -0.0
    check(x)
    x[:9] = -1
    check(x)
    check(-x)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_layout_of_the_operand_changes_no_position(dtype):
    x = numbers((70, 1100), dtype)
    for seen in (x, x.T, x[::-1], x[:, ::-1], x[::2, 1::3], np.asfortranarray(x)):
        check(seen)
        for axis in (0, 1):
            check(seen, axis=axis)
    check(numbers(3 * PARTS, dtype)[::-2])


@pytest.mark.parametrize("length", [50, 2000, 2 * PARTS])
def test_operand_of_a_search_is_computed_in_its_loops(length):
    x, y = numbers(length, "float32"), numbers(length, "float32", 1)
    found = tn.argmax(tn.asarray(x) * 2 - tn.asarray(y))
    assert form(found) == ("search parts" if length >= PARTS else "search")
    assert found.item() == np.argmax(x * 2 - y)


@pytest.mark.parametrize("length", [50, 1000, PARTS])
def test_long_formula_is_searched(length):
    x = np.linspace(-3, 3, length)

    def formula(a: tn.Array) -> tn.Array:
        return tn.tanh(tn.sin(a) * tn.exp(a)) + tn.erf(a) * tn.cos(a)

    found = tn.argmin(formula(tn.asarray(x)))
    assert found.item() == np.argmin(np.asarray(formula(tn.asarray(x))))


def test_results_that_follow_from_the_position_are_of_the_same_kernel():
    x = numbers((30, 90), "float64")
    found = tn.argmax(tn.asarray(x), axis=1) * 2 + 1
    assert np.array_equal(np.asarray(found), np.argmax(x, axis=1) * 2 + 1)


def test_position_beside_another_fold_is_the_same():
    x = numbers((30, 90), "float64")
    y = tn.asarray(x)
    found = tn.eval(tn.argmax(y, axis=1), tn.max(y, axis=1), y * 2)
    assert np.array_equal(np.asarray(found[0]), np.argmax(x, axis=1))
    assert np.array_equal(np.asarray(found[1]), np.max(x, axis=1))


def test_broadcast_row_has_its_position_at_the_beginning():
    x = tn.asarray(numbers((5, 1), "float32"))
    assert tn.argmax(tn.broadcast_to(x, (5, 2000)), axis=1).tolist() == [0] * 5


@pytest.mark.parametrize("dtype", ["bool", "int32", "float64"])
@pytest.mark.parametrize("shape", [(3, 2 * PARTS + 11), (2000, 300)])
def test_number_of_threads_changes_no_position(dtype, shape):
    x = numbers(shape, dtype)
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            check(x, axis=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "float64"])
def test_every_processor_finds_the_same_position(dtype, cpu):
    x = numbers(5003, dtype)
    with tn.options(cpu=cpu):
        check(x)
        check(x[1:1500])
