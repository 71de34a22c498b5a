"""Scales, signs, transposes, conjugates and addends of products with vectors, and special values.

A product with vectors is one call without temporaries, with the values of NumPy, for any strides
and lengths, and for other scales in a replay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

Formula = Callable[..., Any]
DTYPES = ("float32", "float64", "complex64", "complex128")
FORMULAS: dict[str, Formula] = {
    "scaled": lambda xp, a, b, u, v, s: (s * a) @ u,
    "scaled vector": lambda xp, a, b, u, v, s: a @ (u * s),
    "scaled result": lambda xp, a, b, u, v, s: (a @ u) * s,
    "negated": lambda xp, a, b, u, v, s: -a @ u,
    "negated and scaled": lambda xp, a, b, u, v, s: (-s * a) @ -u,
    "transposed": lambda xp, a, b, u, v, s: (s * a).T @ u,
    "row": lambda xp, a, b, u, v, s: u @ (s * a),
    "adjoint": lambda xp, a, b, u, v, s: xp.conj(a).T @ u,
    "conjugated": lambda xp, a, b, u, v, s: xp.conj(a) @ (s * xp.conj(u)),
    "conjugated vector": lambda xp, a, b, u, v, s: a @ xp.conj(-u),
    "conjugated matrices": lambda xp, a, b, u, v, s: xp.conj(a).T @ xp.conj(s * b),
    "dot": lambda xp, a, b, u, v, s: (s * u) @ v,
    "conjugated dot": lambda xp, a, b, u, v, s: xp.conj(u) @ -v,
    "added": lambda xp, a, b, u, v, s: a @ u + v,
    "added and scaled": lambda xp, a, b, u, v, s: s * v - (2.5 * a).T @ u,
    "two": lambda xp, a, b, u, v, s: a @ u + s * (b.T @ v),
}
LENGTHS = (0, 1, 7, 8, 33)


def operands(n: int, dtype: str, seed: int = 0) -> list[np.ndarray]:
    """Two matrices and two vectors."""
    random = np.random.default_rng(seed)

    def made(*shape: int) -> np.ndarray:
        values = random.standard_normal(shape)
        if dtype.startswith("complex"):
            values = values + 1j * random.standard_normal(shape)
        return values.astype(dtype)

    return [made(n, n), made(n, n), made(n), made(n)]


def assert_close(found: Any, wanted: Any, n: int, dtype: str) -> None:
    tolerance = 16 * (n + 4) * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance)
    assert np.asarray(found).dtype == dtype


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_values_are_those_of_numpy_in_a_replay_too(name: str, dtype: str) -> None:
    formula = FORMULAS[name]
    for n in LENGTHS:
        for seed, scale in enumerate((1.5, -0.25, 1.0)):
            arrays = operands(n, dtype, seed)
            with tn.options(device="cpu"):
                found = formula(tn, *map(tn.asarray, arrays), scale)
                assert_close(found, formula(np, *arrays, scale), n, dtype)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMULAS)
def test_operands_may_have_any_strides(name: str, dtype: str) -> None:
    whole, other, longest, second = operands(90, dtype)
    views: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
        "every second": lambda m, u: (m[::2, ::2], u[::2]),
        "backwards": lambda m, u: (m[44::-1, :45], u[44::-1]),
        "transposed": lambda m, u: (m.T[:45, 45:], m[3, :45]),
        "columns": lambda m, u: (m[:45, 45:], m[:45, 7]),
    }
    for view in views.values():
        a, u = view(whole, longest)
        b, v = view(other, second)
        x1, y1 = view(tn.asarray(whole), tn.asarray(longest))
        x2, y2 = view(tn.asarray(other), tn.asarray(second))
        found = FORMULAS[name](tn, x1, x2, y1, y2, 1.5)
        assert_close(found, FORMULAS[name](np, a, b, u, v, 1.5), 45, dtype)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "two"])
def test_it_is_one_call_without_temporaries(name: str, dtype: str) -> None:
    for scale in (1.5, 2.5):
        arrays = [tn.asarray(x) for x in operands(100, dtype)]
        with tn.options(device="cpu", tier=1), tn.profile() as counted:
            FORMULAS[name](tn, *arrays, scale).wait()
        assert (counted.calls, counted.kernels, counted.temporaries) == (1, 0, 0)


def test_sum_of_two_products_is_two_calls() -> None:
    arrays = [tn.asarray(x) for x in operands(100, "float64")]
    with tn.profile() as counted:
        FORMULAS["two"](tn, *arrays, 1.5).wait()
    assert (counted.calls, counted.kernels) == (2, 0)


@pytest.mark.parametrize("name", ["scaled", "adjoint", "conjugated matrices"])
def test_order_of_writing_holds_without_reassociation(name: str) -> None:
    arrays = operands(40, "complex128")
    with tn.options(reassociate=False), tn.profile() as counted:
        found = FORMULAS[name](tn, *map(tn.asarray, arrays), 1.5).wait()
    assert counted.kernels >= 1
    assert_close(found, FORMULAS[name](np, *arrays, 1.5), 40, "complex128")


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 40, 520])
def test_zero_scale_keeps_nan_and_infinity(n: int, dtype: str) -> None:
    """BLAS does not read what it multiplies by zero."""
    a, b, u, v = operands(n, dtype)
    a[1, 2], b[2, 1], v[1], c = np.nan, np.inf, np.nan, a.copy()
    x, y, z, p, q = map(tn.asarray, (a, b, c, u, v))
    with np.errstate(all="ignore"), tn.options(device="cpu"):
        for scale in (0.0, -0.0):
            vector = np.isnan(np.asarray((scale * x) @ p))
            assert np.array_equal(vector, np.isnan(scale * (a @ u)))
            found = np.isnan(np.asarray((scale * x) @ y))
            assert np.array_equal(found, np.isnan(scale * (a @ b)))
            added = np.isnan(np.asarray(tn.asarray(b.real.astype(dtype)) @ y + scale * z))
            assert np.array_equal(added, np.isnan(b.real.astype(dtype) @ b + scale * c))
            added = np.isnan(np.asarray(y.T @ p + scale * q))
            assert np.array_equal(added, np.isnan(b.T @ u + scale * v))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_zero_scales_of_large_products_give_the_values_of_numpy(dtype: str) -> None:
    """Those computed by BLAS in strips, with addends of any strides, and with conjugates."""
    a, b, _, _ = operands(520, dtype)
    x, y = tn.asarray(a), tn.asarray(b)
    for alpha, beta in ((0.0, 1.5), (2.5, 0.0), (0.0, 0.0)):
        found = (alpha * x) @ y + beta * x
        assert_close(found, alpha * (a @ b) + beta * a, 520, dtype)
        found = tn.conj(x).T @ tn.conj(alpha * y) - beta * x[::-1].T
        assert_close(found, alpha * (a.conj().T @ b.conj()) - beta * a[::-1].T, 520, dtype)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_large_addends_have_any_strides(dtype: str) -> None:
    a, b, _, _ = operands(520, dtype)
    x, y = tn.asarray(a), tn.asarray(b)
    with tn.options(device="cpu", tier=1):
        for _ in range(2):
            with tn.profile() as counted:
                found = (tn.conj(x).T @ tn.conj(y) - x.T).wait()
            wanted = a.conj().T @ b.conj() - a.T
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-3, atol=1e-3)
            assert (counted.calls, counted.copies, counted.temporaries) == (1, 0, 0)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_large_products_accumulate_in_place(dtype: str) -> None:
    a, b, _, _ = operands(520, dtype)
    x, y, target, wanted = tn.asarray(a), tn.asarray(b), tn.asarray(b) + 0.0, b.copy()
    for _ in range(3):
        target += 0.5 * (tn.conj(x).T @ tn.conj(y))
        wanted += 0.5 * (a.conj().T @ b.conj())
        np.testing.assert_allclose(np.asarray(target), wanted, rtol=1e-9, atol=1e-9)
