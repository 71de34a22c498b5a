"""Draws: the same bits wherever and however they are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.ops import rejection
from tenfold.testing import assert_equal_bits

KEY, DRAW = 0x9E3779B97F4A7C15, 123456789012345
SIZES: tuple[Any, ...] = (
    None,
    1,
    33,
    100_003,
    (3, 40),
    (40, 3),
    (5000, 3),
    (2, 3, 50),
    (0,),
    (4, 0),
)
DRAWS: dict[str, Callable[[Any], tn.Array]] = {
    "bits": lambda size: tn.random.bits(KEY, DRAW, size),
    "bits32": lambda size: tn.random.bits(KEY, DRAW, size, dtype="uint32"),
    "random": lambda size: tn.random.random(KEY, DRAW, size),
    "random32": lambda size: tn.random.random(KEY, DRAW, size, dtype="float32"),
    "normal": lambda size: tn.random.standard_normal(KEY, DRAW, size),
    "normal32": lambda size: tn.random.standard_normal(KEY, DRAW, size, dtype="float32"),
    "exponential": lambda size: tn.random.standard_exponential(KEY, DRAW, size),
    "stream": lambda size: tn.random.standard_exponential(KEY, DRAW, size, stream=65535),
    "integers": lambda size: tn.random.integers(KEY, DRAW, -5, 1000, size),
    "bytes": lambda size: tn.random.integers(KEY, DRAW, 256, size=size, dtype="uint8"),
    "all": lambda size: tn.random.integers(KEY, DRAW, -(2**63), 2**63, size),
    "laplace": lambda size: tn.random.laplace(KEY, DRAW, 1.5, 2.5, size),
    "triangular": lambda size: tn.random.triangular(KEY, DRAW, 0, 1, 3, size),
    "poisson": lambda size: tn.random.poisson(KEY, DRAW, 20.5, size),
}


def bits_of(x: tn.Array) -> bytes:
    return np.asarray(x).tobytes()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_tier_gives_the_bits_of_the_reference_device(name: str, size: Any) -> None:
    draw = DRAWS[name]
    with tn.options(device="reference"):
        expected = bits_of(draw(size))
    for tier in ("0", "1", "auto"):
        with tn.options(tier=tier):
            assert bits_of(draw(size)) == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DRAWS)
def test_every_count_of_threads_gives_the_same_bits(name: str) -> None:
    results = []
    for threads in (1, 2, 7):
        with tn.options(threads=threads, tier="1"):
            results.append((bits_of(DRAWS[name](300_007)), bits_of(tn.sum(DRAWS[name](300_007)))))
    assert results[0] == results[1] == results[2]


@pytest.mark.exhaustive
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("name", DRAWS)
def test_every_processor_level_gives_the_same_bits(name: str, cpu: str) -> None:
    with tn.options(tier="1"):
        expected = bits_of(DRAWS[name](1003))
        with tn.options(cpu=cpu):
            assert bits_of(DRAWS[name](1003)) == expected


@pytest.mark.parametrize("name", DRAWS)
def test_a_shape_and_its_slices_have_the_elements_of_one_row(name: str) -> None:
    row = np.asarray(DRAWS[name](6000))
    assert np.asarray(DRAWS[name]((2000, 3))).tolist() == row.reshape(2000, 3).tolist()
    assert np.asarray(DRAWS[name]((60, 100))[3:50:7, 10:90]).tolist() == (
        row.reshape(60, 100)[3:50:7, 10:90].tolist()
    )
    assert np.asarray(DRAWS[name](100)).tolist() == row[:100].tolist()


@pytest.mark.parametrize("name", ["random", "normal", "integers", "poisson"])
def test_key_and_draw_may_be_arrays(name: str) -> None:
    functions: dict[str, Callable[..., tn.Array]] = {
        "random": lambda key, draw: tn.random.random(key, draw, (2, 5)),
        "normal": lambda key, draw: tn.random.normal(key, draw, 1.0, 2.0, size=(2, 5)),
        "integers": lambda key, draw: tn.random.integers(key, draw, tn.asarray([1, 2, 3, 4, 5]), 9),
        "poisson": lambda key, draw: tn.random.poisson(key, draw, [3.5, 1.5], size=(3, 2)),
    }
    keys, draws = [7, 8, 9], [100, 200, 300]
    expected = [
        np.asarray(functions[name](k, d)).tolist() for k, d in zip(keys, draws, strict=True)
    ]
    assert functions[name](tn.asarray(keys), tn.asarray(draws)).tolist() == expected
    mapped = tn.vmap(functions[name])(tn.asarray(keys), tn.asarray(draws))
    assert mapped.tolist() == expected
    shared = tn.vmap(functions[name], in_axes=(None, 0))(7, tn.asarray(draws))
    assert shared.tolist() == [functions[name](7, d).tolist() for d in draws]


def test_members_that_share_key_and_draw_have_the_same_numbers() -> None:
    bounds = tn.asarray([10, 20, 30])
    result = tn.vmap(lambda high: tn.random.integers(KEY, DRAW, 0, high, 4))(bounds)
    assert result.tolist() == [
        tn.random.integers(KEY, DRAW, 0, high, 4).tolist() for high in (10, 20, 30)
    ]


def test_a_batch_of_many_draws_equals_each_draw() -> None:
    draws = [tn.random.standard_normal(KEY, 10**6 + i, 50) for i in range(600)]
    total = draws[0]
    for x in draws[1:]:
        total = total + x
    expected = np.zeros(50)
    for i in range(600):
        expected = expected + np.asarray(tn.random.standard_normal(KEY, 10**6 + i, 50))
    assert np.asarray(total).tolist() == expected.tolist()


def test_pushed_draws_equal_called_ones() -> None:
    with tn.Engine(threads=2, batch_limit=16) as engine:
        pushed = [
            engine.push(tn.operators.random.normal, KEY, 10**6 + i, 1.0, 2.0, size=(3, 2))
            for i in range(40)
        ]
        identity = engine.push(tn.operators.eye, 3)
        results = [handle.get().tolist() for handle in pushed]
        assert identity.get().tolist() == np.eye(3).tolist()
    assert results == [
        tn.random.normal(KEY, 10**6 + i, 1.0, 2.0, size=(3, 2)).tolist() for i in range(40)
    ]


def test_draws_of_one_expression_differ() -> None:
    rng = tn.random.default_rng(5)
    assert np.count_nonzero(np.asarray(rng.random(1000) - rng.random(1000))) > 990
    x = rng.random(1000)
    assert np.asarray(x - x).tolist() == [0.0] * 1000


def test_mean_of_a_draw_is_one_kernel_that_stores_nothing() -> None:
    def inside(seed: int, n: int) -> tn.Array:
        rng = tn.random.default_rng(seed)
        x, y = rng.random(n), rng.random(n)
        return tn.mean((x * x + y * y) < 1)

    with tn.options(tier="1"):
        inside(1, 100_000).wait()
        with tn.profile() as p:
            results = [inside(seed, 100_000).item() for seed in range(2, 12)]
        assert (p.kernels, p.calls, p.temporaries, p.compiles) == (10, 0, 0, 0)
        assert p.bytes_allocated < 100_000
        assert len(set(results)) == 10
        with tn.profile() as p:
            for n in range(100_001, 100_011):
                inside(3, n).wait()
        assert p.compiles <= 1  # the first other length makes the plan symbolic


def test_named_draws_are_not_stored_by_their_first_reader_but_by_the_second() -> None:
    rng = tn.random.default_rng(3)
    x, y = rng.normal(1.5, 2.5, 200_000), rng.random(200_000)
    with tn.options(tier="1"):
        with tn.profile() as p:
            first = tn.mean(x * x + y).item()
        assert (p.kernels, p.temporaries) == (1, 0)
        assert _native.node_of(x).pending
        assert _native.node_of(y).pending
        assert tn.mean(x * x + y).item() == first
    assert not _native.node_of(x).pending
    assert not _native.node_of(y).pending
    assert np.mean(np.asarray(x) ** 2 + np.asarray(y)) == pytest.approx(first)


def test_named_draws_beside_arrays_are_passed_through_once_as_others() -> None:
    rng, a = tn.random.default_rng(3), tn.ones(200_000).wait()
    x = rng.random(200_000) + a
    first = tn.sum(x * x).item()
    assert _native.node_of(x).pending
    assert tn.sum(x * x).item() == first
    assert not _native.node_of(x).pending
    values = np.asarray(x)
    assert_equal_bits(values, np.asarray(tn.random.default_rng(3).random(200_000)) + 1)


def test_another_seed_uses_the_same_plan() -> None:
    with tn.options(tier="1"):
        tn.random.default_rng(1).normal(3.5, 2.5, 1000).wait()
        plans = _native.num_cached_plans()
        for seed in range(2, 12):
            tn.random.default_rng(seed).normal(3.5, 2.5, 1000).wait()
    assert _native.num_cached_plans() == plans


def test_traced_function_draws_by_an_argument() -> None:
    @tn.function
    def noisy(x: tn.Array, draw: tn.Array) -> tn.Array:
        return x + tn.random.normal(KEY, draw, size=(3,))

    for draw in (5, 6):
        expected = tn.random.normal(KEY, draw, size=(3,)) + 1.0
        assert noisy(tn.ones(3), tn.asarray(draw)).tolist() == expected.tolist()


NUMBERS_AND_ARRAYS: dict[str, tuple[tuple[Any, ...], ...]] = {
    "binomial": ((10, 0.5), (10, 0.9), (0, 0.5), (5, 0.0), (5, 1.0), (10**12, 1e-12), (30, 0.3)),
    "poisson": ((0.0,), (0.5,), (9.99,), (1e-300,)),
}


@pytest.mark.parametrize("name", NUMBERS_AND_ARRAYS)
def test_parameters_as_numbers_and_as_arrays_draw_the_same(name: str) -> None:
    draw = getattr(tn.random, name)
    for parameters in NUMBERS_AND_ARRAYS[name]:
        from_numbers = draw(1, 2, *parameters, size=1000)
        from_arrays = draw(1, 2, *(np.full(1000, float(x)) for x in parameters))
        assert from_numbers.dtype == from_arrays.dtype == np.int64
        assert from_numbers.tolist() == from_arrays.tolist(), parameters


def test_largest_uniform_number_counts_no_more_than_all_trials() -> None:
    one, trials, half = np.ones(1), 10.0, 0.5
    ratio = trials + 1.0
    counts = rejection._inverted(
        one, np.full(1, half**trials), lambda k, at: np.full(at.size, (ratio - k) / k)
    )
    assert counts.tolist() == [10.0]
    assert np.searchsorted(rejection.binomial_table(trials, half), one).tolist() == [10]


@pytest.mark.parametrize("count", [4096, 10**7, 10**12, 2**63 - 1])
def test_few_of_many_are_chosen_without_sorting_all(count: int) -> None:
    chosen = tn.random.choice(1, 2, count, (2, 100), replace=False)
    assert chosen.shape == (2, 100)
    values = chosen.tolist()
    flat = [x for row in values for x in row]
    assert len(set(flat)) == 200
    assert all(0 <= x < count for x in flat)
    assert tn.random.choice(1, 2, count, (2, 100), replace=False).tolist() == values


def test_few_of_many_have_equal_probabilities() -> None:
    keys = tn.arange(300)
    draws = tn.vmap(lambda key: tn.random.choice(key, 5, 4096, 256, replace=False))(keys)
    counts = np.bincount(np.asarray(draws).reshape(-1), minlength=4096)
    expected = 300 * 256 / 4096
    chi_squared = float(((counts - expected) ** 2).sum()) / (expected * (1 - 256 / 4096))
    assert abs(chi_squared - 4095) < 5 * np.sqrt(2 * 4095)


def test_choice_of_few_elements_of_an_array_takes_them_along_an_axis() -> None:
    x = np.arange(10_000.0).reshape(2, 5000)
    chosen = np.asarray(tn.random.choice(1, 2, tn.asarray(x), 5, replace=False, axis=1))
    assert np.array_equal(chosen[1] - chosen[0], np.full(5, 5000.0))
    assert len(set(chosen[0].tolist())) == 5
