"""Pushing returns at once, and a handle is a future: waited for, awaited, asked, cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


class Gate(tn.Operator):
    """Hands on its input once the gate is open."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = threading.Event()

    def run(self, x: tn.Array) -> tn.Array:
        self.begun.set()
        assert self.open.wait(30)
        return x


def test_push_returns_before_the_operator_has_run(engine: tn.Engine) -> None:
    gate = Gate()
    handle = engine.push(gate, 3.0)
    assert gate.begun.wait(30)
    assert not handle.done()
    gate.open.set()
    assert handle.get() == 3.0
    assert handle.done()
    assert handle.exception() is None


def test_handle_can_be_awaited(engine: tn.Engine) -> None:
    gate = Gate()

    async def both() -> tuple[object, object]:
        slow, quick = engine.push(gate, 3.0), engine.push(tn.operators.add, 1.0, 2.0)
        gate.open.set()
        return await slow, await quick

    assert asyncio.run(both()) == (3.0, 3.0)


def test_awaiting_lets_other_tasks_run(engine: tn.Engine) -> None:
    gate = Gate()

    async def opens() -> None:
        gate.open.set()

    async def both() -> object:
        handle = engine.push(gate, 3.0)
        other = asyncio.create_task(opens())
        found = await handle
        await other
        return found

    assert asyncio.run(both()) == 3.0


def test_awaiting_a_failed_handle_raises_its_error(engine: tn.Engine) -> None:
    async def wait() -> object:
        return await engine.push(tn.operators.matmul, np.ones((2, 3)), np.ones((2, 3)))

    with pytest.raises(tn.errors.ShapeError):
        asyncio.run(wait())


def test_inputs_are_put_first(engine: tn.Engine) -> None:
    array = tn.asarray([1.0, 2.0])
    inputs = (array, np.array([1.0, 2.0]), engine.put(array), array + 0)
    for given in inputs:
        assert engine.push(tn.operators.add, given, 1.0).get().tolist() == [2.0, 3.0]


def test_put_array_is_the_array(engine: tn.Engine) -> None:
    values = np.eye(4, dtype="float32")
    handle = engine.put(values)
    values[:] = 7
    found = handle.get()
    assert isinstance(found, tn.Array)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(found), np.eye(4))


def test_put_object_is_itself(engine: tn.Engine) -> None:
    thing = object()
    assert engine.put(thing).get() is thing


@pytest.mark.parametrize("number", [True, 3, 2.5, 1j])
def test_numbers_stay_numbers(engine: tn.Engine, number: complex) -> None:
    found = engine.put(number).get()
    assert type(found) is type(number)
    assert found == number


def test_numbers_are_weak(engine: tn.Engine) -> None:
    x = np.ones(3, dtype="float32")
    assert engine.push(tn.operators.add, x, 1.0).get().dtype == np.float32


def test_complex_arrays_are_arrays(engine: tn.Engine) -> None:
    x = np.array([1 + 2j, 3 - 1j])
    np.testing.assert_array_equal(np.asarray(engine.push(tn.operators.add, x, x).get()), x + x)


def test_parameters_go_by_name(engine: tn.Engine) -> None:
    x = np.arange(6.0).reshape(2, 3)
    found = engine.push(tn.operators.sum, x, axis=1).get()
    assert found.tolist() == [3.0, 12.0]


def test_operation_with_several_results_has_the_tuple_of_them(engine: tn.Engine) -> None:
    a = np.array([[2.0, 0.0], [0.0, 3.0]])
    values, vectors = engine.push(tn.operators.linalg_eigh, a).get()
    assert values.tolist() == [2.0, 3.0]
    assert vectors.shape == (2, 2)


def test_pushed_operation_gives_the_bits_of_the_called_one(engine: tn.Engine) -> None:
    x = np.random.default_rng(0).standard_normal(1000)
    for name in ("exp", "sum", "sort", "softmax", "negative"):
        called = np.asarray(getattr(tn.operators, name)(tn.asarray(x)))
        pushed = np.asarray(engine.push(getattr(tn.operators, name), x).get())
        np.testing.assert_array_equal(pushed, called, strict=True)


def test_run_gets_arrays_and_evaluates_in_line(engine: tn.Engine) -> None:
    seen = []

    class Norm(tn.Operator):
        def run(self, x: tn.Array) -> float:
            seen.append(type(x))
            return float(tn.sqrt(tn.sum(x * x)))

    assert engine.push(Norm(), np.array([3.0, 4.0])).get() == 5.0
    assert seen == [tn.Array]


def test_result_of_run_may_be_pending(engine: tn.Engine) -> None:
    class Twice(tn.Operator):
        def run(self, x: tn.Array) -> tn.Array:
            return x * 2

    assert engine.push(Twice(), np.ones(3)).get().tolist() == [2.0] * 3


def test_function_that_is_an_operator_can_be_pushed(engine: tn.Engine) -> None:
    @tn.operator
    def reverse(x: tn.Array) -> np.ndarray:
        return np.asarray(x)[::-1]

    assert engine.push(reverse, np.array([1.0, 2.0])).get().tolist() == [2.0, 1.0]


def test_cancel_is_true_only_before_the_start(engine: tn.Engine) -> None:
    gate = Gate()
    running = engine.push(gate, 1.0)
    assert gate.begun.wait(30)
    waiting = engine.push(tn.operators.add, running, 1.0)
    assert not running.cancel()
    assert waiting.cancel()
    assert waiting.cancel()
    gate.open.set()
    assert running.get() == 1.0
    assert not running.cancel()
    assert not engine.put(1.0).cancel()


def test_dependants_of_the_cancelled_are_cancelled(engine: tn.Engine) -> None:
    with engine.hold():
        first = engine.push(tn.operators.add, 1.0, 2.0)
        second = engine.push(tn.operators.add, first, 2.0)
        assert first.cancel()
    for handle in (first, second):
        with pytest.raises(CancelledError):
            handle.get()
        with pytest.raises(CancelledError):
            handle.exception()
        assert handle.done()


def test_default_engine_is_one_and_starts_lazily() -> None:
    assert tn.engine() is tn.engine()
    assert tn.engine().push(tn.operators.add, 1.0, 2.0).get() == 3.0


def test_end_of_the_block_finishes_what_was_pushed() -> None:
    with tn.Engine(threads=2) as engine:
        handles = [engine.push(tn.operators.add, float(i), 1.0) for i in range(100)]
    assert [handle.get() for handle in handles] == [i + 1.0 for i in range(100)]
