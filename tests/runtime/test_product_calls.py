"""Products on the cpu device: dtypes that differ, copies, what is counted, processors."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import BOOL, DTYPES

DTYPES_OF_ALL_KINDS = ("bool", "int8", "uint64", "float16", "bfloat16", "float32", "complex128")


@pytest.fixture(autouse=True)
def on_cpu() -> Iterator[None]:
    with tn.options(device="cpu"):
        yield


def made(dtype: str, *shape: int) -> Any:
    values = np.random.default_rng(list(shape)).integers(0, 2, shape)
    return tn.asarray(values.astype(DTYPES[dtype]))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("first", "second"), list(itertools.product(DTYPES_OF_ALL_KINDS, repeat=2))
)
def test_operands_of_two_dtypes_meet_in_the_common_one(first: str, second: str) -> None:
    x1, x2 = made(first, 7, 9), made(second, 9, 5)
    found = x1 @ x2
    right = np.asarray(x1).astype(complex) @ np.asarray(x2).astype(complex)
    right = right != 0 if found.dtype == BOOL else right
    np.testing.assert_array_equal(np.asarray(found).astype(complex), right)


def test_a_product_is_one_call_and_one_launch() -> None:
    x1, x2 = made("float32", 300, 200), made("float32", 200, 100)
    with tn.profile() as counted:
        tn.eval(x1 @ x2).wait()
    assert (counted.calls, counted.launches, counted.kernels) == (1, 1, 0)
    assert counted.multiply_adds == 300 * 200 * 100


def test_contracted_axes_that_cannot_be_walked_as_one_are_not_copied() -> None:
    x1, x2 = made("float64", 2, 3, 4), made("float64", 4, 3, 2)
    with tn.profile() as counted:
        found = tn.tensordot(x1, x2, axes=((0, 2), (2, 0))).wait()
    assert (counted.copies, counted.temporaries, counted.calls) == (0, 0, 1)
    right = np.tensordot(np.asarray(x1), np.asarray(x2), ((0, 2), (2, 0)))
    np.testing.assert_array_equal(np.asarray(found), right)


def test_tensordot_copies_a_second_operand_whose_columns_cannot_be_walked_as_one() -> None:
    x1, x2 = made("float64", 5, 3), made("float64", 4, 3, 2)
    with tn.profile() as counted:
        found = tn.tensordot(x1, x2, axes=((1,), (1,))).wait()
    assert counted.copies == 1
    right = np.tensordot(np.asarray(x1), np.asarray(x2), ((1,), (1,)))
    np.testing.assert_array_equal(np.asarray(found), right)


def test_views_are_multiplied_where_they_lie() -> None:
    x = made("float64", 40, 30)
    with tn.profile() as counted:
        found = (x.T @ x[::-1]).wait()
    assert counted.copies == 0
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x).T @ np.asarray(x)[::-1])


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_a_processor_may_be_named(cpu: str) -> None:
    x1, x2 = made("float32", 70, 60), made("float32", 60, 50)
    with tn.options(cpu=cpu):
        found = np.asarray(x1 @ x2)
    np.testing.assert_array_equal(found, np.asarray(x1) @ np.asarray(x2))


@pytest.mark.parametrize(
    "before", ["", "import scipy.linalg", "from scipy.linalg import cython_blas"]
)
def test_routines_are_those_of_scipy_without_its_packages(before: str) -> None:
    program = f"""
{before}
import sys
from tenfold.runtime.blas import routines
from tenfold.runtime.lapack import drivers
loaded = "scipy.linalg" in sys.modules
addresses = [routines.blas_address("dgemm"), drivers.driver_address("dpotrf")]
assert loaded == ("scipy.linalg" in sys.modules)
import scipy.linalg
from scipy.linalg import cython_blas, cython_lapack
assert scipy.linalg.cython_blas is cython_blas
assert addresses == [
    routines.entry_point(cython_blas.__pyx_capi__, "dgemm"),
    routines.entry_point(cython_lapack.__pyx_capi__, "dpotrf"),
]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
