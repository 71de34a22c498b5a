"""NumPy's ufuncs and operators on Arrays: lazy and ours, or refused with the substitute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.op import OPS, Op
from tenfold.errors import DTypeError, ShapeError, UnsupportedError

UFUNCS = [
    (operation, function)
    for operation in OPS.values()
    for function in operation.numpy
    if isinstance(function, np.ufunc)
]


def is_pending(x: Any) -> bool:
    return isinstance(x, tn.Array) and " pending " in repr(x)


@pytest.mark.parametrize(("operation", "function"), UFUNCS, ids=[u.__name__ for _, u in UFUNCS])
def test_a_ufunc_makes_the_node_of_its_operation(operation: Op[...], function: np.ufunc) -> None:
    if function.signature is not None:
        x = tn.asarray(np.full((2, 2), 0.5))
    else:
        x = tn.asarray([1, 2] if "bitwise" in operation.name else [0.25, 0.5])
    made = function(*(x,) * function.nin)
    expected = operation(*(x,) * function.nin)
    assert is_pending(made) or made is x
    assert made.dtype == expected.dtype
    assert np.array_equal(np.asarray(made), np.asarray(expected), equal_nan=True)


@pytest.mark.parametrize(
    "expression",
    [
        lambda a, x: a + x,
        lambda a, x: x - a,
        lambda a, x: a * x,
        lambda a, x: a / x,
        lambda a, x: a // x,
        lambda a, x: a % x,
        lambda a, x: a**x,
        lambda a, x: a @ x,
        lambda a, x: a < x,
        lambda a, x: a == x,
        lambda a, x: np.arctan2(a, x),
    ],
)
def test_an_ndarray_beside_an_array_stays_lazy_and_ours(expression: Any) -> None:
    values = np.array([1.0, 2.0, 3.0])
    made = expression(values, tn.asarray(values + 1))
    assert is_pending(made)
    assert np.array_equal(np.asarray(made), expression(values, values + 1))


@pytest.mark.parametrize(
    ("scalar", "dtype"),
    [
        (np.float32(0.3), "float32"),
        (np.float64(0.3), "float64"),
        (np.int8(3), "float32"),
        (0.3, "float32"),
    ],
)
def test_numpy_scalars_are_strong_and_python_numbers_weak(scalar: Any, dtype: str) -> None:
    x = tn.asarray([1, 2], dtype="float32")
    for made in (scalar * x, x * scalar, np.multiply(scalar, x)):
        assert is_pending(made)
        assert made.dtype == getattr(tn, dtype)


def test_a_list_beside_an_array_is_an_array_as_in_numpy() -> None:
    assert np.add(tn.asarray([1, 2]), [10, 20]).tolist() == [11, 22]


def test_an_ndarray_as_target_is_computed_into() -> None:
    target = np.array([1.0, 2.0])
    same = target
    target += tn.asarray([10.0, 20.0])
    assert target is same
    assert target.tolist() == [11, 22]
    assert np.multiply(tn.asarray([2, 3]), 2, out=target) is target
    assert target.tolist() == [4, 6]
    row = np.zeros((2, 2))
    row += tn.asarray([1.0, 2.0])
    assert row.tolist() == [[1, 2], [1, 2]]


def test_a_target_that_does_not_fit_is_refused() -> None:
    whole = np.array([1, 2])
    with pytest.raises(DTypeError, match="float64 cannot be written into int64"):
        whole += tn.asarray([0.5, 0.5])
    with pytest.raises(ShapeError, match=r"shape \(2, 2\) cannot be written into shape \(2,\)"):
        whole += tn.zeros((2, 2), dtype="int64")
    assert whole.tolist() == [1, 2]


def test_an_array_as_target_is_assigned() -> None:
    x = tn.asarray([1.0, 2.0])
    assert np.add(x, x, out=x) is x
    assert x.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"where": np.array([True, False])}, [2.0, 0.0]),
        ({"dtype": np.float32}, [2.0, 4.0]),
        ({"casting": "unsafe"}, [2.0, 4.0]),
    ],
)
def test_arguments_that_ufuncs_have_alone_are_those_of_numpy(arguments: Any, expected: Any) -> None:
    x = tn.asarray([1.0, 2.0])
    made = np.add(x, x, **arguments)
    assert isinstance(made, tn.Array)
    assert made.dtype == arguments.get("dtype", np.float64)
    assert made.tolist() == expected


def test_arguments_at_their_default_ask_for_nothing() -> None:
    x = tn.asarray([1.0])
    assert np.add(x, x, casting="same_kind", order="K", where=True, dtype=None).tolist() == [2]


@pytest.mark.parametrize(
    ("ufunc", "function"),
    [
        (np.add, "sum"),
        (np.multiply, "prod"),
        (np.maximum, "max"),
        (np.minimum, "min"),
        (np.logical_and, "all"),
        (np.logical_or, "any"),
    ],
)
def test_reduce_is_the_reduction_over_the_first_axis(ufunc: np.ufunc, function: str) -> None:
    values = np.array([[1, 2, 0], [3, 4, 5]])
    x = tn.asarray(values)
    assert ufunc.reduce(x).tolist() == ufunc.reduce(values).tolist()
    assert ufunc.reduce(x, axis=None).tolist() == ufunc.reduce(values, axis=None).tolist()
    kept = ufunc.reduce(x, axis=1, keepdims=True)
    assert is_pending(kept)
    assert kept.tolist() == getattr(tn, function)(x, axis=1, keepdims=True).tolist()


def test_reduce_computes_into_an_ndarray() -> None:
    target = np.zeros(2)
    assert np.add.reduce(tn.asarray([[1, 2], [3, 4]]), out=target) is target
    assert target.tolist() == [4, 6]


def test_accumulate_and_outer_are_ours_too() -> None:
    values = np.array([[1, 2], [3, 4]])
    x = tn.asarray(values)
    assert np.add.accumulate(x).tolist() == np.add.accumulate(values).tolist()
    assert np.multiply.accumulate(x, axis=1).tolist() == [[1, 2], [3, 12]]
    assert np.subtract.outer(x, values[0]).tolist() == np.subtract.outer(values, values[0]).tolist()


@pytest.mark.parametrize(
    ("call", "name", "remedy"),
    [
        (lambda x: np.add.reduceat(x, [0]), "np.add.reduceat", "np.add.reduceat(np.asarray(x))"),
        (lambda x: np.subtract.reduce(x), "np.subtract.reduce", "np.asarray(x)"),
        (lambda x: np.arctan2.accumulate(x), "np.arctan2.accumulate", "np.asarray(x)"),
        (lambda x: np.spacing(x), "np.spacing", "np.spacing(np.asarray(x))"),
        (lambda x: np.frexp(x), "np.frexp", "np.frexp(np.asarray(x))"),
    ],
)
def test_absent_name_has_its_substitute(call: Any, name: str, remedy: str) -> None:
    x = tn.asarray([1.0, 2.0])
    with tn.options(numpy_fallback="raise"), pytest.raises(UnsupportedError) as caught:
        call(x)
    assert str(caught.value).startswith(name)
    assert remedy in str(caught.value)


def test_methods_of_ufuncs_are_those_of_numpy() -> None:
    values = np.array([3.0, 1.0, 2.0])
    x = tn.asarray(values)
    assert np.add.reduce(x, initial=3).item() == 9.0
    with tn.options(numpy_fallback="convert"):
        assert np.add.reduceat(x, [0, 1]).tolist() == [3.0, 3.0]
        assert np.subtract.accumulate(x).tolist() == [3.0, 2.0, 0.0]
    np.add.at(x, [0, 0], 1.0)
    assert x.tolist() == [5.0, 1.0, 2.0]


class Other:
    """An array of another library, which answers for itself."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> str:
        return "other"


def test_another_library_may_answer() -> None:
    assert np.add(tn.asarray([1]), Other()) == "other"
