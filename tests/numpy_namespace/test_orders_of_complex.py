"""Complex numbers are ordered as NumPy orders them: real parts first, NaN last or kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as ours
from tenfold.errors import DTypeError
from tenfold.testing import assert_equal_bits

NAN = float("nan")
NUMBERS = {
    "pairs": np.array([1 + 2j, 1 + 3j, 9j, 2 - 1j, 2 - 2j, 1 + 2j]),
    "rows": np.array([[3j, 1 - 1j, 1 + 1j], [2, -5j, 2 + 0.25j]], np.complex64),
    "nan": np.array([1 + 2j, complex(1, NAN), complex(NAN, 0), 2 - 1j]),
    "strided": np.array([1j, 0, 2j, 0, -1j, 0])[::-2],
}
FUNCTIONS = "argmax argmin max min ptp median sort argsort nanmax nanmin nanargmax nanargmin"
each_array = pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)


@each_array
@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_a_function_orders_complex_numbers(name: str, values: np.ndarray) -> None:
    expected = getattr(np, name)(values, axis=-1)
    assert_equal_bits(np.asarray(getattr(ours, name)(tn.asarray(values), axis=-1)), expected)
    if "arg" not in name or name == "argmax":
        result = getattr(ours, name)(a=values.tolist(), axis=None)
        expected = getattr(np, name)(values, axis=None)
        assert_equal_bits(np.asarray(result), np.asarray(expected).astype(result.dtype))


@each_array
@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min", "argsort"])
def test_a_method_orders_complex_numbers(name: str, values: np.ndarray) -> None:
    for options in ({}, {"axis": 0}, {"axis": -1}):
        expected = getattr(values, name)(**options)
        assert_equal_bits(np.asarray(getattr(tn.asarray(values), name)(**options)), expected)


@each_array
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_orders_complex_numbers(side: Any, values: np.ndarray) -> None:
    ordered = np.sort(values.ravel())
    places = tn.asarray(values)
    expected = np.searchsorted(ordered, values, side)
    assert_equal_bits(np.asarray(ours.searchsorted(ordered, places, side)), expected)
    assert_equal_bits(np.asarray(tn.asarray(ordered).searchsorted(places, side)), expected)


def test_results_are_written_where_out_says() -> None:
    values = NUMBERS["rows"]
    out = np.zeros(2, np.complex64)
    assert ours.max(values, -1, out) is out
    assert_equal_bits(out, values.max(-1))
    assert ours.max(values, initial=5j, where=values.real > 1).item() == 2 + 0.25j


def test_the_array_api_has_no_order_of_complex_numbers() -> None:
    for function in (tn.max, tn.argmin, tn.sort):
        with pytest.raises(DTypeError, match="complex numbers have no order"):
            function(tn.asarray([1j]))


DESCENDING = {
    "real": (np.array([3, 1, NAN, 2, 1, -0.0, 0.0]), [0, 3, 1, 4, 5, 6, 2]),
    "complex": (np.array([1 + 1j, complex(NAN, 1), 2, complex(1, NAN), 1 + 2j]), [2, 4, 0, 3, 1]),
}


@pytest.mark.parametrize(("values", "order"), DESCENDING.values(), ids=DESCENDING)
def test_a_descending_order_keeps_nan_last_and_equals_in_place(
    values: np.ndarray, order: list[int]
) -> None:
    x = tn.asarray(values)
    assert ours.argsort(x, descending=True, stable=True).tolist() == order
    assert x.argsort(-1, "stable", descending=True).tolist() == order
    assert_equal_bits(np.asarray(ours.sort(x, descending=True)), values[order])
    assert_equal_bits(np.asarray(ours.sort(x, descending=None)), np.sort(values, kind="stable"))
    x.sort(descending=True)
    assert_equal_bits(np.asarray(x), values[order])
