"""Operations with loops are one launch whatever their layout, and increments one call of Python."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.core.op import OPS

COUNT = 20


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


def held(engine: tn.Engine, push: Callable[[], tn.Handle]) -> tuple[Any, list[tn.Handle]]:
    """The counters of so many pushes that were held, once all has run."""
    with tn.profile() as p:
        with engine.hold():
            handles = [push() for _ in range(COUNT)]
        engine.flush()
    return p, handles


WORKS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], int]] = {
    "broadcast": ("add", (0, 1), {}, 1),
    "strided": ("exp", (2,), {}, 1),
    "strided with a number": ("multiply", (2, 3.0), {}, 1),
    "where": ("where", (3, 0, 1), {}, 1),
    "cast": ("astype", (0, "float32"), {}, 1),
    "cast to a class": ("astype", (0, np.int32), {}, 1),
    "sum of an axis": ("sum", (0,), {"axis": 0}, 1),
    "sum of an axis that stays": ("sum", (0,), {"axis": -1, "keepdims": True}, 1),
    "sum of a strided array": ("sum", (2,), {"axis": (0,)}, 1),
    "maximum of all": ("max", (0,), {}, 1),
    "product": ("prod", (0,), {"axis": 1}, 1),
    "any": ("any", (3,), {}, 1),
    "place of the maximum": ("argmax", (0,), {"axis": 1}, 1),
    "mean": ("mean", (0,), {"axis": 1}, 2),
    "permuted": ("permute_dims", (0, (1, 0)), {}, 0),
    "reshaped": ("reshape", (0, (5, 6)), {}, 0),
    "broadcast to": ("broadcast_to", (1, (3, 5)), {}, 0),
    "flipped": ("flip", (0,), {"axis": 1}, 0),
}
PLANNED = {"maximum of all": 2, "any": 2, "mean": 1}
"""The launches on another device, which runs plans."""


@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("name", WORKS)
def test_pushes_of_one_signature_are_one_batch_that_launches_once(
    engine: tn.Engine, name: str
) -> None:
    random = np.random.default_rng(3)
    tall = tn.asarray(random.random((5, 6)))
    arrays = [
        tn.asarray(random.random((6, 5))),
        tn.asarray(random.random(5)),
        tn.eval(tn.permute_dims(tall, (1, 0))),
        tn.asarray(random.random((6, 1)) > 0.5),
    ]
    operation, given, params, launches = WORKS[name]
    if tall.device != "cpu":
        launches = PLANNED.get(name, launches)
    inputs = [engine.put(arrays[each]) if type(each) is int else each for each in given]
    values = [arrays[each] if type(each) is int else each for each in given]
    operator = OPS[operation]
    engine.push(operator, *inputs, **params).get()  # makes the loops
    p, handles = held(engine, lambda: engine.push(operator, *inputs, **params))
    assert (p.launches, p.batches) == (launches, 1)
    wanted = np.asarray(operator(*values, **params))
    for handle in handles:
        found = np.asarray(handle.get())
        assert (found.dtype, found.tobytes()) == (wanted.dtype, wanted.tobytes())


ALONE: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "solve": ("linalg.solve", (0, 1), {}),
    "cholesky": ("linalg.cholesky", (0,), {}),
    "inverse": ("linalg.inv", (0,), {}),
    "running sum": ("cumulative_sum", (1,), {"axis": 1}),
    "stacks": ("matmul", (2, 2), {}),
    "tensordot": ("tensordot", (0, 1), {"axes": 1}),
    "differences": ("diff", (1,), {"axis": 0}),
    "long": ("exp", (3,), {}),
}


@pytest.mark.cpu
@pytest.mark.usefixtures("fused_multiply_add")
@pytest.mark.parametrize("name", ALONE)
def test_single_operator_needs_no_gil_once_it_is_planned(engine: tn.Engine, name: str) -> None:
    random = np.random.default_rng(3)
    square = random.random((6, 6))
    values = [
        square @ square.T + 6 * np.eye(6),
        random.random((6, 5)),
        random.random((3, 4, 4)),
        random.random(140_000),
    ]
    path, given, params = ALONE[name]
    operator = attrgetter(path)(tn.operators)
    inputs = [engine.put(values[each]) for each in given]
    wanted = np.asarray(operator(*[tn.asarray(values[each]) for each in given], **params))
    engine.push(operator, *inputs, **params).get()
    before, end = sys.getswitchinterval(), time.monotonic() + 60
    sys.setswitchinterval(1000)  # who waits for the GIL waits longer than this test
    try:
        handles = [engine.push(operator, *inputs, **params) for _ in range(3)]
        while not all(handle.done() for handle in handles):
            assert time.monotonic() < end, "a worker waits for the GIL"
    finally:
        sys.setswitchinterval(before)
    for handle in handles:
        assert np.asarray(handle.get()).tobytes() == wanted.tobytes()


def test_a_matrix_that_has_no_answer_fails_by_its_name_among_others(engine: tn.Engine) -> None:
    solve, b = tn.operators.linalg.solve, np.ones(3)
    for _ in range(2):  # the first time, and by the plan
        good, bad = (engine.push(solve, matrix, b) for matrix in (np.eye(3), np.zeros((3, 3))))
        assert good.get().tolist() == [1.0, 1.0, 1.0]
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            bad.get()


def test_an_operation_that_returns_its_input_gives_it(engine: tn.Engine) -> None:
    x = np.zeros((0, 2))
    for _ in range(2):
        assert engine.push(tn.operators.diff, x, axis=0).get().shape == (0, 2)


def test_parameters_and_constants_are_told_apart(engine: tn.Engine) -> None:
    x, of = engine.put(np.arange(6.0).reshape(2, 3)), tn.operators
    assert engine.push(of.sum, x, axis=0).get().tolist() == [3.0, 5.0, 7.0]
    assert engine.push(of.sum, x, axis=1).get().tolist() == [3.0, 12.0]
    assert engine.push(of.sum, x, axis=1, keepdims=True).get().shape == (2, 1)
    assert engine.push(of.reshape, x, (3, 2)).get().shape == (3, 2)
    assert engine.push(of.reshape, x, (6,)).get().shape == (6,)
    assert engine.push(of.astype, x, "float32").get().dtype == np.float32
    assert engine.push(of.astype, x, np.int16).get().dtype == np.int16
    assert [engine.push(of.clip, x, least).get()[0, 0].item() for least in (2, 1.5)] == [2.0, 1.5]


def test_error_of_a_pushed_reduction_waits_on_its_handle(engine: tn.Engine) -> None:
    x = engine.put(np.ones((2, 3)))
    handle = engine.push(tn.operators.sum, x, axis=5)
    with pytest.raises(Exception, match="axis"):
        handle.get()
    assert engine.push(tn.operators.sum, x).get().item() == 6.0


class AddSquare(tn.CumulativeOperator):
    def run(self, x: Any) -> Any:
        return x * x


class AddSquares(tn.CumulativeOperator):
    """Many increments at once; notes how many."""

    batches: list[int]

    def run_batch(self, members: Sequence[tuple[Any, ...]]) -> list[Any]:
        self.batches.append(len(members))
        if any(x < 0 for (x,) in members):
            raise ValueError("negative")
        return [x * x for (x,) in members]


def test_increments_that_are_ready_are_one_batch(engine: tn.Engine) -> None:
    total = engine.put(0)
    with engine.hold():
        for number in range(100):
            total = engine.push(AddSquare(), total, number)
    assert total.get() == sum(number**2 for number in range(100))
    assert engine.stats()["batch_sizes"] == {100: 1}


def test_increments_made_by_operators_of_other_attributes_are_kept_apart(
    engine: tn.Engine,
) -> None:
    class AddTimes(tn.CumulativeOperator):
        def __init__(self, factor: Any) -> None:
            self.factor = factor

        def run(self, x: float) -> float:
            return x * self.factor[0]

    total = engine.put(0.0)
    with engine.hold():
        for factor in (1.0, 2.0, 3.0):
            total = engine.push(AddTimes([factor]), total, 10.0)
            total = engine.push(AddTimes((factor,)), total, 1.0)
    assert total.get() == 66.0


def test_increments_of_a_class_with_run_batch_are_one_call_of_it(engine: tn.Engine) -> None:
    operator = AddSquares()
    operator.batches = []
    total = engine.put(0.0)
    with engine.hold():
        for number in range(50):
            total = engine.push(operator, total, float(number))
    assert total.get() == sum(number**2 for number in range(50))
    assert operator.batches == [50]
    assert operator(1.0, 3.0) == 10.0  # now


def test_increments_whose_batch_fails_are_not_made_again(engine: tn.Engine) -> None:
    operator = AddSquares()
    operator.batches = []
    start = engine.put(0.0)
    with engine.hold():
        total = engine.push(operator, engine.push(operator, start, 2.0), -1.0)
    with pytest.raises(tn.errors.RunError, match="negative"):
        total.get()
    assert operator.batches == [2]


def test_one_increment_that_fails_harms_no_other_in_its_batch(engine: tn.Engine) -> None:
    first, other = engine.put(0.0), engine.put(0.0)
    with engine.hold():
        bad = engine.push(AddSquare(), first, "text")
        good = engine.push(AddSquare(), other, 3.0)
    assert good.get() == 9.0
    with pytest.raises(tn.errors.RunError, match="TypeError"):
        bad.get()
