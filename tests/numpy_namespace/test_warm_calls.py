"""Warm calls on small arrays run native code, and mean what the path by Python means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

import tenfold as tn
import tenfold.numpy as np
from tenfold.errors import ShapeError
from tenfold.interop.asarray import asarray

S = np.array([[2.0, 0.5], [0.5, 1.0]])


def test_warm_calls_run_native_code() -> None:
    program = Path(__file__).with_name("warm_calls.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "5 checks\n"), done.stderr


def test_singular_matrices_raise_at_every_call() -> None:
    for _ in range(5):
        with pytest.raises(numpy.linalg.LinAlgError):
            np.linalg.inv(np.zeros((2, 2)) * 1.0)
        numpy.testing.assert_allclose(np.linalg.inv(np.eye(2) * 2), numpy.eye(2) / 2)


def test_an_operation_that_may_fail_names_the_line_of_the_user() -> None:
    singular = tn.linalg.inv(tn.zeros((2, 2)))
    line = sys._getframe().f_lineno - 1
    with pytest.raises(numpy.linalg.LinAlgError, match=rf"test_warm_calls.py:{line}\b"):
        singular.wait()


@pytest.mark.parametrize(
    "items",
    [
        [1, S[0, 0], True],
        [S[0], S[1] + 1],
        [[S[0]], (S[1] * 2,)],
        [tn.asarray(3, dtype="int8"), 2],
        [tn.asarray(3, dtype="int8"), 2.5],
        [tn.asarray(True), False],
        [tn.asarray(True), 3],
        [tn.asarray(1.5, dtype="float32"), S[0, 0]],
        [tn.asarray(0.1, dtype="float32"), 0.1],
        [S[:, :0], S[:, :0]],
        [numpy.float64(2), S[0, 0]],
    ],
)
@pytest.mark.parametrize("dtype", [None, float, tn.float64, tn.int64])
def test_lists_with_arrays_have_the_elements_that_python_gives(items: Any, dtype: Any) -> None:
    made, expected = asarray(items, dtype=dtype), asarray.__wrapped__(items, dtype=dtype)
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    assert made.tolist() == expected.tolist()


def test_a_list_of_arrays_of_unequal_shapes_or_numbers_beyond_the_dtype_is_refused() -> None:
    for items in ([S[0], S], [S[0], 1.0], [S, [1.0, 2.0]]):
        with pytest.raises(ShapeError):
            np.array(items)
    with pytest.raises(OverflowError):
        np.array([tn.asarray(3, dtype="int8"), 300])


def test_an_unknown_keyword_is_refused_whatever_its_value() -> None:
    for value in (None, 1):
        with pytest.raises(TypeError, match="unexpected keyword argument 'order_of'"):
            tn.asarray([1.0], order_of=value)
