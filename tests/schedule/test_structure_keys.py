"""Keys of plans: graphs that need different plans have different keys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.schedule.schedule import schedule_graph, schedule_key

Key = tuple[object, ...]


def array(shape: tuple[int, ...] = (6, 8), dtype: str = "float64") -> tn.Array:
    with tn.options(device="cpu"):
        return tn.asarray(np.ones(shape, dtype)).wait()


def key(*outputs: tn.Array) -> Key:
    return schedule_key(Graph.of([_native.node_of(each) for each in outputs], (1,)))


def shapes() -> list[Key]:
    return [key(tn.exp(array(shape))) for shape in ((6, 8), (8, 6), (48,))]


def dtypes() -> list[Key]:
    return [key(array(dtype=dtype) + array()) for dtype in ("float64", "float32", "int64")]


def strides() -> list[Key]:
    straight, across = array((6, 8)), (array((8, 6)).T + 0.0).wait()
    return [key(tn.exp(straight)), key(tn.exp(across))]


def parameters() -> list[Key]:
    x = array((6, 6))
    return [key(tn.sum(x, axis=axis, keepdims=keep)) for axis in (0, 1) for keep in (False, True)]


def holders() -> list[Key]:
    x = array()
    one = x + 1
    held, free = key(one * x), key((x + 1) * x)
    return [held, free]


def last_readers() -> list[Key]:
    x = array()
    return [key(tn.exp(x)), key(tn.exp(array()))]


def operands() -> list[Key]:
    x, y = array(), array()
    return [key(x - y * x), key(y * x - x), key(x * x - x)]


def options() -> list[Key]:
    graph = Graph.of([_native.node_of(tn.exp(array()))])
    return [schedule_key(graph, fused, fma) for fused in (True, False) for fma in (True, False)]


@pytest.mark.parametrize(
    "keys", [shapes, dtypes, strides, parameters, holders, last_readers, operands, options]
)
def test_facts_of_a_plan_are_in_its_key(keys: Callable[[], list[Key]]) -> None:
    found = keys()
    assert len(set(found)) == len(found)
    assert found == keys()


def test_numbers_are_no_part_of_a_key() -> None:
    x = array()
    assert key(x * 2.0) == key(x * 3.0)


def test_a_plan_of_the_same_key_is_the_same_plan() -> None:
    def plan(number: float) -> str:
        return str(schedule_graph(Graph.of([_native.node_of(tn.exp(array()) * number)])))

    assert plan(2.0) == plan(3.0)
