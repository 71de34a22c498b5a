"""Jacobians, Hessians and their products: textbook functions against their closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import optimize

import tenfold as tn
from tenfold.errors import DTypeError, RunError, ShapeError, UnsupportedError

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3))
X, P = np.array([0.5, -1.25, 2.0]), np.array([0.5, 1.25, 2.0])
XY, EYE = np.array([1.5, 0.7]), np.eye(3)
Values = Any


def softmax(x: Values) -> Values:
    e = np.exp(x)
    return e / e.sum()


def sigmoid(x: Values) -> Values:
    return 1 / (1 + np.exp(-x))


class Textbook(NamedTuple):
    """A real function with its gradient and its Hessian."""

    name: str
    function: Callable[..., Any]
    at: Values
    gradient: Callable[..., Any]
    hessian: Callable[..., Any]


def elementwise(
    name: str, f: Callable[..., Any], at: Values, first: Callable[..., Any], second: Any
) -> Textbook:
    return Textbook(name, lambda x: tn.sum(f(x)), at, first, lambda x: np.diag(second(x)))


def of_two(name: str, f: Callable[..., Any], first: Any, second: Any) -> Textbook:
    return Textbook(
        name,
        lambda z: f(z[0], z[1]),
        XY,
        lambda z: np.array(first(*z)),
        lambda z: np.array(second(*z)),
    )


def prod_hessian(x: Values) -> Values:
    found = np.prod(x) / np.outer(x, x)
    np.fill_diagonal(found, 0)
    return found


def geometric_mean(x: Values) -> Values:
    return np.prod(x) ** (1 / 3)


TEXTBOOK = [
    elementwise("squares", lambda x: x**2, X, lambda x: 2 * x, lambda x: 2 + 0 * x),
    elementwise("cubes", lambda x: x**3, X, lambda x: 3 * x**2, lambda x: 6 * x),
    elementwise("exp", tn.exp, X, np.exp, np.exp),
    elementwise("log", tn.log, P, lambda x: 1 / x, lambda x: -1 / x**2),
    elementwise("entropy", lambda x: x * tn.log(x), P, lambda x: np.log(x) + 1, lambda x: 1 / x),
    elementwise("sin", tn.sin, X, np.cos, lambda x: -np.sin(x)),
    elementwise("cosh", tn.cosh, X, np.sinh, np.cosh),
    elementwise(
        *("tanh", tn.tanh, X, lambda x: 1 - np.tanh(x) ** 2),
        lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
    ),
    elementwise(
        *("atan", tn.atan, X, lambda x: 1 / (1 + x**2), lambda x: -2 * x / (1 + x**2) ** 2)
    ),
    elementwise(
        *("sqrt", tn.sqrt, P, lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 / np.sqrt(x) ** 3)
    ),
    elementwise("reciprocal", lambda x: 1 / x, P, lambda x: -1 / x**2, lambda x: 2 / x**3),
    elementwise(
        *("pseudo-Huber", lambda x: tn.sqrt(1 + x * x), X),
        *(lambda x: x / np.sqrt(1 + x * x), lambda x: (1 + x * x) ** -1.5),
    ),
    elementwise(
        *("softplus", lambda x: tn.log1p(tn.exp(x)), X, sigmoid),
        lambda x: sigmoid(x) * sigmoid(-x),
    ),
    Textbook("rosenbrock", optimize.rosen, X, optimize.rosen_der, optimize.rosen_hess),
    Textbook(
        *("quadratic", lambda x: x @ tn.asarray(B) @ x / 2 + tn.sum(x), X),
        *(lambda x: (B + B.T) @ x / 2 + 1, lambda x: (B + B.T) / 2),
    ),
    Textbook(
        *("logsumexp", tn.logsumexp, X, softmax),
        lambda x: np.diag(softmax(x)) - np.outer(softmax(x), softmax(x)),
    ),
    Textbook(
        *("norm", tn.linalg.norm, X, lambda x: x / np.linalg.norm(x)),
        lambda x: EYE / np.linalg.norm(x) - np.outer(x, x) / np.linalg.norm(x) ** 3,
    ),
    Textbook(
        *("fourth power of the norm", lambda x: (x @ x) ** 2, X, lambda x: 4 * (x @ x) * x),
        lambda x: 4 * (x @ x) * EYE + 8 * np.outer(x, x),
    ),
    Textbook(
        *("bell", lambda x: tn.exp(-(x @ x) / 2), X, lambda x: -x * np.exp(-(x @ x) / 2)),
        lambda x: (np.outer(x, x) - EYE) * np.exp(-(x @ x) / 2),
    ),
    Textbook(
        *("saturation", lambda x: (x @ x) / (1 + x @ x), X, lambda x: 2 * x / (1 + x @ x) ** 2),
        lambda x: 2 * EYE / (1 + x @ x) ** 2 - 8 * np.outer(x, x) / (1 + x @ x) ** 3,
    ),
    Textbook("product", tn.prod, X, lambda x: np.prod(x) / x, prod_hessian),
    Textbook(
        "product of a zero",
        tn.prod,
        np.array([0.0, 2.0, 3.0]),
        lambda _: [6, 0, 0],
        lambda _: [[0, 3, 2], [3, 0, 0], [2, 0, 0]],
    ),
    Textbook(
        *("geometric mean", lambda x: tn.prod(x) ** (1 / 3), P),
        lambda x: geometric_mean(x) / (3 * x),
        lambda x: geometric_mean(x) * (np.outer(1 / x, 1 / x) / 9 - np.diag(1 / x**2) / 3),
    ),
    Textbook(
        *("variance", tn.var, X, lambda x: 2 * (x - x.mean()) / 3, lambda x: 2 / 3 * (EYE - 1 / 3))
    ),
    Textbook(
        *("logistic loss", lambda x: tn.sum(tn.log1p(tn.exp(-(tn.asarray(A) @ x)))), X),
        lambda x: -A.T @ sigmoid(-A @ x),
        lambda x: A.T @ np.diag(sigmoid(A @ x) * sigmoid(-A @ x)) @ A,
    ),
    of_two(
        *("Himmelblau", lambda x, y: (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2),
        lambda x, y: [
            4 * x * (x**2 + y - 11) + 2 * (x + y**2 - 7),
            2 * (x**2 + y - 11) + 4 * y * (x + y**2 - 7),
        ],
        lambda x, y: [
            [12 * x**2 + 4 * y - 42, 4 * (x + y)],
            [4 * (x + y), 12 * y**2 + 4 * x - 26],
        ],
    ),
    of_two(
        *("Booth", lambda x, y: (x + 2 * y - 7) ** 2 + (2 * x + y - 5) ** 2),
        lambda x, y: [10 * x + 8 * y - 34, 8 * x + 10 * y - 38],
        lambda x, y: [[10, 8], [8, 10]],
    ),
    of_two(
        *("McCormick", lambda x, y: tn.sin(x + y) + (x - y) ** 2 - 1.5 * x + 2.5 * y),
        lambda x, y: [np.cos(x + y) + 2 * (x - y) - 1.5, np.cos(x + y) - 2 * (x - y) + 2.5],
        lambda x, y: [
            [2 - np.sin(x + y), -2 - np.sin(x + y)],
            [-2 - np.sin(x + y), 2 - np.sin(x + y)],
        ],
    ),
    of_two(
        *("square over linear", lambda x, y: x**2 / y),
        lambda x, y: [2 * x / y, -((x / y) ** 2)],
        lambda x, y: [[2 / y, -2 * x / y**2], [-2 * x / y**2, 2 * x**2 / y**3]],
    ),
    of_two(
        *("power", lambda x, y: x**y),
        lambda x, y: [y * x ** (y - 1), x**y * np.log(x)],
        lambda x, y: [
            [y * (y - 1) * x ** (y - 2), x ** (y - 1) * (1 + y * np.log(x))],
            [x ** (y - 1) * (1 + y * np.log(x)), x**y * np.log(x) ** 2],
        ],
    ),
    of_two(
        *("angle", lambda x, y: tn.atan2(y, x)),
        lambda x, y: np.array([-y, x]) / (x * x + y * y),
        lambda x, y: (
            np.array([[2 * x * y, y * y - x * x], [y * y - x * x, -2 * x * y]])
            / (x * x + y * y) ** 2
        ),
    ),
    Textbook(
        *("determinant", lambda m: m[0] * m[3] - m[1] * m[2], np.arange(1.0, 5)),
        lambda m: [m[3], -m[2], -m[1], m[0]],
        lambda _: np.diag([1, -1, -1, 1])[::-1],
    ),
]


def function_of(case: Textbook) -> Callable[..., Any]:
    if case.name == "rosenbrock":
        return lambda x: tn.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    return case.function


def test_table_has_thirty_functions() -> None:
    assert len({case.name for case in TEXTBOOK}) == len(TEXTBOOK) >= 30


@pytest.mark.parametrize("case", TEXTBOOK, ids=lambda case: case.name)
def test_textbook_function_has_its_closed_derivatives(case: Textbook) -> None:
    f, x = function_of(case), tn.asarray(case.at)
    expected = np.asarray(case.hessian(case.at), float)
    close = {"rtol": 1e-11, "atol": 1e-11 * float(np.abs(expected).max())}
    np.testing.assert_allclose(tn.jacobian(f)(x), case.gradient(case.at), **close)
    np.testing.assert_allclose(tn.hessian(f)(x), expected, **close)
    np.testing.assert_allclose(tn.jacobian(tn.grad(f))(x), expected, **close)
    direction = np.linspace(1, 2, len(case.at))
    product = tn.hvp(f, (x,), (tn.asarray(direction),))
    np.testing.assert_allclose(product, expected @ direction, **close)
    linear = tn.linearize(tn.grad(f), x)[1]
    np.testing.assert_allclose(linear(tn.asarray(direction)), expected @ direction, **close)


@pytest.mark.parametrize("name", ["quadratic", "bell", "power"])
def test_members_have_the_derivatives_of_each(name: str) -> None:
    case = next(case for case in TEXTBOOK if case.name == name)
    f, x, expected = case.function, tn.asarray(case.at), case.hessian(case.at)
    rows, direction = tn.stack([x, x]), tn.asarray(np.linspace(1, 2, len(case.at)))
    np.testing.assert_allclose(tn.vmap(tn.hessian(f))(rows)[1], expected, rtol=1e-11)
    np.testing.assert_allclose(tn.vmap(tn.jacobian(f))(rows)[0], case.gradient(case.at))
    product = tn.vmap(lambda x, v: tn.hvp(f, (x,), (v,)), (0, None))(rows, direction)
    np.testing.assert_allclose(product[1], expected @ np.asarray(direction), rtol=1e-11)


def inverse_jacobian(m: Values) -> Values:
    inverse = np.linalg.inv(m)
    return -np.einsum("ik,lj->ijkl", inverse, inverse)


VECTORS: dict[str, tuple[Callable[..., Any], Values, Callable[..., Any]]] = {
    "linear": (lambda x: tn.asarray(A) @ x, X, lambda _: A),
    "wide": (lambda x: tn.asarray(A).T @ x, np.arange(5.0), lambda _: A.T),
    "softmax": (
        *(lambda x: tn.exp(x - tn.logsumexp(x)), X),
        lambda x: np.diag(softmax(x)) - np.outer(softmax(x), softmax(x)),
    ),
    "direction": (
        *(lambda x: x / tn.linalg.norm(x), X),
        lambda x: EYE / np.linalg.norm(x) - np.outer(x, x) / np.linalg.norm(x) ** 3,
    ),
    "polar": (
        *(lambda z: tn.stack([z[0] * tn.cos(z[1]), z[0] * tn.sin(z[1])]), XY),
        lambda z: [[np.cos(z[1]), -z[0] * np.sin(z[1])], [np.sin(z[1]), z[0] * np.cos(z[1])]],
    ),
    "running sum": (tn.cumulative_sum, X, lambda _: np.tril(np.ones((3, 3)))),
    "outer": (
        *(lambda x: tn.outer(x, x), X),
        lambda x: np.einsum("ik,j->ijk", EYE, x) + np.einsum("jk,i->ijk", EYE, x),
    ),
    "matrix square": (
        *(lambda m: m @ m, B),
        lambda m: np.einsum("ik,lj->ijkl", EYE, m) + np.einsum("ik,lj->ijkl", m, EYE),
    ),
    "inverse": (tn.linalg.inv, B, inverse_jacobian),
    "sum of rows": (
        lambda m: tn.sum(m, axis=0),
        B,
        lambda _: np.stack([np.stack([EYE] * 3)] * 1)[0].transpose(1, 0, 2),
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vector_function_has_its_closed_jacobian(name: str) -> None:
    f, at, expected = VECTORS[name]
    for transform in (tn.jacobian, lambda f: tn.function(tn.jacobian(f))):
        np.testing.assert_allclose(transform(f)(tn.asarray(at)), expected(at), atol=1e-11)


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.cpu
def test_jacobian_is_one_batched_pass() -> None:
    a, calls = tn.asarray(RNG.normal(size=(40, 30))), []

    def wide(x: tn.Array) -> tn.Array:
        calls.append(1)
        return tn.tanh(a @ x)

    for f, x, passes in (
        (wide, tn.asarray(RNG.normal(size=30)), 30),
        (lambda x: tn.tanh(a.T @ x), tn.asarray(RNG.normal(size=40)), 30),
    ):
        with tn.profile() as p:
            tn.jacobian(f)(x).wait()
        assert p.multiply_adds <= (passes + 1) * 40 * 30  # the fewer directions, and the function
        assert p.calls + p.kernels <= 8
    assert len(calls) == 1


def counted(make: Callable[[], Any]) -> tn.Profile:
    with tn.profile() as p:
        made = make()
        tn.eval(*made) if isinstance(made, (list, tuple)) else made.wait()
    return p


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.cpu
def test_product_of_a_hessian_costs_a_few_functions() -> None:
    a, x, v = (tn.asarray(RNG.normal(size=shape)) for shape in ((60, 40), 40, 40))
    layers = [tn.asarray(RNG.normal(size=(40, 40))) for _ in range(3)]

    def net(x: tn.Array, layers: list[tn.Array] = layers) -> tn.Array:
        for w in layers:
            x = tn.tanh(x @ w)
        return tn.sum(x * x)

    for f in (lambda x: tn.logsumexp(a @ x), lambda x: tn.sum(tn.log1p(tn.exp(a @ x))), net):
        once = counted(lambda f=f: f(x))
        product = counted(lambda f=f: tn.hvp(f, (x,), (v,)))
        assert product.multiply_adds <= 5 * once.multiply_adds
        assert product.kernels <= 5 * once.kernels
    rows = tn.asarray(RNG.normal(size=(20, 40)))
    of_layers = counted(lambda: tn.grad(lambda layers: net(rows, layers))(layers))
    by_layers = counted(lambda: tn.hvp(lambda layers: net(rows, layers), (layers,), (layers,)))
    assert by_layers.multiply_adds <= 3 * of_layers.multiply_adds


def test_trees_and_argnums() -> None:
    def f(p: dict[str, tn.Array], x: tn.Array) -> dict[str, Any]:
        return {"y": p["w"] @ x, "all": [tn.sum(p["b"] * x)]}

    p = {"w": tn.asarray(A), "b": tn.asarray(X)}
    by_p, by_x = tn.jacobian(f, argnums=(0, 1))(p, tn.asarray(P))["y"]
    np.testing.assert_allclose(by_p["w"], np.einsum("ik,l->ikl", np.eye(5), P))
    assert by_p["b"].shape == (5, 3)
    assert not np.any(np.asarray(by_p["b"]))
    np.testing.assert_allclose(by_x, A)
    found = tn.jacobian(f, argnums=-1)(p, tn.asarray(P))
    np.testing.assert_allclose(found["all"][0], X)
    second = tn.hessian(lambda x, y: tn.sum(x * y * y), argnums=(0, 1))(
        tn.asarray(X), tn.asarray(P)
    )
    np.testing.assert_allclose(second[0][1], np.diag(2 * P))
    np.testing.assert_allclose(second[1][1], np.diag(2 * X))
    v = tn.hvp(lambda x, y: tn.sum(x * y * y), (tn.asarray(X), tn.asarray(P)), (tn.ones(3),) * 2)
    np.testing.assert_allclose(v[0], 2 * P)
    np.testing.assert_allclose(v[1], 2 * P + 2 * X)


def test_aux_comes_along() -> None:
    def f(x: tn.Array) -> Any:
        return x * x, {"n": 3, "x": x}

    x = tn.asarray(X)
    found, aux = tn.jacobian(f, has_aux=True)(x)
    np.testing.assert_allclose(found, np.diag(2 * X))
    assert aux["n"] == 3
    second, aux = tn.hessian(lambda x: (tn.sum(x**3), "aux"), has_aux=True)(x)
    np.testing.assert_allclose(second, np.diag(6 * X))
    assert aux == "aux"
    _, linear, aux = tn.linearize(f, x, has_aux=True)
    np.testing.assert_allclose(linear(tn.ones(3)), 2 * X)
    _, tangent, aux = tn.jvp(f, (x,), (x,), has_aux=True)
    np.testing.assert_allclose(tangent, 2 * X * X)
    np.testing.assert_allclose(aux["x"], X)


def test_complex_jacobians() -> None:
    z, x = tn.asarray([1 + 2j, 3 - 1j]), tn.asarray([0.5, 1.5])
    turned = tn.jacobian(lambda x: tn.exp(1j * x))(x)
    np.testing.assert_allclose(turned, np.diag(1j * np.exp(1j * np.asarray(x))))
    squares = tn.jacobian(tn.abs2)(z)  # df/dx + i df/dy
    np.testing.assert_allclose(squares, np.diag(2 * np.asarray(z)))
    for f in (lambda z: z**3, lambda z: tn.concat([z**3, z])):
        found = np.asarray(tn.jacobian(f, holomorphic=True)(z))
        np.testing.assert_allclose(found[:2], np.diag(3 * np.asarray(z) ** 2))
        with pytest.raises(DTypeError, match="holomorphic=True"):
            tn.jacobian(f)(z)
    with pytest.raises(DTypeError, match="remedy"):
        tn.hessian(lambda z: tn.sum(tn.abs2(z)))(z)
    product = tn.hvp(lambda z: tn.sum(tn.abs2(z) ** 2), (z,), (z,))  # of |z|^4 along z
    np.testing.assert_allclose(product, 12 * np.abs(np.asarray(z)) ** 2 * np.asarray(z))


def test_linear_function_runs_the_function_once() -> None:
    runs = []

    def f(x: tn.Array) -> tn.Array:
        runs.append(1)
        return tn.sin(x) * x[0]

    x = tn.asarray(X)
    value, linear = tn.linearize(f, x)
    rows = tn.vmap(linear, out_axes=-1)(tn.eye(3))
    np.testing.assert_allclose(rows, tn.jacobian(lambda x: tn.sin(x) * x[0])(x))
    np.testing.assert_allclose(value, np.sin(X) * X[0])
    np.testing.assert_allclose(linear(2 * x), 2 * np.asarray(linear(x)))
    assert len(runs) == 1


def test_derivatives_of_pending_derivatives_are_no_silent_zeros() -> None:
    x = tn.asarray(X)
    _, pull = tn.vjp(lambda x: tn.sum(x**3), x)
    _, linear = tn.linearize(lambda x: tn.sum(x**3), x)
    for make in (
        *(lambda: tn.sum(pull(tn.asarray(1.0))[0]), lambda: linear(tn.ones(3))),
        *(lambda: tn.jvp(lambda x: tn.sum(x**3), (x,), (tn.ones(3),))[1],),
        lambda: tn.sum(tn.jacobian(lambda x: x**3)(x)),
    ):
        np.testing.assert_allclose(tn.grad_of(make(), x), 6 * X)
        with pytest.raises(RunError, match="is computed: what it was made of is forgotten"):
            tn.grad_of(make().wait(), x)


def test_empty_and_unreached_arguments() -> None:
    assert tn.jacobian(lambda x: x * 2)(tn.zeros((0,))).shape == (0, 0)
    assert tn.jacobian(lambda x: tn.ones(2))(tn.asarray(X)).tolist() == [[0.0] * 3] * 2
    assert tn.hessian(lambda x: tn.sum(x))(tn.asarray(X)).tolist() == [[0.0] * 3] * 3


def test_refused_arguments() -> None:
    x = tn.asarray(X)
    with pytest.raises(DTypeError, match=r"tn\.jacobian: there is no derivative by int64"):
        tn.jacobian(lambda n: n * 2.0)(tn.asarray([1, 2]))
    with pytest.raises(DTypeError, match=r"tn\.jacobian: there is no derivative by int64"):
        tn.jacobian(lambda x: x.astype(tn.int64))(x)
    with pytest.raises(ShapeError, match=r"tn\.hvp: the result to differentiate is not one"):
        tn.hvp(lambda x: x, (x,), (x,))
    with pytest.raises(ShapeError, match=r"tn\.hvp: a cotangent or a tangent has another shape"):
        tn.hvp(tn.sum, (x,), (tn.ones(2),))
    with pytest.raises(ShapeError, match=r"tn\.linearize"):
        tn.linearize(lambda x: x, x)[1](tn.ones(2))
    with pytest.raises(ShapeError, match=r"tn\.jacobian: argument 1 of"):
        tn.jacobian(lambda x: x, argnums=1)(x)
    with pytest.raises(TypeError, match=r"tn\.jacobian: int is not a function"):
        tn.jacobian(3)  # type: ignore[arg-type]


# loops, engines and minimisers


def root(a: Any) -> Any:
    """Newton's steps to the root of `a`, as many as it takes."""
    return tn.while_loop(
        lambda s: tn.abs(s[0] ** 2 - a) > 1e-15 * a,
        lambda s: ((s[0] + a / s[0]) / 2, 1 + s[1]),
        (a, 0),
    )[0]


@pytest.mark.parametrize("transform", [lambda f: f, tn.function])
def test_endless_loop_has_a_tangent(transform: Callable[..., Any]) -> None:
    f = transform(root)
    a = tn.asarray(2.0)
    value, tangent = tn.jvp(f, (a,), (tn.asarray(3.0),))
    assert value.item() == pytest.approx(2**0.5)
    assert tangent.item() == pytest.approx(1.5 / 2**0.5)
    second = tn.jvp(lambda a: tn.jvp(f, (a,), (tn.asarray(1.0),))[1], (a,), (tn.asarray(1.0),))[1]
    assert second.item() == pytest.approx(-0.25 * 2**-1.5)
    column = tn.jacobian(lambda a: tn.stack([f(a), a]))(a)
    np.testing.assert_allclose(column, [0.5 / 2**0.5, 1])
    members = tn.vmap(lambda a, v: tn.jvp(f, (a,), (v,))[1])(tn.asarray(P), tn.ones(3))
    np.testing.assert_allclose(members, 0.5 / np.sqrt(P), rtol=1e-12)


def test_endless_loop_in_a_scan_has_a_tangent() -> None:
    def nested(a: tn.Array) -> tn.Array:
        return tn.scan(lambda c, x: (root(c) + x, c), a, tn.asarray(P))[0]

    (_, tangent), step = tn.jvp(nested, (tn.asarray(2.0),), (tn.asarray(1.0),)), 1e-6
    ahead, behind = (nested(tn.asarray(2.0 + h)).item() for h in (step, -step))
    assert tangent.item() == pytest.approx((ahead - behind) / (2 * step), rel=1e-8)


def test_endless_loop_has_no_reverse() -> None:
    a = tn.asarray(2.0)
    for f in (
        *(root, tn.function(root), tn.checkpoint(root)),
        lambda a: tn.scan(lambda c, _: (root(c), None), a, length=2)[0],
        lambda a: tn.cond(a > 0, root, lambda a: a, a),
    ):
        (_, tangent), step = tn.jvp(f, (a,), (tn.asarray(1.0),)), 1e-6  # records no reverse
        ahead, behind = (f(tn.asarray(2.0 + h)).item() for h in (step, -step))
        assert tangent.item() == pytest.approx((ahead - behind) / (2 * step), rel=1e-8)
        for refused in (tn.grad(f), lambda a, f=f: tn.hvp(f, (a,), (a,))):
            with pytest.raises(UnsupportedError, match=r"(?s)in reverse.*tn\.scan.*tn\.custom_vjp"):
                refused(a)


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.cpu
def test_pushed_derivatives_are_batched() -> None:
    def f(x: tn.Array) -> tn.Array:
        return tn.sum(tn.sin(x) * x)

    rows = [tn.asarray(RNG.normal(size=5)) for _ in range(32)]
    for pushed in (
        *(tn.value_and_grad(f), tn.grad(f), tn.hessian(f), tn.jacobian(tn.sin)),
        *(lambda x: tn.hvp(f, (x,), (x,)), lambda x: tn.linearize(f, x)[1](x)),
        lambda x: tn.jvp(f, (x,), (x,))[1],
    ):
        with tn.Engine(batch_limit=32) as engine:
            traced = tn.function(pushed)
            with engine.hold():
                handles = [engine.push(traced, x) for x in rows]
            found = [handle.get() for handle in handles]
            assert engine.stats()["batches"] == 1
        for x, given in zip(rows, found, strict=True):
            expected = pushed(x)
            pairs = (
                zip(given, expected, strict=True)
                if isinstance(given, tuple)
                else [(given, expected)]
            )
            for a, b in pairs:
                np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("method", "second"), [("BFGS", {}), ("trust-exact", {"hess": 1}), ("trust-ncg", {"hessp": 1})]
)
def test_minimiser_of_scipy_takes_the_derivatives(method: str, second: dict[str, int]) -> None:
    f = function_of(next(case for case in TEXTBOOK if case.name == "rosenbrock"))
    both, matrix = tn.function(tn.value_and_grad(f)), tn.function(tn.hessian(f))
    product = tn.function(lambda x, v: tn.hvp(f, (x,), (v,)))
    given: dict[str, Any] = {
        "hess": lambda x: np.asarray(matrix(tn.asarray(x))),
        "hessp": lambda x, v: np.asarray(product(tn.asarray(x), tn.asarray(v))),
    }

    def value_and_gradient(x: Values) -> tuple[float, Values]:
        value, gradient = both(tn.asarray(x))
        return value.item(), np.asarray(gradient)

    found = optimize.minimize(
        value_and_gradient,
        np.array([1.3, 0.7, 0.8, 1.9]),
        jac=True,
        method=method,
        **{name: given[name] for name in second},
    )
    assert found.success
    np.testing.assert_allclose(found.x, 1, atol=1e-4)
