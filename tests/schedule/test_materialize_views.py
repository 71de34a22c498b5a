"""Vectors that lie scattered are copied before a large matrix is multiplied with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn

N = 120
VALUES = np.random.default_rng(6).standard_normal((2, N, N))


def kernels(formula: Callable[..., tn.Array], n: int = N) -> int:
    """Compare the values of a product with NumPy's; return how many kernels ran."""
    first, second = (np.ascontiguousarray(x[:n, :n]) for x in VALUES)
    with tn.options(device="cpu"), tn.profile() as p:
        found = np.asarray(formula(tn.asarray(first), tn.asarray(second)))
    np.testing.assert_allclose(found, np.asarray(formula(first, second)), rtol=1e-11, atol=1e-11)
    return p.kernels


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: a @ b[:, 3],
        lambda a, b: a @ b.T[3],
        lambda a, b: a @ b[3, ::-1],
    ],
)
def test_column_is_copied_first(formula: Callable[..., tn.Array]) -> None:
    assert kernels(formula) == 1


def test_row_is_read_where_it_lies() -> None:
    assert kernels(lambda a, b: a @ b[3]) == 0
    assert kernels(lambda a, b: a[:, 20:] @ b[3, 20:]) == 0


def test_column_is_read_where_it_lies_by_what_is_not_far_larger() -> None:
    assert kernels(lambda a, b: a @ b[:, 3], 60) == 0
    assert kernels(lambda a, b: a[3] @ b[:, 3]) == 0
    assert kernels(lambda a, b: a[:10] @ b[:, 3]) == 0
