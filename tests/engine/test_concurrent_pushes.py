"""Many threads push, wait, cancel and drop at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture(autouse=True)
def frequent_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(*works: Callable[[], None]) -> None:
    """Run functions in threads of their own, and raise what one of them raised."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # handed on below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]


class Increase(tn.CumulativeOperator):
    def run(self, x: Any) -> Any:
        return x


def test_four_threads_push_on_their_own_and_on_shared_targets() -> None:
    count = 2_500
    with tn.Engine(threads=2) as engine:
        shared = engine.put(np.zeros(2))
        owns = [engine.put(np.zeros(2)) for _ in range(4)]

        def produce(own: tn.Handle) -> None:
            for _ in range(count):
                engine.push(Increase(), own, 1.0)
                engine.push(Increase(), shared, 1.0)

        at_once(*(lambda own=own: produce(own) for own in owns))
        sums = [engine.push(Increase(), each, 0.0).get().tolist() for each in (*owns, shared)]
    assert sums == [[float(count)] * 2] * 4 + [[4.0 * count] * 2]


def test_threads_that_push_chains_each_get_their_own_values() -> None:
    with tn.Engine(threads=4) as engine:

        def produce(begin: float) -> None:
            handle = engine.put(np.full(3, begin))
            for step in range(300):
                handle = engine.push(tn.operators.add, handle, 1.0)
                if step % 50 == 0:
                    assert handle.get().tolist() == [begin + step + 1] * 3
            assert handle.get().tolist() == [begin + 300] * 3

        at_once(*(lambda begin=begin: produce(begin) for begin in (0.0, 1000.0, 2000.0, 3000.0)))


def test_threads_wait_for_the_handle_of_another() -> None:
    with tn.Engine(threads=2) as engine, engine.hold():
        handle = engine.push(tn.operators.add, np.ones(3), 1.0)
        seen: list[list[float]] = []
        at_once(*(lambda: seen.append(handle.get().tolist()) for _ in range(8)))
    assert seen == [[2.0] * 3] * 8


def test_cancelling_and_waiting_at_once_agree() -> None:
    with tn.Engine(threads=2) as engine:
        for _ in range(200):
            handle = engine.push(tn.operators.add, np.ones(3), 1.0)
            told: list[bool] = []
            got: list[object] = []

            def wait(handle: tn.Handle = handle, got: list[object] = got) -> None:
                try:
                    got.append(handle.get().tolist())
                except CancelledError:
                    got.append(None)

            at_once(lambda handle=handle, told=told: told.append(handle.cancel()), wait)
            assert got == [None if told[0] else [2.0] * 3]


def test_flushing_while_others_push_returns() -> None:
    with tn.Engine(threads=2) as engine:

        def push() -> None:
            for _ in range(500):
                engine.push(tn.operators.add, np.ones(3), 1.0)

        def flush() -> None:
            for _ in range(20):
                engine.flush()

        at_once(push, push, flush, flush)
        engine.flush()
        assert engine.stats()["live_objects"] == 0


def test_holds_of_several_threads_do_not_lose_work() -> None:
    with tn.Engine(threads=2) as engine:

        def work() -> None:
            for _ in range(50):
                with engine.hold():
                    handles = [engine.push(tn.operators.add, float(i), 1.0) for i in range(5)]
                assert [handle.get() for handle in handles] == [1.0, 2.0, 3.0, 4.0, 5.0]

        at_once(work, work, work)


def test_engines_side_by_side_do_not_meet() -> None:
    with tn.Engine(threads=2) as first, tn.Engine(threads=2) as second:

        def work(engine: tn.Engine, step: float) -> None:
            handle = engine.put(0.0)
            for _ in range(500):
                handle = engine.push(tn.operators.add, handle, step)
            assert handle.get() == 500 * step

        at_once(lambda: work(first, 1.0), lambda: work(second, 2.0))
