"""Checkpoints: values and derivatives of the function, with less memory and more work."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import UnsupportedError

X = tn.asarray([0.5, -1.25, 2.0])
LAYERS = 36


def plain(x: tn.Array, w: Any = 1.5) -> tn.Array:
    return tn.tanh(w * x) * x


@pytest.mark.parametrize("transform", [lambda f: f, tn.function])
def test_derivatives_are_those_of_the_function(transform: Callable[..., Any]) -> None:
    saved = transform(tn.checkpoint(plain))
    w = tn.asarray(0.75)
    np.testing.assert_array_equal(saved(X, w), plain(X, w))
    for of in (
        lambda f: tn.grad(lambda x, w: tn.sum(f(x, w)), (0, 1))(X, w),
        lambda f: [tn.hessian(lambda x: tn.sum(f(x, w)))(X)],
        lambda f: [tn.hvp(lambda x: tn.sum(f(x, w)), (X,), (X,))],
        lambda f: tn.jvp(f, (X, w), (X, w)),
        lambda f: [tn.vmap(tn.grad(f), (0, None))(X, w)],
        lambda f: [tn.vmap(f, (None, 0))(X, X)],
        lambda f: [tn.grad(lambda x: tn.sum(tn.vmap(f, (0, None))(x, w)))(X)],
        lambda f: [tn.grad(lambda x: tn.scan(lambda c, y: (f(c, y), None), x, X)[0])(w)],
        lambda f: [tn.grad(lambda x: tn.sum(f(x, w=3.0)))(X)],
    ):
        for found, expected in zip(of(saved), of(plain), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_captured_arrays_and_trees_have_derivatives() -> None:
    def loss(w: tn.Array) -> tn.Array:
        part = tn.checkpoint(lambda tree: {"y": tree["x"] * w, "n": tree["times"] * w})
        found = part({"x": X, "times": 2})
        return tn.sum(found["y"] * found["n"])

    assert tn.grad(loss)(tn.asarray(3.0)).item() == pytest.approx(2 * 2 * 3 * 1.25)


@pytest.mark.cpu
def test_checkpoint_of_a_segment_keeps_square_roots_of_the_layers() -> None:
    size = 1 << 15
    x, scales = tn.asarray(np.linspace(-1, 1, size)), [1 + i / LAYERS for i in range(LAYERS)]

    def layers(x: tn.Array, scales: list[float]) -> tn.Array:
        for scale in scales:
            x = tn.sin(x * scale) + tn.cos(x) * tn.mean(x)  # each needs all of the one before
        return x

    def loss(x: tn.Array, segment: int) -> tn.Array:
        part = tn.checkpoint(layers) if segment < LAYERS else layers
        for first in range(0, LAYERS, segment):
            x = part(x, scales[first : first + segment])
        return tn.sum(x * x)

    def arrays_and_gradient(segment: int) -> tuple[float, Any]:
        tn.trim()  # what the pool has would not be allocated
        with tn.profile() as p:
            value, gradient = tn.value_and_grad(lambda x: loss(x, segment))(x)
            tn.eval(value, gradient)
            result = np.asarray(gradient)
        return p.bytes_allocated / (8 * size), result

    root = math.isqrt(LAYERS)
    (saved, by_segments), (all_, expected) = (arrays_and_gradient(n) for n in (root, LAYERS))
    np.testing.assert_allclose(by_segments, expected, rtol=1e-9)
    assert all_ >= LAYERS
    assert saved <= 2 * root + 4  # activations; the gradient, cotangents and a temporary


def test_function_that_asks_for_values_is_refused() -> None:
    saved = tn.checkpoint(lambda x: x if x.item() > 0 else -x)
    with pytest.raises(UnsupportedError, match=r"tn\.checkpoint: .* asks for a value"):
        saved(tn.asarray(1.0))
    with pytest.raises(TypeError, match=r"tn\.checkpoint: int is not a function"):
        tn.checkpoint(3)  # type: ignore[arg-type]
