"""What algebra must do, one test for each fact: an input, and what must be seen."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest

import tenfold as tn
from tenfold.inspect.profile import Profile

LENGTHS = (1, 7, 63, 64, 65, 129)


@pytest.fixture(autouse=True)
def on_the_processor() -> Iterator[None]:
    with tn.options(device="cpu"):
        yield


def randoms(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).random(shape)


def arrays(*shapes: tuple[int, ...]) -> list[tn.Array]:
    """Random arrays, each with other numbers."""
    return [tn.asarray(randoms(*shape, seed=i)) for i, shape in enumerate(shapes)]


def computed(*results: tn.Array) -> Profile:
    """The counters of computing arrays together."""
    with tn.profile() as p:
        tn.eval(*results)
        for result in results:
            result.wait()
    return p


def way_of(array: tn.Array) -> str:
    """What explain says of how a product is computed."""
    (found,) = re.findall(r"(generated code|BLAS \w+): ", array.explain("scheduled"))
    return str(found)


def test_adding_a_scaled_product_is_one_gemm_into_the_target() -> None:
    a, b, y = arrays((40, 30), (30, 50), (40, 50))
    expected = np.asarray(y) + 2 * (np.asarray(a) @ np.asarray(b))
    y += 2 * (a @ b)
    p = computed(y)
    assert (p.calls, p.kernels, p.temporaries) == (1, 0, 0)
    np.testing.assert_allclose(np.asarray(y), expected, 1e-13)


def test_multiplying_by_a_product_equals_numpy() -> None:
    a, b, y = arrays((40, 30), (30, 50), (40, 50))
    expected = np.asarray(y) * (np.asarray(a) @ np.asarray(b))
    y *= a @ b
    np.testing.assert_allclose(np.asarray(y), expected, 1e-13)


def test_a_product_in_a_sum_is_accumulated_into_the_target() -> None:
    a, b, c, d, e = arrays(*[(50, 50)] * 5)
    na, nb, nc, nd, ne = (np.asarray(x) for x in (a, b, c, d, e))
    for total, expected in ((a + b @ c + d + e, na + nb @ nc + nd + ne), (b @ c + a, nb @ nc + na)):
        p = computed(total)
        assert (p.calls, p.temporaries) == (1, 0)
        np.testing.assert_allclose(np.asarray(total), expected, 1e-13)


def test_a_sum_of_three_products_is_three_gemms_without_temporaries() -> None:
    a, b, c, d, e, f = arrays(*[(50, 50)] * 6)
    na, nb, nc, nd, ne, nf = (np.asarray(x) for x in (a, b, c, d, e, f))
    total = a @ b + c @ d - e @ f
    p = computed(total)
    assert (p.calls, p.kernels, p.temporaries) == (3, 0, 0)
    np.testing.assert_allclose(np.asarray(total), na @ nb + nc @ nd - ne @ nf, 1e-13)


def test_transpose_conjugate_and_scale_are_flags_of_one_gemm() -> None:
    a, b = randoms(30, 20) + 1j * randoms(30, 20, seed=1), randoms(30, 25) + 1j
    product = tn.conj(tn.asarray(a)).T @ (3.0 * tn.asarray(b))
    p = computed(product)
    assert (p.calls, p.kernels, p.temporaries, p.copies) == (1, 0, 0, 0)
    np.testing.assert_allclose(np.asarray(product), a.conj().T @ (3.0 * b), 1e-13)
    product = tn.conj(tn.asarray(a)).T @ tn.conj((3.0 - 1j) * tn.asarray(b))
    p = computed(product)
    assert (p.calls, p.kernels, p.temporaries, p.copies) == (1, 0, 0, 0)
    np.testing.assert_allclose(np.asarray(product), a.conj().T @ np.conj((3.0 - 1j) * b), 1e-13)


def test_a_chain_is_multiplied_where_it_is_cheapest() -> None:
    a, b, u = arrays((512, 512), (512, 512), (512,))
    # outside the assertions: pytest holds on to each part of what stands in one
    left = a @ b @ u
    assert computed(left).multiply_adds == 524288
    a, b, c = arrays((1000, 10), (10, 1000), (1000, 10))
    mixed = a @ b @ c
    assert computed(mixed).multiply_adds == 200000


def test_the_trace_of_a_product_needs_its_diagonal_only() -> None:
    a, b = arrays((64, 64), (64, 64))
    trace = tn.trace(a @ b)
    p = computed(trace)
    assert (p.multiply_adds, p.temporaries, p.copies) == (4096, 0, 0)
    np.testing.assert_allclose(trace.item(), np.trace(np.asarray(a) @ np.asarray(b)), 1e-13)


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3", "x86-64-v2"])
def test_explain_says_which_products_are_generated_code_with_the_same_values(cpu: str) -> None:
    ways = {}
    for n in (3, 8, 64, 512):
        a, b = np.round(randoms(n, n) * 8), np.round(randoms(n, n, seed=1) * 8)
        with tn.options(cpu=cpu):
            product = tn.asarray(a) @ tn.asarray(b)
            ways[n] = way_of(product)
            np.testing.assert_array_equal(np.asarray(product), a @ b)
    assert (ways[3], ways[8]) == ("generated code", "generated code")
    if cpu == "x86-64-v3":
        assert (ways[64], ways[512]) == ("generated code", "BLAS dgemm")
    if cpu == "x86-64-v2":
        assert (ways[64], ways[512]) == ("BLAS dgemm", "BLAS dgemm")


def test_products_of_every_shape_equal_numpy() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    u, v = np.asarray([2.0, 5.0]), np.asarray([1.0, -2.0, 3.0])
    for first, second in ((x, v), (v, y), (v, v)):
        product = tn.asarray(first) @ tn.asarray(second)
        np.testing.assert_array_equal(np.asarray(product), first @ second, strict=True)
    outer = tn.outer(tn.asarray(u), tn.asarray(v))
    np.testing.assert_array_equal(np.asarray(outer), np.outer(u, v), strict=True)


def test_a_stack_of_products_is_one_launch_and_equals_einsum() -> None:
    x, y = arrays((4, 2, 3), (4, 3, 5))
    product = x @ y
    assert computed(product).launches == 1
    summed = tn.einsum("bij,bjk->bik", x, y)
    assert computed(summed).launches == 1
    expected = np.einsum("bij,bjk->bik", np.asarray(x), np.asarray(y))
    np.testing.assert_allclose(np.asarray(product), expected, 1e-14)
    np.testing.assert_array_equal(np.asarray(summed), np.asarray(product))


def test_two_matrices_are_multiplied_pair_by_pair() -> None:
    x, y = tn.asarray([[1, 2], [6, 5]]), tn.asarray([[1, 2], [5, 6]])
    assert tn.einsum("ij,ij->", x, y).item() == 65
    assert tn.tensordot(x, y).item() == 65
    assert tn.vecdot(tn.reshape(x, (-1,)), tn.reshape(y, (-1,))).item() == 65


def test_odd_sizes_are_within_their_bound() -> None:
    for m, n, k in itertools.product(LENGTHS, repeat=3):
        x, y = randoms(m, k) - 0.5, randoms(k, n, seed=1) - 0.5
        exact = x.astype(np.longdouble) @ y.astype(np.longdouble)
        error = np.max(np.abs(np.asarray(tn.asarray(x) @ tn.asarray(y)) - exact))
        assert error < 1e-12 * k, (m, n, k)


def test_a_solution_solves() -> None:
    a, b = randoms(60, 60) + 5 * np.eye(60), randoms(60, 4, seed=1)
    found = np.asarray(tn.linalg.solve(tn.asarray(a), tn.asarray(b)))
    assert np.linalg.norm(a @ found - b) < 1e-9


def test_two_solves_of_one_matrix_factor_it_once() -> None:
    n = 60
    a = tn.asarray(randoms(n, n) + 5 * np.eye(n))
    b, c = arrays((n,), (n,))
    alone = computed(tn.linalg.solve(a, b)).multiply_adds
    both = computed(tn.linalg.solve(a, b), tn.linalg.solve(a, c)).multiply_adds
    substitution = n * n
    assert both == alone + substitution


def test_the_plan_of_an_inverse_times_a_matrix_is_a_solve() -> None:
    a, b = arrays((30, 30), (30, 4))
    text = (tn.linalg.inv(a) @ b).explain("scheduled")
    assert "call: solve" in text
    assert "inv" not in text
    with tn.options(reassociate=False):
        assert "call: inv" in (tn.linalg.inv(a) @ b).explain("scheduled")


def test_factors_multiply_to_what_was_factored() -> None:
    a = randoms(20, 20) + 5 * np.eye(20)
    symmetric = a @ a.T
    x, y = tn.asarray(a), tn.asarray(symmetric)
    lower = tn.linalg.cholesky(y)
    q, r = tn.linalg.qr(x)
    u, s, vh = tn.linalg.svd(x)
    values, vectors = tn.linalg.eigh(y)
    p, low, up = tn.linalg.lu(x)
    for product, whole in (
        (lower @ lower.T, symmetric),
        (q @ r, a),
        ((u * s) @ vh, a),
        ((vectors * values) @ vectors.T, symmetric),
        (p @ low @ up, a),
    ):
        np.testing.assert_allclose(np.asarray(product), whole, 1e-10, 1e-10)
