"""Forward derivatives of one's own: what `tn.custom_jvp` promises, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import ShapeError, UnsupportedError

X, W = tn.asarray([0.6, 2.0, 3.2]), tn.asarray(2.0)


@tn.custom_jvp
def stepped(x: tn.Array, w: tn.Array, times: int = 2) -> tn.Array:
    """Rounded numbers, with the derivative of those that are not rounded."""
    return tn.round(x) * w * times


def along(primals: Any, tangents: Any) -> tuple[tn.Array, tn.Array]:
    (x, w, times), (v, u, nothing) = primals, tangents
    assert nothing is None
    return stepped(x, w, times), (v * w + tn.round(x) * u) * times


stepped.defjvp(along)


def loss(x: tn.Array, w: tn.Array) -> tn.Array:
    return tn.sum(stepped(x, w) ** 2)


@pytest.mark.parametrize("transform", [lambda f: f, tn.function, tn.checkpoint])
def test_derivative_is_the_stated_one(transform: Callable[..., Any]) -> None:
    f = transform(loss)
    by_x, by_w = tn.grad(f, (0, 1))(X, W)
    np.testing.assert_array_equal(by_x, 8 * np.asarray([1, 2, 3]) * 4)
    assert by_w.item() == 2 * 4 * 2 * (1 + 4 + 9)
    np.testing.assert_array_equal(stepped(X, W), [4, 8, 12])
    value, tangent = tn.jvp(stepped, (X, W), (tn.ones(3), tn.asarray(1.0)))
    np.testing.assert_array_equal(value, [4, 8, 12])
    np.testing.assert_array_equal(tangent, [2 * (2 + n) for n in (1, 2, 3)])
    np.testing.assert_array_equal(tn.jacobian(stepped)(X, W), 4 * np.eye(3))


def test_members_have_the_stated_derivative() -> None:
    rows = tn.stack([X, X + 1])
    found = tn.vmap(tn.grad(loss), (0, None))(rows, W)
    np.testing.assert_array_equal(found, np.stack([tn.grad(loss)(x, W) for x in (X, X + 1)]))
    of_all = tn.grad(lambda x: tn.sum(tn.vmap(loss, (0, None))(x, W)))(rows)
    np.testing.assert_array_equal(of_all, found)


def test_second_derivatives() -> None:
    cube = tn.custom_jvp(lambda x: x**3)
    cube.defjvp(lambda x, v: (x[0] ** 3, 3 * x[0] ** 2 * v[0]))
    np.testing.assert_allclose(tn.hessian(lambda x: tn.sum(cube(x)))(X), np.diag(6 * np.asarray(X)))

    def inner(x: tn.Array) -> tn.Array:
        return tn.jvp(cube, (x,), (tn.ones(3),))[1]

    np.testing.assert_allclose(tn.jvp(inner, (X,), (tn.ones(3),))[1], 6 * np.asarray(X))
    assert tn.vmap(tn.hessian(cube))(X).tolist() == pytest.approx((6 * np.asarray(X)).tolist())


def test_complex_derivative_is_transposed() -> None:
    square = tn.custom_jvp(lambda z: z * z)
    square.defjvp(lambda z, v: (z[0] * z[0], 2 * z[0] * v[0]))
    z = tn.asarray([1 + 2j, 3 - 1j])
    for f in (lambda z: tn.sum(tn.abs2(square(z))), lambda z: tn.sum(tn.real(square(z)))):
        expected = tn.grad(lambda z, f=f: f(z))(z)
        np.testing.assert_allclose(tn.grad(f)(z), expected)
    np.testing.assert_allclose(tn.jvp(square, (z,), (z,))[1], 2 * np.asarray(z) ** 2)
    by_z = tn.grad(lambda z: tn.sum(tn.abs2(square(z))))(z)  # of |z|**4
    np.testing.assert_allclose(by_z, 4 * np.abs(np.asarray(z)) ** 2 * np.asarray(z))


def test_endless_loop_with_a_stated_tangent_has_a_reverse() -> None:
    @tn.custom_jvp
    def root(a: tn.Array) -> tn.Array:
        return tn.while_loop(lambda x: tn.abs(x * x - a) > 1e-14, lambda x: (x + a / x) / 2, a)

    root.defjvp(lambda a, v: (root(*a), v[0] / (2 * root(*a))))
    assert tn.grad(root)(tn.asarray(4.0)).item() == pytest.approx(0.25)
    assert tn.hessian(root)(tn.asarray(4.0)).item() == pytest.approx(-1 / 32)


@pytest.mark.parametrize(
    ("rule", "error", "text"),
    [
        (lambda x, v: v[0], TypeError, "pair"),
        (lambda x, v: (x[0], tn.sum(v[0])), ShapeError, "another shape or dtype"),
        (lambda x, v: (x[0], v[0].astype(tn.float32)), ShapeError, "another shape or dtype"),
        (lambda x, v: (x[0], [v[0]]), ShapeError, "another structure"),
        (lambda x, v: (x[0], v[0] * v[0]), UnsupportedError, "not linear"),
    ],
)
def test_wrong_tangents(rule: Any, error: type[Exception], text: str) -> None:
    f = tn.custom_jvp(lambda x: x)
    with pytest.raises(TypeError, match=r"call .*\.defjvp\(along\) first"):
        f(X)
    f.defjvp(rule)
    for derivative in (tn.grad(lambda x: tn.sum(f(x))), lambda x: tn.jvp(f, (x,), (x,))):
        with pytest.raises(error, match=f"(?s){text}.*remedy"):
            derivative(X)


def test_endless_loop_of_tangents_is_refused() -> None:
    f = tn.custom_jvp(tn.sqrt)

    def halved(v: tn.Array) -> Any:
        return tn.while_loop(lambda s: s[1] < 2, lambda s: (s[0] / 2, s[1] + 1), (v, 0))

    f.defjvp(lambda x, v: (tn.sqrt(*x), halved(v[0])[0]))
    for derivative in (lambda x: tn.jvp(f, (x,), (x,)), tn.grad(lambda x: tn.sum(f(x)))):
        with pytest.raises(UnsupportedError, match="while_loop: it has no derivative in reverse"):
            derivative(X)


def test_captured_array_is_refused() -> None:
    def of_captured(w: tn.Array) -> tn.Array:
        scaled = tn.custom_jvp(lambda x: x * w)
        scaled.defjvp(lambda x, v: (x[0] * w, v[0] * w))
        return tn.sum(scaled(X))

    with pytest.raises(UnsupportedError, match="make the array an argument"):
        tn.grad(of_captured)(W)
