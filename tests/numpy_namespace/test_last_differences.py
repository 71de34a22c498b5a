"""Values and errors that once differed from NumPy's: rounding, rows of NaN, weak numbers, None."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
import tenfold.numpy as ours


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 2, 5])
def test_complex_numbers_are_rounded_to_the_bits_of_numpy(decimals: int, dtype: str) -> None:
    random = np.random.default_rng(decimals + 10)
    x = random.standard_normal(500) + 1j * random.standard_normal(500)
    x = (x * 10.0 ** random.integers(-3, 4, 500)).astype(dtype)
    x[:3] = [complex(np.nan, 1), complex(np.inf, -2.5), complex(-0.0, -0.04)]
    for found in (ours.round(tn.asarray(x), decimals), tn.asarray(x).round(decimals)):
        expected = np.round(x, decimals)
        assert np.asarray(found).tobytes() == expected.tobytes()


NAN = float("nan")


@pytest.mark.parametrize("name", ["nanargmin", "nanargmax"])
@pytest.mark.parametrize(
    ("rows", "axis"),
    [([NAN, NAN], None), ([[NAN, 1.0], [NAN, NAN]], 1), ([[NAN, 1.0], [NAN, 2.0]], 0)],
)
def test_a_row_of_nan_has_no_extreme(name: str, rows: Any, axis: int | None) -> None:
    for dtype in ("float32", "float64"):
        for given in (tn.asarray(rows, dtype=dtype), tn.asarray(rows, dtype=dtype) * 1):
            with pytest.raises(ValueError, match="All-NaN slice encountered"):
                getattr(ours, name)(given, axis=axis)
            with pytest.raises(ValueError, match="All-NaN slice encountered"):
                getattr(np, name)(given, axis=axis)


def test_a_row_with_a_number_has_an_extreme() -> None:
    rows = np.array([[NAN, 1.0, 0.0], [2.0, NAN, NAN]])
    for name in ("nanargmin", "nanargmax"):
        for axis in (None, 0, 1):
            found = getattr(ours, name)(tn.asarray(rows), axis=axis)
            assert found.tolist() == getattr(np, name)(rows, axis=axis).tolist()
    traced = tn.function(lambda x: ours.nanargmin(x))
    assert [traced(tn.asarray([NAN, 2.0, 1.0])).item() for _ in range(2)] == [2, 2]


FRACTIONS = [50, 50.0, np.float64(50), np.float32(50), np.float16(50), np.int64(50)]
FRACTIONS += [np.asarray(50.0), [50.0], np.asarray([50.0]), np.asarray([50.0], "float32")]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("name", ["percentile", "nanpercentile", "quantile", "nanquantile"])
def test_the_number_of_a_quantile_is_weak_if_it_is_pythons(name: str, dtype: str) -> None:
    x = np.arange(6).astype(dtype)
    for percent in FRACTIONS:
        q: Any = percent
        if "quantile" in name:
            q = [0.5] if isinstance(percent, list) else percent / 100
        for method in ("linear", "lower"):
            expected = getattr(np, name)(x, q, method=method)
            for _ in range(2):
                found = getattr(ours, name)(tn.asarray(x), q, method=method)
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-3)


def least_squares_operands() -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    operands = []
    for m, n in ((5, 3), (3, 3), (2, 4), (1, 1), (4, 1)):
        full = random.standard_normal((m, n))
        deficient = np.outer(full[:, 0], np.ones(n))
        for a in (full, deficient, full.astype("float32"), full + 1j * full[::-1]):
            operands += [(a, a[:, 0] * 2 + 1), (a, a[:, :1] + 1), (a, np.ones((m, 2)))]
    return operands


def test_least_squares_have_numpys_residuals(
    part: Part,
) -> None:
    for a, b in part(least_squares_operands()):
        for rcond in (None, -1):
            expected = np.linalg.lstsq(a, b, rcond)
            for given in (tn.asarray(a), tn.asarray(a) * 1):
                found = ours.linalg.lstsq(given, tn.asarray(b), rcond)
                assert found[2].item() == expected[2]
                for mine, numpys in zip(found[:2], expected[:2], strict=True):
                    assert (mine.shape, mine.dtype) == (numpys.shape, numpys.dtype)
                    tolerance = 1e-3 if numpys.dtype == np.float32 else 1e-8
                    if rcond is None:
                        np.testing.assert_allclose(np.asarray(mine), numpys, tolerance, tolerance)


OBJECTS = [None, "a", b"a", np.str_("a"), object(), Fraction(1), {}, {1}, int, slice(1), ...]


@pytest.mark.parametrize("dtype", ["bool", "int32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (2,), (2, 2)])
def test_equality_with_any_object_is_elementwise(shape: tuple[int, ...], dtype: str) -> None:
    values = np.ones(shape, dtype)
    comparisons: list[Callable[[Any, Any], Any]] = [operator.eq, operator.ne]
    for compare in comparisons:
        for other in OBJECTS:
            for x in (tn.asarray(values), tn.asarray(values) * tn.asarray(1, dtype=dtype)):
                for found in (compare(x, other), compare(other, x)):
                    expected = np.asarray(compare(values, other))
                    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                    assert found.tolist() == expected.tolist()


def test_equality_asks_an_object_that_compares_itself() -> None:
    class Anything:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]  # equal to all

    assert (tn.zeros(2) == Anything()) is True


def test_equality_with_none_waits_for_nothing() -> None:
    traced = tn.function(lambda x: tn.where(x == None, 1.0, x))  # noqa: E711  # elementwise
    assert traced(tn.asarray([2.0, 3.0])).tolist() == [2.0, 3.0]
    with tn.options(strict_sync=True):
        assert (tn.asarray([1]) + 1 != None).dtype == tn.bool  # noqa: E711  # elementwise
    with pytest.raises(TypeError):
        _ = tn.zeros(2) < None


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
def test_a_dtype_is_that_of_the_result_whatever_the_mean_is(name: str, dtype: str | None) -> None:
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    mean = x.astype(float).mean(axis=1, keepdims=True)
    expected = getattr(np, name)(x, axis=1, dtype=dtype, mean=mean)
    found = getattr(ours, name)(tn.asarray(x), axis=1, dtype=dtype, mean=tn.asarray(mean))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
