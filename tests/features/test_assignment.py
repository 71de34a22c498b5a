"""What assignment must do, one test for each fact: an input, and what must be seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.errors import DTypeError, ShapeError
from tenfold.inspect.profile import Profile
from tenfold.testing import assert_equal_bits


@pytest.fixture(autouse=True)
def fused_kernels_at_once() -> Iterator[None]:
    with tn.options(tier="1"):
        yield


@pytest.fixture(params=["cpu", "reference"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with tn.options(device=request.param):
        yield request.param


def randoms(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape).astype(dtype)


def computed(values: Any) -> tn.Array:
    """An Array of these values whose memory is its own."""
    return (tn.asarray(values) + 0).wait()


def profiled(statement: Callable[[tn.Array], object], x: tn.Array) -> Profile:
    """The counters of an assignment and its work; the pool is empty, so no memory is hidden."""
    tn.trim()
    with tn.profile() as p:
        statement(x)
        x.wait()
    return p


def memory(p: Profile) -> tuple[int, int, int, int]:
    """Temporaries, copies, and what was taken from the system: blocks and bytes."""
    return p.temporaries, p.copies, p.allocations, p.bytes_allocated


# 18: savers.


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "float16"])
def test_compound_operators_follow_each_other(dtype: str, device: str) -> None:
    y, x = tn.asarray(np.array([1, 2], dtype)), tn.asarray(np.array([2, 4], dtype))
    y += x
    assert y.tolist() == [3, 6]
    y *= x
    assert y.tolist() == [6, 24]
    y /= x
    assert y.tolist() == [3, 6]
    y -= x
    assert y.tolist() == [1, 2]
    assert (y.dtype, y.device) == (np.dtype(dtype), device)


def test_every_saver_takes_any_right_side(device: str) -> None:
    x, r = randoms(3, 4), randoms(4, seed=1)
    for op in ("=", "+=", "-=", "*=", "/="):
        y, theirs = computed(x), x.copy()
        a = tn.asarray(r)
        tn.assign(y, tn.sqrt(a[::-1]) * 2 + a, op)
        value = np.sqrt(r[::-1]) * 2 + r
        match op:
            case "=":
                theirs[...] = value
            case "+=":
                theirs += value
            case "-=":
                theirs -= value
            case "*=":
                theirs *= value
            case _:
                theirs /= value
        assert_equal_bits(y, theirs)


@pytest.mark.cpu
def test_a_saver_and_its_right_side_are_one_kernel() -> None:
    x = tn.asarray(randoms(1000, seed=1))
    for op in ("=", "+=", "-=", "*=", "/="):
        p = profiled(partial(tn.assign, expr=x * 2 + 1, op=op), computed(randoms(1000)))
        assert (p.kernels, p.calls, p.temporaries) == (1, 0, 0)


# 20: pointwise in place.

POINTWISE: dict[str, Callable[[Any], Any]] = {
    "a[...] = a * 2 + a": lambda a: a.__setitem__(..., a * 2 + a),
    "a += a * 2": lambda a: a.__iadd__(a * 2),
    "a[1:-1] = a[1:-1] * 2 + a[1:-1]": lambda a: a.__setitem__(slice(1, -1), a[1:-1] * 2 + a[1:-1]),
    "a[::3] = -a[::3]": lambda a: a.__setitem__(slice(None, None, 3), -a[::3]),
    "a[5:9] = 1.5": lambda a: a.__setitem__(slice(5, 9), 1.5),
    "a[a > 0.5] = 0": lambda a: a.__setitem__(a > 0.5, 0),
}


@pytest.mark.cpu
@pytest.mark.parametrize("name", POINTWISE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_read_before_its_own_write_takes_no_memory(name: str, dtype: str) -> None:
    theirs = randoms(1000, dtype=dtype)
    a = computed(theirs)
    for _ in range(2):
        p = profiled(POINTWISE[name], a)
        assert (memory(p), p.kernels) == ((0, 0, 0, 0), 1)
        POINTWISE[name](theirs)
    assert_equal_bits(a, theirs)


def test_a_name_bound_to_its_own_next_value_takes_no_memory() -> None:
    theirs = randoms(1000)
    a = computed(theirs)
    tn.trim()
    with tn.profile() as p:
        a = a * 2 + a
        a.wait()
    assert (memory(p), p.kernels) == ((0, 0, 0, 0), 1)
    assert_equal_bits(a, theirs * 2 + theirs)


def test_pointwise_in_place_is_said() -> None:
    a = computed(randoms(1000))
    a[1:-1] = a[1:-1] * 2
    assert "reuses the operand's buffer" in a.explain("scheduled")


# 21: hazards.


def test_a_product_and_a_transpose_of_the_target_read_its_old_value(device: str) -> None:
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    x = computed(values)
    x[...] = x @ x
    assert x.tolist() == [[7, 10], [15, 22]]
    y = computed(values)
    tn.assign(y, y.T)
    assert y.tolist() == [[1, 3], [2, 4]]
    z = computed([0.0, 1.0, 2.0, 3.0])
    z[...] = z[::-1]
    assert z.tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 33, 64, 130])
@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64"])
def test_mirrored_and_transposed_parts_read_old_values(n: int, dtype: str, device: str) -> None:
    theirs = (randoms(n, n) * 100).astype(dtype)
    x = computed(theirs)
    for a in (x, theirs):
        a[...] = a.T + 0
        a[1:] = a[:0:-1]
        a[:, : n // 2] = a[:, n - n // 2 :][:, ::-1]
        a[0] = a[:, 0]
        a[...] = a[::-1, ::-1] + 0
    assert_equal_bits(x, theirs)


SHIFTED: dict[str, Callable[[Any], Any]] = {
    "a[1:] = a[:-1]": lambda a: a.__setitem__(slice(1, None), a[:-1]),
    "a[:-1] = a[1:] + 1": lambda a: a.__setitem__(slice(-1), a[1:] + 1),
    "a[200:800] = a[:600] * 2": lambda a: a.__setitem__(slice(200, 800), a[:600] * 2),
    "a[::2] = a[1::2]": lambda a: a.__setitem__(slice(None, None, 2), a[1::2]),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_a_safe_order_of_the_loop_takes_the_place_of_memory(name: str) -> None:
    theirs = randoms(1000)
    a = computed(theirs)
    assert memory(profiled(SHIFTED[name], a)) == (0, 0, 0, 0)
    SHIFTED[name](theirs)
    assert_equal_bits(a, theirs)


@pytest.mark.cpu
def test_no_order_serves_neighbours_on_both_sides_so_one_copy_is_made() -> None:
    a, theirs = computed(randoms(1000)), randoms(1000)
    p = profiled(lambda a: a.__setitem__(slice(1, -1), a[:-2] + a[2:]), a)
    assert (p.temporaries, p.copies, p.allocations) == (0, 1, 1)
    theirs[1:-1] = theirs[:-2] + theirs[2:]
    assert_equal_bits(a, theirs)
    a[1:-1] = a[:-2] + a[2:]
    assert re.search(r"set_at: a copy: no order: .*shares bytes.*lower.*higher", a.explain())


@pytest.mark.cpu
def test_an_old_value_that_somebody_holds_is_copied_for_and_explain_says_so() -> None:
    for hold in (lambda a: a * 1, lambda a: tn.asarray(a, copy=True), lambda a: np.asarray(a)):
        a, theirs = computed(randoms(1000)), randoms(1000)
        held = hold(a)
        p = profiled(lambda a: a.__setitem__(slice(3, 9), 1.5), a)
        assert p.copies == 1
        assert_equal_bits(held, theirs)
        theirs[3:9] = 1.5
        assert_equal_bits(a, theirs)
    a = computed(randoms(10))
    held = a * 1
    a[3:9] = 1.5
    why = "a copy: the old value is referenced by multiply -> float64[10] (pending)"
    assert why in a.explain("scheduled")
    del held


def test_an_element_that_stands_for_several_is_never_written_over(device: str) -> None:
    x = computed(np.full((3, 2), 5.0))
    x[...] = x[:1, :1]
    x.wait()
    x[1:, 0] = 0.0
    assert x.tolist() == [[5, 5], [0, 5], [0, 5]]


# 22: partial overlap.


def test_overlapping_blocks_are_found_by_address_and_stride(device: str) -> None:
    x = computed(np.arange(1.0, 10.0).reshape(3, 3))
    x[1:, 1:] = x[:2, :2]
    assert x.tolist() == [[1, 2, 3], [4, 1, 2], [7, 4, 5]]


@pytest.mark.parametrize("shift", [(1, 1), (1, -1), (-1, 1), (-1, -1), (0, 3), (5, 0), (20, 0)])
def test_blocks_moved_in_every_direction_take_no_memory(shift: tuple[int, int]) -> None:
    down, right = shift

    def move(a: Any) -> None:
        rows, columns = slice(20, 40), slice(10, 40)
        to = slice(20 + down, 40 + down), slice(10 + right, 40 + right)
        a[to] = a[rows, columns]

    theirs = randoms(60, 60)
    x = computed(theirs)
    assert memory(profiled(move, x)) == (0, 0, 0, 0)
    move(theirs)
    assert_equal_bits(x, theirs)


# 24: shape and dtype stay.


def test_wrong_shape_changes_nothing(device: str) -> None:
    y = tn.zeros((2, 2))
    with pytest.raises(ShapeError, match=r"(?s)\(2, 2\).*\(3, 3\)"):
        y += tn.zeros((3, 3))
    with pytest.raises(ShapeError):
        y[...] = tn.zeros((3, 3))
    with pytest.raises(ShapeError):
        tn.assign(y, tn.zeros((3, 3)), "+=")
    assert (y.tolist(), y.shape) == ([[0, 0], [0, 0]], (2, 2))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_ints_refuse_to_become_fractions(dtype: str, device: str) -> None:
    n = tn.asarray(np.array([1, 2, 3], dtype))
    with pytest.raises(DTypeError, match="same-kind rule"):
        n += 1.5
    with pytest.raises(DTypeError, match="same-kind rule"):
        n[1:] = 1.5
    with pytest.raises(DTypeError, match="same-kind rule"):
        tn.assign(n, 1.5, "*=")
    assert (n.tolist(), n.dtype) == ([1, 2, 3], np.dtype(dtype))


def test_assignment_keeps_the_dtype_and_only_a_name_is_bound_to_another(device: str) -> None:
    x = tn.zeros(3, dtype=tn.float32)
    name = x
    x += tn.ones(3, dtype=tn.float64)
    x[1:] = tn.asarray([2, 3])
    assert (x.dtype, x.tolist(), name is x) == (tn.float32, [1, 2, 3], True)
    x = x + tn.ones(3, dtype=tn.float64)
    assert (x.dtype, name.tolist()) == (tn.float64, [1, 2, 3])


# 39: slices and concat as targets.


def test_only_the_slice_changes(device: str) -> None:
    x = tn.reshape(tn.arange(24), (2, 3, 4))
    before = np.arange(24).reshape(2, 3, 4)
    x[:, 1:2] = 100
    found = np.asarray(x)
    assert int(np.sum(found != before)) == 8
    assert np.all(found[:, 1] == 100)
    part = x[:, 2:]
    part[...] = tn.asarray([[7]])
    assert np.all(np.asarray(x)[:, 2] == 7)


def test_concat_splits_what_is_assigned(device: str) -> None:
    p, q = tn.zeros((1, 1, 2, 2)), tn.zeros((1, 2, 2, 2))
    tn.assign(tn.concat([p, q], axis=1), tn.reshape(tn.arange(12.0), (1, 3, 2, 2)))
    assert np.asarray(p).ravel().tolist() == [0, 1, 2, 3]
    assert np.asarray(q).ravel().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


# Loops.


def heat(a: Any, _: Any) -> tuple[Any, Any]:
    a[1:-1] = 0.33 * (a[:-2] + a[1:-1] + a[2:])
    return a, None


def jacobi(a: Any, b: Any) -> tuple[Any, Any]:
    around = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
    b[1:-1, 1:-1] = 0.25 * around
    return b, a


def with_edges(a: Any, b: Any) -> tuple[Any, Any]:
    b[1:-1] = 0.5 * (a[:-2] + a[2:])
    b[0] = b[1]
    b[-1] = a[-2]
    return b, a


def rows(a: Any, _: Any) -> tuple[Any, Any]:
    for i in range(1, 8):
        a[i] += 0.5 * a[i - 1]
        a[i] *= 0.5
    return a, None


LOOPS: dict[str, tuple[Callable[[Any, Any], tuple[Any, Any]], tuple[int, ...], int]] = {
    "heat equation": (heat, (500,), 2000),
    "jacobi": (jacobi, (20, 20), 2000),
    "two arrays with edges": (with_edges, (300,), 1000),
    "recurrence over rows": (rows, (8, 40), 200),
}


def never(_step: int, _a: tn.Array) -> None:
    """Nobody looks."""


def each(_step: int, a: tn.Array) -> None:
    a.wait()


def third(step: int, a: tn.Array) -> None:
    if step % 3 == 0:
        float(np.asarray(a).flat[0])


def element(_step: int, a: tn.Array) -> None:
    float(a[(0,) * a.ndim])


@pytest.mark.exhaustive
@pytest.mark.parametrize("look", [never, each, third, element])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_do_not_grow_whoever_looks(name: str, look: Callable[[int, tn.Array], None]) -> None:
    step, shape, count = LOOPS[name]
    first, second = randoms(*shape), randoms(*shape, seed=1)
    a, b = computed(first), computed(second)
    seen: list[tuple[int, int, int, int]] = []
    tn.trim()  # a pool and plans that are full already let go of what comes
    with tn.profile() as p:
        for number in range(count):
            a, b = step(a, b)
            look(number, a)
            first, second = step(first, second)
            if number % 30 == 29:  # one in which everybody looks, or nobody
                kept = _native.num_cached_plans()
                seen.append((p.allocations, _native.live_bytes(), kept, p.kernels))
        assert p.compiles + p.generic_compiles < 30
    taken, live, plans, kernels = zip(*seen[1:], strict=True)
    assert len({*taken}) == 1  # none after the first steps
    assert len({*plans}) == 1
    assert max(live) <= live[0]
    work = {after - before for before, after in pairwise(kernels)}
    assert len(work) == 1, "as much work in every 30 steps"
    assert_equal_bits(a, first)


def test_loops_that_write_to_a_new_array_each_time_do_not_grow() -> None:
    a, theirs = computed(randoms(100)), randoms(100)
    seen: list[tuple[int, int]] = []
    tn.trim()
    with tn.profile() as p:
        for number in range(1000):
            b, other = tn.zeros(100), np.zeros(100)
            for new, old in ((b, a), (other, theirs)):
                new[1:-1] = 0.5 * (old[:-2] + old[2:])
            a, theirs = b, other
            if number % 128 == 127:
                seen.append((p.kernels, _native.num_cached_plans()))
    kernels, plans = zip(*seen[1:], strict=True)
    assert len({*plans}) == 1
    assert len({after - before for before, after in pairwise(kernels)}) == 1
    assert kernels[0] > 0, "work goes on while nobody looks"
    assert_equal_bits(a, theirs)


def test_two_array_jacobi_is_one_kernel_a_step_without_copies() -> None:
    a, b = computed(randoms(50, 50)), computed(randoms(50, 50, seed=1))
    with tn.profile() as p:
        for _ in range(100):
            a, b = jacobi(a, b)
        a.wait()
    assert (p.kernels, p.copies, p.temporaries) == (100, 0, 0)


def test_an_assignment_that_fails_is_not_tried_again_at_each_step() -> None:
    x = tn.zeros(100)
    x[tn.asarray([98]) + 5] = 1.0
    with tn.profile() as p:
        for _ in range(200):
            x[1:-1] = x[:-2] + x[2:]
    assert p.launches + p.compiles < 30
    with pytest.raises(IndexError, match="index 103 is out of bounds"):
        x.wait()
    x[...] = 0.0
    x[1:] = x[:-1] + 1
    assert x[99].item() == 1.0
