"""The rows of the awareness table: what is written, the fewest multiply-adds, and BLAS by hand.

Takes nothing; hands on `EXPERIMENTS`: those of Psarras, Barthels, Bientinesi 2021, "The Linear
Algebra Mapping Problem" (arXiv 1911.09421), section 4, and of Sankaran, Alashti, Psarras,
Bientinesi 2022, "Benchmarking the Linear Algebra Awareness of TensorFlow and PyTorch" (arXiv
2202.09888), section III, written anew from their descriptions.

Multiply-adds are counted as `tn.profile()` does: m k n of a product, n (n + 1) k / 2 of a product
with a triangle of order n or of one whose result is symmetric, of which one triangle suffices;
n^3 / 3 of a factorisation, n^3 / 6 of Cholesky's and of one for symmetric matrices, n (n + 1) k / 2
of a substitution, n^2 k of solving by factors; nothing elementwise.

Table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel_work.rows import Function, Work

from algebra_work.hand import Blas, with_transpose

PEERS = ("numpy", "jax", "torch", "blas")


@dataclass(frozen=True)
class Limit:
    """How many times the time of a peer Tenfold may take."""

    peer: str
    times: float
    text: str


BY_HAND = Limit("blas", 1.1, "<= 1.1x BLAS by hand")


@dataclass(frozen=True)
class Experiment:
    """One row."""

    work: Work
    group: str
    least: Callable[[int], int] | None
    """The fewest multiply-adds that are known, by the order of the matrices."""
    formula: str
    """The same to be read."""
    limits: tuple[Limit, ...] = (BY_HAND,)
    dtype: str = ""
    """The dtype of the inputs, where not that of the run."""
    apart: tuple[str, ...] = ()
    """Peers that compute something else, for comparison."""


def part(n: int) -> int:
    """The short sides of matrices that are not square: a fifth."""
    return max(n // 5, 1)


def small(n: int) -> int:
    """The order of matrices that are multiplied as often as they have rows."""
    return max(3 * n // 10, 1)


# What stands for the shape of an input: n by n, n by k, k by n, n, ...
SHAPES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "square": lambda n: (n, n),
    "tall": lambda n: (n, part(n)),
    "wide": lambda n: (part(n), n),
    "column": lambda n: (n, 1),
    "vector": lambda n: (n,),
    "shorter": lambda n: (n - 1,),
    "quarter": lambda n: (n // 2, n // 2),
    "half": lambda n: (n // 2, n),
    "small": lambda n: (small(n), small(n)),
    "three": lambda n: (3, n),
}


def given(kind: str, random: np.random.Generator, n: int) -> np.ndarray:
    """An input: of random numbers, or with a property."""
    if kind in SHAPES:
        return random.standard_normal(SHAPES[kind](n)) / n**0.25
    if kind == "diagonal":
        return np.diag(random.uniform(1, 2, n))
    if kind == "entries":
        return random.uniform(1, 2, n)
    if kind == "orthogonal":
        return np.linalg.qr(random.standard_normal((n, n)))[0]
    x = random.standard_normal((n // 2, n // 2) if kind == "good quarter" else (n, n)) / n**0.5
    order = len(x)
    return {
        "good": lambda: x + 3 * np.eye(order),
        "good quarter": lambda: x + 3 * np.eye(order),
        "lower": lambda: np.tril(x) + 3 * np.eye(order),
        "symmetric": lambda: x + x.T + np.diag(np.where(np.arange(order) % 2, 4.0, -4.0)),
        "definite": lambda: x + x.T + 4 * np.eye(order),
    }[kind]()


def experiment(
    group: str,
    name: str,
    text: str,
    kinds: str,
    plain: Callable[[Any], Function],
    hand: Callable[[Blas], Function],
    least: Callable[[int], int],
    formula: str,
    **variants: Callable[[Any], Function],
) -> Experiment:
    """One row: `kinds` are those of the inputs, by comma."""

    def inputs(random: np.random.Generator, size: float) -> list[np.ndarray]:
        return [given(kind, random, int(size)) for kind in kinds.split(", ")]

    written = {"blas": hand, **variants}
    work = Work(name, text, inputs, plain, (), written, also=PEERS)
    return Experiment(work, group, least, formula)


def halves(n: int) -> int:
    return n * (n + 1) // 2


def of_blocks(xp: Any) -> Function:
    """Two matrices in one, written with zeros."""

    def made(first: Any, second: Any) -> Any:
        n, m = len(first), len(second)
        like = {"dtype": first.dtype}
        above = xp.concat((first, xp.zeros((n, m), **like)), axis=1)
        return xp.concat((above, xp.concat((xp.zeros((m, n), **like), second), axis=1)), axis=0)

    return made


def blocks_product(xp: Any) -> Function:
    blocks = of_blocks(xp)
    return lambda a1, a2, b1, b2: blocks(a1, a2) @ xp.concat((b1, b2), axis=0)


def blocks_product_by_hand(by: Blas) -> Function:
    def function(a1: Any, a2: Any, b1: Any, b2: Any) -> Any:
        out = np.empty((len(a1) + len(a2), b1.shape[1]), by.dtype)
        by.product(a1, b1, onto=out[: len(a1)], beta=0)
        by.product(a2, b2, onto=out[len(a1) :], beta=0)
        return out

    return function


def blocks_solve(xp: Any) -> Function:
    blocks = of_blocks(xp)
    return lambda a1, a2, b: xp.linalg.solve(blocks(a1, a2), b)


def blocks_solve_by_hand(by: Blas) -> Function:
    return lambda a1, a2, b: np.concatenate(
        (by.solve(a1, b[: len(a1)]), by.solve(a2, b[len(a1) :]))
    )


def loop(xp: Any) -> Function:
    return lambda a, b, v: tuple(a @ b + xp.outer(v[i], v[i]) for i in range(3))


def loop_by_hand(by: Blas) -> Function:
    def function(a: Any, b: Any, v: Any) -> Any:
        there = by.product(a, b)
        first, second = (by.onto_outer(v[i], there.copy()) for i in range(2))
        return first, second, by.onto_outer(v[2], there)

    return function


def loop_assigned(xp: Any) -> Function:
    def function(a: Any, b: Any, v: Any) -> Any:
        out = xp.empty((3, len(a), len(a)), dtype=a.dtype)
        for i in range(3):
            out[i] = a @ b + xp.outer(v[i], v[i])
        return out

    return function


def loop_assigned_by_hand(by: Blas) -> Function:
    def function(a: Any, b: Any, v: Any) -> Any:
        out = np.empty((3, len(a), len(a)), by.dtype)
        by.product(a, b, onto=out[0], beta=0)
        out[1:] = out[0]
        for i in range(3):
            by.onto_outer(v[i], out[i])
        return out

    return function


def elements(xp: Any) -> Function:
    def function(a: Any, b: Any) -> Any:
        out = xp.empty((len(a),), dtype=a.dtype)
        for i in range(len(a)):
            out[i] = (a @ b)[i, i]
        return out

    return function


def elements_by_hand(by: Blas) -> Function:
    def function(a: Any, b: Any) -> Any:
        out, there = np.empty(len(a), by.dtype), by.product(a, b)
        for i in range(len(a)):
            out[i] = there[i, i]
        return out

    return function


def tridiagonal(xp: Any) -> Function:
    return lambda d, e, f, b: (xp.diag(d) + xp.diag(e, 1) + xp.diag(f, -1)) @ b


def tridiagonal_by_hand(_: Blas) -> Function:
    def function(d: Any, e: Any, f: Any, b: Any) -> Any:
        out = d[:, None] * b
        out[:-1] += e[:, None] * b[1:]
        out[1:] += f[:, None] * b[:-1]
        return out

    return function


def declared(structure: str, rest: Callable[[Any], Function]) -> Callable[[Any], Function]:
    """For Tenfold: the same of a first matrix of which something is promised."""
    return lambda tn: lambda a, *others: rest(tn)(tn.assume(a, structure), *others)


def times(_: Any) -> Function:
    return lambda a, b: a @ b


def solves(xp: Any) -> Function:
    return lambda a, b: xp.linalg.solve(a, b)


def inverts(xp: Any) -> Function:
    return lambda a, b: xp.linalg.inv(a) @ b


def ridge(xp: Any) -> Function:
    def function(a: Any, b: Any) -> Any:
        identity = xp.eye(a.shape[1], dtype=a.dtype)
        return xp.linalg.inv(a.T @ a + 0.5 * identity) @ b

    return function


def ridge_by_hand(by: Blas) -> Function:
    def function(a: Any, b: Any) -> Any:
        triangle = by.triangle_of_gram(a.T)
        triangle.ravel("K")[:: len(triangle) + 1] += 0.5
        return by.definite_solve(triangle, b)

    return function


def column(_: Any) -> Function:
    return lambda a, b: (a @ b)[:, 2]


EXPERIMENTS = (
    # Products and the routines for them.
    experiment("kernels", "gemm", "A @ B", "square, square",
        times, lambda by: by.product, lambda n: n**3, "n^3"),
    experiment("kernels", "gemm-add", "A @ B + C", "square, square, square",
        lambda _: lambda a, b, c: a @ b + c,
        lambda by: lambda a, b, c: by.product(a, b, onto=c.copy()), lambda n: n**3, "n^3"),
    experiment("kernels", "gemm-scales", "3 * (A @ B) + 0.5 * C", "square, square, square",
        lambda _: lambda a, b, c: 3.0 * (a @ b) + 0.5 * c,
        lambda by: lambda a, b, c: by.product(a, b, 3, c.copy(), 0.5), lambda n: n**3, "n^3"),
    experiment("kernels", "gemm-transposed", "A.T @ B", "square, square",
        lambda _: lambda a, b: a.T @ b,
        lambda by: lambda a, b: by.product(a.T, b), lambda n: n**3, "n^3"),
    experiment("kernels", "gemm-all", "2 * A.T @ B.T - C", "square, square, square",
        lambda _: lambda a, b, c: 2.0 * a.T @ b.T - c,
        lambda by: lambda a, b, c: by.product(a.T, b.T, 2, c.copy(), -1), lambda n: n**3, "n^3"),
    experiment("kernels", "syrk", "A @ A.T", "square",
        lambda _: lambda a: a @ a.T,
        lambda by: by.gram, lambda n: n * halves(n), "n^2 (n+1) / 2"),
    experiment("kernels", "syrk-transposed", "A.T @ A, A (n, n/5)", "tall",
        lambda _: lambda a: a.T @ a,
        lambda by: lambda a: by.gram(a.T), lambda n: n * halves(part(n)), "n k (k+1) / 2"),
    experiment("kernels", "syrk-add", "A @ A.T + C", "square, square",
        lambda _: lambda a, c: a @ a.T + c,
        lambda by: lambda a, c: by.gram(a) + c, lambda n: n * halves(n), "n^2 (n+1) / 2"),
    experiment("kernels", "syr2k", "A @ B.T + B @ A.T", "square, square",
        lambda _: lambda a, b: a @ b.T + b @ a.T,
        lambda by: lambda a, b: with_transpose(by.product(a, b.T)), lambda n: n**3, "n^3"),
    experiment("kernels", "syr2k-transposed", "A @ B + (A @ B).T", "square, square",
        lambda _: lambda a, b: a @ b + (a @ b).T,
        lambda by: lambda a, b: with_transpose(by.product(a, b)), lambda n: n**3, "n^3"),
    # Linear systems by inverse.
    experiment("inverse", "inverse-times", "inv(A) @ B", "good, tall",
        inverts, lambda by: by.solve, lambda n: n**3 // 3 + n * n * part(n), "n^3 / 3 + n^2 k"),
    experiment("inverse", "inverse-vector", "inv(A) @ b", "good, vector",
        inverts, lambda by: by.solve, lambda n: n**3 // 3 + n * n, "n^3 / 3 + n^2"),
    experiment("inverse", "times-inverse", "B @ inv(A)", "good, wide",
        lambda xp: lambda a, b: b @ xp.linalg.inv(a),
        lambda by: lambda a, b: by.solve_from_right(b, a),
        lambda n: n**3 // 3 + n * n * part(n), "n^3 / 3 + n^2 k"),
    experiment("inverse", "inverse-ridge", "inv(A.T @ A + c I) @ b", "square, vector",
        ridge, ridge_by_hand,
        lambda n: n * halves(n) + n**3 // 6 + n * n, "n^2 (n+1) / 2 + n^3 / 6 + n^2"),
    # Chains.
    experiment("chains", "chain-left", "C @ A @ B, C (n/5, n)", "wide, square, square",
        lambda _: lambda c, a, b: c @ a @ b,
        lambda by: lambda c, a, b: by.product(by.product(c, a), b),
        lambda n: 2 * n * n * part(n), "2 n^2 k"),
    experiment("chains", "chain-right", "A @ B @ C, C (n, n/5)", "square, square, tall",
        lambda _: lambda a, b, c: a @ b @ c,
        lambda by: lambda a, b, c: by.product(a, by.product(b, c)),
        lambda n: 2 * n * n * part(n), "2 n^2 k"),
    experiment("chains", "chain-mixed", "A @ B @ C @ D, B (n, n/5), C (n/5, n)",
        "square, tall, wide, square",
        lambda _: lambda a, b, c, d: a @ b @ c @ d,
        lambda by: lambda a, b, c, d: by.product(by.product(a, b), by.product(c, d)),
        lambda n: 3 * n * n * part(n), "3 n^2 k"),
    experiment("chains", "vector-right", "H.T @ H @ x", "square, vector",
        lambda _: lambda h, x: h.T @ h @ x,
        lambda by: lambda h, x: by.times_vector(h.T, by.times_vector(h, x)),
        lambda n: 2 * n * n, "2 n^2"),
    experiment("chains", "vector-left", "y.T @ H.T @ H, y a column", "column, square",
        lambda _: lambda y, h: y.T @ h.T @ h,
        lambda by: lambda y, h: by.times_vector(h.T, by.times_vector(h, y[:, 0]))[None],
        lambda n: 2 * n * n, "2 n^2"),
    experiment("chains", "vector-mixed", "H.T @ y @ x.T @ H, x, y columns",
        "square, column, column",
        lambda _: lambda h, y, x: h.T @ y @ x.T @ h,
        lambda by: lambda h, y, x: np.multiply.outer(
            by.times_vector(h.T, y[:, 0]), by.times_vector(h.T, x[:, 0])),
        lambda n: 3 * n * n, "3 n^2"),
    # Common subexpressions.
    experiment("common", "common-sum", "A.T @ B + A.T @ B", "square, square",
        lambda _: lambda a, b: a.T @ b + a.T @ b,
        lambda by: lambda a, b: by.product(a.T, b, 2), lambda n: n**3, "n^3"),
    experiment("common", "common-product", "(A.T @ B).T @ (A.T @ B)", "square, square",
        lambda _: lambda a, b: (a.T @ b).T @ (a.T @ b),
        lambda by: lambda a, b: by.gram(by.product(a.T, b).T),
        lambda n: n**3 + n * halves(n), "n^3 + n^2 (n+1) / 2"),
    experiment("common", "common-chain", "(A.T @ B).T @ A.T @ B", "square, square",
        lambda _: lambda a, b: (a.T @ b).T @ a.T @ b,
        lambda by: lambda a, b: by.gram(by.product(a.T, b).T),
        lambda n: n**3 + n * halves(n), "n^3 + n^2 (n+1) / 2"),
    # What does not change in a loop.
    experiment("loops", "loop", "for i in range(3): A @ B + outer(v[i], v[i])",
        "square, square, three",
        loop, loop_by_hand, lambda n: n**3, "n^3"),
    experiment("loops", "loop-assigned", "for i in range(3): X[i] = A @ B + outer(v[i], v[i])",
        "square, square, three", loop_assigned, loop_assigned_by_hand, lambda n: n**3, "n^3",
        jax=lambda xp: lambda *inputs: xp.stack(loop(xp)(*inputs))),
    experiment("loops", "loop-elements",
        "for i in range(m): c[i] = (A @ B)[i, i], A, B (m, m), m = 3n/10",
        "small, small", elements, elements_by_hand, lambda n: small(n)**2, "m^2",
        jax=lambda xp: lambda a, b: xp.stack([(a @ b)[i, i] for i in range(len(a))])),
    # Parts of sums and products.
    experiment("parts", "element-sum", "(A + B)[2, 2]", "square, square",
        lambda _: lambda a, b: (a + b)[2, 2],
        lambda _: lambda a, b: a[2, 2] + b[2, 2], lambda _: 0, "0"),
    experiment("parts", "element-product", "(A @ B)[2, 2]", "square, square",
        lambda _: lambda a, b: (a @ b)[2, 2],
        lambda by: lambda a, b: by.dot(a[2], b[:, 2]), lambda n: n, "n"),
    experiment("parts", "column-sum", "(A + B)[:, 2]", "square, square",
        lambda _: lambda a, b: (a + b)[:, 2],
        lambda _: lambda a, b: a[:, 2] + b[:, 2], lambda _: 0, "0"),
    experiment("parts", "column-product", "(A @ B)[:, 2]", "square, square",
        column, lambda by: lambda a, b: by.times_vector(a, b[:, 2]), lambda n: n * n, "n^2"),
    experiment("parts", "diagonal-sum", "diagonal(A + B)", "square, square",
        lambda xp: lambda a, b: xp.diagonal(a + b),
        lambda _: lambda a, b: np.diagonal(a) + np.diagonal(b), lambda _: 0, "0"),
    experiment("parts", "diagonal-product", "diagonal(A @ B)", "square, square",
        lambda xp: lambda a, b: xp.diagonal(a @ b),
        lambda _: lambda a, b: np.einsum("ij,ji->i", a, b), lambda n: n * n, "n^2"),
    # The distributive law.
    experiment("distributivity", "factored", "A @ B + A @ C", "square, square, square",
        lambda _: lambda a, b, c: a @ b + a @ c,
        lambda by: lambda a, b, c: by.product(a, b + c), lambda n: n**3, "n^3"),
    experiment("distributivity", "distributed", "(A - H.T @ H) @ x", "square, square, vector",
        lambda _: lambda a, h, x: (a - h.T @ h) @ x,
        lambda by: lambda a, h, x: by.times_vector(a, x)
            - by.times_vector(h.T, by.times_vector(h, x)),
        lambda n: 3 * n * n, "3 n^2"),
    experiment("distributivity", "as-distributed", "A @ x - H.T @ (H @ x)",
        "square, square, vector",
        lambda _: lambda a, h, x: a @ x - h.T @ (h @ x),
        lambda by: lambda a, h, x: by.times_vector(a, x)
            - by.times_vector(h.T, by.times_vector(h, x)),
        lambda n: 3 * n * n, "3 n^2"),
    # Blocks.
    experiment("blocks", "blocks-product", "[[A1, 0], [0, A2]] @ [B1; B2]",
        "quarter, quarter, half, half",
        blocks_product, blocks_product_by_hand, lambda n: 2 * (n // 2)**2 * n, "n^3 / 2"),
    experiment("blocks", "blocks-solve", "solve([[A1, 0], [0, A2]], B)",
        "good quarter, good quarter, tall",
        blocks_solve, blocks_solve_by_hand,
        lambda n: 2 * ((n // 2)**3 // 3 + (n // 2)**2 * part(n)), "n^3 / 12 + n^2 k / 2"),
    # Properties in products.
    experiment("properties", "trmm", "tril(A) @ B", "square, square",
        lambda xp: lambda a, b: xp.tril(a) @ b,
        lambda by: by.lower_times, lambda n: n * halves(n), "n^2 (n+1) / 2"),
    experiment("properties", "trmm-declared", "L @ B, L declared triangular", "lower, square",
        times, lambda by: by.lower_times, lambda n: n * halves(n), "n^2 (n+1) / 2",
        tenfold=declared("triangular", times)),
    experiment("properties", "diagonal", "diag(d) @ B", "entries, square",
        lambda xp: lambda d, b: xp.diag(d) @ b,
        lambda _: lambda d, b: d[:, None] * b, lambda _: 0, "0"),
    experiment("properties", "diagonal-declared", "D @ B, D declared diagonal", "diagonal, square",
        times, lambda _: lambda d, b: np.diagonal(d)[:, None] * b, lambda _: 0, "0",
        tenfold=declared("diagonal", times)),
    experiment("properties", "tridiagonal", "(diag(d) + diag(e, 1) + diag(f, -1)) @ B",
        "entries, shorter, shorter, square", tridiagonal, tridiagonal_by_hand, lambda _: 0, "0"),
    experiment("properties", "symmetric-declared", "S @ B, S declared symmetric",
        "symmetric, square",
        times, lambda by: by.product, lambda n: n**3, "n^3",
        tenfold=declared("symmetric", times)),
    # Properties in linear systems.
    experiment("systems", "solve", "solve(A, B)", "good, tall",
        solves, lambda by: by.solve, lambda n: n**3 // 3 + n * n * part(n), "n^3 / 3 + n^2 k"),
    experiment("systems", "solve-definite", "solve(S, B), S declared positive-definite",
        "definite, tall",
        solves, lambda by: lambda a, b: by.definite_solve(a.copy().T, b),
        lambda n: n**3 // 6 + n * n * part(n), "n^3 / 6 + n^2 k",
        tenfold=declared("positive-definite", solves)),
    experiment("systems", "solve-symmetric", "solve(S, B), S declared symmetric", "symmetric, tall",
        solves, lambda by: by.symmetric_solve,
        lambda n: n**3 // 6 + n * n * part(n), "n^3 / 6 + n^2 k",
        tenfold=declared("symmetric", solves)),
    experiment("systems", "solve-triangular", "solve(tril(A), B)", "good, tall",
        lambda xp: lambda a, b: xp.linalg.solve(xp.tril(a), b),
        lambda by: by.lower_solve, lambda n: halves(n) * part(n), "n (n+1) k / 2"),
    experiment("systems", "solve-triangular-declared", "solve(L, B), L declared triangular",
        "lower, tall",
        solves, lambda by: by.lower_solve, lambda n: halves(n) * part(n), "n (n+1) k / 2",
        tenfold=declared("triangular", solves)),
    experiment("systems", "solve-diagonal", "solve(diag(d), B)", "entries, tall",
        lambda xp: lambda d, b: xp.linalg.solve(xp.diag(d), b),
        lambda _: lambda d, b: b / d[:, None], lambda _: 0, "0"),
    experiment("systems", "solve-diagonal-declared", "solve(D, B), D declared diagonal",
        "diagonal, tall",
        solves, lambda _: lambda d, b: b / np.diagonal(d)[:, None], lambda _: 0, "0",
        tenfold=declared("diagonal", solves)),
    experiment("systems", "inverse-definite", "inv(S) @ B, S declared positive-definite",
        "definite, tall",
        inverts, lambda by: lambda a, b: by.definite_solve(a.copy().T, b),
        lambda n: n**3 // 6 + n * n * part(n), "n^3 / 6 + n^2 k",
        tenfold=declared("positive-definite", inverts)),
    experiment("systems", "inverse-triangular", "inv(L) @ B, L declared triangular", "lower, tall",
        inverts, lambda by: by.lower_solve, lambda n: halves(n) * part(n), "n (n+1) k / 2",
        tenfold=declared("triangular", inverts)),
    experiment("systems", "inverse-orthogonal", "inv(Q) @ B, Q declared orthogonal",
        "orthogonal, tall",
        inverts, lambda by: lambda a, b: by.product(a.T, b),
        lambda n: n * n * part(n), "n^2 k", tenfold=declared("orthogonal", inverts)),
    experiment("systems", "inverse-diagonal", "inv(D) @ B, D declared diagonal", "diagonal, tall",
        inverts, lambda _: lambda d, b: b / np.diagonal(d)[:, None], lambda _: 0, "0",
        tenfold=declared("diagonal", inverts)),
)  # fmt: skip
