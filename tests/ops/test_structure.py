"""Structure: what is known of matrices survives evaluation and saves work; values stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_close

N = 12
RNG = np.random.default_rng(5)
A, V = RNG.random((N, N)) + N * np.eye(N), RNG.random(N)
C = A + 1j * RNG.random((N, N))
AT, VT, CT = tn.asarray(A), tn.asarray(V), tn.asarray(C)
ORDER = RNG.permutation(N)
SUBSTITUTION = N * (N + 1) // 2

WORDS: dict[str, Callable[[], tn.Array]] = {
    "lower": lambda: tn.tril(AT),
    "upper": lambda: tn.triu(AT, 1),
    "diagonal": lambda: tn.diag(VT),
    "identity": lambda: tn.eye(N),
    "permutation": lambda: tn.linalg.lu(AT)[0],
    "selection": lambda: tn.eye(N)[tn.asarray(ORDER)],
    "symmetric": lambda: tn.exp(tn.assume(AT + AT.T, "symmetric")),
    "orthogonal": lambda: tn.linalg.qr(AT).Q,
    "positive-definite": lambda: tn.assume(AT @ AT.T, "positive-definite"),
}
FOLLOWING: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("lower", "upper", lambda x: x.T),
    ("lower", "lower", lambda x: 2 * x),
    ("lower", "lower", lambda x: np.float64(2) * x / 3),
    ("lower", "lower", lambda x: x @ x),
    ("lower", "lower", lambda x: x + tn.sin(x)),
    ("lower", "lower", tn.linalg.inv),
    ("lower", "lower", lambda x: tn.astype(-x, tn.float32)),
    ("lower", "diagonal", tn.triu),
    ("lower", "dense", lambda x: x + 1),
    ("lower", "dense", tn.cos),
    ("lower", "dense", lambda x: x * AT),
    ("lower", "dense", lambda x: x @ x.T),
    ("lower", "dense", lambda x: x[:, ::-1]),
    ("lower", "dense", lambda x: x[None] + tn.ones((2, 1, 1))),
    ("diagonal", "diagonal", lambda x: x.T * x),
    ("diagonal", "symmetric", tn.exp),
    ("identity", "diagonal", lambda x: 3 * x),
    ("permutation", "permutation", lambda x: (x @ x).T),
    ("selection", "dense", lambda x: x.T),
    ("orthogonal", "orthogonal", lambda x: x.T @ x),
    ("orthogonal", "dense", lambda x: 2 * x),
    ("positive-definite", "positive-definite", lambda x: x + x),
    ("positive-definite", "symmetric", lambda x: x - x),
]


@pytest.mark.parametrize("word", WORDS)
def test_structure_survives_evaluation(word: str) -> None:
    pending = WORDS[word]()
    assert pending.storage == word
    assert pending.wait().storage == word
    assert tn.function(lambda x: x * 1)(tn.asarray(A)).storage == "dense"


@pytest.mark.parametrize(("word", "following", "of"), FOLLOWING)
def test_structure_of_results_follows(word: str, following: str, of: Callable[[Any], Any]) -> None:
    x = WORDS[word]().wait()
    found, values = of(x), tn.asarray(np.asarray(x))
    assert (found.storage, values.storage) == (following, "dense")
    assert_close(found, np.asarray(of(values)), rtol=1e-12, atol=1e-12)


SOLVES: list[tuple[str, int, Callable[[Any], Any]]] = [
    ("lower", SUBSTITUTION, lambda x: tn.linalg.solve(x, VT)),
    ("lower", SUBSTITUTION, lambda x: tn.linalg.solve(x.T * 2, VT)),
    ("lower", SUBSTITUTION, lambda x: tn.function(tn.linalg.solve)(x, VT)),
    ("lower", 0, tn.linalg.det),
    ("diagonal", 0, lambda x: x @ AT @ x),
    ("diagonal", 0, lambda x: tn.linalg.solve(x, AT)),
    ("identity", 0, lambda x: x @ AT),
    ("permutation", 0, lambda x: x @ AT @ x + x.T @ AT),
    ("selection", 0, lambda x: x @ AT),
    ("selection", 0, lambda x: VT @ x.T),
    ("orthogonal", N * N, lambda x: tn.linalg.solve(x, VT)),
]


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(("word", "work", "of"), SOLVES)
def test_known_structure_saves_work(
    word: str, work: int, of: Callable[[Any], Any], waits: bool
) -> None:
    x = WORDS[word]() if word != "orthogonal" else WORDS[word]().wait()
    values = np.asarray(WORDS[word]())
    if waits:
        x.wait()
    with tn.profile() as p:
        found = of(x).wait()
    factors = N**3 // 3 if word == "permutation" and not waits else 0
    assert p.multiply_adds == work + factors
    assert_close(found, np.asarray(of(tn.asarray(values))), rtol=1e-10, atol=1e-10)


def test_cholesky_factors_solve_by_substitution() -> None:
    definite = AT @ AT.T
    factor = tn.linalg.cholesky(definite).wait()
    with tn.profile() as p:
        found = tn.linalg.solve(factor.T, tn.linalg.solve(factor, VT)).wait()
    assert p.multiply_adds == 2 * SUBSTITUTION
    assert_close(found, np.linalg.solve(A @ A.T, V), rtol=1e-8)


def test_matrices_that_are_visibly_symmetric_are_factored_as_such() -> None:
    part = AT[:, :5]
    for x, method in (
        (AT + AT.T, "symmetric"),
        (part @ part.T + tn.eye(N), "cholesky"),
        (part @ part.T - tn.eye(N) + AT + AT.T, "gauss"),
        (CT + CT.T, "symmetric"),
    ):
        plan = tn.explain(tn.linalg.solve(x, VT), stage="optimised")
        assert [m for m in ("symmetric", "cholesky") if f"'{m}'" in plan] == [method][
            : method != "gauss"
        ]
        assert_close(tn.linalg.solve(x, VT), np.linalg.solve(np.asarray(x), V), rtol=1e-9)


ASSIGNMENTS: list[Callable[[Any], Any]] = [
    lambda x: x.__setitem__((0, 5), 7.0),
    lambda x: x[0].__iadd__(1.0),
    lambda x: x.T.__setitem__((5, 0), 3.0),
    lambda x: x.__setitem__(..., A),
    lambda x: x.__iadd__(1.0),
    lambda x: x.__imul__(2.0),
]


@pytest.mark.parametrize("assign", ASSIGNMENTS)
def test_an_assignment_drops_what_it_breaks(assign: Callable[[Any], Any]) -> None:
    x, values = tn.tril(AT).wait(), np.tril(A)
    assign(x)
    assign(values)
    assert_close(tn.linalg.solve(x, VT), np.linalg.solve(values, V), rtol=1e-10)


def test_a_window_on_memory_promises_nothing() -> None:
    memory = np.zeros((N, N))
    window = tn.wrap(memory)
    window[...] = tn.tril(AT)
    memory[0, 5] = 3.0
    assert_close(tn.linalg.solve(window, VT), np.linalg.solve(memory, V), rtol=1e-10)


def test_loops_forget_the_structure_that_their_carry_begins_with() -> None:
    power = np.linalg.matrix_power(A / N, 4)
    by_scan, _ = tn.scan(lambda c, _: (c @ AT / N, None), tn.eye(N), tn.zeros(4))
    by_while = tn.while_loop(
        lambda s: s[1] < 4, lambda s: (s[0] @ AT / N, s[1] + 1), (tn.eye(N), 0)
    )[0]
    waited = tn.eye(N).wait()
    for _ in range(4):
        waited = (waited @ AT / N).wait()
    for found in (by_scan, by_while, waited):
        assert_close(found, power, rtol=1e-12)


def test_a_matrix_of_one_element_has_its_structure_alone() -> None:
    one, lower = tn.tril(tn.ones((1, 1))), tn.tril(AT)
    for _ in range(2):
        assert_close((one + lower) @ VT, (1 + np.tril(A)) @ V, rtol=1e-12)
        assert (one + lower).storage == (one * lower).storage == "dense"
    rows = tn.ones((1, 1))
    assert (tn.tril(tn.ones((3, 3))) + tn.tril(rows)).storage == "dense"


def test_stacks_batches_and_pushes_compute_the_same() -> None:
    lowers = [tn.tril(AT + i).wait() for i in range(40)]
    expected = [np.linalg.solve(np.asarray(x), V) for x in lowers]
    engine = tn.Engine()
    handles = [engine.push(tn.operators.linalg.solve, x, VT) for x in lowers]
    together = [tn.linalg.solve(x, VT) + 0 for x in lowers]
    tn.eval(*together)
    stacked = tn.tril(tn.stack([AT + i for i in range(40)])).wait()
    mapped = tn.vmap(lambda x: tn.linalg.solve(x, VT))(stacked)
    assert stacked.storage == "lower"
    assert tn.permute_dims(stacked[:N], (1, 2, 0)).storage == "dense"
    for found in ([h.get() for h in handles], together, list(mapped)):
        assert_close(tn.stack(found), np.stack(expected), rtol=1e-10)
    assert_close(tn.vmap(lambda row: row * 2)(lowers[0]), np.asarray(lowers[0]) * 2)


def test_members_of_other_structures_are_computed_by_their_own() -> None:
    lowers = [tn.tril(AT + i).wait() for i in range(40)]
    mixed = [x for lower in lowers for x in (lower, lower + 1)]
    expected = np.stack([np.linalg.solve(np.asarray(x), V) for x in mixed])
    engine, solve = tn.Engine(), tn.function(lambda x: tn.linalg.solve(x, VT) * 1)
    for members in (lowers, mixed):
        with engine.hold():
            handles = [engine.push(solve, x) for x in members]
        together = [solve(x) for x in members]
        tn.eval(*together)
        wanted = expected if members is mixed else expected[::2]
        for found in ([h.get() for h in handles], together):
            assert_close(tn.stack(found), wanted, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["complex128", "float32", "int64", "bool"])
def test_other_dtypes_keep_their_values(dtype: str) -> None:
    values = np.tril(C if dtype == "complex128" else A).astype(dtype)
    x = tn.asarray(values)
    lower, chosen = tn.tril(x).wait(), tn.eye(N, dtype=dtype)[tn.asarray(ORDER)].wait()
    permuted = np.eye(N, dtype=dtype)[ORDER]
    for found, expected in (
        (chosen @ x, permuted @ values),
        (lower @ x, values @ values),
        (x @ chosen.T, values @ permuted.T),
        (lower + lower, values + values),
    ):
        assert found.dtype == expected.dtype
        assert_close(found, expected, rtol=1e-5)
