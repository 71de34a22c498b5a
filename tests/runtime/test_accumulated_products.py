"""gemm on the cpu device: every form of operand, scale and addend, on every width of register."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import tenfold as tn
from product_launch import scaled_step
from tenfold.dtypes import COMPLEX128, FLOAT64
from tenfold.ops.gemm import gemm
from tenfold.schedule.product_forms import ProductOperand, ScaledProduct

FORMS = {
    "N": lambda x: x,
    "T": lambda x: x.T,
    "C": lambda x: x.conj().T,
    "J": np.conj,
}
STACKED_FORMS = FORMS | {"T": np.matrix_transpose, "C": lambda x: np.conj(x).mT}
LENGTHS = [(1, 1, 1), (7, 19, 33), (65, 300, 9), (193, 2, 6), (4, 0, 3), (0, 3, 2), (9, 5, 1)]


def matrix(rows: int, columns: int, dtype: np.dtype, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    values = random.standard_normal((rows, columns))
    if dtype.kind == "c":
        return (values + 1j * random.standard_normal((rows, columns))).astype(dtype)
    return values.astype(dtype)


def operand(form: str, rows: int, columns: int, dtype: np.dtype, seed: int) -> np.ndarray:
    lengths = (columns, rows) if form in "TC" else (rows, columns)
    return matrix(*lengths, dtype, seed)


def assert_near(result: np.ndarray, wanted: np.ndarray, bound: np.ndarray, terms: int) -> None:
    assert result.dtype == wanted.dtype
    unit = np.finfo(result.dtype).eps
    assert np.all(abs(result - wanted) <= 2 * (terms + 4) * unit * bound)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "native"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("number", range(len(LENGTHS)))
def test_every_form_scale_and_addend_gives_what_numpy_gives(
    number: int, dtype: str, cpu: str
) -> None:
    kind, (m, k, n) = np.dtype(dtype), LENGTHS[number]
    forms = list(product("NTCJ" if kind.kind == "c" else "NT", repeat=2))
    one, other = forms[(5 * number) % len(forms)], forms[(7 * number + 3) % len(forms)]
    with tn.options(cpu=cpu):
        for first, second in (one, other):
            x1, x2 = operand(first, m, k, kind, 1), operand(second, k, n, kind, 2)
            x3 = matrix(m, n, kind, 3)
            inputs = [tn.asarray(x) for x in (x1, x2)]
            factors = FORMS[first](x1), FORMS[second](x2)
            plain, bound = factors[0] @ factors[1], abs(factors[0]) @ abs(factors[1])
            scaled = np.asarray(gemm(*inputs, 2.5, forms=first + second, sign=-1))
            assert_near(scaled, (-2.5 * plain).astype(kind), 2.5 * bound, k)
            third = tn.asarray(x3)
            added = np.asarray(gemm(*inputs, third, 3, forms=first + second, added=-1))
            assert_near(added, (plain - 3 * x3).astype(kind), bound + 3 * abs(x3), k)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "native"])
def test_addend_may_have_any_strides(cpu: str) -> None:
    x1, x2 = (tn.asarray(matrix(40, 40, np.dtype("float64"), seed)) for seed in (1, 2))
    whole = matrix(80, 80, np.dtype("float64"), 3)
    wanted = np.asarray(x1) @ np.asarray(x2)
    array = tn.asarray(whole)
    with tn.options(cpu=cpu):
        for key in (np.s_[:40, :40], np.s_[::2, ::2], np.s_[39::-1, :40], np.s_[:40, 39::-1]):
            found = np.asarray(gemm(x1, x2, array[key], added=1))
            np.testing.assert_allclose(found, wanted + whole[key], rtol=1e-12, atol=1e-11)
        row = np.asarray(gemm(x1, x2, array[:1, :40], added=1))
        np.testing.assert_allclose(row, wanted + whole[:1, :40], rtol=1e-12, atol=1e-11)


STACKS = [
    ((70,), (70,), (70,), (3, 4, 5)),
    ((70,), (70,), (), (8, 3, 17)),
    ((2, 40), (40,), (2, 1), (2, 2, 2)),
    ((5,), (), (5,), (9, 20, 33)),
    ((100,), (), (), (3, 3, 3)),
    ((), (66,), (66,), (3, 3, 1)),
    ((4, 1), (3,), (4, 3), (30, 5, 40)),
    ((3,), (3,), (3,), (1, 7, 4)),
    ((0,), (1,), (0,), (2, 3, 2)),
    ((65,), (65,), (65,), (4, 0, 3)),
]
"""The stacks of both operands and of what is added, and the lengths (m, k, n)."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "native"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("number", range(len(STACKS)))
def test_stacks_are_scaled_and_added(number: int, dtype: str, cpu: str) -> None:
    kind, random = np.dtype(dtype), np.random.default_rng(number)
    forms = list(product("NTCJ" if kind.kind == "c" else "NT", repeat=2))

    def made(*shape: int) -> np.ndarray:
        values = random.standard_normal((2, *shape))
        return (values[0] + 1j * values[1] if kind.kind == "c" else values[0]).astype(kind)

    one, other, third, (m, k, n) = STACKS[number]
    first, second = forms[(3 * number + 1) % len(forms)]
    x1 = made(*one, *((k, m) if first in "TC" else (m, k)))
    x2 = made(*other, *((n, k) if second in "TC" else (k, n)))
    x3 = made(*third, m, n)
    inputs = [tn.asarray(x) for x in (x1, x2, x3)]
    left, right = STACKED_FORMS[first](x1), STACKED_FORMS[second](x2)
    bound = abs(left) @ abs(right) + 3 * abs(x3)
    with tn.options(cpu=cpu):
        added = np.asarray(gemm(*inputs, 3, forms=first + second, added=-1))
        scaled = np.asarray(gemm(*inputs[:2], 2.5, forms=first + second, sign=-1))
    assert_near(added, (left @ right - 3 * x3).astype(kind), bound, k)
    assert_near(scaled, (-2.5 * (left @ right)).astype(kind), 2.5 * bound, k)


def test_number_of_threads_changes_no_bit() -> None:
    x1, x2, x3 = (tn.asarray(matrix(401, 401, np.dtype("float32"), seed)) for seed in (1, 2, 3))
    found = []
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            found.append(np.asarray(gemm(x1, x2, 2.0, x3, added=1)))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_blas_takes_scale_addend_and_conjugate_transpose_as_flags() -> None:
    by_rows, by_columns = (
        ProductOperand((64, 64), strides, COMPLEX128) for strides in ((1024, 16), (16, 1024))
    )
    scaled, first, both = ScaledProduct(by_rows), (True, False), (True, True)
    step = scaled_step(by_columns, by_rows, scaled, width=16, conjugated=first)
    assert step.kind == "library call"
    assert "conj(x1)" in str(step.kernel)
    assert step.reads_third
    # BLAS conjugates only what it transposes
    assert scaled_step(by_rows, by_rows, scaled, width=16, conjugated=first).kind == "packet code"
    step = scaled_step(by_columns, by_rows, scaled, width=16, conjugated=both)
    assert "conj(x1 @ x2)" in str(step.kernel)


def test_register_of_64_bytes_means_packet_code_that_reads_the_addend() -> None:
    x = ProductOperand((512, 512), (4096, 8), FLOAT64)
    step = scaled_step(x, x, ScaledProduct(third=x), width=64)
    assert step.kind == "packet code"
    assert step.reads_third
    assert dict(zip(step.kernel.sizes, step.sizes, strict=True))["row of x3"] == 4096


@pytest.mark.parametrize("threads", [1, 7])
def test_adding_in_place_gives_the_same_bits(threads: int) -> None:
    x1, x2 = (tn.asarray(matrix(401, 97, np.dtype("float32"), seed)) for seed in (1, 2))
    before = matrix(401, 401, np.dtype("float32"), 3)
    target = tn.asarray(before)
    with tn.options(threads=threads):
        for _ in range(3):
            apart = np.asarray(gemm(x1, x2, 2.0, tn.asarray(before), forms="NT", added=1))
            target += 2.0 * (x1 @ x2.T)
            before = np.array(target)
            assert np.array_equal(before, apart)
