"""Numbers that loops assign to parts: as NumPy's, for every dtype, and without Python's path."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import DTYPES

REAL = (0.5, -3.25, 7, True, 1e300, float("inf"), float("nan"), -0.0)


@pytest.mark.parametrize("name", [name for name in DTYPES if np.dtype(DTYPES[name]).kind in "fc"])
@pytest.mark.parametrize("shape", [(40,), (20, 3), (5, 4, 3)])
def test_numbers_assigned_in_a_loop_are_as_numpys(name: str, shape: tuple[int, ...]) -> None:
    dtype = np.dtype(DTYPES[name])
    expected, array = np.ones(shape, dtype), tn.ones(shape, dtype=dtype)
    with np.errstate(over="ignore"):
        for step in range(60):
            number = REAL[step % len(REAL)]
            expected[step % shape[0]] = number
            array[step % shape[0]] = number
            if step % 7 == 0:
                expected[step % 3 :] = step
                array[step % 3 :] = step
    np.testing.assert_array_equal(np.asarray(array), expected)
    assert (np.signbit(np.asarray(array).real) == np.signbit(expected.real))[expected == 0].all()


ROW = """
import numpy as np, tenfold as tn
def work():
    array = tn.zeros(256)
    for i in range(256):
        array[i] = 0.5 * i
    return array.wait()
for _ in range(20):
    work()
with tn.profile() as profile:
    found = work()
assert found.tolist() == (0.5 * np.arange(256)).tolist()
print(profile.launches)
"""


def test_row_of_numbers_is_written_by_few_launches() -> None:
    # In a process of its own: where there has been a window each is written by itself.
    found = subprocess.run(
        [sys.executable, "-c", ROW], capture_output=True, text=True, timeout=120, check=True
    )
    assert int(found.stdout) < 100


def test_number_that_does_not_fit_changes_nothing() -> None:
    array = tn.ones(3, dtype="float32")
    with pytest.raises(OverflowError):
        array[1] = 10**400
    with pytest.raises(tn.errors.DTypeError):
        array[1] = 1j
    with pytest.raises(IndexError):
        array[3] = 0.5
    array[3:] = 0.5
    array[1:1] = 7
    assert array.tolist() == [1.0, 1.0, 1.0]


def test_number_assigned_to_a_view_changes_its_base() -> None:
    base = tn.zeros((4, 3))
    view = base[1:3]
    view[0] = 2.0
    view[1, 2] = 5
    expected = np.zeros((4, 3))
    expected[1], expected[2, 2] = 2.0, 5
    np.testing.assert_array_equal(np.asarray(base), expected)
