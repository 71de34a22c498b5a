"""Views of views that are read in one kernel: where each element of the last one stands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits

VIEWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "every second, from the third on": lambda x: x[::2][3:],
    "backwards, from the third on": lambda x: x[::-1][3:],
    "every second of every third": lambda x: x[2::3][1::2],
    "a row of every second": lambda x: x[1::2][5],
    "a row from the end of columns backwards": lambda x: x[:, ::-1][:, 2],
    "columns of a transpose": lambda x: x[::3].T[4::2][::-1],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("optimise", [True, False])
def test_views_of_views_of_an_expression_are_numpys(name: str, optimise: bool) -> None:
    values = np.arange(400.0 * 350).reshape(400, 350)
    expected = VIEWS[name](values * 2.0 + 1.0) * 3.0
    with tn.options(optimise=optimise):
        made = VIEWS[name](tn.asarray(values) * 2.0 + 1.0) * 3.0
        assert_equal_bits(made, expected)
        assert_equal_bits(VIEWS[name](tn.asarray(values)) * 3.0, VIEWS[name](values) * 3.0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16", "bool"])
@pytest.mark.parametrize("length", [131_073, 200_000])
def test_whole_packets_are_read_backwards(dtype: str, length: int) -> None:
    values = (np.arange(length) * 7 % 31 % 3).astype(dtype)
    x = tn.asarray(values)
    assert_equal_bits(x[::-1] == x, values[::-1] == values)
    assert_equal_bits(tn.where(x[::-1], x, x[::-1]), np.where(values[::-1], values, values[::-1]))
