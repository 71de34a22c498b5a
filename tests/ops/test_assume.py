"""Promises: the values stay, rules rely on them, `verify` finds the false ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tn

RANDOM = np.random.default_rng(7).standard_normal((4, 4))
TRUE: dict[str, np.ndarray] = {
    "symmetric": RANDOM + RANDOM.T,
    "triangular": np.tril(RANDOM) + 4 * np.eye(4),
    "positive-definite": RANDOM @ RANDOM.T + np.eye(4),
    "orthogonal": np.linalg.qr(RANDOM).Q,
    "diagonal": np.diag([1.0, 2.0, 3.0, -4.0]),
}
STRUCTURE = pytest.mark.parametrize("structure", TRUE)


@STRUCTURE
@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_declared_array_has_the_same_values(structure: str, verify: bool, device: str) -> None:
    with tn.options(verify=verify, device=device):
        x = tn.asarray(TRUE[structure])
        y = tn.assume(x, structure)
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        np.testing.assert_array_equal(np.asarray(y), TRUE[structure])
        np.testing.assert_array_equal(np.asarray(y[1:, ::2] * 2), TRUE[structure][1:, ::2] * 2)


@pytest.mark.exhaustive
@STRUCTURE
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("verify", [False, True])
def test_rewrites_by_a_true_promise_equal_numpy(structure: str, dtype: str, verify: bool) -> None:
    values = TRUE[structure].astype(dtype)
    b = RANDOM[0].astype(dtype)
    tolerance = 1e-3 if np.finfo(dtype).bits == 32 else 1e-10
    with tn.options(verify=verify):
        x = tn.assume(tn.asarray(values), structure)
        for found, expected in (
            (tn.linalg.solve(x, b), np.linalg.solve(values, b)),
            (tn.linalg.solve(x.mT, b), np.linalg.solve(values.T, b)),
            (tn.linalg.inv(x) @ b, np.linalg.solve(values, b)),
            (b @ tn.linalg.inv(x), np.linalg.solve(values.T, b)),
            (tn.linalg.inv(x) + 1, np.linalg.inv(values) + 1),
            (tn.linalg.det(x), np.linalg.det(values)),
            (tn.linalg.slogdet(x)[1], np.linalg.slogdet(values)[1]),
            (x.mT @ b, values.T @ b),
        ):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def test_promises_save_work() -> None:
    n = 4
    work = {"triangular": n * (n + 1) // 2, "diagonal": 0, "orthogonal": n * n}
    work["positive-definite"] = n**3 // 6 + n * n
    for structure, expected in work.items():
        with tn.profile() as p:
            tn.linalg.solve(tn.assume(tn.asarray(TRUE[structure]), structure), RANDOM[0]).wait()
        assert p.multiply_adds == expected, structure
    with tn.options(reassociate=False), tn.profile() as p:
        tn.linalg.solve(tn.assume(tn.asarray(TRUE["diagonal"]), "diagonal"), RANDOM[0]).wait()
    assert p.multiply_adds == n**3 // 3 + n * n


def test_symmetric_matrices_are_tried_by_cholesky_and_what_was_done_is_counted() -> None:
    n, once = 12, 12**3 // 6
    rng = np.random.default_rng(5)
    x = rng.standard_normal((n, n))
    sums = x + x.T
    positive = sums - np.diag(np.diagonal(sums)) + np.eye(n)  # Cholesky's way is tried in vain
    stack = np.stack([x @ x.T + np.eye(n), sums, positive, sums + 20 * np.eye(n)])
    right = rng.standard_normal((n, 2))
    done = [once, once, 2 * once, once]
    cases = [*zip(stack, done, strict=True), (stack, sum(done))]
    for values, work in cases:
        y, columns = tn.assume(tn.asarray(values), "symmetric"), values.size // n // n * 2 * n * n
        for _ in range(3):  # what is known is replayed
            with tn.profile() as p:
                found = tn.linalg.solve(y, right).wait()
            assert p.multiply_adds == work + columns
            np.testing.assert_allclose(found, np.linalg.solve(values, right), rtol=1e-9, atol=1e-9)
        with tn.profile() as p, tn.options(debug=1):
            tn.linalg.solve(y, right).wait()
        assert p.multiply_adds == work + columns


def test_results_of_an_indefinite_symmetric_matrix_are_near_those_of_gauss() -> None:
    x = np.random.default_rng(6).standard_normal((40, 40))
    values = x + x.T
    declared = tn.assume(tn.asarray(values), "symmetric")
    found, expected = (tn.linalg.solve(y, x[0]) for y in (declared, tn.asarray(values)))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(tn.linalg.det(declared), tn.linalg.det(tn.asarray(values)))
    values[3, 3] = np.nan
    assert np.isnan(tn.linalg.det(tn.assume(tn.asarray(values), "symmetric")))
    singular = tn.assume(tn.zeros((3, 3)), "symmetric")
    with pytest.raises(np.linalg.LinAlgError):
        tn.linalg.solve(singular, tn.ones(3)).wait()


def spoiled(structure: str, at: tuple[int, int], value: float) -> np.ndarray:
    x = TRUE[structure].copy()
    x[at] = value
    return x


FALSE: list[tuple[str, np.ndarray, str]] = [
    ("symmetric", spoiled("symmetric", (2, 1), 9.0), r"\(1, 2\), where x is "),
    ("triangular", spoiled("triangular", (1, 3), 9.0), r"\(1, 3\), where x is 9.0"),
    ("triangular", RANDOM, r"\(\d, \d\), where x is "),
    ("diagonal", spoiled("diagonal", (3, 0), np.nan), r"\(3, 0\), where x is nan"),
    ("orthogonal", 2 * TRUE["orthogonal"], r"\(0, 0\), where x is "),
    ("orthogonal", np.full((4, 4), np.nan), r"\(0, 0\), where x is nan"),
    ("positive-definite", np.diag([1.0, 2.0, -3.0, 4.0]), r"\(2, 2\), where x is -3.0"),
    ("positive-definite", spoiled("positive-definite", (0, 1), 9.0), r"\(0, 1\), where x is 9.0"),
    ("positive-definite", np.full((4, 4), np.nan), r"\(0, 0\), where x is nan"),
    ("diagonal", np.stack([TRUE["diagonal"], RANDOM]), r"\(1, 0, 1\), where x is "),
]


@pytest.mark.parametrize(("structure", "values", "words"), FALSE, ids=lambda each: str(each)[:12])
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_false_promise_is_found_under_verify(
    structure: str, values: np.ndarray, words: str, device: str
) -> None:
    with tn.options(verify=True, device=device):
        x = tn.assume(tn.asarray(values), structure)
        uses: list[Any] = [x + 1, tn.linalg.solve(x, np.ones((values.shape[-1], 1))), x.mT @ x]
        for result in uses:
            with pytest.raises(ValueError, match=f"promise '{structure}' is false at {words}") as e:
                result.wait()
            assert str(e.value).startswith("assume: ")
            assert "test_assume.py:" in str(e.value)
            assert "remedy: assume only what holds" in str(e.value)
    tn.assume(tn.asarray(values), structure).wait()  # unasked, nobody looks


def test_matrices_without_elements_keep_every_promise() -> None:
    with tn.options(verify=True):
        for structure in TRUE:
            for shape in ((0, 0), (0, 3, 3)):
                assert tn.assume(tn.zeros(shape), structure).wait().shape == shape


def test_rounding_breaks_no_promise() -> None:
    x = np.random.default_rng(1).standard_normal((200, 200)).astype(np.float32)
    with tn.options(verify=True):
        tn.assume(tn.asarray(np.linalg.qr(x).Q), "orthogonal").wait()
        tn.assume(tn.asarray(x @ x.T + np.eye(200, dtype=np.float32)), "positive-definite").wait()


def test_integers_and_bools_may_be_declared() -> None:
    with tn.options(verify=True):
        for dtype in ("bool", "int8", "uint64"):
            for structure in TRUE:
                x = np.eye(3).astype(dtype)
                np.testing.assert_array_equal(np.asarray(tn.assume(tn.asarray(x), structure)), x)


def test_a_later_assignment_does_not_reach_what_was_declared() -> None:
    x = tn.asarray(np.eye(2))
    y = tn.assume(x, "diagonal")
    x[0, 1] = 5
    assert y.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_assume_refuses() -> None:
    with pytest.raises(tn.errors.ShapeError, match="assume: 'banded' is not a structure") as caught:
        tn.assume(tn.zeros((2, 2)), "banded")
    assert (
        "'symmetric', 'lower', 'upper', 'triangular', 'positive-definite', 'orthogonal', 'diagonal'"
        in str(caught.value)
    )
    with pytest.raises(tn.errors.ShapeError, match="assume: matrices of 2 x 3 are not square"):
        tn.assume(tn.zeros((2, 3)), "diagonal")


def test_promise_holds_for_every_use_of_an_array_that_somebody_holds() -> None:
    values = np.tril(np.random.default_rng(0).standard_normal((100, 100)))
    other = tn.asarray(np.eye(100))
    for declared in (
        tn.assume(tn.asarray(values), "triangular"),
        tn.assume(tn.asarray(values) * 1.0, "triangular"),
        tn.assume(tn.assume(tn.asarray(values) + 0.0, "symmetric"), "triangular"),
    ):
        counts = []
        for _ in range(3):
            with tn.profile() as p:
                found = np.asarray(declared @ other)
            counts.append((p.multiply_adds, np.array_equal(found, values)))
        assert counts == [(100 * 101 // 2 * 100, True)] * 3
        assert np.array_equal(np.asarray(declared), values)


def test_promise_of_an_old_value_stays_when_its_array_is_written_over() -> None:
    values = np.tril(np.random.default_rng(0).standard_normal((100, 100)))
    x, other = tn.asarray(values), tn.asarray(np.eye(100))
    declared = tn.assume(x, "triangular")
    for turn in range(1, 4):
        x += declared @ other
        x.wait()
        assert np.array_equal(np.asarray(declared @ other), values)
        np.testing.assert_allclose(np.asarray(x), (turn + 1) * values, rtol=1e-12)
    declared += 1
    assert np.array_equal(np.asarray(declared), values + 1)
