"""syrk and trmm on the cpu device: every half, form and dtype, on every width of register."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.runtime.test_accumulated_products import FORMS, assert_near, matrix

import tenfold as tn
from product_launch import scaled_step
from tenfold.core.structure import HALF_OF, Half, Structure
from tenfold.dtypes import FLOAT64
from tenfold.ops.syrk import half_of_forms, resolve_triangle, syrk, trmm
from tenfold.schedule.product_forms import ProductOperand, ScaledProduct

DTYPES = ["float32", "float64", "complex64", "complex128"]
LENGTHS = [(5, 9), (65, 300), (193, 7), (0, 3)]
TRIANGLES = [*LENGTHS, (70, 1), (1, 1)]


def forms_of(dtype: np.dtype) -> list[str]:
    letters = "NTCJ" if dtype.kind == "c" else "NT"
    return ["".join(pair) for pair in product(letters, repeat=2)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "native"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_times_its_own_transpose_is_exactly_symmetric(cpu: str, dtype: str) -> None:
    kind = np.dtype(dtype)
    forms = [each for each in forms_of(kind) if half_of_forms(each)]
    with tn.options(cpu=cpu):
        for number, (rows, columns) in enumerate(LENGTHS):
            form = forms[number % len(forms)]
            lengths = (rows, columns) if form[0] in "NJ" else (columns, rows)
            x = matrix(*lengths, kind, number)
            first, second = (FORMS[each](x) for each in form)
            found = np.asarray(syrk(tn.asarray(x), 2.5, forms=form, sign=-1))
            bound = 2.5 * (abs(first) @ abs(second))
            assert_near(found, (-2.5 * (first @ second)).astype(kind), bound, columns)
            mirror = found.T if half_of_forms(form) is Half.SYMMETRIC else found.conj().T
            assert np.array_equal(found, mirror)


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "native"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("number", range(len(TRIANGLES)))
def test_elements_beside_the_triangle_are_not_used(
    number: int, place: int, cpu: str, dtype: str
) -> None:
    kind = np.dtype(dtype)
    forms = forms_of(kind)
    with tn.options(cpu=cpu):
        for other, side in enumerate((Structure.LOWER, Structure.UPPER)):
            form = forms[(5 * number + 2 * place + other) % len(forms)]
            check_triangle(*TRIANGLES[number], place, side, form, kind)


def check_triangle(
    order: int, lines: int, place: int, side: Structure, form: str, dtype: np.dtype
) -> None:
    keep = np.tril if side == Structure.LOWER else np.triu
    triangle = matrix(order, order, dtype, 1)
    holey = triangle.copy()
    outside = keep(np.ones((order, order))) == 0
    kept = keep(triangle)
    if form[place] in "TC":
        outside, kept = outside.T, keep(triangle.T).T
    holey[outside] = np.nan
    lengths = (order, lines) if (place == 0) == (form[1 - place] in "NJ") else (lines, order)
    other = matrix(*lengths, dtype, 2)
    given: list[Any] = [None, None]
    given[place], given[1 - place] = holey, other
    plain = list(given)
    plain[place] = kept
    first, second = (FORMS[each](x) for each, x in zip(form, plain, strict=True))
    third = matrix(len(first), second.shape[1], dtype, 3)
    half = HALF_OF[side, place]
    arrays = [tn.asarray(x) for x in given]
    found = np.asarray(trmm(*arrays, half=half, forms=form))
    bound = abs(first) @ abs(second)
    assert_near(found, first @ second, bound, order)
    added = np.asarray(trmm(*arrays, 2.5, tn.asarray(third), 3, half=half, forms=form, added=-1))
    wanted = (2.5 * (first @ second) - 3 * third).astype(dtype)
    assert_near(added, wanted, 2.5 * bound + 3 * abs(third), order)
    if lines == 1:
        forms = "".join(
            "J" if each in "CJ" and i != place else each if i == place else "N"
            for i, each in enumerate(form)
        )
        arrays[1 - place] = tn.asarray(other.ravel())
        found = np.asarray(trmm(*arrays, half=half, forms=forms))
        assert_near(found, (first @ second).ravel(), bound.ravel(), order)


@pytest.mark.parametrize(
    "half", [Half.SYMMETRIC, Half.FIRST_LOWER, Half.FIRST_UPPER, Half.SECOND_UPPER], ids=str
)
def test_number_of_threads_changes_no_bit(half: Half) -> None:
    x, y = (tn.asarray(matrix(401, 401, np.dtype("complex64"), seed)) for seed in (1, 2))
    found = []
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            made = syrk(x, forms="NC") if half is Half.SYMMETRIC else trmm(x, y, half=half)
            found.append(np.asarray(made))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("step", [np.s_[::2, ::3], np.s_[::-1, 5:], np.s_[::2, ::-1]])
def test_operands_may_have_any_strides(step: Any) -> None:
    whole = matrix(260, 300, np.dtype("float64"), 4)
    x, plain = tn.asarray(whole)[step], whole[step]
    np.testing.assert_allclose(np.asarray(syrk(x)), plain @ plain.T, rtol=1e-12, atol=1e-11)
    square = tn.asarray(whole)[step][:80, :80]
    found = np.asarray(trmm(square, x[:80], half=Half.FIRST_UPPER))
    wanted = np.triu(plain[:80, :80]) @ plain[:80]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-11)


def test_side_that_only_the_values_tell_is_found() -> None:
    x, y = matrix(70, 70, np.dtype("float64"), 1), matrix(70, 30, np.dtype("float64"), 2)
    half, sparse = Half.FIRST_TRIANGULAR, np.eye(70)
    sparse[50, 3] = 2
    for given in (np.tril(x), np.triu(x), np.eye(70), sparse, sparse.T, x):
        for form in "NT":
            array = tn.asarray(given)
            found = np.asarray(trmm(array, tn.asarray(y), half=half, forms=form + "N"))
            wanted = (given if form == "N" else given.T) @ y
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-11)
    found = [resolve_triangle(half, [each]) for each in (np.tril(x), np.triu(x), sparse.T, x)]
    assert found == [Half.FIRST_LOWER, Half.FIRST_UPPER, Half.FIRST_UPPER, Half.NONE]


@pytest.mark.parametrize("threads", [1, 7])
def test_triangle_is_accumulated_in_place(threads: int) -> None:
    x, y = (tn.asarray(matrix(201, 201, np.dtype("float32"), seed)) for seed in (1, 2))
    before = matrix(201, 201, np.dtype("float32"), 3)
    target = tn.asarray(before)
    with tn.options(threads=threads):
        for _ in range(3):
            apart = np.asarray(trmm(x, y, 2.0, tn.asarray(before), added=1))
            target += 2.0 * (tn.tril(x) @ y)
            before = np.array(target)
            assert np.array_equal(before, apart)


def test_halves_are_packet_code_and_count_half() -> None:
    x = ProductOperand((512, 256), (2048, 8), FLOAT64)
    for width in (16, 32, 64):
        y = x._replace(shape=(256, 512), strides=(8, 2048))
        step = scaled_step(x, y, ScaledProduct(half=Half.SYMMETRIC), width=width)
        assert step.kind == "packet code"
        assert step.multiply_adds == 512 * 513 // 2 * 256
        assert "of a symmetric result the lower half" in str(step)
