"""Warm calls on small arrays: which Python functions of the library they run, by counts. Run by
`test_warm_calls.py` in a process without windows on foreign memory, which take the path by Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy

import tenfold.numpy as np
from tenfold import _native

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


def check_that_linear_algebra_of_a_pending_matrix_enters_no_pipeline() -> None:
    for name in ("inv", "cholesky", "solve", "slogdet", "det"):
        check_linear_algebra(name)


def check_linear_algebra(name: str) -> None:
    function = getattr(np.linalg, name)
    operands = (np.ones(2),) if name == "solve" else ()
    names = functions_of(lambda: function(S + S, *operands))
    assert not [each for each in names if "pipeline" in each or "_call_uncached" in each]


def check_that_matrices_and_their_inverse_are_computed_by_one_wait() -> None:
    for _ in range(4):
        a = S * 2
        before = _native.read_counters()["host_syncs"]
        np.linalg.inv(a)
        syncs = _native.read_counters()["host_syncs"] - before
        numpy.asarray(a)
        assert _native.read_counters()["host_syncs"] == before + syncs
    assert syncs == 1


def check_that_transposes_and_ufuncs_of_arrays_run_at_most_one_function() -> None:
    assert functions_of(lambda: S.T) == []
    assert functions_of(lambda: np.exp(S)) == ["tenfold.numpy.ufuncs.Ufunc.__call__"]
    assert functions_of(lambda: np.add(S, 2.0)) == ["tenfold.numpy.ufuncs.Ufunc.__call__"]


def check_that_creation_is_bound_once_for_each_form_of_dtype() -> None:
    for dtype in (float, numpy.float32, numpy.dtype("int8"), "int64", bool):
        check_creation(dtype)


def check_creation(dtype: Any) -> None:
    for make in (lambda: np.eye(3, dtype=dtype), lambda: np.full(3, 1, dtype=dtype)):
        assert make().dtype == numpy.dtype(dtype)
        assert not [name for name in functions_of(make) if "_call_uncached" in name]


def check_that_lists_of_scalar_arrays_are_imported_by_native_code_and_one_wait() -> None:
    def make() -> Any:
        return np.array([[S[0, 0] * 2, 1], [S[0, 1] - 1, S[1, 1]]])

    wrapper = "tenfold.numpy.by_numpy.or_by_numpy.<locals>.call"
    assert functions_of(make) == [wrapper, "tenfold.numpy.creation.array"]
    before = _native.read_counters()["host_syncs"]
    made = make()
    assert _native.read_counters()["host_syncs"] == before + 1
    assert made.tolist() == [[4.0, 1.0], [-0.5, 1.0]]
    assert functions_of(lambda: np.array([1.0, 2.0])) == [wrapper, "tenfold.numpy.creation.array"]


CHECKS = [check for name, check in globals().items() if name.startswith("check_that_")]

if __name__ == "__main__":
    for check in CHECKS:
        check()
    print(len(CHECKS), "checks")
