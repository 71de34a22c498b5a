"""Sums of cotangents: products are stacked, slices joined, rows added at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

WIDTH = 6


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def evaluated(*arrays: tn.Array) -> tuple[list[np.ndarray], Any]:
    """Return values, and the counters of their evaluation."""
    with tn.profile() as p:
        tn.eval(*arrays)
        for x in arrays:
            x.wait()
    return [*map(np.asarray, arrays)], p


@pytest.mark.parametrize("count", [1, 2, 3, 40])
def test_a_weight_of_many_products_has_one_product(count: int) -> None:
    w, xs = (
        tn.asarray(numbers(4, WIDTH)),
        [tn.asarray(numbers(WIDTH, seed=i)) for i in range(count)],
    )
    loss = sum(tn.sum((w @ x) ** 2) for x in xs)
    (by_w,), _ = evaluated(tn.grad_of(loss, w))
    rows = np.stack([*map(np.asarray, xs)])
    np.testing.assert_allclose(by_w, 2 * (rows @ np.asarray(w).T).T @ rows, rtol=1e-12)


@pytest.mark.cpu
@pytest.mark.usefixtures("fused_multiply_add")
def test_products_of_a_weight_are_stacked() -> None:
    w, xs = tn.asarray(numbers(4, WIDTH)), [tn.asarray(numbers(WIDTH, seed=i)) for i in range(40)]
    seeds = [tn.asarray(numbers(4, seed=i)) for i in range(40)]
    by_w = tn.grad_of([w @ x for x in xs], w, seeds)
    _, p = evaluated(by_w)
    assert (p.launches, p.multiply_adds) == (3, 40 * 4 * WIDTH)  # two of them stack factors


SLICES: dict[str, Callable[[Any], list[Any]]] = {
    "disjoint": lambda x: [x[:2], x[2:5], x[5:]],
    "gaps": lambda x: [x[1:2], x[4:]],
    "equal": lambda x: [x[:3], x[:3], x[3:]],
    "overlapping": lambda x: [x[:4], x[2:]],
    "with all": lambda x: [x[1:3], x * 3],
    "reversed": lambda x: [x[::-1], x[::2]],
    "elements": lambda x: [x[0], x[5], x[0]],
    "empty": lambda x: [x[2:2], x[1:]],
    "all": lambda x: [x[:], x[:6]],
}


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("axes", [1, 2])
def test_cotangents_of_slices_are_added_where_the_slices_read(name: str, axes: int) -> None:
    values = numbers(*(WIDTH, 3)[:axes])
    expected = np.zeros_like(values)
    x = tn.asarray(values)
    parts, seeds = SLICES[name](x), []
    for at, part in enumerate(parts):
        seeds.append(numbers(*part.shape, seed=at + 1))
    for part, g in zip(SLICES[name](expected), seeds, strict=True):
        if isinstance(part, np.ndarray) and part.base is expected:
            part += g
    if name == "with all":
        expected += 3 * seeds[1]
    if name == "elements" and axes == 1:
        for at, g in zip((0, 5, 0), seeds, strict=True):
            expected[at] += g
    (found,), _ = evaluated(tn.grad_of(parts, x, [*map(tn.asarray, seeds)]))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.cpu
@pytest.mark.usefixtures("fused_multiply_add")
def test_gradient_of_functions_of_slices_is_one_kernel() -> None:
    x = tn.asarray(numbers(300))
    gradient = tn.grad(lambda x: tn.sum(tn.tanh(x[:100]) * tn.sin(x[100:200]) * x[200:]))(x)
    assert tn.explain(gradient, stage="scheduled").startswith(
        "scheduled: 1 kernel, 0 calls, 0 temp"
    )


@pytest.mark.parametrize("rows", ["all", "some", "repeated", "all and whole"])
def test_cotangents_of_many_rows_are_added_at_once(rows: str) -> None:
    table, count = tn.asarray(numbers(100, 3)), 100
    chosen = {
        "all": np.arange(count)[::-1],
        "some": np.arange(0, count, 3).repeat(2)[:count],
        "repeated": np.arange(count) // 2,
        "all and whole": np.arange(count),
    }[rows]
    seeds = [numbers(3, seed=at) for at in range(len(chosen))]
    expected = np.zeros(table.shape)
    np.add.at(expected, chosen, np.stack(seeds))
    outputs, cotangents = [table[int(i)] for i in chosen], [*map(tn.asarray, seeds)]
    if rows == "all and whole":
        outputs.append(table * 2)
        cotangents.append(tn.ones(table.shape))
        expected += 2
    (found,), _ = evaluated(tn.grad_of(outputs, table, cotangents))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_sums_of_slices_pass_through_additions() -> None:
    x, y = tn.asarray(numbers(WIDTH)), tn.asarray(numbers(WIDTH, seed=1))
    z = x + y
    parts, seeds = [z[:2], z[3:]], [numbers(2), numbers(3, seed=2)]
    found, _ = evaluated(*tn.grad_of(parts, [x, y], [*map(tn.asarray, seeds)]))
    expected = np.concatenate([seeds[0], [0.0], seeds[1]])
    for each in found:
        np.testing.assert_array_equal(each, expected)


def test_second_derivatives_go_through_joined_slices_and_stacked_products() -> None:
    w = tn.asarray(numbers(WIDTH, WIDTH) / WIDTH)

    def loss(w: tn.Array) -> tn.Array:
        h = w[0]
        for _ in range(3):
            h = tn.tanh(w @ h)
        return tn.sum(h * h)

    tn.testing.check_gradients(loss, w, order=2)
