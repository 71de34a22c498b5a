"""What the planner makes of an expression: which operations share a kernel, and in which order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tenfold as tn
from tenfold import _native
from tenfold.core.graph import Graph
from tenfold.dtypes import DTYPES
from tenfold.schedule.elementwise_lowering import has_rule
from tenfold.schedule.schedule import schedule_graph, schedule_key
from tenfold.schedule.schedule_ir import Schedule
from tenfold.schedule.target import DEFAULT


def filled(*shape: int, dtype: str = "float64") -> tn.Array:
    with tn.options(device="cpu"):
        return tn.asarray(np.ones(shape, dtype))


def graph(*arrays: tn.Array) -> Graph:
    return Graph.of([_native.node_of(array) for array in arrays])


def plan(*arrays: tn.Array, fused: bool = True) -> Schedule:
    return schedule_graph(graph(*arrays), fused=fused)


def normalised(x: tn.Array) -> tn.Array:
    mean, deviation = tn.mean(x, axis=1, keepdims=True), tn.std(x, axis=1, keepdims=True)
    return (x - mean) / deviation


Expression = Callable[[tn.Array, tn.Array, tn.Array], tn.Array | tuple[tn.Array, ...]]
PLANS: dict[str, tuple[Expression, list[str]]] = {
    "a chain": (
        lambda x, y, v: (x + y) * x - y / 2,
        ["kernel linear: add, multiply, divide, subtract -> float64[6, 8]"],
    ),
    "a row broadcast": (
        lambda x, y, v: x * v + 1,
        ["kernel inner: multiply, add -> float64[6, 8]"],
    ),
    "two outputs": (
        lambda x, y, v: (x + 1, x * 2),
        ["kernel linear: add, multiply -> float64[6, 8], float64[6, 8]"],
    ),
    "softmax of rows": (
        lambda x, y, v: tn.softmax(x, axis=1),
        ["kernel short row: max, subtract, exp, sum, divide -> float64[6, 8]"],
    ),
    "a sum that is read along its axis": (
        lambda x, y, v: tn.sum(x, axis=1, keepdims=True) * y + 1,
        ["kernel short row: sum, multiply, add -> float64[6, 8]"],
    ),
    "a call amid maps": (
        lambda x, y, v: tn.sort(x + 1, axis=0) * 2,
        [
            "kernel linear: add -> float64[6, 8]",
            "call: sort -> float64[6, 8]",
            "kernel linear: multiply -> float64[6, 8]",
        ],
    ),
    "a view of memory": (
        lambda x, y, v: x[::2, 1:],
        ["alias: index -> float64[3, 7]"],
    ),
    "nothing at all": (
        lambda x, y, v: x[:0] + 1,
        ["empty: index, add -> float64[0, 8]"],
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_fusible_operations_are_one_step(name: str) -> None:
    expression, wanted = PLANS[name]
    arrays = expression(filled(6, 8), filled(6, 8), filled(8))
    found = plan(*(arrays if isinstance(arrays, tuple) else (arrays,)))
    assert str(found).splitlines() == wanted


ONE_KERNEL: dict[str, Expression] = {
    "mean and variance": lambda x, y, v: (tn.mean(x, axis=1), tn.var(x, axis=1)),
    "layer norm": lambda x, y, v: normalised(x),
    "log-softmax": lambda x, y, v: tn.log_softmax(x, axis=1),
    "variance of columns": lambda x, y, v: tn.var(x, axis=0),
    "sum of differences": lambda x, y, v: tn.sum((x - y) ** 2, axis=1),
    "halves": lambda x, y, v: tn.astype(x, tn.float16) * 2 + 1,
    "complex": lambda x, y, v: tn.conj(x + 1j * y) * v,
    "flipped": lambda x, y, v: tn.flip(x, axis=1) + y,
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_operations_with_the_same_loops_are_one_kernel(name: str) -> None:
    arrays = ONE_KERNEL[name](filled(50, 80), filled(50, 80), filled(80))
    found = plan(*(arrays if isinstance(arrays, tuple) else (arrays,)))
    assert [step.kind for step in found.steps] == ["kernel"]
    assert not found.temporaries


def test_unfused_every_operation_has_its_own_kernel() -> None:
    x = filled(6, 8)
    found = plan((x + 1) * x - 2, fused=False)
    assert [step.names for step in found.steps] == [("add",), ("multiply",), ("subtract",)]


def test_a_named_intermediate_is_stored_only_by_the_second_evaluation_that_reads_it() -> None:
    x = filled(6, 8)
    named = tn.exp(x)
    (step,) = plan(named * 2).steps
    assert len(step.results) == 1
    _native.node_of(named).passed_through()  # as the executor marks it
    (step,) = plan(named * 2).steps
    assert len(step.results) == 2
    assert step.names == ("exp", "multiply")


def test_steps_stand_in_an_order_in_which_they_can_run() -> None:
    x = filled(30, 40)
    y = tn.softmax(tn.sort(x * 2, axis=0) @ tn.exp(x).T, axis=1)
    found = plan(y + tn.sum(y) * tn.max(x))
    made = {i for i, item in enumerate(found.items) if item.kind in ("value", "scalar")}
    for step in found.steps:
        assert set(step.reads) <= made
        made |= {each.item for each in step.results}
    dropped = [item for items in found.last_use for item in items]
    assert len(dropped) == len(set(dropped))
    assert not set(dropped) & found.live_out


def test_an_expression_longer_than_a_kernel_is_split() -> None:
    y = filled(10)
    for _ in range(3 * DEFAULT.work.max_body_ops):
        y = y * 1.5 + 1
    found = plan(y)
    assert 6 <= len(found.steps) <= 12


def test_shared_operation_counts_once_towards_the_length_of_a_kernel() -> None:
    y = filled(10)
    for _ in range(DEFAULT.work.max_body_ops // 3):
        y = y * 1.5 + y
    assert len(plan(y).steps) == 1


def test_a_cut_keeps_all_that_is_read_after_it_and_computes_nothing_twice() -> None:
    values = [filled(10), filled(10)]
    operations = 3 * DEFAULT.work.max_body_ops
    for i in range(operations):
        values.append(values[-1] * values[-2] if i % 2 else values[-1] + values[-2])
    found = plan(values[-1])
    launches = [step.launch for step in found.steps if step.launch is not None]
    computed = [made for launch in launches for made in launch.kernel.body if made.name != "load"]
    assert 3 <= len(launches) <= 5
    assert len(computed) == operations


def test_graphs_of_one_structure_have_one_key() -> None:
    first, second, other = filled(6, 8), filled(6, 8), filled(6, 9)
    key = schedule_key(graph(first * 2 + first))
    same = schedule_key(graph(second * 3 + second))
    others = [
        *(schedule_key(graph(other * 2 + other)), schedule_key(graph(first * second + first))),
        *(schedule_key(graph(first + first * 2)), schedule_key(graph(first.T * 2 + first.T))),
    ]
    assert key == same
    assert key not in others


@pytest.mark.parametrize(
    ("name", "dtype", "without_fma"),
    [
        ("add", "float32", True),
        ("floor", "float16", True),
        ("floor_divide", "int64", True),
        ("exp", "float64", False),
        ("fma", "float32", False),
        ("abs", "complex64", False),
    ],
)
def test_operation_by_fma_has_no_rule_without_it(name: str, dtype: str, without_fma: bool) -> None:
    x = filled(3, dtype=dtype)
    count = {"add": 2, "floor_divide": 2, "fma": 3}.get(name, 1)
    node = _native.node_of(getattr(tn, name)(*[x] * count))
    known = node.op, node.params, node.operands, node.type.dtype
    assert has_rule(*known)
    assert has_rule(*known, fma=False) is without_fma
    assert DTYPES[dtype] in node.operands
