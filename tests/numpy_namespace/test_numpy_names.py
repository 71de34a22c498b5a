"""Each name of `tenfold.numpy` against NumPy's: the same call, over dtypes and special values."""

from __future__ import annotations

import types
import warnings
from typing import Any

import numpy
import pytest
from tests.conftest import Part

import call_examples as examples
import tenfold as tn
import tenfold.numpy as ours

DATA: dict[str, tuple[str, ...]] = {
    "float64": ("real", "float", "nonempty"),
    "float32": ("real", "float", "nonempty"),
    "int64": ("real", "nonempty"),
    "int16": ("real", "nonempty"),
    "bool": ("nonempty", "truth"),
    "complex128": ("nonempty",),
    "nan": ("real", "float", "nonempty"),
    "empty": ("real", "float"),
}
"""The data of calls, with the words for which of them a call is."""


def arguments_of(data: str) -> dict[str, numpy.ndarray]:
    """The arguments of calls, as NumPy's."""
    dtype = numpy.dtype("float64" if data in ("nan", "empty") else data)
    a = numpy.array([[1.5, -2.25, 0.5], [0.0, 3.0, 1.0]])
    b = numpy.array([[2.0, 2.0, -1.0], [1.5, 3.0, 0.5]])
    m = numpy.array([[2.0, -1.0, 0.5], [0.25, 3.0, 1.0], [1.0, 0.0, 1.5]])
    t = numpy.linspace(-2, 2, 12).reshape(2, 2, 3)
    v, w = numpy.array([1.0, -1.0, 2.5, 0.5]), numpy.array([0.5, 2.0, -1.0, 1.0])
    if dtype.kind == "c":
        a, b, m, t, v, w = (x + 0.5j * x[::-1] for x in (a, b, m, t, v, w))
    named = {
        name: x.astype(dtype)
        for name, x in {"a": a, "b": b, "m": m, "t": t, "v": v, "w": w}.items()
    }
    if data == "nan":
        named["a"][0, 1] = named["v"][2] = numpy.nan
        named["a"][1, 2], named["b"][0, 0] = numpy.inf, -numpy.inf
    if data == "empty":
        named["a"], named["b"] = named["a"][:0], named["b"][:0]
        named["v"], named["w"] = named["v"][:0], named["w"][:0]
    mask = numpy.array([[True, False, True], [False, True, True]])
    named["mask"] = mask[:0] if data == "empty" else mask
    named["k"], named["i"] = numpy.array([0, 1, 1, 0]), numpy.array([1, 0])
    named["f"] = numpy.arange(5.0)
    return named


def words(table: str) -> list[str]:
    return table.split()


CALLS = [
    *examples.rows(examples.FUNCTIONS),
    *examples.rows(examples.OTHER_UFUNCS),
    *((name, f"np.{name}(a)", "") for name in words(examples.UNARY)),
    *((name, f"np.{name}(a, b)", "") for name in words(examples.BINARY)),
]
WRITERS = examples.rows(examples.WRITERS)
METHODS = examples.rows(examples.METHODS)
METHOD_WRITERS = examples.rows(examples.METHOD_WRITERS)
LINALG = examples.rows(examples.LINALG)
OTHERS = {
    "fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "save", "savetxt", "savez",
    "savez_compressed", "get_include", "get_printoptions", "getbufsize", "geterr", "geterrcall",
    "info", "nested_iters", "printoptions", "set_printoptions", "setbufsize", "seterr",
    "seterrcall", "show_config", "show_runtime", "isnat",
}  # fmt: skip
"""Names without a call in the table: files, printing and states, tested below."""


def tolerance(dtype: numpy.dtype) -> float:
    if dtype.kind not in "fc":
        return 0.0
    return max(1e-12, 16 * float(numpy.finfo(dtype).eps))


def assert_same(mine: Any, theirs: Any, call: str) -> None:
    """Assert that results are the same: structure, shape, dtype and values."""
    if isinstance(theirs, (tuple, list)):
        assert isinstance(mine, (tuple, list)), call
        assert len(mine) == len(theirs), call
        for x, y in zip(mine, theirs, strict=True):
            assert_same(x, y, call)
        return
    if isinstance(theirs, (numpy.ndarray, numpy.generic)) or isinstance(mine, tn.Array):
        values = numpy.asarray(mine)
        expected = numpy.asarray(theirs)
        assert values.shape == expected.shape, call
        if isinstance(theirs, (numpy.ndarray, numpy.generic)):
            assert values.dtype == expected.dtype, call
        numpy.testing.assert_allclose(
            values, expected, rtol=tolerance(expected.dtype), atol=tolerance(expected.dtype),
            err_msg=call,
        )  # fmt: skip
        return
    assert mine == theirs or (mine != mine and theirs != theirs), call


def outcome(call: str, np: Any, arguments: dict[str, Any]) -> Any:
    """The result of a call, or the exception."""
    namespace = {"np": np, "real_numpy": numpy, "sum": sum, "abs": abs, **arguments}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(call, {}, namespace)  # a row of the table
            _wait(result)
        except Exception as error:  # noqa: BLE001  # compared with the other library's
            return error
    return result


def _wait(result: Any) -> None:
    if isinstance(result, tn.Array):
        result.wait()
    elif isinstance(result, (tuple, list)):
        for item in result:
            _wait(item)


def as_arrays(arguments: dict[str, numpy.ndarray]) -> dict[str, Any]:
    return {name: tn.asarray(value) for name, value in arguments.items()}


def data_of(kinds: str) -> list[str]:
    """The names of the data of a call."""
    return [data for data, its_kinds in DATA.items() if {*kinds.split()} <= {*its_kinds}]


def compare(call: str, data: list[str], written: str = "") -> None:
    """Compare the outcomes of a call in both libraries, for each of its data."""
    for each in data:
        compare_with(each, call, written)


def compare_with(data: str, call: str, written: str) -> None:
    theirs = arguments_of(data)
    mine = as_arrays(theirs)
    expected, result = outcome(call, numpy, theirs), outcome(call, ours, mine)
    where = f"{call} of {data}"
    if isinstance(expected, Exception):
        assert isinstance(result, Exception), f"{where}: {expected!r}, not {result!r}"
        return
    if isinstance(result, Exception):
        raise AssertionError(f"{where}: {result!r}") from result
    assert_same(result, expected, where)
    if written:
        assert_same(mine[written], theirs[written], where)


@pytest.mark.parametrize(("name", "call", "kinds"), CALLS, ids=[call for _, call, _ in CALLS])
def test_a_function_returns_what_numpy_returns(
    name: str, call: str, kinds: str, part: Part
) -> None:
    compare(call, part(data_of(kinds)))


@pytest.mark.parametrize(("name", "call", "kinds"), METHODS, ids=[call for _, call, _ in METHODS])
def test_a_method_returns_what_an_ndarray_returns(
    name: str, call: str, kinds: str, part: Part
) -> None:
    compare(call, part(data_of(kinds)))


@pytest.mark.parametrize(("name", "call", "kinds"), WRITERS, ids=[call for _, call, _ in WRITERS])
def test_a_function_writes_what_numpy_writes(name: str, call: str, kinds: str, part: Part) -> None:
    compare(call, part(data_of(kinds)), written=call.partition("(")[2][0])


@pytest.mark.parametrize(
    ("name", "call", "kinds"), METHOD_WRITERS, ids=[call for _, call, _ in METHOD_WRITERS]
)
def test_a_method_writes_what_an_ndarray_writes(
    name: str, call: str, kinds: str, part: Part
) -> None:
    compare(call, part(data_of(kinds)), written=call[0])


@pytest.mark.parametrize(("name", "call", "kinds"), LINALG, ids=[call for _, call, _ in LINALG])
@pytest.mark.parametrize("data", ["float64", "float32", "complex128"])
def test_linear_algebra_returns_what_numpy_returns(
    name: str, call: str, kinds: str, data: str
) -> None:
    m = arguments_of(data)["m"]
    spd = (m @ m.conj().T + 2 * numpy.eye(3)).astype(data)
    rotation = numpy.array([[0.0, -1.0], [1.0, 0.0]], dtype=data)
    theirs = {"spd": spd, "rotation": rotation}
    expected, result = outcome(call, numpy, theirs), outcome(call, ours, as_arrays(theirs))
    if isinstance(result, Exception):
        raise result
    assert_near(result, expected, call)


def assert_near(mine: Any, theirs: Any, call: str) -> None:
    if isinstance(theirs, tuple) and not isinstance(theirs[0], int):
        for x, y in zip(mine, theirs, strict=True):
            assert_near(x, y, call)
        return
    expected = numpy.asarray(theirs)
    bound = 1e-4 if expected.dtype in ("float32", "complex64") else 1e-9
    assert numpy.asarray(mine).dtype == expected.dtype, call
    numpy.testing.assert_allclose(mine, expected, rtol=bound, atol=bound, err_msg=call)


def numpy_functions() -> list[str]:
    """The functions and ufuncs of NumPy's main namespace."""
    return sorted(
        name
        for name in numpy.__all__
        if callable(getattr(numpy, name)) and not isinstance(getattr(numpy, name), type)
        if name != "test"
    )


MISSING = {"asmatrix", "bmat"}
"""Functions of matrices, which Tenfold does not have."""
DATES = {"busday_count", "busday_offset", "datetime_as_string", "datetime_data", "is_busday"}
"""NumPy's own functions."""


def test_the_namespace_has_the_functions_of_numpy() -> None:
    assert {name for name in numpy_functions() if not hasattr(ours, name)} == MISSING
    assert len(numpy_functions()) - len(MISSING) >= 330


def test_each_function_has_a_call_in_the_table() -> None:
    called = {name for name, _, _ in (*CALLS, *WRITERS)}
    assert {name for name in numpy_functions() if name not in called} == MISSING | DATES | OTHERS


def test_each_function_of_linear_algebra_has_a_call_in_the_table() -> None:
    called = {name for name, _, _ in LINALG}
    assert called == set(numpy.linalg.__all__) - {"LinAlgError"}
    assert ours.linalg.LinAlgError is numpy.linalg.LinAlgError


NO_METHODS = {"ctypes", "getfield", "resize", "setfield"}
"""Attributes of an ndarray that are of its memory."""
OTHER_METHODS = {"base", "data", "device", "dump", "flags", "setflags", "to_device", "tofile"}
"""Attributes without a call in the table, tested elsewhere."""


def test_an_array_has_the_methods_of_an_ndarray() -> None:
    names = {name for name in dir(numpy.ndarray) if not name.startswith("_")}
    called = {name for name, _, _ in (*METHODS, *METHOD_WRITERS)}
    assert {name for name in names if not hasattr(tn.Array, name)} == NO_METHODS
    assert names - called == NO_METHODS | OTHER_METHODS
    assert len(names) - len(NO_METHODS) >= 60


def test_names_that_are_no_functions_are_those_of_numpy() -> None:
    for name in ("float64", "int32", "pi", "nan", "newaxis", "finfo", "bool_", "longdouble"):
        assert getattr(ours, name) is getattr(numpy, name)
    assert ours.float64(2).dtype == "float64"


def test_ndarray_is_the_type_of_arrays() -> None:
    assert ours.ndarray is tn.Array
    assert isinstance(ours.zeros(2), ours.ndarray)
    assert isinstance(ours.add, ours.ufunc)


def test_star_import_gives_no_private_name() -> None:
    assert all(not name.startswith("_") for name in ours.__all__)
    assert isinstance(ours, types.ModuleType)


def test_a_missing_name_says_the_way_to_numpy() -> None:
    with pytest.raises(AttributeError, match=r"use tenfold.numpy.block"):
        _ = ours.bmat


def test_random_numbers_and_transforms_are_those_of_tenfold() -> None:
    drawn = ours.random.default_rng(0).normal(size=3)
    assert isinstance(drawn, tn.Array)
    assert drawn.shape == (3,)
    values = numpy.arange(6.0).reshape(2, 3)
    for name in ("fft", "ifft", "rfft", "fft2", "fftn", "fftshift", "hfft", "ihfft"):
        made, expected = getattr(ours.fft, name)(values), getattr(numpy.fft, name)(values)
        numpy.testing.assert_allclose(made, expected, atol=1e-12, err_msg=name)
        assert isinstance(getattr(numpy.fft, name)(tn.asarray(values)), tn.Array)
    numpy.testing.assert_allclose(ours.fft.fft([1, 2, 3], 4, 0), numpy.fft.fft([1, 2, 3], 4, 0))
    assert set(ours.fft.__all__) == set(numpy.fft.__all__)
