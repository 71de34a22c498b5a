"""The array API standard beside its operations: constants, dtypes, inspection, absence."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tenfold as tn
from tenfold.dtypes import DTYPES
from tenfold.errors import DeviceError, DTypeError, UnsupportedError

NUMPY_DTYPES = [name for name in DTYPES if name != "bfloat16"]


@pytest.mark.parametrize("version", [None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"])
def test_an_array_knows_its_namespace(version: str | None) -> None:
    assert tn.asarray([1]).__array_namespace__(api_version=version) is tn
    assert tn.__array_api_version__ == "2025.12"


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"version '1999\.12' .* is not supported"):
        tn.asarray([1]).__array_namespace__(api_version="1999.12")


def test_constants_are_pythons() -> None:
    assert (tn.e, tn.pi, tn.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(tn.nan)
    assert tn.newaxis is None


def test_dtypes_are_numpys() -> None:
    assert tn.float32 == np.dtype("float32")
    assert tn.bool == np.dtype(bool)
    assert tn.bfloat16 == np.dtype(ml_dtypes.bfloat16)
    assert tn.asarray([1]).dtype is tn.int64


@pytest.mark.parametrize("name", DTYPES)
def test_limits_are_those_of_numpy(name: str) -> None:
    dtype = DTYPES[name]
    if tn.isdtype(dtype, "integral"):
        limits, expected = tn.iinfo(dtype), np.iinfo(dtype)
        assert (limits.bits, limits.min, limits.max) == (expected.bits, expected.min, expected.max)
        assert limits.dtype == dtype
        assert type(limits.max) is int
    elif tn.isdtype(dtype, ("real floating", "complex floating")):
        found, theirs = tn.finfo(dtype), ml_dtypes.finfo(dtype)
        assert found.bits == theirs.bits
        assert found.eps == float(theirs.eps)
        assert (found.max, found.min) == (float(theirs.max), float(theirs.min))
        assert found.smallest_normal == float(theirs.smallest_normal)
        assert type(found.eps) is float
    else:
        for limits_of in (tn.finfo, tn.iinfo):
            with pytest.raises(DTypeError, match="bool is no"):
                limits_of(dtype)


def test_limits_of_an_array_are_those_of_its_dtype() -> None:
    assert tn.finfo(tn.zeros(2, dtype="complex64")).dtype == tn.float32
    assert tn.iinfo(tn.zeros(2, dtype="int8")).max == 127


@pytest.mark.parametrize("first", NUMPY_DTYPES)
def test_promotion_and_casting_are_those_of_numpy(first: str) -> None:
    for second in NUMPY_DTYPES:
        assert tn.result_type(first, second) == np.result_type(first, second)
        assert tn.can_cast(first, second) == np.can_cast(DTYPES[first], DTYPES[second])


def test_bfloat16_promotes_as_a_half_type() -> None:
    assert tn.result_type(tn.bfloat16, tn.float16) == tn.float32
    assert tn.result_type(tn.bfloat16, tn.int8) == tn.bfloat16
    assert tn.result_type(tn.bfloat16, 2.5) == tn.bfloat16
    assert tn.can_cast(tn.bfloat16, tn.float32)
    assert not tn.can_cast(tn.bfloat16, tn.float16)
    assert not tn.can_cast(tn.float16, tn.bfloat16)
    assert not tn.can_cast(tn.int16, tn.bfloat16)
    assert tn.can_cast(tn.bfloat16, tn.complex64)


def test_python_numbers_are_weak_and_numpys_strong() -> None:
    x = tn.zeros(2, dtype="float32")
    assert tn.result_type(x, 1.5) == tn.float32
    assert tn.result_type(x, 1j) == tn.complex64
    assert tn.result_type(x, np.float64(1)) == tn.float64
    assert tn.result_type(True, 2, 2.5) == tn.float64
    assert tn.result_type(tn.int8, 3) == tn.int8
    with pytest.raises(ValueError, match="at least one"):
        tn.result_type()
    with pytest.raises(DTypeError):
        tn.result_type("text")


def test_isdtype_knows_the_kinds_of_the_standard() -> None:
    kinds = {
        "bool": {"bool"},
        "signed integer": {"int8", "int16", "int32", "int64"},
        "unsigned integer": {"uint8", "uint16", "uint32", "uint64"},
        "real floating": {"float16", "bfloat16", "float32", "float64"},
        "complex floating": {"complex64", "complex128"},
    }
    for kind, names in kinds.items():
        assert {name for name in DTYPES if tn.isdtype(DTYPES[name], kind)} == names
        standard = names - {"float16", "bfloat16"}
        assert set(tn.__array_namespace_info__().dtypes(kind=kind)) == standard
    assert tn.isdtype(tn.int8, ("bool", tn.int8))
    assert not tn.isdtype(tn.bool, "numeric")
    with pytest.raises(ValueError, match="'whole' is not a kind of dtype"):
        tn.isdtype(tn.int8, "whole")


def test_inspection_says_what_there_is() -> None:
    info = tn.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() in info.devices()
    assert tn.zeros(1).device == info.default_device()
    assert info.default_dtypes()["real floating"] == tn.zeros(1).dtype
    assert info.default_dtypes(device="reference")["indexing"] == tn.argsort(tn.zeros(1)).dtype
    assert set(DTYPES) - set(info.dtypes()) == {"float16", "bfloat16"}
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {
        "bool",
        "complex64",
        "complex128",
    }
    with pytest.raises(DeviceError):
        info.dtypes(device="gpu")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("array", "write tn.asarray(...)"),
        ("concatenate", "use tn.concat"),
        ("load", "write tn.asarray(np.load(path))"),
        ("loadtxt", "write tn.asarray(np.loadtxt(path))"),
        ("savetxt", "write np.savetxt(path, x)"),
        ("jit", "write @tn.function to trace a function once"),
        ("cumsum", "write tn.cumulative_sum(x, axis=...)"),
        ("nanmedian", "use tenfold.numpy.nanmedian"),
        ("sinn", "did you mean tn.sin"),
        ("xyzzy", "module 'tenfold' has no attribute 'xyzzy'"),
    ],
)
def test_a_name_that_is_absent_says_what_to_use(name: str, text: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(tn, name)
    assert text in str(caught.value)
    assert caught.value.name == name
    assert not hasattr(tn, name)


def test_linalg_says_so_too() -> None:
    with pytest.raises(AttributeError, match=r"did you mean tn\.linalg\.solve"):
        tn.linalg.solv


def test_linalg_has_every_name_of_numpy() -> None:
    public = {name for name in dir(np.linalg) if not name.startswith("_")} - {"test"}
    assert public <= {*dir(tn.linalg)}


def test_all_names_are_there() -> None:
    for name in tn.__all__:
        assert hasattr(tn, name)


def test_completion_shows_public_names_alone() -> None:
    shown = {name for name in dir(tn) if not name.startswith("__")}
    assert shown == {name for name in tn.__all__ if not name.startswith("__")}


def public_functions() -> list[Any]:
    return [value for name in tn.__all__ if callable(value := getattr(tn, name))]


def test_every_public_function_has_a_docstring() -> None:
    assert [function for function in public_functions() if not function.__doc__] == []


@pytest.mark.parametrize(
    ("function", "text"),
    [(np.linalg.eig, "write tn.linalg.eig(...)")],
)
def test_a_function_that_means_something_else_names_ours(function: Any, text: str) -> None:
    with tn.options(numpy_fallback="raise"), pytest.raises(UnsupportedError) as caught:
        function(tn.ones((3, 3)))
    assert text in str(caught.value)
