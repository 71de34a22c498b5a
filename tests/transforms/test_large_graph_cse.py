"""What is written twice in a large graph is computed once, and everybody who holds it has it."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits

MANY = 600


def shared(count: int, *shape: int) -> list[tn.Array]:
    given = np.random.default_rng(0).normal(size=(count, *shape))
    return [tn.asarray(one).wait() for one in given]


def computed(arrays: list[tn.Array]) -> tn.Profile:
    with tn.profile() as p:
        tn.eval(*arrays)
        for x in arrays:
            x.wait()
    return p


def test_equal_calls_are_computed_once() -> None:
    w, *xs = shared(6, 8, 8)

    @tn.function
    def cell(x: tn.Array, y: tn.Array) -> tuple[tn.Array, tn.Array]:
        product = w @ x
        return tn.tanh(product) + y, product

    def tree(i: int) -> tn.Array:
        h, c = cell(xs[i % 5], xs[i % 5])
        return cell(h, c)[0]

    trees = [tree(i) for i in range(MANY)]
    p = computed(trees)
    assert p.multiply_adds == 2 * 5 * 8**3
    alone = [np.asarray(tree(i)) for i in range(5)]
    for i, one in enumerate(trees):
        np.testing.assert_allclose(np.asarray(one), alone[i % 5], rtol=1e-12)


@pytest.mark.usefixtures("fused_multiply_add")
def test_each_has_a_value_of_its_own_to_change() -> None:
    (x,) = shared(1, 50)
    twins = [tn.exp(x) * 2 for _ in range(MANY)]
    p = computed(twins)
    assert p.kernels <= 2
    expected = np.asarray(tn.exp(x) * 2)
    twins[0][0] = 7.0
    twins[1] += 1.0
    assert twins[0][0].item() == 7.0
    assert_equal_bits(np.asarray(twins[1]), expected + 1)
    assert_equal_bits(np.asarray(twins[2]), expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [(0.0, -0.0), (1, True), (1, 1.0), (2**70, 2**70 + 1), (np.float32(1), 1.0), (1.0, 1 + 0j)],
)
def test_scalars_that_differ_are_not_one(one: complex, other: complex) -> None:
    (x,) = shared(1, 4)
    made = [tn.asarray(0.0) * x * number for _ in range(MANY) for number in (one, other)]
    computed(made)
    for i, number in enumerate((one, other)):
        alone = (tn.asarray(0.0) * x * number).wait()
        assert made[i].dtype == alone.dtype
        for twin in made[i::2]:
            assert_equal_bits(np.asarray(twin), np.asarray(alone))


def test_impure_call_is_computed_each_time() -> None:
    called = []

    @tn.operator
    def noted(x: np.ndarray) -> np.ndarray:
        called.append(1)
        return x + len(called)

    (x,) = shared(1, 3)
    values = [noted(x) for _ in range(MANY)]
    computed(values)
    assert len(called) == MANY
    assert len({np.asarray(value).tobytes() for value in values}) == MANY


def test_failure_is_shared_by_equal_calls() -> None:
    singular, regular = tn.zeros((3, 3)).wait(), tn.eye(3).wait()
    made = [tn.linalg.inv(x) + 1 for _ in range(MANY) for x in (singular, regular)]
    tn.eval(*made)
    for i in (0, 2, 2 * MANY - 2):
        with pytest.raises(np.linalg.LinAlgError):
            made[i].wait()
    for i in (1, 3, 2 * MANY - 1):
        assert_equal_bits(np.asarray(made[i]), np.eye(3) + 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_with_much_that_is_equal(seed: int) -> None:
    choose = random.Random(seed)
    length = choose.choice([1, 7, 300, 5000])
    leaves = shared(4, length)
    one = [
        lambda x, y: x + y,
        lambda x, _: tn.tanh(x),
        lambda x, y: x * y - 1,
        lambda x, _: tn.flip(x),
        lambda x, y: tn.sum(x) + y,
        lambda x, y: tn.cumulative_sum(x) * 0.001 + y,
        lambda x, y: tn.where(x > y, x, 0.5),
    ]
    steps = [(choose.choice(one), choose.random(), choose.random()) for _ in range(1500)]

    def written(count: int) -> list[tn.Array]:
        layers, layer = [*leaves], [*leaves]
        for step, first, second in steps[:count]:
            some = layer[-6:]
            x, y = some[int(first * len(some))], some[int(second * len(some))]
            layer.append(step(x, y))
            if len(layer) > 12:  # and again from the leaves
                layers += layer[4:]
                layer = [*leaves]
        return layers

    made = written(1500)
    kept = [x for x in made if choose.random() < 0.3]
    places = [i for i, x in enumerate(made) if any(x is k for k in kept)]
    del made
    computed(kept)
    expected = written(1500)
    for i, x in zip(places, kept, strict=True):
        with tn.options(batch=False, optimise=False):
            alone = expected[i].wait()
        assert_equal_bits(np.asarray(x), np.asarray(alone))
