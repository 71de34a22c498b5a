"""Every storage kind x operation: the values of NumPy on the dense matrix, in each mode.

A cell whose operation has no rule raises UnsupportedError, and names the bytes of the dense form.
The modes are those in which an expression is computed: at once, with components that are computed
before, in a traced function, pushed to an engine, among many in one batch, under `verify`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

N = 6


def dense_csr(random: np.random.Generator, shape: tuple[int, int] = (N, N)) -> np.ndarray:
    """A matrix with an empty row, a full row, and an element -0.0 that is stored."""
    values = random.normal(size=shape) * (random.random(shape) < 0.4)
    values[1], values[2] = 0, random.normal(size=shape[1])
    return values


def csr_of(values: np.ndarray) -> tn.Array:
    rows, columns = np.nonzero(values)
    indptr = np.searchsorted(rows, np.arange(len(values) + 1)).astype(np.int32)
    return tn.csr(values[rows, columns], columns.astype(np.int32), indptr, values.shape)


def diagonal(random: np.random.Generator) -> tuple[tn.Array, np.ndarray]:
    values = random.normal(size=N)
    return tn.diagonal_matrix(tn.asarray(values)), np.diag(values)


def permutation(random: np.random.Generator) -> tuple[tn.Array, np.ndarray]:
    order = random.permutation(N)
    return tn.permutation(order), np.eye(N)[order]


def csr(random: np.random.Generator) -> tuple[tn.Array, np.ndarray]:
    values = dense_csr(random)
    return csr_of(values), values


KINDS = {"diagonal_matrix": diagonal, "permutation": permutation, "csr": csr}

Operation = Callable[[Any, Any, Any, Any], Any]
"""From the matrix, a vector, a dense matrix, and the namespace, to the result."""

OPERATIONS: dict[str, Operation] = {
    "matvec": lambda a, x, b, xp: a @ x,
    "matmat": lambda a, x, b, xp: a @ b,
    "vecmat": lambda a, x, b, xp: xp.matmul(x, a),
    "dense @ kind": lambda a, x, b, xp: xp.matmul(b, a),
    "kind @ kind": lambda a, x, b, xp: a @ a,
    "kind @ transposed": lambda a, x, b, xp: a @ a.T,
    "transposed": lambda a, x, b, xp: a.T,
    "transposed matvec": lambda a, x, b, xp: a.T @ x,
    "scaled": lambda a, x, b, xp: 2.5 * a,
    "divided": lambda a, x, b, xp: a / 4,
    "negative": lambda a, x, b, xp: -a,
    "abs": lambda a, x, b, xp: xp.abs(a),
    "sqrt of abs": lambda a, x, b, xp: xp.sqrt(xp.abs(a)),
    "maximum": lambda a, x, b, xp: xp.maximum(a, 0),
    "greater": lambda a, x, b, xp: a > 0.25,
    "kind + kind": lambda a, x, b, xp: a + a,
    "kind + transposed": lambda a, x, b, xp: a + a.T,
    "kind - scaled": lambda a, x, b, xp: a - 2 * a,
    "kind * transposed": lambda a, x, b, xp: a * a.T,
    "times dense": lambda a, x, b, xp: a * b,
    "times row": lambda a, x, b, xp: a * x,
    "times column": lambda a, x, b, xp: a * x[:, None],
    "dense times": lambda a, x, b, xp: b * a,
    "plus dense": lambda a, x, b, xp: a + b,
    "dense minus": lambda a, x, b, xp: b - a,
    "exp": lambda a, x, b, xp: xp.exp(a),
    "plus one": lambda a, x, b, xp: a + 1,
    "sum": lambda a, x, b, xp: xp.sum(a),
    "sum of columns": lambda a, x, b, xp: xp.sum(a, axis=0),
    "sum of rows": lambda a, x, b, xp: xp.sum(a, axis=1, keepdims=True),
    "mean": lambda a, x, b, xp: xp.mean(a, axis=0),
    "max": lambda a, x, b, xp: xp.max(a),
    "max of rows": lambda a, x, b, xp: xp.max(a, axis=1),
    "min of columns": lambda a, x, b, xp: xp.min(a, axis=0),
    "any": lambda a, x, b, xp: xp.any(a, axis=1),
    "count_nonzero": lambda a, x, b, xp: xp.count_nonzero(a, axis=0),
    "diagonal": lambda a, x, b, xp: xp.diagonal(a),
    "trace": lambda a, x, b, xp: xp.linalg.trace(a),
    "row": lambda a, x, b, xp: a[3],
    "rows": lambda a, x, b, xp: a[1:5:2],
    "chosen rows": lambda a, x, b, xp: a[[4, 0, 0]],
    "element": lambda a, x, b, xp: a[2, 3],
    "column": lambda a, x, b, xp: a[:, 0],
    "float32": lambda a, x, b, xp: a.astype(np.float32),
    "solve": lambda a, x, b, xp: xp.linalg.solve(a, x),
    "inv": lambda a, x, b, xp: xp.linalg.inv(a),
    "det": lambda a, x, b, xp: xp.linalg.det(a),
    "reshape": lambda a, x, b, xp: a.reshape(-1),
    "epilogue": lambda a, x, b, xp: xp.tanh(0.5 * (a @ x) + x),
}

NO_RULE = {"exp", "plus one", "column", "reshape"}
UNSUPPORTED = {
    "diagonal_matrix": NO_RULE,
    "permutation": NO_RULE | {"det"},
    "csr": NO_RULE | {"inv", "det"},
}


def at_once(function: Callable[..., Any], *operands: Any) -> Any:
    return function(*operands)


def computed_before(function: Callable[..., Any], *operands: Any) -> Any:
    for operand in operands:
        operand.wait()
    return function(*operands)


def in_function(function: Callable[..., Any], *operands: Any) -> Any:
    traced = tn.function(function)
    traced(*operands)
    return traced(*operands)


def under_verify(function: Callable[..., Any], *operands: Any) -> Any:
    with tn.options(verify=True):
        return tn.eval(function(*operands))


def among_many(function: Callable[..., Any], *operands: Any) -> Any:
    traced = tn.function(function)
    results = [traced(*operands) for _ in range(40)]
    tn.eval(*results)
    return results[-1]


MODES = {
    "at once": at_once,
    "computed before": computed_before,
    "function": in_function,
    "verify": under_verify,
    "among many": among_many,
}


def dense_of(x: Any) -> np.ndarray:
    return np.asarray(x.to_dense())


@pytest.mark.filterwarnings("ignore:.* runs untraced:tenfold.errors.FallbackWarning")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_values_are_those_of_the_dense_matrix(mode: str, kind: str, operation: str) -> None:
    random = np.random.default_rng([len(operation), len(kind)])
    matrix, values = KINDS[kind](random)
    vector, dense = random.normal(size=N), random.normal(size=(N, N))
    compute = OPERATIONS[operation]

    def run() -> Any:
        operands = matrix, tn.asarray(vector), tn.asarray(dense)
        return MODES[mode](lambda a, x, b: compute(a, x, b, tn), *operands)

    if operation in UNSUPPORTED[kind]:
        with pytest.raises(tn.errors.UnsupportedError):
            run()
        return
    if kind == "csr" and operation == "solve":  # an empty row
        with pytest.raises(np.linalg.LinAlgError, match="singular"):
            run().wait()
        return
    expected = compute(values, vector, dense, np)
    result = dense_of(run())
    assert result.shape == np.shape(expected)
    assert result.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_operation_without_a_rule_names_the_bytes_and_the_remedy(kind: str) -> None:
    matrix, _ = KINDS[kind](np.random.default_rng(0))
    uses: list[Callable[[], Any]] = [
        lambda: np.asarray(matrix),
        lambda: matrix.tolist(),
        lambda: memoryview(matrix),
        lambda: matrix.reshape(-1),
        lambda: tn.exp(matrix),
        lambda: matrix.__setitem__(0, 1.0),
        lambda: matrix.__iadd__(1),
        lambda: tn.assign(matrix, 0.0),
    ]
    for use in uses:
        with pytest.raises(tn.errors.UnsupportedError, match=r"288 bytes[\s\S]*to_dense\(\)"):
            use()


@pytest.mark.parametrize("kind", KINDS)
def test_outside_of_the_structure_nothing_is_formed(kind: str) -> None:
    """0 * NaN and 0 * infinity of elements that are not stored do not reach the result."""
    matrix, values = KINDS[kind](np.random.default_rng(3))
    vector = np.where(np.arange(N) == 4, np.nan, np.where(np.arange(N) == 2, np.inf, 1.0))
    reads = values != 0
    expected = [
        sum((values[i, j] * vector[j] for j in range(N) if reads[i, j]), 0.0) for i in range(N)
    ]
    np.testing.assert_array_equal(np.asarray(matrix @ vector), expected)
    by_columns = [
        sum((vector[i] * values[i, j] for i in range(N) if reads[i, j]), 0.0) for j in range(N)
    ]
    np.testing.assert_array_equal(np.asarray(tn.asarray(vector) @ matrix), by_columns)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_a_tree_of_its_components(kind: str) -> None:
    import copy
    import pickle

    matrix, values = KINDS[kind](np.random.default_rng(1))
    for other in (pickle.loads(pickle.dumps(matrix)), copy.copy(matrix), copy.deepcopy(matrix)):
        assert other.storage == kind
        assert np.array_equal(dense_of(other), values)

    @tn.function
    def same(tree: dict[str, Any]) -> dict[str, Any]:
        return tree

    returned = same({"matrix": matrix})["matrix"]
    assert returned.storage == kind
    assert np.array_equal(dense_of(returned), values)
    with tn.Engine() as engine:
        handle = engine.push(tn.function(lambda a, x: a @ x), matrix, tn.ones(N))
        np.testing.assert_allclose(handle.get(), values.sum(axis=1), rtol=1e-13)
    columns = tn.vmap(lambda x: matrix @ x)(tn.eye(N))
    np.testing.assert_allclose(columns, values.T, rtol=1e-13)


@pytest.mark.cpu
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_on_another_device(kind: str) -> None:
    matrix, values = KINDS[kind](np.random.default_rng(2))
    moved = matrix.to_device("emulated")
    assert (moved.device, moved.storage) == ("emulated:0", kind)
    x = tn.ones(N, device="emulated")
    found = np.asarray((moved @ x).to_device("cpu"))
    np.testing.assert_allclose(found, values.sum(axis=1), rtol=1e-13)


def test_a_large_kind_takes_the_memory_of_its_components() -> None:
    order = 10**6
    matrix = tn.diagonal_matrix(tn.arange(order) * 1.0)
    assert matrix.shape == (order, order)
    assert matrix.nnz == order
    with tn.profile() as p:
        total = tn.sum((2 * matrix @ matrix.T) @ tn.ones(order)).item()
    assert total == 2 * np.sum(np.arange(order, dtype=float) ** 2)
    assert p.multiply_adds == 0
    assert p.densified == 0
    assert p.bytes_allocated < 64 * order
    with pytest.raises(tn.errors.UnsupportedError, match="8,000,000,000,000 bytes"):
        np.asarray(matrix)


def test_products_of_diagonals_and_permutations_take_no_multiply_adds() -> None:
    random = np.random.default_rng(0)
    values, order = random.normal(size=(200, 200)), random.permutation(200)
    with tn.profile() as p:
        (tn.diagonal_matrix(tn.asarray(values[0])) @ values).wait()
        (tn.permutation(order) @ values).wait()
    assert p.multiply_adds == 0
