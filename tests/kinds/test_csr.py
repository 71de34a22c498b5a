"""Matrices in compressed rows beside SciPy's: the same bits, patterns from patterns alone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg

import tenfold as tn

SHAPES = [(30, 20), (20, 30), (1, 7), (7, 1), (0, 5), (5, 0)]


def random_matrix(shape: tuple[int, int], seed: int = 0, density: float = 0.2) -> Any:
    matrix = sp.random_array(shape, density=density, rng=np.random.default_rng(seed), format="csr")
    matrix.sort_indices()
    return matrix


def same_bits(ours: Any, theirs: Any) -> None:
    values = np.asarray(ours.to_dense())
    expected = theirs.toarray() if sp.issparse(theirs) else np.asarray(theirs)
    assert values.dtype == expected.dtype
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_products_have_the_bits_of_scipy(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(1)
    theirs, other = random_matrix(shape), random_matrix(shape[::-1], seed=5)
    ours, ours_other = tn.asarray(theirs), tn.asarray(other)
    x, columns = random.normal(size=shape[1]), random.normal(size=(shape[1], 4))
    same_bits(ours @ x, theirs @ x)
    same_bits(ours @ columns, theirs @ columns)
    same_bits(
        tn.asarray(random.normal(size=shape[0]) * 0 + 2) @ ours, np.full(shape[0], 2.0) @ theirs
    )
    same_bits(ours @ ours_other, theirs @ other)
    same_bits(ours.T, theirs.T)
    same_bits(ours + ours_other.T, theirs + other.T)
    same_bits(ours - ours_other.T, theirs - other.T)
    same_bits(ours * ours_other.T, theirs * other.T)


def test_pattern_of_a_result_is_that_of_patterns_alone() -> None:
    x = tn.csr([1.0, -1.0], [0, 1], [0, 1, 2], (2, 2))
    assert (x - x).nnz == 2
    total = x + tn.csr([-1.0, 5.0], [0, 0], [0, 1, 2], (2, 2))
    assert total.nnz == 3  # one element is 0
    assert total.to_dense().tolist() == [[0.0, 0.0], [5.0, -1.0]]


@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint8])
def test_elements_in_any_order_are_sorted_and_those_of_one_place_summed(index: Any) -> None:
    random = np.random.default_rng(2)
    rows, columns = random.integers(0, 9, 60), random.integers(0, 7, 60)
    data = random.integers(-9, 9, 60).astype(float)
    expected = sp.coo_array((data, (rows, columns)), shape=(9, 7)).tocsr()
    expected.sort_indices()
    ours = tn.csr_from_coo(data, rows.astype(index), columns.astype(index), (9, 7))
    same_bits(ours, expected)
    assert ours.nnz == expected.nnz
    order = np.argsort(rows, kind="stable")
    indptr = np.searchsorted(rows[order], np.arange(10)).astype(index)
    same_bits(tn.csr(data[order], columns[order].astype(index), indptr, (9, 7)), expected)


def test_order_of_the_sums_of_one_place_is_that_of_the_elements() -> None:
    ours = tn.csr_from_coo([1e16, 1.0, -1e16], [0, 0, 0], [0, 0, 0], (1, 1))
    assert ours.to_dense().item() == (1e16 + 1.0) - 1e16


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_large_patterns_are_those_of_scipy_by_any_number_of_threads(index: Any) -> None:
    random, shape = np.random.default_rng(3), (3000, 2500)
    rows, columns = random.integers(0, 3000, 70_000), random.integers(0, 2500, 70_000)
    rows[:4000] = 7  # a long row, with elements that occur twice
    rows, columns = rows.astype(index), columns.astype(index)
    data = random.integers(1, 9, len(rows)).astype(float)
    theirs = sp.coo_array((data, (rows, columns)), shape=shape).tocsr()
    other, thin = random_matrix(shape, 4, density=0.008), random_matrix((2500, 900), 5, 0.003)
    expected = [theirs, theirs.T.tocsr(), theirs + other, theirs @ other.T, theirs @ thin]
    expected += [thin.T.tocsr() @ thin]
    for threads in (1, 2, 7):
        with tn.options(threads=threads):
            ours = tn.csr_from_coo(data, rows, columns, shape)
            lazy_other, lazy_thin = tn.asarray(other), tn.asarray(thin)
            results = [ours, ours.T, ours + lazy_other, ours @ lazy_other.T, ours @ lazy_thin]
            results += [lazy_thin.T @ lazy_thin]
            for result, matrix in zip(results, expected, strict=True):
                found = result.to_scipy()
                matrix.sort_indices()
                for name in ("indices", "indptr", "data"):
                    np.testing.assert_array_equal(getattr(found, name), getattr(matrix, name))


@pytest.mark.parametrize("format", ["coo", "csc", "csr", "bsr", "dia", "lil", "dok"])
def test_formats_of_scipy_are_imported_and_left_as_they_are(format: str) -> None:
    matrix = random_matrix((12, 8)).asformat(format)
    same_bits(tn.asarray(matrix), matrix.toarray())
    unsummed = sp.csr_array((np.ones(3), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2))
    same_bits(tn.asarray(unsummed), [[1.0, 2.0], [0.0, 0.0]])
    assert unsummed.nnz == 3


@pytest.mark.cpu
def test_buffers_of_scipy_are_shared_on_the_callers_promise() -> None:
    matrix = random_matrix((12, 8))
    copied, shared = tn.asarray(matrix), tn.asarray(matrix, copy=False)
    matrix.data *= 2
    same_bits(copied, matrix / 2)
    same_bits(shared, matrix)


def test_round_trips() -> None:
    matrix = random_matrix((12, 8))
    ours = tn.asarray(matrix)
    assert abs(ours.to_scipy() - matrix).nnz == 0
    file = io.BytesIO()
    sp.save_npz(file, ours.to_scipy())
    file.seek(0)
    same_bits(tn.asarray(sp.load_npz(file)), matrix)


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
def test_matrix_market_in_all_symmetries(symmetry: str) -> None:
    matrix = random_matrix((8, 8), density=0.4).astype(
        np.complex128 if symmetry == "hermitian" else None
    )
    matrix = {
        "general": lambda: matrix,
        "symmetric": lambda: matrix + matrix.T,
        "skew-symmetric": lambda: matrix - matrix.T,
        "hermitian": lambda: 1j * matrix + (1j * matrix).conj().T,
    }[symmetry]()
    file = io.BytesIO()
    scipy.io.mmwrite(file, matrix, symmetry=symmetry)
    file.seek(0)
    np.testing.assert_allclose(tn.asarray(scipy.io.mmread(file)).to_dense(), matrix.toarray())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([1.0], [2], [0, 1], (1, 2)), IndexError, "not one of 0 to 1"),
        (([1.0], [-1], [0, 1], (1, 2)), IndexError, "not one of 0 to 1"),
        (([1.0], [0], [0, 2], (1, 2)), IndexError, "does not ascend"),
        (([1.0, 2.0], [0, 0], [0, 2, 1, 2], (3, 2)), IndexError, "does not ascend"),
        (([1.0], [0], [0, 1], (2, 2)), IndexError, "2 bounds, not 3"),
        (([1.0], [0, 1], [0, 1], (1, 2)), tn.errors.ShapeError, "are no elements"),
        (([1.0], [0.5], [0, 1], (1, 2)), tn.errors.DTypeError, "not integers"),
        (([1.0], [0], [0, 1], (1,)), tn.errors.ShapeError, "not \\(rows, columns\\)"),
        (([1.0], [0], [0, 1], (1, -2)), tn.errors.ShapeError, "negative"),
    ],
)
def test_indices_are_checked_at_the_call(arguments: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        tn.csr(*arguments)


def test_indices_of_coordinates_are_checked_at_the_call() -> None:
    with pytest.raises(IndexError, match="a row is not one of 0 to 1"):
        tn.csr_from_coo([1.0], [2], [0], (2, 2))
    with pytest.raises(tn.errors.ShapeError, match="do not place data"):
        tn.csr_from_coo([1.0], [0, 1], [0, 1], (2, 2))


def test_product_with_an_epilogue_is_one_kernel() -> None:
    matrix, x = tn.asarray(random_matrix((300, 200))), tn.ones(200).wait()
    bias = tn.ones(300).wait()
    with tn.profile() as p:
        result = (2.5 * (matrix @ x) + bias).wait()
    assert (p.launches, p.temporaries) == (1, 0)
    np.testing.assert_allclose(result, 2.5 * random_matrix((300, 200)).sum(axis=1) + 1)


def test_products_count_the_terms_that_they_compute() -> None:
    theirs, random = random_matrix((300, 200), density=0.05), np.random.default_rng(0)
    ours, other = tn.asarray(theirs), tn.asarray(random_matrix((200, 40)))
    vector, columns = tn.asarray(random.random(200)), tn.asarray(random.random((200, 6)))
    terms = int(np.diff(other.to_scipy().indptr)[theirs.indices].sum())
    for product, expected in (
        (2.5 * (ours @ vector) + 1, theirs.nnz),
        (ours.astype(np.complex128) @ vector, theirs.nnz),
        (ours @ columns, theirs.nnz * 6),
        (ours @ other, terms),
        (tn.sum(ours, axis=1), 0),
    ):
        with tn.profile() as p:
            product.wait()
        assert p.multiply_adds == expected


@pytest.mark.usefixtures("fused_multiply_add")
def test_softmax_of_the_stored_elements_of_rows_is_one_kernel() -> None:
    theirs = random_matrix((50, 40))
    ours = tn.asarray(theirs)
    with tn.profile() as p:
        result = tn.softmax(ours, axis=1).wait()
    assert (p.launches, p.temporaries) == (1, 0)
    expected = np.where(theirs.toarray() != 0, np.exp(theirs.toarray()), 0)
    totals = expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        result.to_dense(), expected / np.where(totals, totals, 1), rtol=1e-13
    )
    with pytest.raises(tn.errors.UnsupportedError, match="softmax"):
        tn.softmax(ours, axis=0)


def test_equations_are_solved_by_a_factor_that_is_kept() -> None:
    matrix = random_matrix((40, 40)) + 4 * sp.eye_array(40)
    ours, random = tn.asarray(matrix.tocsr()), np.random.default_rng(0)
    for rhs in (random.normal(size=40), random.normal(size=(40, 3))):
        np.testing.assert_allclose(
            tn.linalg.solve(ours, rhs), np.linalg.solve(matrix.toarray(), rhs), rtol=1e-10
        )
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        tn.linalg.solve(tn.csr([1.0, 1.0], [0, 0], [0, 1, 2], (2, 2)), np.ones(2)).wait()
    with pytest.raises(tn.errors.ShapeError):
        tn.linalg.solve(ours, np.ones(39))


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("then", [tn.tanh, lambda x: x])
def test_products_of_many_small_matrices_of_unequal_numbers_of_elements(then: Any) -> None:
    random = np.random.default_rng(0)
    theirs = [random_matrix((20, 18), seed, 0.2 * (seed % 7 > 0)) for seed in range(300)]
    for matrix in theirs[::3]:
        matrix.indices, matrix.indptr = (
            x.astype(np.int64) for x in (matrix.indices, matrix.indptr)
        )
    theirs = [matrix for matrix in theirs if matrix.nnz % 5]
    dense = [random.normal(size=18 if i % 2 else (18, 8)) for i in range(len(theirs))]
    dense[3][0] = np.nan  # it stays with its own matrix
    pairs = [(tn.asarray(matrix), tn.asarray(x)) for matrix, x in zip(theirs, dense, strict=True)]
    with tn.profile() as p:
        products = [matrix @ x for matrix, x in pairs]
        products += [matrix @ x for matrix, x in pairs[:2]]  # the same again
        results = tn.eval(*products[1::2], *[then(product) for product in products])
    for result, product in zip(results[-len(products) :], products, strict=True):
        result.wait()
        assert product.storage == "dense"
    assert p.launches <= 8  # for two dtypes of indices, and vectors and matrices
    for i, product in enumerate(products):
        same_bits(product, theirs[i % len(pairs)] @ dense[i % len(pairs)])
        expected = then(tn.asarray(theirs[i % len(pairs)] @ dense[i % len(pairs)]))
        np.testing.assert_array_equal(results[i - len(products)], expected)


def laplacian(n: int) -> Any:
    second = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return (sp.kron(second, sp.eye_array(n)) + sp.kron(sp.eye_array(n), second)).tocsr()


@pytest.mark.parametrize("form", ["csr", "dense", "function", "preconditioned"])
def test_conjugate_gradients_take_the_steps_of_scipy(form: str) -> None:
    matrix, b = laplacian(12), np.random.default_rng(0).normal(size=144)
    ours = tn.asarray(matrix)
    operator: Any = {
        "dense": tn.asarray(matrix.toarray()),
        "function": lambda x: ours @ x,
    }.get(form, ours)
    options = {"M": tn.diagonal_matrix(tn.full(144, 0.25))} if form == "preconditioned" else {}
    x, steps, residual = tn.linalg.cg(operator, b, rtol=1e-10, **options)
    expected, _ = scipy.sparse.linalg.cg(matrix, b, rtol=1e-10)
    np.testing.assert_allclose(x, expected, rtol=1e-8)
    assert residual.item() <= 1e-10 * np.linalg.norm(b)
    assert 10 < steps.item() < 60
    short = tn.linalg.cg(operator, b, rtol=1e-10, maxiter=3, **options)
    assert short.iterations.item() == 3
    assert short.residual.item() > 1e-10 * np.linalg.norm(b)


def test_conjugate_gradients_begin_at_x0_and_take_complex_matrices() -> None:
    matrix = laplacian(5).astype(complex)
    matrix = matrix + sp.diags_array([0.5j, -0.5j], offsets=[1, -1], shape=matrix.shape)
    b = np.random.default_rng(0).normal(size=25) + 1j
    exact = np.linalg.solve(matrix.toarray(), b)
    x, steps, _ = tn.linalg.cg(tn.asarray(matrix.tocsr()), b, rtol=1e-12)
    np.testing.assert_allclose(x, exact, rtol=1e-9)
    _, none, _ = tn.linalg.cg(tn.asarray(matrix.tocsr()), b, x0=exact, rtol=1e-8)
    assert none.item() == 0 < steps.item()
    with pytest.raises(tn.errors.ShapeError):
        tn.linalg.cg(tn.eye(3), np.ones(4))
    with pytest.raises(tn.errors.DTypeError):
        tn.linalg.cg(tn.eye(3), np.ones(3, int))


def test_sampled_product_computes_the_stored_elements_alone() -> None:
    theirs, random = random_matrix((300, 200), density=0.02), np.random.default_rng(0)
    first, second = random.normal(size=(300, 16)), random.normal(size=(200, 16))
    with tn.profile() as p:
        result = (tn.asarray(theirs) * (tn.asarray(first) @ tn.asarray(second).T)).wait()
    assert p.multiply_adds == theirs.nnz * 16
    assert p.bytes_allocated < 300 * 200 * 8
    expected = theirs.toarray() * (first @ second.T)
    np.testing.assert_allclose(result.to_dense(), expected, rtol=1e-12, atol=1e-14)
