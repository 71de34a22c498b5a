"""Derivatives of one's own: what `tn.custom_vjp` promises, batched, in functions, of trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

X, W = tn.asarray([0.6, 2.0, 3.2]), tn.asarray(2.0)
ROWS = tn.asarray(np.random.default_rng(0).normal(size=(4, 3)))


@tn.custom_vjp
def stepped(x: tn.Array, w: tn.Array, times: int = 2) -> tn.Array:
    """Rounded numbers, with the derivative of those that are not rounded."""
    return tn.round(x) * w * times


def forward(x: tn.Array, w: tn.Array, times: int) -> tuple[tn.Array, Any]:
    return stepped(x, w, times), (tn.round(x), w, times)


def backward(residuals: Any, g: tn.Array) -> tuple[Any, ...]:
    rounded, w, times = residuals
    return g * w * times, tn.sum(g * rounded * times), None


stepped.defvjp(forward, backward)


def loss(x: tn.Array, w: tn.Array) -> tn.Array:
    return tn.sum(stepped(x, w) ** 2)


@pytest.mark.parametrize("transform", [lambda f: f, tn.function])
def test_derivative_is_the_stated_one(transform: Callable[..., Any]) -> None:
    by_x, by_w = transform(tn.grad(loss, (0, 1)))(X, W)
    np.testing.assert_array_equal(by_x, 8 * np.asarray([1, 2, 3]) * 4)
    assert by_w.item() == 2 * 4 * 2 * (1 + 4 + 9)
    np.testing.assert_array_equal(stepped(X, W), [4, 8, 12])


@pytest.mark.parametrize("in_axes", [(0, None), (0, 0)])
def test_members_have_the_stated_derivative(in_axes: tuple[Any, Any]) -> None:
    w = W if in_axes[1] is None else tn.asarray([1.0, 2.0, 3.0, 4.0])
    each = [tn.grad(loss, (0, 1))(ROWS[i], w if w.ndim == 0 else w[i]) for i in range(4)]
    by_member = tn.vmap(tn.grad(loss, (0, 1)), in_axes)(ROWS, w)
    of_all = tn.grad(lambda x, w: tn.sum(tn.vmap(loss, in_axes)(x, w)), (0, 1))(ROWS, w)
    for found in (by_member, of_all):
        np.testing.assert_allclose(found[0], [x for x, _ in each], rtol=1e-14)
    by_w = np.asarray([x.item() for _, x in each])
    np.testing.assert_allclose(by_member[1], by_w, rtol=1e-14)
    np.testing.assert_allclose(of_all[1], by_w.sum() if w.ndim == 0 else by_w, rtol=1e-14)


def test_members_of_members() -> None:
    rows = tn.stack([ROWS, ROWS + 1])
    nested = tn.vmap(tn.vmap(loss, (0, None)), (0, None))
    found = tn.grad(lambda x: tn.sum(nested(x, W)))(rows)
    np.testing.assert_allclose(found, tn.grad(loss)(rows, W), rtol=1e-14)


def test_many_calls_are_batched_in_both_directions() -> None:
    @tn.custom_vjp
    def cell(w: tn.Array, x: tn.Array) -> tn.Array:
        return tn.tanh(w @ x)

    cell.defvjp(
        lambda w, x: (tn.tanh(w @ x), (w, x, tn.tanh(w @ x))),
        lambda r, g: (tn.outer(g * (1 - r[2] ** 2), r[1]), r[0].T @ (g * (1 - r[2] ** 2))),
    )
    w = tn.asarray(np.random.default_rng(1).normal(size=(3, 3)))
    rows = [ROWS[i % 4] + i for i in range(64)]

    def total(f: Callable[..., Any], w: tn.Array) -> tn.Array:
        return tn.sum(tn.stack([f(w, f(w, x)) for x in rows]))

    found = tn.grad(lambda w: total(cell, w))(w)
    expected = tn.grad(lambda w: total(lambda w, x: tn.tanh(w @ x), w))(w)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_scan_and_trees() -> None:
    @tn.custom_vjp
    def doubled(tree: dict[str, tn.Array]) -> tuple[tn.Array, ...]:
        return tree["a"] * 2, tree["b"] * 2

    doubled.defvjp(
        lambda tree: (doubled(tree), None), lambda _, g: ({"a": g[0] * 20, "b": g[1] * 20},)
    )
    by_tree = tn.grad(lambda tree: tn.sum(doubled(tree)[0] * 3))({"a": X, "b": W})
    np.testing.assert_array_equal(by_tree["a"], [60.0] * 3)
    assert by_tree["b"].item() == 0

    def last(x: tn.Array) -> tn.Array:
        def step(carry: tn.Array, _: None) -> tuple[tn.Array, None]:
            return doubled({"a": carry, "b": carry})[0], None

        return tn.sum(tn.scan(step, x, length=3)[0])

    np.testing.assert_array_equal(tn.grad(last)(X), [8000.0] * 3)


def test_tangents_and_higher_order() -> None:
    @tn.custom_vjp
    def cube(x: tn.Array) -> tn.Array:
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, g: (g * 3 * x**2,))
    _, tangent = tn.jvp(cube, (X,), (tn.ones(3),))
    np.testing.assert_allclose(tangent, 3 * np.asarray(X) ** 2)
    second = tn.grad(lambda x: tn.sum(tn.grad(lambda x: tn.sum(cube(x)))(x)))(X)
    np.testing.assert_allclose(second, 6 * np.asarray(X))


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        (lambda _, g: g, TypeError),
        (lambda _, g: (g, g), TypeError),
        (lambda _, g: (tn.sum(g),), tn.errors.ShapeError),
        (lambda _, g: (g.astype(tn.float32),), tn.errors.ShapeError),
        (lambda _, g: ([g],), tn.errors.ShapeError),
    ],
)
def test_wrong_terms(terms: Any, error: type[Exception]) -> None:
    f = tn.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), terms)
    with pytest.raises(error, match="remedy"):
        tn.grad(lambda x: tn.sum(f(x)))(X)


def test_missing_derivative_raises() -> None:
    f = tn.custom_vjp(lambda x: x)
    with pytest.raises(TypeError, match="defvjp"):
        f(X)
    f.defvjp(lambda x: x, lambda _, g: (g,))
    with pytest.raises(TypeError, match="pair"):
        tn.grad(lambda x: tn.sum(f(x)))(X)

    def of_captured(w: tn.Array) -> tn.Array:
        scaled = tn.custom_vjp(lambda x: x * w)
        scaled.defvjp(lambda x: (x * w, None), lambda _, g: (g,))
        return tn.sum(scaled(X))

    assert of_captured(W).item() == pytest.approx(11.6)
    with pytest.raises(tn.errors.UnsupportedError, match="make the array an argument"):
        tn.grad(of_captured)(W)
