"""Products of which half is known: counted multiply-adds, values within a running-error bound."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold.linear_algebra.matrix_polynomial import (
    ONE,
    MatrixFactor,
    Monomial,
    pair_transposes,
    transposed,
)

N = 100
WHOLE, TRIANGLE = N**3, N * (N + 1) // 2
HALF = TRIANGLE * N


def matrices(dtype: str = "float64") -> list[np.ndarray]:
    random = np.random.default_rng(7)
    values = random.standard_normal((3, N, N)) + 1j * random.standard_normal((3, N, N))
    return list((values if dtype.startswith("c") else values.real).astype(dtype))


Written = Callable[[Any, Any, Any, Any], Any]


def squared(x: Any) -> Any:
    return x @ x.T


COUNTS: dict[str, tuple[Written, int]] = {
    "syrk": (lambda a, b, c, n: a @ a.T, HALF),
    "syrk of columns": (lambda a, b, c, n: a.T @ a, HALF),
    "herk": (lambda a, b, c, n: n.conj(a).T @ a, HALF),
    "syrk in a sum": (lambda a, b, c, n: c + 2 * a @ a.T, HALF),
    "two syrk in a sum": (lambda a, b, c, n: a @ a.T - c + b.T @ b, 2 * HALF),
    "syrk of a sum": (lambda a, b, c, n: (a - b) @ (a - b).T, HALF),
    "syrk of one sum": (lambda a, b, c, n: squared(a - 2 * b), HALF),
    "syrk beside a product": (lambda a, b, c, n: a @ a.T + b @ c, HALF + WHOLE),
    "syrk in a chain": (lambda a, b, c, n: a @ a.T @ b, HALF + WHOLE),
    "chain with its own transpose": (lambda a, b, c, n: a @ b @ b.T @ a.T, WHOLE + HALF),
    "longer chain": (lambda a, b, c, n: a @ b @ c @ c.T @ b.T @ a.T, 2 * WHOLE + HALF),
    "syrk multiplied out": (
        lambda a, b, c, n: a @ a.T + a @ b.T + b @ a.T + b @ b.T,
        HALF,
    ),
    "syr2k": (lambda a, b, c, n: a @ b.T + b @ a.T, WHOLE),
    "her2k": (lambda a, b, c, n: a @ n.conj(b).T + b @ n.conj(a).T, WHOLE),
    "syr2k of one product": (lambda a, b, c, n: a @ b + (a @ b).T, WHOLE),
    "syr2k in a sum": (lambda a, b, c, n: c - 0.5 * (a.T @ b + b.T @ a), WHOLE),
    "lower triangle": (lambda a, b, c, n: n.tril(a) @ b, HALF),
    "upper triangle": (lambda a, b, c, n: n.triu(a) @ b, HALF),
    "triangle behind": (lambda a, b, c, n: b @ n.tril(a), HALF),
    "transposed triangle": (lambda a, b, c, n: n.conj(n.triu(a)).T @ b, HALF),
    "triangle in a sum": (lambda a, b, c, n: 3 * (b @ n.triu(a).T) - c, HALF),
    "triangle in a chain": (lambda a, b, c, n: n.tril(a) @ b @ c, HALF + WHOLE),
    "two triangles": (lambda a, b, c, n: n.tril(a) @ b @ n.triu(c), 2 * HALF),
    "triangle with its transpose": (lambda a, b, c, n: n.tril(a) @ n.tril(a).T, HALF),
    "row of a syrk": (lambda a, b, c, n: (a @ a.T)[3], N * N),
    "column of a trmm": (lambda a, b, c, n: (n.tril(a) @ b)[:, 3], TRIANGLE),
    "row of a syr2k": (lambda a, b, c, n: (a @ b.T + b @ a.T)[3], 2 * N * N),
    "row of a scaled product": (lambda a, b, c, n: (2.5 * (a @ b))[3], N * N),
    "row of a map of a syrk": (lambda a, b, c, n: abs(a @ a.T)[3], N * N),
    "trace of a syrk": (lambda a, b, c, n: n.trace(a @ a.T), N * N),
    "sum of a syrk": (lambda a, b, c, n: n.sum(c + 2 * a @ a.T, axis=0), N * N),
    "syrk times a vector": (lambda a, b, c, n: a @ a.T @ b[0], 2 * N * N),
    "triangle times a vector": (lambda a, b, c, n: n.tril(a) @ b[0], TRIANGLE),
    "transposed triangle times a vector": (lambda a, b, c, n: n.triu(a).T @ b[0], TRIANGLE),
    "vector times a triangle": (lambda a, b, c, n: 2 * (b[:, 1] @ n.triu(a)) - c[0], TRIANGLE),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("name", COUNTS)
def test_half_that_is_known_is_not_computed(name: str, dtype: str) -> None:
    written, multiply_adds = COUNTS[name]
    values = matrices(dtype)
    with tn.profile() as p:
        found = np.asarray(written(*map(tn.asarray, values), tn))
    wanted = written(*values, np)
    if name != "herk" or dtype.startswith("c"):
        assert p.multiply_adds == multiply_adds
    largest, unit = abs(wanted).max(), np.finfo(found.dtype).eps
    assert found.dtype == wanted.dtype
    assert np.all(abs(found - wanted) <= 64 * N * unit * max(largest, 1))


@pytest.mark.parametrize("name", ["syrk", "syr2k", "lower triangle", "syrk in a chain"])
def test_products_are_computed_whole_without_reassociation(name: str) -> None:
    written, _ = COUNTS[name]
    with tn.options(reassociate=False), tn.profile() as p:
        written(*map(tn.asarray, matrices()), tn).wait()
    assert p.multiply_adds % WHOLE == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_symmetric_results_are_exactly_symmetric(dtype: str) -> None:
    a, b, _ = matrices(dtype)
    x, y = tn.asarray(a), tn.asarray(b)
    for made in (x @ x.T, 1.7 * x.T @ x, x @ y.T + y @ x.T, x @ y @ y.T @ x.T):
        found = np.asarray(made)
        assert np.array_equal(found, found.T)
    for made in (x @ tn.conj(x).T, tn.conj(x).T @ x * 1.7, x @ tn.conj(y).T + y @ tn.conj(x).T):
        found = np.asarray(made)
        assert np.array_equal(found, found.conj().T)


def test_declared_triangle_is_multiplied_as_one_whichever_way_it_lies() -> None:
    a, b, _ = matrices()
    for triangle in (np.tril(a), np.triu(a)):
        for written in (lambda x, y: x @ y, lambda x, y: y @ x.T, lambda x, y: y - 2 * (x.T @ y)):
            x = tn.assume(tn.asarray(triangle), "triangular")
            with tn.profile() as p:
                found = np.asarray(written(x, tn.asarray(b)))
            assert p.multiply_adds == HALF
            np.testing.assert_allclose(found, written(triangle, b), rtol=1e-11, atol=1e-11)


def test_elements_outside_a_triangle_may_be_anything() -> None:
    a, b, _ = matrices()
    holey = np.where(np.tril(np.ones((N, N))) > 0, a, np.nan)
    x, y = tn.asarray(holey), tn.asarray(b)
    np.testing.assert_allclose(np.asarray(tn.tril(x) @ y), np.tril(a) @ b, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(np.asarray(y @ tn.tril(x)), b @ np.tril(a), rtol=1e-11, atol=1e-11)


def test_loops_add_halves_with_other_numbers_and_one_plan() -> None:
    a, b, start = matrices()
    x, y, total = tn.asarray(a), tn.asarray(b), tn.asarray(start)
    wanted = start
    with tn.options(tier=1):
        for turn, by in enumerate((0.3, 0.7, 1.9, 2.5)):
            with tn.profile() as p:
                total += by * (x @ x.T)
                total -= by * (tn.tril(x) @ y)
                total.wait()
            assert turn < 2 or p.compiles == 0
            assert p.multiply_adds == 2 * HALF
            wanted = wanted + by * (a @ a.T) - by * (np.tril(a) @ b)
    np.testing.assert_allclose(np.asarray(total), wanted, rtol=1e-11, atol=1e-10)


def random_expression(random: Random, leaves: list[Any], depth: int) -> Callable[..., Any]:
    """An expression of square matrices in which transposes and triangles are frequent."""
    if depth == 0:
        at, kind = random.randrange(len(leaves)), random.choice(["", "", "T", "tril", "triu", "C"])
        return {
            "": lambda m, n: m[at],
            "T": lambda m, n: m[at].T,
            "C": lambda m, n: n.conj(m[at]).T,
            "tril": lambda m, n: n.tril(m[at]),
            "triu": lambda m, n: n.triu(m[at]).T,
        }[kind]
    one = random_expression(random, leaves, random.randrange(depth))
    kind = random.random()
    if kind < 0.3:
        return lambda m, n: one(m, n) @ one(m, n).T
    if kind < 0.4:
        return lambda m, n: 0.5 * (n.conj(one(m, n)).T @ one(m, n))
    other = random_expression(random, leaves, random.randrange(depth))
    if kind < 0.5:
        return lambda m, n: one(m, n) @ other(m, n).T + other(m, n) @ one(m, n).T
    if kind < 0.8:
        return lambda m, n: one(m, n) @ other(m, n)
    sign = random.choice([1, -0.5])
    return lambda m, n: one(m, n) + (abs(sign) if n is Moduli else sign) * other(m, n)


@pytest.mark.exhaustive
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_random_expressions_have_the_values_of_numpy(device: str, part: Part) -> None:
    fewer, seeds = 0, part(range(60))
    for seed in seeds:
        random = Random(seed)
        leaves = [x / 8 for x in matrices("complex128" if seed % 3 == 0 else "float64")]
        written = random_expression(random, leaves, 3)
        wanted = written(leaves, np)
        bound = written([abs(x) for x in leaves], Moduli)
        with tn.options(device=device):
            arrays = [tn.asarray(x) for x in leaves]
            with tn.options(reassociate=False), tn.profile() as plain:
                np.asarray(written(arrays, tn))
            with tn.profile() as p:
                found = np.asarray(written(arrays, tn))
        assert p.multiply_adds <= plain.multiply_adds, seed
        fewer += p.multiply_adds < plain.multiply_adds
        assert np.all(abs(found - wanted) <= 1e-13 * (bound + 1)), seed
    assert fewer > len(seeds) / 4 or device == "reference"  # which counts nothing


class Moduli:
    """What bounds an expression: that of the moduli."""

    conj, tril, triu = staticmethod(np.conj), staticmethod(np.tril), staticmethod(np.triu)


def test_products_that_stand_often_are_paired_with_as_many_transposes() -> None:
    word = Monomial(ONE, (MatrixFactor((0, "N"), 8, 9), MatrixFactor((1, "N"), 9, 8)))
    (other,) = transposed((word,), "T", real=True)
    forms = [form for _, form in pair_transposes([word] * 40 + [other] * 30 + [word] * 5)]
    assert forms == ["T"] * 30 + [""] * 15


def test_product_that_is_its_own_transpose_is_paired_with_none() -> None:
    word = Monomial(ONE, (MatrixFactor((0, "N"), 8, 9), MatrixFactor((0, "T"), 9, 8)))
    assert [form for _, form in pair_transposes([word] * 3)] == [""] * 3
