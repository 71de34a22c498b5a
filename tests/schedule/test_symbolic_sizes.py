"""Sizes: what is computed with formulas is what is computed with ints, wherever the guards hold."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.core.symbolic.shape_env import ShapeEnv
from tenfold.core.symbolic.size_program import SizeProgram
from tenfold.core.symbolic.sym_int import NotSymbolic, example_value, largest, smallest, values_of
from tenfold.schedule.schedule import schedule_graph
from tenfold.schedule.symbolic_graph import with_symbolic_lengths

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "plus": operator.add,
    "times": operator.mul,
    "floor": operator.floordiv,
    "ceil": lambda a, b: -(-a // b),
    "mod": operator.mod,
    "min": min,
    "max": max,
    "bits": lambda a, _: a.bit_length(),
}


def computed(formulas: SizeProgram, lengths: tuple[int, ...]) -> list[int]:
    """Return all registers for other lengths, as native code computes them."""
    registers = [*lengths, *formulas.constants]
    for name, left, right in formulas.instructions():
        registers.append(OPERATIONS[name](registers[left], registers[right]))
    return registers


def mixed(source: random.Random, lengths: tuple[int, ...]) -> list[int]:
    """Return numbers computed of lengths, by the same choices for ints and for Sizes."""
    found: list[Any] = [*lengths, 3, 64]
    for _ in range(14):
        x, y = (found[int(source.random() * len(found))] for _ in "xy")
        which, some = source.randrange(9), source.choice((2, 8, 1000))
        if which == 0:
            made: Any = x + y
        elif which == 1:
            made = x * y if example_value(x) * example_value(y) < 1 << 40 else x
        elif which == 2:
            made = x - y
        elif which == 3 and x >= 0 and y > 0:
            made = -(-x // y)
        elif which == 4 and x >= 0:
            made = x % some
        elif which == 5:
            made = largest(x, y)
        elif which == 6:
            made = smallest(x, some)
        elif which == 7 and x >= 0:
            made = x.bit_length()
        else:
            made = x if x < y or x == some else y // some if y >= 0 else -y
        found.append(made)
    return found


def holds(kind: str, number: int) -> bool:
    return number > 0 if kind == "positive" else (number == 0) == (kind == "zero")


@pytest.mark.parametrize("seed", range(60))
def test_formulas_hold_where_guards_do(seed: int) -> None:
    measure = ShapeEnv((20, 300))
    found = mixed(random.Random(seed), measure.lengths)
    assert list(map(example_value, found)) == mixed(random.Random(seed), (20, 300))
    formulas, guards = SizeProgram(measure), measure.guards()
    places = [formulas.ref(number) for number in found]
    guarded = [(kind, formulas.ref(number)) for kind, number in guards]

    for n in (2, 3, 19, 20, 21, 40, 299, 5000):
        for m in (2, 4, 64, 65, 300, 301, 999, 1000, 10**5):
            if n == m:
                continue
            try:
                registers = computed(formulas, (n, m))
            except ZeroDivisionError:
                continue  # a guard asks for the divisor
            if all(holds(kind, registers[formulas.register(at)]) for kind, at in guarded):
                wanted = mixed(random.Random(seed), (n, m))
                assert [registers[formulas.register(at)] for at in places] == wanted


def test_fact_of_all_lengths_is_no_guard() -> None:
    measure = ShapeEnv((6, 100))
    rows, columns = measure.lengths
    assert rows * columns > rows
    assert rows != 1
    assert rows
    assert rows != columns
    assert 8 * rows * columns != 8 * rows
    assert columns * rows == rows * columns
    assert (8 * rows * columns) // (4 * columns) == 2 * rows
    assert measure.guards() == []


def test_strongest_of_alike_guards_is_left() -> None:
    measure = ShapeEnv((6, 100))
    rows, columns = measure.lengths
    for bound in (16, 32, 64):
        assert columns >= bound
    assert columns != 40
    assert rows < 7
    assert [(kind, repr(guard)) for kind, guard in measure.guards()] == [
        ("positive", "columns - 63"),
        ("positive", "-rows + 7"),
    ]


@pytest.mark.parametrize(
    "use",
    [
        int,
        float,
        str,
        operator.index,
        lambda size: [0, 1][size],
        lambda size: range(size),
        lambda size: size / 2,
        lambda size: 1 << size,
        lambda size: 0.5 * size,
        lambda size: b"".ljust(size),
    ],
)
def test_use_of_the_number_itself_is_refused(use: Callable[[Any], object]) -> None:
    (length,) = ShapeEnv((6,)).lengths
    with pytest.raises((NotSymbolic, TypeError)):
        use(length)


def test_a_plan_with_sizes_has_the_kernels_of_the_plan() -> None:
    x = tn.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    graph = Graph.of([_native.node_of(tn.sum(x * x, axis=0) - 1)])
    lengths = dict(zip((2, 3), ShapeEnv((2, 3)).lengths, strict=True))
    plain, general = schedule_graph(graph), schedule_graph(with_symbolic_lengths(graph, lengths))
    launches = [step.launch for plan in (plain, general) for step in plan.steps]
    assert len(launches) == 2
    assert launches[0] is not None
    assert launches[1] is not None
    assert launches[0].kernel == launches[1].kernel
    assert launches[0].sizes == tuple(map(example_value, launches[1].sizes))
    assert [repr(size) for size in launches[1].sizes[:2]] == ["rows", "columns"]


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x[1:] + 1,
        lambda x: tn.cumulative_sum(x, axis=0, include_initial=True),
        lambda x: tn.flip(x) * 2,
        lambda x: tn.broadcast_to(x, (4, 2, 3)) + 1,
    ],
)
def test_lengths_that_are_no_leafs_follow_from_them(made: Callable[[Any], Any]) -> None:
    x = tn.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    wanted = made(x)
    graph = Graph.of([_native.node_of(wanted)])
    general = with_symbolic_lengths(graph, dict(zip((2, 3), ShapeEnv((2, 3)).lengths, strict=True)))
    assert values_of(general.nodes[-1].type.shape) == wanted.shape


@pytest.mark.parametrize(
    "made",
    [
        lambda x: tn.reshape(x, (6,)),
        lambda x: tn.broadcast_to(x[:1], (4, 3)) + 1,
    ],
)
def test_lengths_that_are_no_leafs_are_refused(made: Callable[[Any], Any]) -> None:
    x = tn.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    graph = Graph.of([_native.node_of(made(x))])
    with pytest.raises(NotSymbolic):
        with_symbolic_lengths(graph, dict(zip((2, 3), ShapeEnv((2, 3)).lengths, strict=True)))


def test_the_smaller_and_the_larger_are_told_whichever_comes_first() -> None:
    rows, columns = ShapeEnv((6, 100)).lengths
    pairs = [(3, 4), (rows, 64), (columns, 64), (rows, columns), (rows * 2, 11)]
    for pair in (each for x, y in pairs for each in ((x, y), (y, x))):
        values = [example_value(number) for number in pair]
        assert example_value(smallest(*pair)) == min(values)
        assert example_value(largest(*pair)) == max(values)
