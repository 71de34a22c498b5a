"""An Array is a sequence to C code: reversed, bisect, NumPy's shapes and pandas ask for that."""

from __future__ import annotations

import bisect
import ctypes
import operator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits

get_item = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_ssize_t)(
    ("PySequence_GetItem", ctypes.pythonapi)
)
is_sequence = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(
    ("PySequence_Check", ctypes.pythonapi)
)
length = ctypes.PYFUNCTYPE(ctypes.c_ssize_t, ctypes.py_object)(
    ("PySequence_Size", ctypes.pythonapi)
)


@pytest.mark.parametrize("x", [tn.asarray([1, 2, 3]), tn.asarray([1, 2, 3]) * 1, tn.ones((3, 2))])
def test_an_array_is_a_sequence_to_c(x: tn.Array) -> None:
    assert is_sequence(x)
    assert length(x) == 3


@pytest.mark.parametrize("position", range(-4, 5))
def test_c_counts_positions_as_numpy_does(position: int) -> None:
    values = np.arange(6.0).reshape(3, 2)
    x = tn.asarray(values)
    if -3 <= position < 3:
        assert np.array_equal(get_item(x, position), get_item(values, position))
        return
    for array in (x, values):
        with pytest.raises(IndexError, match=r"out of (range|bounds)"):
            get_item(array, position)


def test_an_array_without_axes_has_no_items() -> None:
    x = tn.asarray(3)
    with pytest.raises(TypeError, match="without axes has no length"):
        length(x)
    with pytest.raises(IndexError):
        get_item(x, 0)


def test_reversed_begins_with_the_last_row() -> None:
    assert [row.tolist() for row in reversed(tn.asarray([[1, 2], [3, 4]]))] == [[3, 4], [1, 2]]


def test_bisect_finds_a_place_in_an_array() -> None:
    x = tn.asarray([1, 2, 2, 5])
    assert (bisect.bisect(x, 2), bisect.bisect_left(x, 2), bisect.bisect(x, 9)) == (3, 1, 4)


def test_an_array_of_integers_is_a_shape_of_numpy() -> None:
    shape: Any = tn.asarray([2, 3])
    assert np.zeros(shape).shape == (2, 3)
    assert np.arange(6).reshape(shape).shape == (2, 3)


def test_a_list_of_arrays_is_an_array_of_their_values() -> None:
    x = tn.asarray([1.0, 2.0])
    assert np.array([x, x + 1]).tolist() == [[1, 2], [2, 3]]
    assert np.array(x, dtype=object).tolist() == [1.0, 2.0]


SYMBOLS = "add sub mul truediv floordiv mod pow matmul eq ne lt ge and_ xor lshift".split()


@pytest.mark.exhaustive
@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize(
    "items", [[1, 2, 3], (True, True, True), [[1, 2, 3]], [1.5, 2.0, 0.5], range(1, 4)]
)
def test_a_list_is_an_operand_beside_an_array_with_axes(items: Any, symbol: str) -> None:
    apply, values = getattr(operator, symbol), np.array([3, 1, 2], np.int32)
    for swap in (False, True):
        mine, theirs = ((items, x)[:: -1 if swap else 1] for x in (tn.asarray(values), values))
        try:
            expected = apply(*theirs)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                apply(*mine)
        else:
            assert_equal_bits(np.asarray(apply(*mine)), expected)


def test_a_list_is_added_in_place_and_divided() -> None:
    x = tn.asarray([1.0, 2.0])
    x += [1, 2]
    assert x.tolist() == [2, 4]
    assert [part.tolist() for part in divmod(x, [2, 3])] == [[1, 1], [0, 1]]
