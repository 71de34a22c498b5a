"""What storage kinds got wrong before it was looked for: each is an example of its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

DENSE = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]])


def csr() -> tn.Array:
    return tn.csr([1.0, 2.0, 3.0, 4.0, 5.0], [0, 2, 1, 0, 2], [0, 2, 3, 5], (3, 3))


def diagonal(*shape: int) -> tn.Array:
    return tn.diagonal_matrix(tn.reshape(tn.arange(int(np.prod(shape))) * 1.0 + 1, shape))


@pytest.mark.parametrize("operation", [lambda x: 2 // x, lambda x: 2 % x, lambda x: True // x])
def test_number_divided_by_integers_of_a_kind(operation: Callable[[Any], Any]) -> None:
    for matrix in (tn.csr([1, 2], [0, 1], [0, 1, 2], (2, 2)), tn.diagonal_matrix([1, 2])):
        for _ in range(2):
            with np.errstate(divide="ignore"):
                expected = operation(np.diag([1, 2]))
            assert operation(matrix).to_dense().tolist() == expected.tolist()


@pytest.mark.parametrize("shape", [(3, 3), (1, 3), (2, 3)])
def test_products_with_stacks_of_diagonals(shape: tuple[int, int]) -> None:
    stack = diagonal(*shape)
    expected = DENSE @ np.asarray(stack.to_dense())
    with pytest.raises(tn.errors.UnsupportedError):
        csr() @ stack
    np.testing.assert_array_equal(tn.asarray(DENSE) @ stack, expected)


def test_lengths_of_two_diagonals_must_fit() -> None:
    one, three = diagonal(1), diagonal(3)
    for use in (lambda: one @ three, lambda: three @ one, lambda: tn.linalg.solve(three, one)):
        with pytest.raises(tn.errors.ShapeError):
            use()


@pytest.mark.parametrize("index", [np.int8, np.uint8, np.uint16, np.uint32, np.uint64, np.int64])
def test_index_dtypes(index: Any) -> None:
    data, indices = np.array([1.0, 2.0]), np.array([1, 0], index)
    indptr = np.array([0] * 100 + [1, 2], index)
    matrix = tn.csr(data, indices, indptr, (101, 2))
    expected = np.zeros((101, 2))
    expected[99, 1], expected[100, 0] = 1, 2
    order = [100, 99, 100, 3, 99] * 60
    np.testing.assert_array_equal(matrix.to_dense(), expected)
    np.testing.assert_array_equal(matrix[::-1].to_dense(), expected[::-1])
    np.testing.assert_array_equal(matrix[order] @ tn.ones(2), expected[order].sum(axis=1))
    np.testing.assert_array_equal(np.arange(101.0) @ matrix, np.arange(101) @ expected)
    np.testing.assert_array_equal(matrix.diagonal(), expected.diagonal())


@pytest.mark.parametrize("name", ["sum", "mean", "any", "count_nonzero", "max", "min"])
def test_reduction_of_no_axis(name: str) -> None:
    result = getattr(tn, name)(csr(), axis=())
    np.testing.assert_array_equal(result.to_dense(), getattr(np, name)(DENSE, axis=()))


def test_strict_dtypes_refuse_to_mix() -> None:
    x = tn.ones(3, dtype=tn.float32)
    for matrix in (csr(), tn.permutation([2, 0, 1]), diagonal(3)):
        (matrix @ x).wait()  # a rule that was replayed before
        with tn.options(strict_dtypes=True):
            for use in (lambda: matrix @ x, lambda: tn.linalg.solve(matrix, x)):  # noqa: B023
                with pytest.raises(tn.errors.DTypeError):
                    use()
            assert matrix.to_dense().dtype == tn.float64
            assert (matrix + tn.asarray(DENSE)).dtype == tn.float64
            assert matrix[0].dtype == tn.float64


def test_dtypes_of_linear_algebra_of_integers() -> None:
    order = tn.permutation([1, 0], dtype=tn.int64)
    assert tn.linalg.solve(order, tn.asarray([1, 2])).dtype == tn.float64
    assert tn.linalg.inv(order).dtype == tn.float64
    assert tn.linalg.det(tn.diagonal_matrix(tn.asarray([1, 2]))).dtype == tn.float64


@pytest.mark.cpu
def test_indices_that_change_later_do_not_change_the_matrix() -> None:
    indptr = np.array([0, 2, 3, 5])
    matrix = tn.csr([1.0, 2.0, 3.0, 4.0, 5.0], [0, 2, 1, 0, 2], tn.wrap(indptr), (3, 3))
    indptr[2] = 10**9
    np.testing.assert_array_equal(matrix @ tn.ones(3), DENSE.sum(axis=1))


def test_pending_permutation_is_checked() -> None:
    with pytest.raises(ValueError, match="once"):
        tn.permutation(tn.asarray([0, 0, 1]) * 1)


@pytest.mark.parametrize("indptr", [[0, 2, 10**9, 5], [0, -(10**9), 3, 5], [0, 4, 1, 5]])
def test_libraries_get_no_pattern_that_is_none(indptr: list[int]) -> None:
    from tenfold.core.pytree import flatten

    leaves, tree = flatten(csr())
    matrix = tree.unflatten([*leaves[:2], tn.asarray(indptr)])
    with pytest.raises(IndexError):
        tn.linalg.solve(matrix, tn.ones(3)).wait()
    with pytest.raises(IndexError):
        matrix.to_scipy()


@pytest.mark.parametrize("kind", [csr, lambda: diagonal(3)])
def test_dense_array_in_place_stays_dense(kind: Callable[[], tn.Array]) -> None:
    x = tn.ones((3, 3))
    view, values = x[:], np.asarray(kind().to_dense())
    x *= kind()
    assert not hasattr(x, "nnz")
    np.testing.assert_array_equal(view, values)
    x[1:] *= kind()[1:]
    x[0] = 7
    np.testing.assert_array_equal(x, np.concatenate([np.full((1, 3), 7.0), (values * values)[1:]]))
    x[...] = kind()
    np.testing.assert_array_equal(x, values)


def test_few_elements_in_many_columns_take_little_memory() -> None:
    matrix = tn.csr_from_coo([1.0, 2.0], [1, 0], [2**29, 1], (2, 2**30))
    with tn.profile() as p:
        assert tn.sum(matrix).item() == 3
    assert p.bytes_allocated < 2**20


@pytest.mark.parametrize("number", [2, 2.0])
def test_products_with_numbers_are_refused_as_of_dense_arrays(number: float) -> None:
    for matrix in (csr(), tn.permutation([2, 0, 1]), diagonal(3)):
        for use in (lambda: matrix @ number, lambda: number @ matrix):  # noqa: B023
            with pytest.raises(tn.errors.ShapeError):
                use()


def test_products_of_permutations_and_other_kinds() -> None:
    order = [2, 0, 1]
    permutation, dense = tn.permutation(order), np.eye(3)[order]
    for matrix in (csr(), diagonal(3)):
        values = np.asarray(matrix.to_dense())
        np.testing.assert_array_equal((permutation @ matrix).to_dense(), dense @ values)
        np.testing.assert_array_equal((matrix @ permutation).to_dense(), values @ dense)
        solution = tn.linalg.solve(permutation, matrix)
        np.testing.assert_array_equal(solution.to_dense(), np.linalg.solve(dense, values))


def test_conjugate_gradients_of_a_right_side_of_zeros() -> None:
    x, steps, _ = tn.linalg.cg(tn.asarray(DENSE @ DENSE.T), np.zeros(3), x0=np.ones(3))
    assert (x.tolist(), steps.item()) == ([0, 0, 0], 0)


def test_rules_that_are_replayed_look_at_no_values() -> None:
    a = csr()
    for number, expected in ((0.25, DENSE > 0.25), (4.5, DENSE > 4.5)):
        assert np.array_equal((a > number).to_dense(), expected)
    with pytest.raises(tn.errors.UnsupportedError):
        a > -1  # noqa: B015
    other = tn.csr([1.0, 1.0], [1, 2], [0, 1, 2, 2], (3, 3))
    for second in (a, other, a):
        np.testing.assert_array_equal(
            (a * second).to_dense(), DENSE * np.asarray(second.to_dense())
        )
        np.testing.assert_array_equal((a @ second).to_dense(), DENSE @ second.to_dense())
    assert tn.csr([], [], [0, 0], (1, 2)).dtype == tn.float64
