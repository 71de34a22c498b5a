"""What nobody can reach is freed, and a limit bounds what is alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


class Total(tn.Operator):
    def run(self, x: tn.Array) -> float:
        return float(tn.sum(x))


def test_nothing_is_alive_when_every_handle_is_dropped(engine: tn.Engine) -> None:
    start = engine.put(np.ones(50))
    handle = start
    for _ in range(5_000):
        handle = engine.push(tn.operators.add, handle, start)
    engine.flush()
    assert engine.stats()["live_objects"] >= 1
    del handle, start
    engine.flush()
    stats = engine.stats()
    assert (stats["live_objects"], stats["live_bytes"]) == (0, 0)


def test_twenty_thousand_pushes_whose_handles_are_dropped_leave_nothing() -> None:
    limit = 1_000_000
    with tn.Engine(threads=2, memory_limit=limit) as engine:
        x, y = engine.put(np.ones(50)), engine.put(np.ones(50))
        for number in range(20_000):
            handle = engine.push(tn.operators.add, x, y)
            if number % 1_000 == 0:
                handle.get()
        del handle, x, y
        engine.flush()
        assert engine.stats()["live_objects"] == 0
        assert engine.stats()["peak_bytes"] <= limit


def test_values_between_are_freed_as_the_work_goes_on(engine: tn.Engine) -> None:
    with engine.hold():
        handle = engine.push(tn.operators.add, np.ones(10_000), 1.0)
        for _ in range(200):
            handle = engine.push(tn.operators.add, handle, 1.0)
    engine.flush()
    assert handle.get()[0].item() == 202.0
    assert engine.stats()["peak_bytes"] < 20 * 80_000


def test_limit_bounds_what_is_alive_while_others_are_pushed() -> None:
    """Of what operations of Tenfold make."""
    size, limit = 100_000, 1_000_000
    with tn.Engine(threads=2, memory_limit=limit) as engine:
        x = engine.put(np.ones(size // 8))
        totals = [engine.push(Total(), engine.push(tn.operators.add, x, n)) for n in range(200)]
        assert [total.get() for total in totals] == [size / 8 * (1 + n) for n in range(200)]
        assert engine.stats()["peak_bytes"] <= limit + 2 * size


class Filled(tn.Operator):
    def run(self, size: int, number: float) -> np.ndarray:
        return np.full(size // 8, number)


def test_limit_bounds_what_operators_of_users_return_by_what_they_returned_before() -> None:
    size, limit = 100_000, 1_000_000
    with tn.Engine(threads=2, memory_limit=limit) as engine:
        totals = [engine.push(Total(), engine.push(Filled(), size, float(n))) for n in range(200)]
        assert [total.get() for total in totals] == [size / 8 * n for n in range(200)]
        assert engine.stats()["peak_bytes"] <= limit + 2 * size


def test_twenty_thousand_pushes_of_a_users_operator_are_bounded() -> None:
    limit = 1_000_000
    with tn.Engine(threads=2, memory_limit=limit) as engine:
        for number in range(20_000):
            engine.push(Filled(), 8_000, float(number % 7))
        engine.flush()
        assert engine.stats()["live_objects"] == 0
        assert engine.stats()["peak_bytes"] <= limit


def test_guessed_lack_of_room_does_not_stop_a_push_where_nothing_runs() -> None:
    with tn.Engine(threads=1, memory_limit=1_000_000) as engine:
        engine.push(Filled(), 600_000, 1.0).get()
        with engine.hold():
            handles = [engine.push(Filled(), 8, 2.0) for _ in range(100)]
        assert all(handle.get().tolist() == [2.0] for handle in handles)


def test_memory_limit_may_be_text() -> None:
    with tn.Engine(threads=1, memory_limit="2GiB") as engine:
        assert engine.push(tn.operators.add, 1.0, 1.0).get() == 2.0
    with pytest.raises(ValueError, match="memory_limit"):
        tn.Engine(memory_limit="much")


def test_limit_that_nothing_can_ever_keep_is_told_with_the_sizes() -> None:
    with tn.Engine(threads=1, memory_limit=100_000) as engine:
        kept: list[tn.Handle] = []

        def fill() -> None:
            for _ in range(10):
                kept.append(engine.put(np.ones(5_000)))

        with pytest.raises(MemoryError, match=r"100[,_]?000"):
            fill()
        kept.clear()
        assert engine.push(tn.operators.add, 1.0, 1.0).get() == 2.0


def test_objects_of_the_caller_are_let_go(engine: tn.Engine) -> None:
    class Thing:
        pass

    class Look(tn.Operator):
        def run(self, x: Any) -> int:
            return 1

    thing = Thing()
    gone = weakref.ref(thing)
    handle = engine.push(Look(), thing)
    del thing
    assert handle.get() == 1
    engine.flush()
    gc.collect()
    assert gone() is None


def test_operator_is_let_go_when_it_has_run(engine: tn.Engine) -> None:
    class Once(tn.Operator):
        def run(self) -> int:
            return 1

    operator = Once()
    gone = weakref.ref(operator)
    handle = engine.push(operator)
    del operator
    assert handle.get() == 1
    engine.flush()
    gc.collect()
    assert gone() is None


def test_long_chain_that_never_ran_is_freed_without_recursion(engine: tn.Engine) -> None:
    with engine.hold():
        handle = engine.put(np.ones(2))
        for _ in range(20_000):
            handle = engine.push(tn.operators.add, handle, 1.0)
        del handle
    engine.flush()
    assert engine.stats()["live_objects"] == 0


def test_long_chain_that_fails_poisons_without_recursion(engine: tn.Engine) -> None:
    with engine.hold():
        handle = engine.push(tn.operators.add, np.ones(2), np.ones(3))
        for _ in range(20_000):
            handle = engine.push(tn.operators.add, handle, 1.0)
    assert isinstance(handle.exception(), tn.errors.ShapeError)


def test_classes_of_operators_and_what_they_hold_are_let_go() -> None:
    seen = []
    for _ in range(3):

        class Own(tn.Operator):
            def run(self, x: float) -> float:
                return x + 1

        with tn.Engine(threads=1) as engine:
            assert engine.push(Own(), 1.0).get() == 2.0
        seen.append(weakref.ref(Own))
    del Own, engine
    tn.asarray(1.0).wait()  # what workers have let go goes with the next call
    gc.collect()
    assert [each() for each in seen] == [None] * 3


@pytest.mark.parametrize("limit", [2**62 + 1, 2**70, 1 << 999, -1, 0, "9" * 400, "99999999TiB"])
def test_a_limit_that_no_memory_has_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError, match=r"Engine: memory_limit .* is not a size in bytes, from 1"):
        tn.Engine(threads=1, memory_limit=limit)


ELEMENTS, LIMIT = 10_000, 200_000  # two results of float64 fit, and the inputs
MAKERS = {
    "zeros": lambda _: (tn.operators.zeros, (ELEMENTS,)),
    "full": lambda _: (tn.operators.full, (ELEMENTS,), 3.0),
    "arange": lambda _: (tn.operators.arange, float(ELEMENTS)),
    "eye": lambda _: (tn.operators.eye, 100),
    "broadcast": lambda x: (tn.operators.broadcast_to, x, (100, 100)),
    "tile": lambda x: (tn.operators.tile, x, (100,)),
    "repeat": lambda x: (tn.operators.repeat, x, 100),
    "outer": lambda x: (tn.operators.add, tn.reshape(x, (100, 1)), x),
    "product": lambda x: (tn.operators.matmul, tn.reshape(x, (100, 1)), tn.reshape(x, (1, 100))),
    "concat": lambda x: (tn.operators.concat, [x] * 100),
    "several results": lambda x: (tn.operators.meshgrid, x[:50], x),
    "traced": lambda x: (tn.function(lambda a: a[:, None] * a), x),
    "traced without inputs": lambda _: (tn.function(lambda: tn.zeros(ELEMENTS)),),
}


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_a_push_whose_result_passes_the_limit_raises_before_it_is_made(
    maker: Any, is_held: bool
) -> None:
    with tn.Engine(threads=2, memory_limit=LIMIT) as engine:
        operator, *inputs = maker(tn.ones(100).wait())
        handles = []

        def push_more_than_fit() -> None:
            for _ in range(20):
                handles.append(engine.push(operator, *inputs))

        with engine.hold() if is_held else nullcontext(), pytest.raises(MemoryError):
            push_more_than_fit()
        engine.flush()
        assert handles
        assert engine.stats()["peak_bytes"] <= LIMIT


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_pushes_whose_results_are_dropped_go_on_below_the_limit(maker: Any) -> None:
    with tn.Engine(threads=2, memory_limit=LIMIT) as engine:
        operator, *inputs = maker(tn.ones(100).wait())
        for _ in range(20):
            engine.push(operator, *inputs).get()
        assert engine.stats()["peak_bytes"] <= LIMIT
