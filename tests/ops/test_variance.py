"""Squared distances from the mean: against exact numbers, a scalar tree, and at the edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.schedule_ir import Schedule
from test_canonical_reduction import tree_sum

UNITS = 8
"""The bound on the relative error in these tests, in units of half the distance from 1 to the next
number; the largest that was seen over many more data is 6.2."""


@dataclass
class Moments:
    """Partial results of some elements, and the updating formula on scalars."""

    count: Any
    first: Any
    drift: Any
    squares: Any

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        distance = (other.first - self.first) - (self.drift - other.drift)
        step = distance * (other.count / count)
        squares = (self.squares + other.squares) + distance * step * self.count
        return Moments(count, self.first, self.drift + step, squares)


def variance_of(values: np.ndarray) -> Any:
    number = values.dtype.type
    leaves = np.empty(len(values), object)
    for i, value in enumerate(values):
        leaves[i] = Moments(number(1), value, number(0), number(0))
    return tree_sum(leaves).squares / number(len(values))


def exact(values: np.ndarray) -> Fraction:
    numbers = [Fraction(float(value)) for value in values.ravel()]
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return sum(((x - mean) ** 2 for x in numbers), Fraction(0)) / len(numbers)


def units_off(values: np.ndarray, axis: Any = None) -> float:
    """The relative error of the variance of all, in units of rounding."""
    found, truth = Fraction(tn.var(tn.asarray(values), axis=axis).item()), exact(values)
    return float(abs(found - truth) / truth) / (float(np.finfo(values.dtype).eps) / 2)


def plan(*arrays: tn.Array) -> Schedule:
    return schedule_graph(Graph.of([_native.node_of(array) for array in arrays]))


def ones(*shape: int, dtype: str = "float32") -> tn.Array:
    return tn.asarray(np.ones(shape, dtype))


def drawn(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variance_equals_its_scalar_restatement_bit_for_bit(dtype: str, device: str) -> None:
    for length in (1, 2, 3, 31, 33, 95, 1023, 1024, 1056, 2049, 5000):
        values = drawn(length, dtype=dtype)
        with tn.options(device=device):
            found = np.asarray(tn.var(tn.asarray(values)))
        assert found.tobytes() == np.asarray(variance_of(values), dtype).tobytes(), length


@pytest.mark.parametrize(
    "shape", [(40, 33), (3, 1100), (1100, 3), (70_001, 2), (2, 70_001), (5, 4, 70)]
)
def test_every_layout_and_form_of_loops_has_the_bits_of_the_reference(
    shape: tuple[int, ...], layouts: Callable[..., Any]
) -> None:
    values = drawn(*shape) + np.float32(3)
    for axis in (None, *range(len(shape)), (0, len(shape) - 1)):
        with tn.options(device="reference"):
            wanted = np.asarray(tn.var(tn.asarray(values), axis=axis)).tobytes()
        with tn.options(device="cpu"):
            for layout, variant in layouts(values).items():
                found = np.asarray(tn.var(tn.asarray(variant), axis=axis))
                assert found.tobytes() == wanted, (axis, layout)


@pytest.mark.parametrize(
    ("options"), [{"threads": 1}, {"threads": 7}, {"tier": "0"}, {"tier": "1"}, {"fuse": False}]
)
def test_variance_of_a_long_row_has_the_same_bits_however_it_runs(options: dict[str, Any]) -> None:
    values = drawn(150_001)
    usual = np.asarray(tn.var(tn.asarray(values))).tobytes()
    with tn.options(**options):
        assert np.asarray(tn.var(tn.asarray(values))).tobytes() == usual


DATA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as drawn": lambda x: x,
    "far from zero": lambda x: x + 1e6,
    "an outlier first": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 0, 1e6, x),
    "an outlier last": lambda x: np.where(np.arange(x.size).reshape(x.shape) == x.size - 1, 1e6, x),
    "two levels": lambda x: x + 1000 * (np.arange(x.size).reshape(x.shape) > x.size / 3),
    "many magnitudes": lambda x: np.exp(3 * x),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_variance_is_exact_but_for_some_units_whatever_the_data(data: str, dtype: str) -> None:
    for shape in [(7,), (1000,), (5003,), (50, 61), (5, 7, 40)]:
        values = DATA[data](drawn(*shape, dtype="float64")).astype(dtype)
        assert units_off(values) <= UNITS, shape


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "int8"]
)
def test_variance_of_equal_elements_is_zero(dtype: str, part: Part) -> None:
    for shape in part([(3,), (1000,), (1057,), (7, 33), (3, 5, 70), (2, 70_001)]):
        for value in (0.1, 3e4) if dtype != "int8" else (7,):
            x = tn.full(shape, value, dtype=getattr(tn, dtype)) + 0
            found = tn.var(x).item()
            assert found == 0
            assert not np.signbit(found)


def test_variance_of_what_is_not_finite_is_nan() -> None:
    inf, nan = np.inf, np.nan
    rows: list[list[float]] = [
        [inf],
        [1, inf],
        [inf, 1],
        [inf, inf],
        [-inf, inf],
        [nan, 1],
        [2, nan, inf],
    ]
    for row in rows:
        for values in (row, [*row, *[0.5] * 2000], [*[0.5] * 2000, *row]):
            assert np.isnan(tn.var(tn.asarray(values)).item()), row
            assert np.isnan(tn.var(tn.asarray([values, values])).item()), row


def test_variance_past_the_largest_float_is_infinite() -> None:
    assert tn.var(tn.asarray([1e200, 0.0, 0.0])).item() == np.inf
    assert np.isnan(tn.var(tn.asarray([1.7e308, -1.7e308])).item())  # their distance is, already


def test_variance_over_no_axis_is_zero() -> None:
    assert tn.var(tn.asarray([1.0, -2.0]), axis=()).tolist() == [0, 0]
    assert np.isnan(np.asarray(tn.var(tn.asarray([np.inf, np.nan]), axis=()))).all()


def test_variance_of_no_elements_is_nan_in_every_dtype() -> None:
    for dtype in (tn.float16, tn.float32, tn.complex64, tn.int8, tn.bool):
        empty = tn.zeros((2, 0, 3), dtype=dtype)
        assert np.isnan(np.asarray(tn.var(empty, axis=1))).all()
        assert np.isnan(tn.var(empty).item())
        assert tn.var(empty, axis=1, keepdims=True).shape == (2, 1, 3)
        assert tn.var(empty, axis=0).shape == (0, 3)


ONE_PASS: dict[str, tuple[tuple[int, ...], Any]] = {
    "rows": ((50, 1024), 1),
    "long rows": ((20, 70_000), 1),
    "few long rows": ((2, 70_000), 1),
    "all of a vector": ((200_000,), None),
    "columns": ((70_000, 40), 0),
    "few columns": ((70_000, 3), 0),
}


@pytest.mark.parametrize("name", ONE_PASS)
def test_variance_goes_through_memory_once(name: str) -> None:
    shape, axis = ONE_PASS[name]
    for statistic in (tn.var, tn.std):
        (step,) = plan(statistic(ones(*shape), axis=axis)).steps
        assert step.launch is not None
        assert step.launch.kernel.passes == 1


def test_variance_over_several_axes_reads_its_input_in_one_kernel() -> None:
    found = plan(tn.var(ones(300, 400)))
    whole = [step for step in found.steps if step.launch and step.launch.elements == 120_000]
    assert len(whole) == 1
    assert whole[0].launch is not None
    assert whole[0].launch.kernel.passes == 1


def test_mean_and_variance_of_long_rows_share_their_pass() -> None:
    x = ones(20, 70_000)
    (step,) = plan(tn.mean(x, axis=1), tn.var(x, axis=1)).steps
    assert step.launch is not None
    assert step.launch.kernel.passes == 1


def test_parts_of_complex_numbers_share_their_pass() -> None:
    (step,) = plan(tn.var(ones(50, 3000, dtype="complex64"), axis=1)).steps
    assert step.launch is not None
    assert step.launch.kernel.passes == 1


def test_normalised_rows_take_two_passes_in_one_kernel() -> None:
    x = ones(50, 1024)
    mean, deviation = tn.mean(x, axis=1, keepdims=True), tn.std(x, axis=1, keepdims=True)
    (step,) = plan((x - mean) / deviation).steps
    assert step.launch is not None
    assert step.launch.kernel.passes == 2


def test_several_reductions_of_rows_go_along_the_rows() -> None:
    """Their results, side by side in memory, do not turn the packets across the rows."""
    x = ones(100, 300)
    (step,) = plan(tn.sum(x, axis=1), tn.max(x, axis=1), tn.var(x, axis=1)).steps
    assert step.launch is not None
    assert step.launch.kernel.form == "row"
