"""Elements that only NumPy holds, NumPy's options of casts, flags, and kinds of scalars."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import tenfold as tn
import tenfold.numpy as np
from tenfold.errors import DTypeError, ForeignDTypeError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore::tenfold.errors.FallbackWarning")
CALLS: list[Callable[[Any], Any]] = [
    lambda np: np.array(["b", "a"]),
    lambda np: np.zeros(2, dtype=object),
    lambda np: np.sort(np.array(["b", "a"])),
    lambda np: np.concatenate([np.array(["a"]), np.array(["b"])]),
    lambda np: np.unique(np.array([1, "a"], dtype=object).astype(str)),
    lambda np: np.add(np.array([1, 2], dtype=object), np.arange(2)),
    lambda np: np.sum(np.array([0.5, 2], dtype=np.longdouble)),
    lambda np: np.datetime64("2020-01-02") - np.array(["2020-01-01"], dtype="datetime64[D]"),
    lambda np: np.arange(3).astype("U2"),
    lambda np: np.arange(3).astype(object),
    lambda np: np.zeros(2, dtype=[("a", "i4")])["a"],
]


@pytest.mark.parametrize("call", CALLS)
def test_elements_that_only_numpy_holds_are_numpys(call: Callable[[Any], Any]) -> None:
    mine, theirs = call(np), call(numpy)
    assert numpy.asarray(mine).dtype == numpy.asarray(theirs).dtype
    numpy.testing.assert_array_equal(mine, theirs)


def test_numbers_among_the_results_are_arrays() -> None:
    _, counts = np.unique(np.array(["b", "a", "b"]), return_counts=True)
    assert isinstance(counts, tn.Array)
    target = np.zeros(2)
    assert np.add(np.array([1, 2], dtype=object), 1, out=target, casting="unsafe") is target
    assert target.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("option", [{"numpy_fallback": "raise"}, {"strict_sync": True}])
def test_the_setting_refuses_elements_that_only_numpy_holds(option: dict[str, Any]) -> None:
    with tn.options(**option), pytest.raises(ForeignDTypeError):
        np.array(["a"])
    with pytest.raises(DTypeError):
        tn.asarray(["a"])


def test_casting_rules_are_those_of_numpy() -> None:
    x, whole = np.array([1.5, -2.5]), np.zeros(2, dtype=int)
    assert np.add(x, 1, out=whole, casting="unsafe") is whole
    assert whole.tolist() == [2, -1]
    for options in ({"dtype": "i4"}, {"casting": "no", "dtype": "f4"}, {"signature": "ll->l"}):
        with pytest.raises(TypeError, match="Cannot cast ufunc 'add' input 0"):
            np.add(x, x, **options)
        with pytest.raises(TypeError, match="Cannot cast ufunc 'add' input 0"):
            numpy.add(numpy.array([1.5]), numpy.array([1.5]), **options)
    assert np.add([1, 2], [3, 4], dtype=np.float32).dtype == np.float32
    assert np.add(1, 2, dtype=np.int8).dtype == np.int8
    with pytest.raises(TypeError, match="Cannot cast"):
        np.concatenate([x, x], dtype=int)
    assert np.concatenate([x, x], dtype=int, casting="unsafe").dtype == int
    with pytest.raises(ValueError, match="order must be"):
        np.add(x, x, order="Z")


def test_flags_describe_the_exported_values_and_are_not_set() -> None:
    x = np.zeros((2, 3))
    for array in (x, x[0], np.zeros(())):
        mine, theirs = array.flags, numpy.array(array).flags
        for name in ("c_contiguous", "f_contiguous", "writeable", "aligned", "forc", "fnc"):
            assert getattr(mine, name) == getattr(theirs, name)
        assert mine["C"] == theirs["C"]
    x.flags.writeable = True
    with pytest.raises(UnsupportedError, match=r"np\.array\(x\)"):
        x.setflags(write=False)
    assert x.data.shape == (2, 3)


def test_an_array_without_axes_is_a_scalar_of_its_kind() -> None:
    x = np.arange(3)
    assert isinstance(x[0], np.integer)
    assert not isinstance(x[0], np.floating)
    assert not isinstance(x, np.generic)
    assert isinstance(numpy.float32(1), np.inexact)
    assert np.issubdtype(x.dtype, np.signedinteger)
    assert numpy.issubdtype(np.floating, numpy.inexact)
    assert np.isscalar(x[0])
    assert not np.isscalar(x)


def test_errors_at_the_call_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="check_nans"):
        np.seterr(divide="raise")
    with pytest.raises(UnsupportedError, match="check_nans"):
        np.errstate(divide="call")
    with np.errstate(all="ignore"):
        assert numpy.geterr()["divide"] == "ignore"


def test_a_call_that_fails_writes_to_no_array() -> None:
    target = numpy.full(2, -7)
    with pytest.raises(TypeError):
        np.sum(np.ones((2, 3)), axis=1, out=target)
    assert target.tolist() == [-7, -7]


def test_a_function_that_fails_is_called_once() -> None:
    calls = []

    def fails(i: tn.Array) -> tn.Array:
        calls.append(i)
        return np.ones((2, 3)) + np.ones(5)

    with pytest.raises(tn.errors.ShapeError):
        np.fromfunction(fails, (3,))
    assert len(calls) == 1


def test_an_assigned_result_of_other_elements_is_refused() -> None:
    for other in (numpy.array([3, 4], numpy.longdouble), numpy.array([3, 4], object)):
        x = np.zeros(2)
        with pytest.raises(tn.errors.DTypeError, match="an Array cannot hold"):
            x += other
        assert x.tolist() == [0.0, 0.0]


def test_errors_have_the_class_and_the_text_of_numpys() -> None:
    x = np.zeros((6, 5))
    with pytest.raises(TypeError, match=r"(?s)NumPy: `pad_width` must be of integral type.*remedy"):
        np.pad(x, "word")
    with pytest.raises(tn.errors.ShapeError, match=r"concat.*NumPy: all the input arrays"):
        np.concatenate([x, np.zeros(3)])
    with pytest.raises(tn.errors.ShapeError) as caught:
        np.pad(x, "word")
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), tn.errors.ShapeError)


def test_an_axis_that_is_no_int_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="sum: axis 'x' is not an int"):
        np.sum([1], axis="x")
    with pytest.raises(np.exceptions.AxisError, match="diff: axis 3 is out of range"):
        np.diff([1, 2], prepend=0, axis=3)
