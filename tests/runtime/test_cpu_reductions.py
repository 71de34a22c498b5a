"""Folds on the cpu device: the bits of the reference, for every layout, length and thread count."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tests.ops.grid import shared

import tenfold as tn
from tenfold.dtypes import DTYPES
from tenfold.testing import assert_equal_bits

BOUNDARIES = (0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 1055, 1056, 2047, 2048)
LONG = (1024 * 16 - 1, 1024 * 16, 1024 * 16 + 33, 1024 * 65, 1024 * 128 + 7)
FOLDS = ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all")


@pytest.fixture(autouse=True)
def quickly_compiled() -> Iterator[None]:
    with tn.options(device="cpu", tier="0"):
        yield


def reference(compute: Callable[[tn.Array], tn.Array], values: np.ndarray) -> np.ndarray:
    with tn.options(device="reference"):
        return np.asarray(compute(tn.asarray(values)))


def values(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return generator.integers(0, 100, shape).astype(dtype)
    found = generator.normal(size=shape)
    return (found + 1j * found[::-1] if dtype.startswith("complex") else found).astype(dtype)


def fold(name: str, axis: int | tuple[int, ...] | None) -> Callable[[tn.Array], tn.Array]:
    return lambda x: getattr(tn, name)(x, axis=axis)


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rows": lambda x: np.ascontiguousarray(x),
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "strided": lambda x: np.repeat(np.repeat(x, 3, axis=1), 2, axis=0)[::2, ::3],
    "reversed": lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
    "rows apart": lambda x: np.pad(x, ((0, 0), (3, 2)))[:, 3:-2],
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_the_bits_of_the_reference(layout: str, dtype: str) -> None:
    for shape in ((5, 1000), (70, 33), (3, 2100), (40, 3)):
        x = values(*shape, dtype=dtype)
        laid = LAYOUTS[layout](x)
        np.testing.assert_array_equal(laid, x)
        for name in ("sum", "max") if dtype != "complex64" else ("sum",):
            for axis in (0, 1, None):
                wanted = reference(fold(name, axis), x)
                assert_equal_bits(getattr(tn, name)(shared(laid), axis=axis), wanted)


def test_broadcast_operand_sums_as_if_it_were_stored() -> None:
    row = values(1, 300)
    stored = np.ascontiguousarray(np.broadcast_to(row, (50, 300)))
    for axis in (0, 1, (0, 1)):
        wanted = reference(fold("sum", axis), stored)
        assert_equal_bits(tn.sum(tn.broadcast_to(tn.asarray(row), (50, 300)), axis=axis), wanted)
        added = tn.asarray(row) + tn.zeros((50, 1), dtype="float32")
        assert_equal_bits(tn.sum(added, axis=axis), wanted)


@pytest.mark.parametrize("name", FOLDS)
def test_lengths_about_the_boundaries_of_the_tree_have_the_bits_of_the_reference(name: str) -> None:
    for dtype in ("float32", "int16"):
        for length in BOUNDARIES:
            if length == 0 and name not in ("sum", "prod", "any", "all"):
                continue
            x = values(2, length, dtype=dtype, seed=length)
            wanted = reference(fold(name, 1), x)
            assert_equal_bits(fold(name, 1)(tn.asarray(x)), wanted)
            across = getattr(tn, name)(tn.asarray(np.ascontiguousarray(x.T)), axis=0)
            assert_equal_bits(across, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex128"])
def test_long_rows_and_columns_have_the_bits_of_the_reference(dtype: str) -> None:
    for length in LONG:
        x = values(2, length, dtype="complex128" if dtype == "complex128" else "float64")
        x = x.astype(DTYPES[dtype])
        wanted = reference(fold("sum", 1), x)
        assert_equal_bits(tn.sum(tn.asarray(x), axis=1), wanted)
        assert_equal_bits(tn.sum(shared(np.ascontiguousarray(x.T).T), axis=1), wanted)


@pytest.mark.parametrize("name", ["sum", "max", "argmax", "mean", "var"])
def test_threads_do_not_change_the_bits_of_a_long_row(name: str) -> None:
    x = tn.asarray(values(10**6))
    found = set()
    for threads in (1, 2, 8):
        with tn.options(threads=threads):
            found.add(np.asarray(getattr(tn, name)(x)).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("name", FOLDS)
def test_an_axis_of_length_one_and_no_axis_at_all_keep_the_value(name: str) -> None:
    for shape in ((7, 1), (1, 7), (1, 1), ()):
        x = values(*shape)
        for axis in (*range(len(shape)), None):
            wanted = reference(fold(name, axis), x)
            assert_equal_bits(getattr(tn, name)(tn.asarray(x), axis=axis), wanted)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, -0.0, 1e-45])
def test_special_values_anywhere_go_through_as_in_the_reference(special: float) -> None:
    for length in (3, 40, 1500):
        for place in (0, length // 2, length - 1):
            x = values(2, length)
            x[0, place] = special
            x[1] = special
            for name in ("sum", "prod", "max", "min", "argmax", "argmin"):
                wanted = reference(fold(name, 1), x)
                assert_equal_bits(fold(name, 1)(tn.asarray(x)), wanted)
                across = getattr(tn, name)(tn.asarray(np.ascontiguousarray(x.T)), axis=0)
                assert_equal_bits(across, wanted)


def test_zeros_of_both_signs_are_ordered_by_sign() -> None:
    for x in ([-0.0, 0.0], [0.0, -0.0], [0.0] * 40 + [-0.0] * 40):
        row = tn.asarray(np.float32([x]))
        assert np.signbit(tn.min(row, axis=1).item())
        assert not np.signbit(tn.max(row, axis=1).item())


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_several_axes_have_the_bits_of_the_reference_fused_or_not(axes: tuple[int, ...]) -> None:
    for shape in ((5, 40, 33), (1, 2, 70), (65, 1, 34), (3, 0, 2)):
        x, y = values(*shape), values(*shape, seed=1)

        def compute(a: tn.Array) -> tn.Array:
            return tn.sum((a - tn.asarray(y)) * a, axis=axes, keepdims=True) * 2  # noqa: B023

        wanted = reference(compute, x)
        assert_equal_bits(compute(tn.asarray(x)), wanted)
        with tn.options(fuse=False):
            assert_equal_bits(compute(tn.asarray(x)), wanted)


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", [(1, 16), (1, 33), (5, 24), (100, 24)])
@pytest.mark.parametrize("place", [0, 15])
def test_failure_that_is_the_same_along_a_folded_axis_is_not_lost(
    shape: tuple[int, int], place: int
) -> None:
    exponents = np.ones(shape, np.int64)
    exponents[:, place] = -1
    x = tn.asarray(exponents)
    powers = (
        tn.sum(x, axis=0) ** tn.sum(x, axis=0),
        x + tn.sum(x, axis=0) ** tn.max(x, axis=0),
        tn.sum(x + tn.min(x, axis=0) ** tn.min(x, axis=0), axis=0),
    )
    for power in powers:
        with pytest.raises(ValueError, match="negative power"):
            power.wait()
    one, total = x[:1] ** x[:1], tn.sum(x[:1], axis=0)
    tn.eval(x, total, one)
    assert total.tolist() == exponents[0].tolist()
    with pytest.raises(ValueError, match="negative power -1"):
        one.wait()


@pytest.mark.parametrize(
    "shape", [(5,), (1, 5), (3, 40), (40, 3), (16, 33, 5), (3, 40_000)], ids=str
)
def test_independent_operation_is_no_result_of_the_fold_below(shape: tuple[int, ...]) -> None:
    x, whole = tn.asarray(np.full(shape, 2.0)), tn.asarray(np.full(shape, 2))
    for axis in range(len(shape)):
        for fold in (tn.sum, tn.max, tn.var, tn.cumulative_sum):
            assert not np.asarray(tn.imag(fold(x, axis=axis))).any()
        assert not np.asarray(tn.isnan(tn.sum(whole, axis=axis))).any()
