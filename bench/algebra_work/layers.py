"""A layer of a network beside the bare product: what bias and activation cost.

Takes nothing; hands on `LAYERS`: `relu(x @ W + b)` for two shapes and two dtypes, where the column
of BLAS by hand is the bare product, `np.matmul` with `out`; and, with nothing required, two
products of one `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from kernel_work.rows import Function, Work

from algebra_work.experiments import PEERS, Experiment, Limit
from algebra_work.hand import Blas

SHAPES = ((512, 512, 512), (64, 1024, 1024))
LIMITS = (Limit("jax", 1, ">= 1x JAX"), Limit("blas", 1.05, "<= 1.05x the bare product"))


def layer(xp: Any) -> Function:
    return lambda x, w, b: xp.maximum(x @ w + b, 0)


def layer_of_torch(torch: Any) -> Function:
    return lambda x, w, b: torch.relu(x @ w + b)


def bare(_: Blas) -> Function:
    out: list[np.ndarray] = []

    def function(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        if not out:
            out.append(np.empty((len(x), len(b)), x.dtype))
        return np.matmul(x, w, out=out[0])

    return function


def two(_: Any) -> Function:
    return lambda x, v, w: (x @ v, x @ w)


def two_as_one(_: Blas) -> Function:
    """One product, of both matrices side by side."""

    def function(x: np.ndarray, v: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        both = x @ np.concatenate((v, w), axis=1)
        return both[:, : v.shape[1]], both[:, v.shape[1] :]

    return function


def made(
    name: str,
    text: str,
    sizes: tuple[int, int, int],
    dtype: str,
    third: Callable[[int, int], tuple[int, ...]],
    plain: Callable[[Any], Function],
    limits: tuple[Limit, ...],
    **variants: Callable[[Any], Function],
) -> Experiment:
    m, k, n = sizes

    def inputs(random: np.random.Generator, _: float) -> list[np.ndarray]:
        shapes = ((m, k), (k, n), third(k, n))
        return [random.standard_normal(shape) / k**0.25 for shape in shapes]

    shown = f"{m}x{k}x{n}"
    title = f"{text}, {shown}, {dtype}"
    work = Work(f"{name}-{shown}-{dtype}", title, inputs, plain, (), variants, also=PEERS)
    apart = ("blas",) if plain is layer else ()
    return Experiment(work, "layers", None, "", limits, dtype, apart)


LAYERS = (
    *(
        made(
            *("relu", "relu(x @ W + b)", sizes, dtype, lambda _, n: (n,), layer, LIMITS),
            blas=bare,
            torch=layer_of_torch,
        )
        for sizes in SHAPES
        for dtype in ("float32", "float64")
    ),
    *(
        made("two", "x @ V, x @ W", sizes, "float32", lambda k, n: (k, n), two, (), blas=two_as_one)
        for sizes in SHAPES
    ),
)
