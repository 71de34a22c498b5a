"""Derivatives of decompositions: real and complex, of any shape, at singular and equal values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import UnsupportedError
from tenfold.testing import check_gradients

L = tn.linalg
SHAPES = ((3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3))
SQUARES = ((3, 3), (2, 3, 3))


def adjoint(x: Any) -> Any:
    return tn.conj(tn.matrix_transpose(x))


def projector(x: Any) -> Any:
    """The first column as a projector, which has no phase."""
    return x[..., :1] @ adjoint(x[..., :1])


def svd_without_phases(x: Any) -> list[Any]:
    u, s, vh = L.svd(x, full_matrices=x.shape[-1] == x.shape[-2])
    scaled = (u * tn.exp(s)[..., None, :]) @ vh
    return [scaled, s, tn.abs(u), projector(u), projector(adjoint(vh))]


def eig_without_phases(x: Any) -> list[Any]:
    values, vectors = L.eig(x)
    return [values, tn.abs(vectors), projector(vectors)]


def eigh_without_phases(x: Any) -> list[Any]:
    values, vectors = L.eigh(x + adjoint(x))
    return [values, tn.abs(vectors), projector(vectors)]


def banded(x: Any) -> Any:
    return L.solve_banded((1, x.shape[-2] - 2), x, x[..., 0, :, None])


RECTANGULAR: dict[str, Callable[[Any], Any]] = {
    "qr": lambda x: list(L.qr(x)),
    "lu": lambda x: list(L.lu(x)[1:]),
    "polar": lambda x: list(L.polar(x)),
    "svd": svd_without_phases,
    "svdvals": L.svdvals,
    "pinv": L.pinv,
    "lstsq": lambda x: [L.lstsq(x, tn.cos(x)).x, L.lstsq(x, tn.cos(x)).residuals],
    "solve_banded": banded,
}
SQUARE: dict[str, Callable[[Any], Any]] = {
    "det": L.det,
    "inv": L.inv,
    "slogdet": lambda x: list(L.slogdet(x))[tn.isdtype(x.dtype, "real floating") :],
    "eig": eig_without_phases,
    "eigvals": L.eigvals,
    "eigh": eigh_without_phases,
    "eigvalsh": lambda x: L.eigvalsh(x + adjoint(x)),
    "cholesky": lambda x: L.cholesky(x @ adjoint(x) + 3 * tn.eye(x.shape[-1]), upper=True),
    "cho_solve": lambda x: L.cho_solve(L.cho_factor(x @ adjoint(x) + tn.eye(x.shape[-1])), x),
    "lu_solve": lambda x: L.lu_solve(L.lu_factor(x), tn.sin(x), trans=2),
    "sqrtm": lambda x: L.sqrtm(x @ adjoint(x) + x + 9 * tn.eye(x.shape[-1])),
    "expm": L.expm,
    "matrix_power": lambda x: [L.matrix_power(x, 3), L.matrix_power(x, -2)],
    "cond-fro": lambda x: L.cond(x, "fro"),
    "cond-2": lambda x: L.cond(x, 2),
    "cond-inf": lambda x: L.cond(x, -np.inf),
}
CASES = [
    *((name, f, shape) for name, f in RECTANGULAR.items() for shape in SHAPES),
    *((name, f, shape) for name, f in SQUARE.items() for shape in SQUARES),
]


def matrix(shape: tuple[int, ...], *, is_complex: bool) -> np.ndarray:
    rng = np.random.default_rng(7)
    x = rng.normal(size=shape) + 2 * np.eye(*shape[-2:])
    return x + 1j * rng.normal(size=shape) if is_complex else x


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize(
    ("f", "shape"), [pytest.param(f, shape, id=f"{name}-{shape}") for name, f, shape in CASES]
)
def test_decompositions_equal_differences(f: Any, shape: Any, *, is_complex: bool) -> None:
    check_gradients(f, matrix(shape, is_complex=is_complex), order=2)


def leaves(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (list, tuple)) else [result]


def loss_of(f: Any) -> Any:
    return lambda x: tn.sum(tn.stack([tn.sum(tn.abs2(z)) for z in leaves(f(x))]))


@pytest.mark.parametrize(
    "f", [pytest.param(f, id=name) for name, f in {**RECTANGULAR, **SQUARE}.items()]
)
def test_decompositions_are_batched_and_traced_and_single(f: Any) -> None:
    stack = matrix((3, 3, 3), is_complex=False)
    gradient = tn.grad(loss_of(f))
    alone = np.stack([np.asarray(gradient(tn.asarray(x))) for x in stack])
    scale = np.abs(alone).max()
    together = np.asarray(tn.vmap(gradient)(tn.asarray(stack)))
    assert np.allclose(together, alone, rtol=0, atol=1e-9 * scale)
    traced = np.asarray(tn.function(gradient)(tn.asarray(stack)))
    assert np.allclose(traced, alone, rtol=0, atol=1e-9 * scale)
    single = gradient(tn.asarray(stack.astype(np.float32)))
    assert single.dtype == tn.float32
    assert np.allclose(np.asarray(single), alone, rtol=0, atol=2e-3 * scale)


# equal and zero values


EQUAL = np.diag([2.0, 2.0, 1.0])


@pytest.mark.parametrize(
    "values",
    [
        lambda x: L.svd(x)[1],
        lambda x: L.svd(x, full_matrices=False).S,
        L.svdvals,
        lambda x: L.eigh(x)[0],
        L.eigvalsh,
        lambda x: tn.real(L.eigvals(x)),
    ],
)
def test_values_that_are_equal_have_gradients(values: Any) -> None:
    gradient = tn.grad(lambda x: tn.sum(values(x) ** 2))(tn.asarray(EQUAL))
    assert np.allclose(np.asarray(gradient), 2 * EQUAL)
    zero = tn.grad(lambda x: tn.sum(values(x)))(tn.zeros((3, 3)))
    assert np.isfinite(np.asarray(zero)).all()


@pytest.mark.parametrize("vectors", [lambda x: L.svd(x)[0], lambda x: L.eigh(x)[1]])
def test_vectors_of_equal_values_have_no_finite_gradient(vectors: Any) -> None:
    gradient = tn.grad(lambda x: tn.sum(tn.sin(vectors(x)) * EQUAL[::-1]))(tn.asarray(EQUAL))
    assert not np.isfinite(np.asarray(gradient)).all()


def test_values_of_a_wide_svd_have_gradients_and_free_vectors_have_not() -> None:
    x = matrix((3, 2), is_complex=False)
    check_gradients(lambda x: L.svd(x)[1], x)
    check_gradients(lambda x: L.svd(x)[2], x)
    with pytest.raises(UnsupportedError, match=r"full_matrices=False"):
        tn.grad(lambda x: tn.sum(L.svd(x)[0]))(x)
    check_gradients(lambda x: L.qr(x, mode="complete").R, x)
    with pytest.raises(UnsupportedError, match=r"mode='reduced'"):
        tn.grad(lambda x: tn.sum(L.qr(x, mode="complete").Q))(x)


SINGULAR = {
    "zeros": np.zeros((3, 3)),
    "ones": np.ones((3, 3)),
    "rank 1": np.outer([1.0, 2.0, 3.0], [3.0, 5.0, 7.0]),
    "rank 2": np.arange(9.0).reshape(3, 3),
    "diagonal": np.diag([1.0, 2.0, 0.0]),
    "identity": np.eye(3),
    "stack": np.stack([np.eye(3), np.ones((3, 3)), np.arange(9.0).reshape(3, 3)]),
    "complex": np.outer([1, 2j, 1], [1, 1, 1j]) + np.diag([1, 0, 0]),
    "one": np.zeros((1, 1)),
}


def minors(x: np.ndarray) -> np.ndarray:
    """The cofactors by their definition, of one matrix."""
    n, result = len(x), np.empty_like(x)
    for i, j in np.ndindex(n, n):
        part = np.delete(np.delete(x, i, 0), j, 1)
        value = part[0, 0] * part[1, 1] - part[0, 1] * part[1, 0] if n == 3 else 1
        result[i, j] = (-1) ** (i + j) * value
    return result


@pytest.mark.parametrize("name", SINGULAR)
def test_determinant_has_its_cofactors_at_any_rank(name: str) -> None:
    x = SINGULAR[name]
    check_gradients(L.det, x, order=2)
    found = np.asarray(tn.vjp(L.det, tn.asarray(x))[1](tn.ones(x.shape[:-2], dtype=x.dtype))[0])
    wanted = np.stack([minors(each) for each in x.reshape(-1, *x.shape[-2:])]).reshape(x.shape)
    assert np.allclose(found, np.conj(wanted), rtol=0, atol=1e-13)
    if name in ("zeros", "ones", "rank 1"):
        assert not found.any()


def test_determinant_of_scaled_rows_has_digits_in_each_cofactor() -> None:
    x = np.diag([1e10, 1e-10, 1e-10, 1e300])
    found = np.asarray(tn.grad(L.det)(tn.asarray(x)))
    assert np.allclose(np.diagonal(found), [1e280, 1e300, 1e300, 1e-10], rtol=1e-14)


def test_pseudo_inverse_has_gradients_at_equal_values_and_lower_rank() -> None:
    check_gradients(L.pinv, np.eye(3), order=2)
    rng = np.random.default_rng(0)
    check_gradients(lambda a, b: L.pinv(a @ b), rng.normal(size=(4, 2)), rng.normal(size=(2, 3)))


def test_deviation_of_equal_numbers_has_gradient_zero() -> None:
    assert tn.grad(tn.std)(tn.ones(3)).tolist() == [0.0, 0.0, 0.0]
    rows = tn.asarray([[1.0, 1.0], [1.0, 2.0]])
    assert tn.grad(lambda x: tn.sum(tn.std(x, axis=1)))(rows).tolist() == [[0, 0], [-0.5, 0.5]]
    assert tn.grad(tn.std)(tn.ones(3, dtype=tn.float16)).tolist() == [0.0, 0.0, 0.0]


def test_factor_of_cholesky_has_a_symmetric_gradient() -> None:
    x = tn.asarray([[2.0, 1.0], [1.0, 3.0]])
    gradient = np.asarray(tn.grad(lambda x: tn.sum(tn.sin(L.cholesky(x))))(x))
    assert np.array_equal(gradient, gradient.T)
    component = tn.grad(lambda x: tn.assume(x, "symmetric")[0, 1])(x)
    assert component.tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_segment_products_are_exact_with_zeros() -> None:
    ids = np.asarray([2, 0, 2, 2, 1, 0, 2])
    x = np.asarray([0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 5.0])
    found = tn.grad(lambda x: tn.sum(tn.segment_prod(x, ids, 4)))(tn.asarray(x))
    assert found.tolist() == [0.0, 4.0, 0.0, 0.0, 1.0, 2.0, 0.0]
    check_gradients(lambda x: tn.segment_prod(x, ids, 4), x, order=2)


# conjugate gradients

ROWS = np.random.default_rng(0).normal(size=(5, 5))
DEFINITE = ROWS @ ROWS.T + 5 * np.eye(5)
SIDE = np.linspace(-1, 2, 5)


def solution(matrix: Any, side: Any, **options: Any) -> Any:
    return L.cg(matrix, side, rtol=1e-14, **options).x


def test_conjugate_gradients_have_the_derivative_of_a_solve() -> None:
    def f(x: Any, side: Any) -> Any:
        return solution((x + adjoint(x)) / 2, side)

    check_gradients(f, DEFINITE, SIDE, order=2)
    check_gradients(f, DEFINITE + 1j * (ROWS - ROWS.T), SIDE + 2j, order=2)
    gradient = tn.grad(lambda side, x: tn.sum(solution(x, side) ** 2))
    sides = tn.asarray(np.stack([SIDE, SIDE[::-1]]))
    alone = [gradient(side, tn.asarray(DEFINITE)).tolist() for side in sides]
    together = tn.vmap(gradient, in_axes=(0, None))(sides, tn.asarray(DEFINITE))
    assert np.allclose(together.tolist(), alone, rtol=1e-12)
    traced = tn.function(gradient)(sides[0], tn.asarray(DEFINITE))
    assert np.allclose(traced.tolist(), alone[0], rtol=1e-12)


def test_conjugate_gradients_have_derivatives_by_what_a_function_reads() -> None:
    def f(diagonal: Any, side: Any) -> Any:
        def times(x: Any) -> Any:
            return diagonal * x - (tn.roll(x, 1) + tn.roll(x, -1)) / 2

        guess = tn.ones(5) * diagonal
        return solution(times, side, x0=guess, M=lambda x: x / diagonal)

    check_gradients(f, np.linspace(3, 4, 5), SIDE, order=2)


@pytest.mark.parametrize("is_function", [False, True])
def test_conjugate_gradients_have_derivatives_by_stored_elements(*, is_function: bool) -> None:
    def f(data: Any) -> Any:
        x = tn.csr(data, [0, 1, 0, 1], [0, 2, 4], (2, 2))
        return tn.sum(solution((lambda y: x @ y) if is_function else x, tn.asarray([1.0, 2.0])))

    data = tn.asarray([2.0, -1.0, -1.0, 2.0])
    inverse = np.linalg.inv([[2.0, -1.0], [-1.0, 2.0]])
    wanted = -np.outer(inverse @ [1, 1], inverse @ [1, 2])
    assert np.allclose(tn.grad(f)(data).tolist(), wanted.reshape(-1), rtol=1e-12)
