"""Loops whose steps are small: one kernel has the bits of the steps computed one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.testing import assert_equal_bits
from tenfold.transforms.loop_kernel_launch import MAX_STEPS, MIN_STEPS

from .loop_bodies import SPECIAL, numbers

Step = Callable[[Any, Any], tuple[Any, Any]]

FLOATS: dict[str, Step] = {
    "decay": lambda c, x: (c * 0.5 + x, c * c),
    "tanh": lambda c, x: (tn.tanh(c + x), tn.exp(-tn.abs(c))),
    "select": lambda c, x: (tn.where(x > 0, c + x, c * 0.25), c > x),
    "divide": lambda c, x: (x / (c + 3), tn.sqrt(tn.abs(c))),
    "minimum": lambda c, x: (tn.minimum(tn.maximum(c, x), 2), tn.sign(c) + tn.floor(x)),
    "rare": lambda c, x: (tn.sin(c * 1000 + x * 1e6), tn.log(tn.abs(c)) ** 2),
}
INTEGERS: dict[str, Step] = {
    "divide": lambda c, x: (c // x + x, c % x),
    "shift": lambda c, x: ((c << (x & 3)) ^ x, c >> 1),
    "wrap": lambda c, x: (c * 5 + x, c - x),
    "compare": lambda c, x: (tn.where(c < x, x, c), (c == x) | (c > x)),
}


def both(run: Callable[[], Any]) -> tuple[Any, Any]:
    """The leaves that `run` returns: with kernels, and with every step by itself."""
    found = tuple([x.wait() for x in run()])
    with tn.options(fuse=False):  # which has no kernels of loops
        return found, tuple([x.wait() for x in run()])


def assert_same(run: Callable[[], Any]) -> None:
    for _ in range(2):
        for x, expected in zip(*both(run), strict=True):
            assert_equal_bits(x, expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (50,)])
def test_steps_of_floats(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    xs = tn.astype(tn.asarray(numbers(MIN_STEPS + 44, *shape)), getattr(tn, dtype))
    assert_same(lambda: tn.scan(FLOATS[name], xs[3], xs))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_steps_of_integers_wrap_and_never_trap(name: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([0, 1, 2, limits.min, limits.max, 3, 0, 7], dtype=dtype)
    values = np.resize(np.append(values, np.array(-1).astype(dtype)), MIN_STEPS + 1)
    xs = tn.asarray(values)
    assert_same(lambda: tn.scan(INTEGERS[name], tn.asarray(values[3]), xs))


@pytest.mark.parametrize("size", [1, 2, 3, 8, 15, 16, 17, 31, 33, 63, 64])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_packets_of_any_size_are_full(size: int, dtype: str) -> None:
    xs = tn.asarray((40 * numbers(MIN_STEPS + 1, size)).astype(dtype))

    def step(c: Any, x: Any) -> tuple[Any, Any]:
        mixed = c ^ x if dtype in ("bool", "int8") else tn.tanh(c) + x
        return mixed, (mixed, c > x if dtype != "bool" else c & x)

    assert_same(lambda: [*tn.scan(step, xs[3], xs)[1], tn.scan(step, xs[3], xs)[0]])


def test_special_values_pass_as_they_do_step_by_step() -> None:
    rows = np.resize(np.array(SPECIAL), (MIN_STEPS, len(SPECIAL)))
    xs = tn.asarray(np.array([np.roll(row, i) for i, row in enumerate(rows)]))
    for name in ("decay", "select", "divide", "minimum"):
        assert_same(partial(tn.scan, FLOATS[name], xs[0], xs))


@pytest.mark.parametrize("shape", [(), (4,)])
def test_complex_numbers_are_carried(shape: tuple[int, ...]) -> None:
    xs = tn.asarray(numbers(300, *shape, dtype="complex128"))

    def step(c: Any, x: Any) -> tuple[Any, Any]:
        return c + x * 0.5, tn.real(c) - tn.imag(x)

    assert_same(lambda: tn.scan(step, xs[0], xs))


@pytest.mark.parametrize("steps", [0, 1, 2, MIN_STEPS - 1, MIN_STEPS, MAX_STEPS, MAX_STEPS + 3])
@pytest.mark.parametrize("reverse", [False, True])
def test_any_number_of_steps_either_way(steps: int, reverse: bool) -> None:
    values = np.random.default_rng(steps).random(steps)
    h, rows = 0.25, []
    for x in values[::-1] if reverse else values:
        h = h * 0.5 + x
        rows.append(h)
    for _ in range(2):
        carry, ys = tn.scan(
            lambda c, x: (c * 0.5 + x,) * 2, 0.25, tn.asarray(values), reverse=reverse
        )
        assert_equal_bits(carry, np.asarray(h))
        assert_equal_bits(ys, np.array(rows[::-1] if reverse else rows))


def test_rows_captures_and_carries_in_any_layout() -> None:
    values = numbers(4, 2 * MIN_STEPS)
    wide, scale = tn.asarray(values), tn.asarray(numbers(8))[::2]
    for xs in (wide.T, wide.T[::-1], wide.T[::2], tn.asarray(np.asfortranarray(values.T))):
        assert_same(partial(tn.scan, lambda c, x: (c * scale + x, c), scale, xs))
    for xs in (wide[1], wide[1][::-1], wide[1][::3], wide[:, 5:6][2]):
        assert_same(partial(tn.scan, lambda c, x: (c * 0.5 + x, c), 0.0, xs))


def test_carries_of_several_dtypes_and_numbers_beside_arrays() -> None:
    xs = tn.asarray(numbers(MAX_STEPS // 16 + 5, 3))

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        count, total, small, seen = carry
        count, seen = count + 1, seen | (count > 300)
        total = total * 0.99 + x * count
        small = tn.astype(small + x, tn.float16)
        return (count, total, small, seen), (count * 2, total, seen)

    def run() -> list[tn.Array]:
        start = (0, tn.zeros(3), tn.zeros(3, dtype=tn.float16), tn.asarray(False))
        carry, ys = tn.scan(step, start, xs)
        return [*carry, *ys]

    assert_same(run)
    assert run()[0].item() == xs.shape[0]
    assert run()[4].tolist()[-1] == 2 * xs.shape[0]


def test_a_carry_that_swaps_and_one_that_stays() -> None:
    x = tn.asarray([1.0, 2.0])
    (a, b), ys = tn.scan(lambda c, _: ((c[1], c[0]), x), (x, x + 1), length=MIN_STEPS + 1)
    assert (a.tolist(), b.tolist()) == ([2.0, 3.0], [1.0, 2.0])
    assert ys[-1].tolist() == [1.0, 2.0]
    a += 1
    assert x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("steps", [0, 1, MIN_STEPS - 1, MIN_STEPS, 2 * MAX_STEPS + 7])
def test_a_condition_ends_the_loop_after_the_right_step(steps: int) -> None:
    def run() -> list[tn.Array]:
        state = tn.while_loop(
            lambda s: s["i"] < steps,
            lambda s: {"i": s["i"] + 1, "x": s["x"] * 0.5 + s["i"]},
            {"i": 0, "x": tn.asarray([1.0, 2.0])},
        )
        return [state["i"], state["x"]]

    x = np.array([1.0, 2.0])
    for i in range(steps):
        x = x * 0.5 + i
    for _ in range(2):
        count, found = run()
        assert count.item() == steps
        assert_equal_bits(found, x)


def test_a_condition_of_floats_is_that_of_the_new_carry() -> None:
    def run() -> list[tn.Array]:
        found: list[tn.Array] = tn.while_loop(
            lambda s: tn.abs(s[0] * s[0] - 2) > 1e-9,
            lambda s: [s[0] - (s[0] * s[0] - 2) * 0.01, s[1] + 1],
            [9.0, 0],
        )
        return found

    assert_same(run)
    assert run()[1].item() > MIN_STEPS


def test_a_step_that_sums_runs_step_by_step() -> None:
    xs = numbers(MIN_STEPS + 1, 3)
    carry, _ = tn.scan(lambda c, x: (c * 0.5 + tn.sum(x), None), 0.0, tn.asarray(xs))
    h = 0.0
    for row in xs:
        h = h * 0.5 + row.sum()
    np.testing.assert_allclose(carry.item(), h)


@pytest.mark.cpu
@pytest.mark.usefixtures("fused_multiply_add")
def test_one_launch_runs_many_steps() -> None:
    xs = tn.asarray(numbers(5000))
    tn.scan(FLOATS["decay"], 0.0, xs)[1].wait()
    with tn.profile() as counted:
        tn.scan(FLOATS["decay"], 0.0, xs)[1].wait()
    assert counted.launches <= 3
    assert counted.compiles == 0


def test_initial_carry_and_captured_array_stay_unchanged() -> None:
    x, scale = tn.asarray(numbers(3)), tn.asarray(numbers(3))
    before = x.tolist(), scale.tolist()
    tn.scan(lambda c, _: (c * scale, None), x, length=3 * MAX_STEPS)[0].wait()
    assert (x.tolist(), scale.tolist()) == before


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3"])
def test_other_processors_have_the_same_bits(cpu: str) -> None:
    xs = tn.asarray(numbers(MIN_STEPS, 3))
    expected = [x.wait() for x in tn.scan(FLOATS["select"], xs[0], xs)]
    with tn.options(cpu=cpu):
        for x, y in zip(tn.scan(FLOATS["select"], xs[0], xs), expected, strict=True):
            assert_equal_bits(x, y)
        assert_same(lambda: tn.scan(FLOATS["tanh"], xs[0], xs))
