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


COUNTS = [8, 9, 16, 17, 40]
"""Around the limits of what is added one by one, and of what has a recipe."""


@pytest.mark.parametrize("count", COUNTS)
def test_products_of_one_factor_are_the_product_of_a_sum(count: int) -> None:
    w, x = tn.asarray(numbers(4, WIDTH)), tn.asarray(numbers(WIDTH, seed=1))
    y = tn.asarray(numbers(WIDTH, seed=2))
    factors = [y if at % 5 == 4 else x for at in range(count)]
    seeds = [numbers(4, seed=at) for at in range(count)]
    expected = sum(np.outer(g, np.asarray(f)) for g, f in zip(seeds, factors, strict=True))
    cotangents = [*map(tn.asarray, seeds)]
    (found,), _ = evaluated(tn.grad_of([w @ f for f in factors], w, cotangents))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("elements", [3, (1 << 14) + 1])
def test_arrays_slices_and_products_of_one_array_are_added(count: int, elements: int) -> None:
    """Each of them `count` times, of arrays that are stacked and of larger ones."""
    x, rng = tn.asarray(numbers(4, elements)), np.random.default_rng(count)
    outputs: list[tn.Array] = []
    seeds: list[np.ndarray] = []
    expected = np.zeros((4, elements))
    for at in range(count):
        g, h, factor = rng.random((4, elements)), rng.random(elements), rng.random(4)
        outputs += [x * 2, x[at % 4], tn.asarray(factor) @ x, x[:, 1:3]]
        seeds += [g, h, h, g[:, :2]]
        expected += 2 * g + np.outer(factor, h)
        expected[at % 4] += h
        expected[:, 1:3] += g[:, :2]
    (found,), _ = evaluated(tn.grad_of(outputs, x, [*map(tn.asarray, seeds)]))
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_stacks_of_all_elements_that_are_summed_at_once() -> None:
    x, count = tn.asarray(np.ones(1 << 14)), (1 << 8) + 3
    outputs = [x * float(at) for at in range(count)]
    (found,), _ = evaluated(tn.grad_of(outputs, x, [tn.ones(x.shape)] * count))
    assert (found == count * (count - 1) / 2).all()


@pytest.mark.parametrize("count", [9, 40])
def test_views_of_rows_that_are_no_slices_are_added(count: int) -> None:
    x = tn.asarray(numbers(1, 3))
    outputs = [tn.broadcast_to(x, (2, 3)) if at % 2 else tn.squeeze(x) for at in range(count)]
    cotangents = [tn.ones(y.shape) for y in outputs]
    (found,), _ = evaluated(tn.grad_of(outputs, x, cotangents))
    assert (found == (count + 1) // 2 + 2 * (count // 2)).all()


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
