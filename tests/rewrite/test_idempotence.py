"""One optimisation is enough: a second one of what the first has left changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.conftest import Part

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.rule_registry import optimise_graph

LENGTH = 6
Make = Callable[..., Any]

ONE: tuple[Make, ...] = (
    lambda x: x.T,
    lambda x: 2.5 * x,
    lambda x: -x,
    lambda x: x * 1 + 0,
    lambda x: tn.exp(x),
    lambda x: tn.abs(tn.abs(x)),
    lambda x: tn.conj(x),
    lambda x: tn.tril(x),
    lambda x: x[::-1].T,
    lambda x: tn.concat([x[:2], x[2:]]),
    lambda x: tn.stack([x, x + 1])[1],
    lambda x: tn.reshape(tn.reshape(x, (LENGTH * LENGTH,)), (LENGTH, LENGTH)),
    lambda x: tn.linalg.inv(x),
    lambda x: tn.sum(x, axis=0) + x,
    lambda x: tn.sum(x * 2, axis=1)[:, None] * x,
    lambda x: tn.max(x + 1) - x,
    lambda x: tn.linalg.trace(x) * x,
    lambda x: tn.linalg.diagonal(x) * x,
    lambda x: tn.linalg.matrix_transpose(tn.tanh(x)),
    lambda x: tn.where(x > 0, x, x),
)
TWO: tuple[Make, ...] = (
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: tn.maximum(x, y),
    lambda x, y: tn.linalg.solve(x, y),
    lambda x, y: tn.linalg.inv(x) @ y,
    lambda x, y: tn.tensordot(x, y, axes=((1,), (0,))),
    lambda x, y: tn.tensordot(x, y, axes=((0,), (1,))),
    lambda x, y: tn.sum(x[:, :, None] * y[None], axis=1),
    lambda x, y: tn.sum(x * y, axis=1) + x,
    lambda x, y: (x @ y)[1:3, :2] @ y[:2],
    lambda x, y: tn.linalg.trace(x @ y) * x,
    lambda x, y: tn.linalg.outer(x[0], y[1]) @ x,
    lambda x, y: tn.linalg.diagonal(x @ y) + y,
    lambda x, y: tn.einsum("ij,kj->ik", x, y),
    lambda x, y: tn.where(x > y, x, y),
    *([lambda x, y: x @ y] * 6),
)
ENDS: tuple[Make, ...] = (
    lambda x: x,
    lambda x: x[1],
    lambda x: x[2, 3],
    lambda x: x[1:4],
    lambda x: tn.sum(x),
    lambda x: tn.sum(x, axis=1),
    lambda x: tn.linalg.trace(x),
    lambda x: x @ tn.arange(6.0),
    lambda x: tn.mean(x, axis=0),
    lambda x: tn.linalg.diagonal(x),
)


def expression(random: Random) -> tn.Array:
    """Return an expression of all families of rules; what it is made of occurs again."""
    values = np.random.default_rng(random.randrange(10**6))
    matrices = [tn.asarray(values.standard_normal((LENGTH, LENGTH))) for _ in range(3)]
    orthogonal = tn.asarray(np.linalg.qr(values.standard_normal((LENGTH, LENGTH)))[0])
    pool = [
        *matrices,
        tn.assume(orthogonal, "orthogonal"),
        tn.assume(matrices[0] + matrices[0].T, "symmetric"),
        tn.linalg.diagonal(matrices[1]) * tn.eye(LENGTH),
        tn.eye(LENGTH),
    ]
    for _ in range(random.randint(2, 9)):
        if random.random() < 0.35:
            made = random.choice(ONE)(random.choice(pool[-4:]))
        else:
            made = random.choice(TWO)(random.choice(pool[-4:]), random.choice(pool))
        pool += [made] if made.shape == (LENGTH, LENGTH) else []
    return random.choice(ENDS)(pool.pop())


def again(array: tn.Array) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the first and the second optimisation have changed."""
    after, first = optimise_graph(Graph.of([_native.node_of(array)]))
    return first.counts, optimise_graph(after)[1].counts


@pytest.mark.parametrize("fast", [False, True])
def test_second_optimisation_changes_nothing(fast: bool) -> None:
    for seed in range(150):
        with tn.options(fast=fast):
            first, second = again(expression(Random(seed)))
        assert second == {}, (seed, first)


def value(seed: int) -> np.ndarray | None:
    """Return what an expression comes to; None where a matrix in it is singular."""
    try:
        return np.asarray(expression(Random(seed)))
    except np.linalg.LinAlgError:
        return None


def test_values_are_those_of_what_was_written(
    part: Part,
) -> None:
    for seed in part(range(90)):
        found = value(seed)
        with tn.options(optimise=False):
            wanted = value(seed)
        if found is not None and wanted is not None:
            bound = 1e-6 * np.max(abs(wanted), initial=0)
            assert np.max(abs(found - wanted), initial=0) <= bound, seed
