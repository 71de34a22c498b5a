"""What rules make of inverses and solves: counts, values within bounds, failures, the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native

FLOATING = ["float32", "float64", "complex64", "complex128"]
DTYPE = pytest.mark.parametrize("dtype", FLOATING)


def numbers(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    random = np.random.default_rng((seed, *shape))
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        values = values + 4 * np.eye(shape[-1])
    return values.astype(dtype)


def counted(make: Callable[[], Any]) -> tuple[int, int]:
    """Return (calls, multiply-adds) of computing what is made."""
    made = make()
    with tn.profile() as p:
        tn.eval(*(made if isinstance(made, tuple) else (made,)))
        for each in made if isinstance(made, tuple) else (made,):
            each.wait()
    return p.calls, p.multiply_adds


def fired(x: tn.Array) -> str:
    return tn.explain(x, stage="optimised").splitlines()[0]


def adjoint(x: tn.Array) -> tn.Array:
    return tn.conj(x.mT) if str(x.dtype).startswith("complex") else x.mT


N = 30
LU, COLUMN = N**3 // 3, N * N


def test_two_solves_of_one_matrix_factor_it_once() -> None:
    a, b, c = (tn.asarray(numbers(s, seed=i)) for i, s in enumerate(((N, N), (N, 2), (N,))))
    solves = lambda: (tn.linalg.solve(a, b), tn.linalg.solve(a, c))  # noqa: E731
    assert counted(solves) == (3, LU + 3 * COLUMN)
    with tn.options(reassociate=False):
        assert counted(solves) == (2, 2 * LU + 3 * COLUMN)
    for x, right in zip(solves(), (b, c), strict=True):
        assert tn.linalg.norm(a @ x - right).item() < 1e-9


def test_inverse_determinant_and_solves_share_the_factors() -> None:
    a, b = tn.asarray(numbers((N, N))), tn.asarray(numbers((N,)))

    def all_of_it() -> tuple[tn.Array, ...]:
        sign, logarithm = tn.linalg.slogdet(a)
        inverse = tn.linalg.inv(a)
        return sign, logarithm, tn.linalg.det(a), inverse, tn.linalg.solve(a.mT, b)

    calls, work = counted(all_of_it)
    assert work == N**3 + COLUMN  # what an inverse takes, and one column
    assert calls == 6
    found = [np.asarray(each) for each in all_of_it()]
    x = np.asarray(a)
    expected = [*np.linalg.slogdet(x), np.linalg.det(x), np.linalg.inv(x)]
    expected.append(np.linalg.solve(x.T, np.asarray(b)))
    for mine, numpys in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, numpys, rtol=1e-9, atol=1e-12)


def test_a_product_with_an_inverse_is_a_solve() -> None:
    a, b = tn.asarray(numbers((N, N))), tn.asarray(numbers((N, 3)))
    assert counted(lambda: tn.linalg.inv(a) @ b) == (1, LU + 3 * COLUMN)
    assert counted(lambda: b.mT @ tn.linalg.inv(a)) == (1, LU + 3 * COLUMN)
    assert counted(lambda: tn.linalg.inv(a).mT @ b) == (1, LU + 3 * COLUMN)
    with tn.options(reassociate=False):
        assert counted(lambda: tn.linalg.inv(a) @ b) == (2, N**3 + 3 * COLUMN)
    assert tn.linalg.norm(a @ (tn.linalg.inv(a) @ b) - b).item() < 1e-9


def test_an_inverse_that_products_alone_read_is_never_made() -> None:
    a, b, c = (tn.asarray(numbers(s, seed=i)) for i, s in enumerate(((N, N), (N,), (N,))))

    def products() -> tuple[tn.Array, ...]:
        inverse = tn.linalg.inv(a)
        return inverse @ b, c @ inverse, inverse.mT @ c

    # the second and the third are the same
    assert counted(products) == (3, LU + 2 * COLUMN)


def test_a_named_inverse_is_made_only_by_the_second_evaluation_that_reads_it() -> None:
    a, b = tn.asarray(numbers((N, N))), tn.asarray(numbers((N,)))
    inverse = tn.linalg.inv(a)
    assert counted(lambda: inverse @ b) == counted(lambda: tn.linalg.inv(a) @ b)
    assert counted(lambda: inverse @ b) == (2, N**3 + COLUMN)


def test_the_right_side_is_multiplied_first_where_that_is_narrower() -> None:
    a, b, c = (tn.asarray(numbers(s, seed=i)) for i, s in enumerate(((N, N), (N, 20), (20,))))
    assert counted(lambda: tn.linalg.inv(a) @ b @ c) == (2, LU + 20 * N + COLUMN)


def test_a_product_that_is_solved_with_is_not_made() -> None:
    a, b, c = (tn.asarray(numbers(s, seed=i)) for i, s in enumerate(((N, N), (N, N), (N,))))
    assert counted(lambda: tn.linalg.solve(a @ b, c)) == (2, 2 * LU + 2 * COLUMN)
    assert counted(lambda: tn.linalg.inv(a @ b) @ c) == (2, 2 * LU + 2 * COLUMN)
    found = np.asarray(tn.linalg.solve(a @ b, c))
    expected = np.linalg.solve(np.asarray(a) @ np.asarray(b), np.asarray(c))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_matrix_and_its_transpose_have_one_determinant() -> None:
    a = tn.asarray(numbers((N, N)))
    assert counted(lambda: tn.linalg.det(a.mT) + tn.linalg.det(a))[1] == LU


def test_one_matrix_for_a_stack_of_right_sides_is_factored_once() -> None:
    a, b = tn.asarray(numbers((N, N))), tn.asarray(numbers((5, 4, N, 2)))
    assert counted(lambda: tn.linalg.solve(a, b))[1] == LU + 40 * COLUMN
    np.testing.assert_allclose(
        np.asarray(tn.linalg.solve(a, b)), np.linalg.solve(np.asarray(a), np.asarray(b)), rtol=1e-9
    )


SUMS: dict[str, Callable[[tn.Array, tn.Array], tn.Array]] = {
    "gram + c * eye": lambda t, i: adjoint(t) @ t + 0.5 * i,
    "eye + gram": lambda t, i: i + adjoint(t) @ t,
    "gram / m + eye * c": lambda t, i: (adjoint(t) @ t) / 12 + i * 2,
    "gram": lambda t, i: adjoint(t) @ t,
    "of rows": lambda t, i: t @ adjoint(t) + 3 * i,
}


@DTYPE
@pytest.mark.parametrize("name", SUMS)
def test_definite_matrix_is_factored_by_cholesky(name: str, dtype: str) -> None:
    t, b = tn.asarray(numbers((12, 6), dtype)), tn.asarray(numbers((6,), dtype))

    def solved() -> tn.Array:
        x = tn.asarray(numbers((6, 6), dtype)) if name == "of rows" else t
        return tn.linalg.solve(SUMS[name](x, tn.eye(6, dtype=dtype)), b)

    x = solved()
    assert "solve-factored" in fired(x)
    assert "factors" in tn.explain(x, stage="optimised")
    assert ", 'cholesky')" in tn.explain(x, stage="optimised")
    with tn.options(reassociate=False):
        expected = np.asarray(solved())
    tolerance = 1e-3 if np.finfo(dtype).bits == 32 else 1e-10
    np.testing.assert_allclose(np.asarray(x), expected, rtol=tolerance, atol=tolerance)


def test_cholesky_takes_half_of_the_work() -> None:
    t, b = tn.asarray(numbers((2 * N, N))), tn.asarray(numbers((N,)))
    with tn.profile() as p:
        tn.linalg.solve(t.mT @ t + 0.1 * tn.eye(N), b).wait()
    assert p.multiply_adds <= 2 * N**3 + N**3 // 6 + COLUMN


@pytest.mark.parametrize(
    "make",
    [
        lambda t, i: t.mT @ t - i,
        lambda t, i: t.mT @ t + -1 * i,
        lambda t, i: t.mT @ t + 0 * i,
        lambda t, i: t @ t.mT,
        lambda t, i: t.mT @ (2 * t) + i,
        lambda t, i: t.mT @ t + tn.eye(6, k=1),
    ],
)
def test_indefinite_matrix_is_not_factored_by_cholesky(make: Any) -> None:
    t = tn.asarray(numbers((12, 6)))
    x = make(t, tn.eye(6))
    solution = tn.linalg.solve(x, tn.ones(x.shape[0]))
    assert "'cholesky')" not in tn.explain(solution, stage="optimised")


def test_where_cholesky_fails_gauss_is_taken() -> None:
    x = np.array([[0.0, 1.0], [1.0, 0.0]])  # symmetric, not definite
    promised = tn.assume(tn.asarray(x), "positive-definite")
    solution = tn.linalg.solve(promised, tn.asarray([2.0, 3.0]))
    assert "solve-factored" in fired(solution)
    assert solution.tolist() == [3.0, 2.0]
    assert tn.linalg.det(tn.assume(tn.asarray(x), "positive-definite")).item() == -1.0
    t = np.full((4, 3), 1e-200)  # the squares vanish: 0 is left, and eye
    found = tn.linalg.solve(tn.asarray(t).mT @ tn.asarray(t) + 1.0 * tn.eye(3), tn.ones(3))
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_a_singular_gram_matrix_is_refused() -> None:
    t = tn.zeros((4, 3))
    solution = tn.linalg.solve(t.mT @ t, tn.ones(3))
    with pytest.raises(
        np.linalg.LinAlgError, match=r"(?s)^solve: Singular matrix.*test_solves\.py"
    ):
        solution.wait()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("solve", lambda a: tn.linalg.solve(a, tn.ones(2)) + tn.linalg.solve(a, tn.zeros(2))),
        ("solve", lambda a: tn.linalg.inv(a) @ tn.ones(2)),
        ("inv", lambda a: tn.linalg.inv(a) * tn.linalg.det(a)),
        ("triangular_solve", lambda a: tn.linalg.solve(tn.tril(a), tn.ones(2))),
    ],
)
def test_a_singular_matrix_is_refused_with_operand_and_line(name: str, make: Any) -> None:
    line = make.__code__.co_firstlineno
    for _ in range(2):  # also when the plan is known
        result = make(tn.asarray(np.array([[1.0, 1.0], [1.0, 1.0]]) * [1, name[0] != "t"]))
        with pytest.raises(np.linalg.LinAlgError) as caught:
            result.wait()
        text = str(caught.value)
        assert text.startswith(f"{name}: Singular matrix: x")
        assert "float64 (2, 2)" in text
        assert f"{__file__}:{line}" in text
        assert "remedy: " in text


def test_determinants_of_shared_singular_factors_are_zero() -> None:
    a = tn.asarray(np.ones((2, 2)))
    with tn.options(reassociate=True):
        assert (tn.linalg.det(a) + tn.linalg.slogdet(a).sign).item() == 0.0


def test_nan_passes_through_shared_factors_as_through_numpy() -> None:
    x = numbers((3, 3))
    x[1, 1] = np.nan
    a = tn.asarray(x)
    found = tn.linalg.solve(a, tn.ones(3)) + tn.linalg.solve(a, tn.ones(3) * 2)
    assert np.isnan(np.asarray(found)).any()


@DTYPE
@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0), (4, 3, 3)], ids=str)
def test_stacks_and_nothing_are_solved_alike(shape: Any, dtype: str) -> None:
    x, b = numbers(shape, dtype), numbers((*shape[:-1], 2), dtype)
    a, right = tn.asarray(x), tn.asarray(b)
    expected = np.linalg.solve(x, b)
    tolerance = 1e-4 if np.finfo(dtype).bits == 32 else 1e-10
    for found in (
        tn.linalg.inv(a) @ right,
        (right.mT @ tn.linalg.inv(a.mT)).mT,
        (tn.linalg.solve(a, right) + tn.linalg.solve(a, right)) / 2,
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def test_strided_operands_are_solved_as_they_lie() -> None:
    whole = numbers((8, 12))
    a, b = tn.asarray(whole)[::2, 1:12:3], tn.asarray(whole)[::-2, 0]
    x = np.linalg.solve(whole[::2, 1:12:3], whole[::-2, 0])
    np.testing.assert_allclose(np.asarray(tn.linalg.inv(a) @ b), x, rtol=1e-8)
    np.testing.assert_allclose(
        np.asarray(tn.linalg.solve(tn.tril(a), b)),
        np.linalg.solve(np.tril(whole[::2, 1:12:3]), whole[::-2, 0]),
        rtol=1e-8,
    )


def test_mixed_dtypes_keep_what_was_promised_of_the_result() -> None:
    single, double = numbers((3, 3), "float32"), numbers((3,), "float64")
    whole = np.array([[2, 1], [1, 1]], np.int8)
    for a, b in (
        *((single, double), (numbers((3, 3)), numbers((3,), "complex64"))),
        *((whole, np.ones(2, np.float32)), (whole, np.ones(2, np.float16))),
    ):
        found = tn.linalg.inv(tn.asarray(a)) @ tn.asarray(b)
        expected = tn.linalg.inv(tn.asarray(a)).wait() @ tn.asarray(b)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-3)


def test_substitution_takes_half_a_product() -> None:
    a, b = tn.asarray(numbers((N, N))), tn.asarray(numbers((N,)))
    each = N * (N + 1) // 2
    assert counted(lambda: tn.linalg.solve(tn.tril(a), b)) == (1, each)
    assert counted(lambda: b @ tn.linalg.inv(tn.triu(a))) == (1, each)
    factor = tn.linalg.cholesky(a @ a.mT)
    factor.wait()
    lower = lambda: tn.linalg.cholesky(tn.asarray(np.eye(N)))  # noqa: E731
    assert counted(lambda: tn.linalg.solve(lower().mT, b)) == (2, N**3 // 6 + each)
    assert counted(lambda: tn.linalg.det(tn.tril(a)))[1] == 0


def test_hundreds_of_solves_of_one_matrix_factor_it_a_few_times() -> None:
    a, b = tn.asarray(numbers((3, 3))), tn.asarray(numbers((3,)))

    def total_of(solves: int) -> tn.Array:
        total = tn.zeros(3)
        for number in range(solves):
            total = total + tn.linalg.solve(a, b * number)
        return total

    total = total_of(200)
    expected = np.linalg.solve(np.asarray(a), np.asarray(b)) * sum(range(200))
    with tn.profile() as p:
        np.testing.assert_allclose(np.asarray(total), expected, rtol=1e-9)
    parts = _native.steps_of([_native.node_of(total_of(200))])
    assert p.multiply_adds == len(parts) * 9 + 200 * 9
    assert len(parts) < 20
