"""What derivatives got wrong before it was looked for: each is an example of its kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
import tenfold.numpy as tnp

X = tn.asarray([1.0, 2.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tn.linspace(x, 2.0, 3),
        lambda x: tn.linspace(0.0, x, 3),
        lambda x: tn.arange(x, 4.0, 1.0),
        lambda x: tn.arange(0.0, 4.0, x),
    ],
)
def test_ranges_of_arrays_read_values(make: Callable[[Any], tn.Array]) -> None:
    with pytest.raises(tn.errors.UnsupportedError, match="reads values"):
        tn.grad(lambda x: tn.sum(make(x)))(tn.asarray(1.0))


@pytest.mark.parametrize("dtype", [tn.float16, tn.bfloat16, tn.float32])
def test_derivatives_reach_as_far_as_the_values(dtype: Any) -> None:
    x = tn.asarray([300.0, 400.0]).astype(dtype)
    np.testing.assert_allclose(tn.grad(tn.linalg.norm)(x).astype(tn.float64), [0.6, 0.8], rtol=1e-2)
    first, second = tn.grad(tn.atan2, argnums=(0, 1))(x[0], x[1])
    np.testing.assert_allclose(first.astype(tn.float64), 400 / 500**2, rtol=1e-2)
    np.testing.assert_allclose(second.astype(tn.float64), -300 / 500**2, rtol=1e-2)
    found = tn.grad(tn.asinh)(x[0]).astype(tn.float64)
    np.testing.assert_allclose(found, 1 / 300, rtol=1e-2)


@pytest.mark.parametrize("pair", [(1e-30, 1e-30), (1e-15, 1e25), (3e20, 4e20)])
def test_angles_far_from_and_near_the_origin(pair: tuple[float, float]) -> None:
    y, x = pair
    found = tn.grad(tn.atan2)(tn.asarray(y, dtype=tn.float32), tn.asarray(x, dtype=tn.float32))
    np.testing.assert_allclose(found, x / (x * x + y * y), rtol=1e-5)


def test_asinh_of_large_numbers() -> None:
    found = tn.grad(tn.asinh)(tn.asarray(1e20, dtype=tn.float32))
    np.testing.assert_allclose(found, 1e-20, rtol=1e-6)


@pytest.mark.parametrize("size", [0.0, -1e5, 1e6, -1e10])
def test_logaddexp_at_any_size(size: float) -> None:
    x = tn.asarray(size, dtype=tn.float32)
    assert tn.grad(tn.logaddexp)(x, x).item() == pytest.approx(0.5, rel=1e-6)
    z = tn.asarray(0.25)
    second = tn.grad(tn.grad(tn.logaddexp))(z, z)
    assert second.item() == pytest.approx(0.25)
    assert tn.grad(tn.logaddexp)(tn.asarray(-60.0), tn.asarray(0.0)).item() == pytest.approx(
        np.exp(-60.0)
    )


def test_sigmoid_far_out() -> None:
    found = tn.grad(tn.sigmoid)(tn.asarray(30.0, dtype=tn.float32)).item()
    assert found == pytest.approx(np.exp(-30.0), rel=1e-5)


@pytest.mark.parametrize("argnums", [(0, 0), (0, -2)])
def test_argument_is_named_once(argnums: tuple[int, int]) -> None:
    with pytest.raises(tn.errors.ShapeError, match="twice"):
        tn.grad(lambda x, y: tn.sum(x * y), argnums=argnums)(X, X)


def test_rule_of_a_user_gives_one_term_for_each_operand() -> None:
    for vjp in (lambda g, y, x, c: g * 7, lambda g, y, x, c: (g,)):

        @tn.op(vjp=vjp)
        def scaled(x: Any, c: Any) -> Any:
            return x * c

        with pytest.raises(TypeError, match="a tuple of 2"):
            tn.grad(lambda x, c: tn.sum(scaled(x, c)))(X, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tn.maximum(x, 1.0),
        lambda x: tn.minimum(1.0, x),
        tn.relu,
        lambda x: tn.clip(x, 0, 1),
    ],
)
def test_nan_does_not_look_converged(function: Callable[[Any], Any]) -> None:
    gradient = tn.grad(lambda x: tn.sum(function(x) * x))(tn.asarray([tn.nan]))
    assert np.isnan(gradient).all()


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_elements_outside_of_a_promised_triangle_have_no_cotangent(side: str) -> None:
    triangle = np.tril if side == "lower" else np.triu
    values = triangle(np.array([[3.0, 0.5], [1.0, 2.0]]))

    def loss(x: Any) -> Any:
        return tn.sum(tn.linalg.solve(tn.assume(x, side), X)) + tn.linalg.det(tn.assume(x, side))

    gradient = np.asarray(tn.grad(loss)(tn.asarray(values)))
    np.testing.assert_array_equal(gradient, triangle(gradient))
    assert np.count_nonzero(gradient) == 3


def test_steps_by_vjp_keep_no_history() -> None:
    w = tn.ones(1000)
    for _ in range(3):
        y, pull = tn.vjp(tn.sin, w)
        (g,) = pull(tn.ones(1000))
        w = (w - 0.001 * g).wait()
        assert not tn._native.node_of(w).inputs
    y, pull = tn.vjp(tn.sin, w)
    y.wait()
    np.testing.assert_allclose(pull(y)[0], np.cos(w) * np.sin(w))
    np.testing.assert_allclose(pull(y)[0], np.cos(w) * np.sin(w))
    second = tn.grad(lambda x: tn.sum(tn.vjp(tn.sin, x)[1](tn.ones(2))[0]))(X)
    np.testing.assert_allclose(second, -np.sin(X), rtol=1e-14)


def test_gradients_of_single_precision_are_not_compared_with_differences() -> None:
    with pytest.raises(tn.errors.DTypeError, match="float64"):
        tn.testing.check_gradients(tn.sin, tn.asarray([1.0], dtype=tn.float32))


def test_elements_that_are_left_out_have_no_cotangent() -> None:
    x = tn.asarray([1.0, 2.0, np.nan, 4.0])
    kept = tn.asarray([1.0, 2.0, 4.0])
    for left_out, of_kept in ((tnp.nanvar, tnp.var), (tnp.nanstd, tnp.std)):
        found = np.asarray(tn.grad(left_out)(x))
        np.testing.assert_allclose(found[[0, 1, 3]], tn.grad(of_kept)(kept), rtol=1e-14)
        assert found[2] == 0


def test_sinc_at_and_near_the_origin() -> None:
    def second(x: tn.Array) -> tn.Array:
        return tn.grad(tn.grad(tnp.sinc))(x)

    for x in (0.0, 1e-9, 1e-3, 0.158, 0.16):
        y = np.longdouble(np.pi) * x  # the second derivative is even, and a series
        terms = [(-1) ** k * (2 * k + 2) * (2 * k + 1) * y ** (2 * k) for k in range(12)]
        factors = [-1 / np.longdouble(math.factorial(2 * k + 3)) for k in range(12)]
        expected = float(np.pi**2 * sum(np.multiply(terms, factors)))
        assert second(tn.asarray(x)).item() == pytest.approx(expected, rel=1e-12)


def test_branch_that_a_member_has_not_chosen_has_no_derivative() -> None:
    def root(x: tn.Array) -> tn.Array:
        return tn.cond(x > 0, tn.sqrt, lambda x: -x, x)

    x = tn.asarray([-1.0, 4.0, 0.0])
    found = tn.grad(lambda x: tn.sum(tn.vmap(root)(x)))(x)
    np.testing.assert_array_equal(found, [-1, 0.25, -1])
