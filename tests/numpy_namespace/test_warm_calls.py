"""Warm calls on small arrays: which Python functions of the library they run, by counts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import tenfold as tn
import tenfold.numpy as np
from tenfold import _native
from tenfold.errors import ShapeError
from tenfold.interop.asarray import asarray

S = np.array([[2.0, 0.5], [0.5, 1.0]])


def functions_of(call: Callable[[], Any]) -> list[str]:
    """The Python functions of the library that a call runs, when made for the fourth time."""
    for _ in range(3):
        call()
    names: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("tenfold."):
            names.append(f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.parametrize("name", ["inv", "cholesky", "solve", "slogdet", "det"])
def test_linear_algebra_of_a_pending_matrix_enters_no_pipeline(name: str) -> None:
    function = getattr(np.linalg, name)
    operands = (np.ones(2),) if name == "solve" else ()
    names = functions_of(lambda: function(S + S, *operands))
    assert not [each for each in names if "pipeline" in each or "_call_uncached" in each]


def test_matrices_and_their_inverse_are_computed_by_one_wait() -> None:
    for _ in range(4):
        a = S * 2
        before = _native.read_counters()["host_syncs"]
        np.linalg.inv(a)
        syncs = _native.read_counters()["host_syncs"] - before
        numpy.asarray(a)
        assert _native.read_counters()["host_syncs"] == before + syncs
    assert syncs == 1


def test_singular_matrices_raise_at_every_call() -> None:
    for _ in range(5):
        with pytest.raises(numpy.linalg.LinAlgError):
            np.linalg.inv(np.zeros((2, 2)) * 1.0)
        numpy.testing.assert_allclose(np.linalg.inv(np.eye(2) * 2), numpy.eye(2) / 2)


def test_transposes_and_ufuncs_of_arrays_run_at_most_one_function() -> None:
    assert functions_of(lambda: S.T) == []
    assert functions_of(lambda: np.exp(S)) == ["tenfold.numpy.ufuncs.Ufunc.__call__"]
    assert functions_of(lambda: np.add(S, 2.0)) == ["tenfold.numpy.ufuncs.Ufunc.__call__"]


@pytest.mark.parametrize("dtype", [float, numpy.float32, numpy.dtype("int8"), "int64", bool])
def test_creation_is_bound_once_for_each_form_of_dtype(dtype: Any) -> None:
    for make in (lambda: np.eye(3, dtype=dtype), lambda: np.full(3, 1, dtype=dtype)):
        assert make().dtype == numpy.dtype(dtype)
        assert not [name for name in functions_of(make) if "_call_uncached" in name]


def test_an_operation_that_may_fail_names_the_line_of_the_user() -> None:
    singular = tn.linalg.inv(tn.zeros((2, 2)))
    line = sys._getframe().f_lineno - 1
    with pytest.raises(numpy.linalg.LinAlgError, match=rf"test_warm_calls.py:{line}\b"):
        singular.wait()


def test_lists_of_scalar_arrays_are_imported_by_native_code_and_one_wait() -> None:
    def make() -> Any:
        return np.array([[S[0, 0] * 2, 1], [S[0, 1] - 1, S[1, 1]]])

    assert functions_of(make) == ["tenfold.numpy.creation.array"]
    before = _native.read_counters()["host_syncs"]
    made = make()
    assert _native.read_counters()["host_syncs"] == before + 1
    assert made.tolist() == [[4.0, 1.0], [-0.5, 1.0]]
    assert functions_of(lambda: np.array([1.0, 2.0])) == ["tenfold.numpy.creation.array"]


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
