"""The key store of an engine: sums, gathers, updaters, callbacks, priorities, versions, threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.errors import RunError


@pytest.fixture(params=[1, 4])
def engine(request: pytest.FixtureRequest) -> Iterator[tn.Engine]:
    with tn.Engine(threads=request.param) as made:
        yield made


def test_four_pushes_of_ones_are_pulled_as_fours(engine: tn.Engine) -> None:
    store = engine.store()
    store.init(0, np.zeros(3))
    for _ in range(4):
        store.push(0, np.ones(3))
    assert store.pull(0).get().tolist() == [4.0, 4.0, 4.0]


def test_gathered_pushes_are_stacked_in_their_order(engine: tn.Engine) -> None:
    store = engine.store(combine="gather")
    for i in range(4):
        store.push(0, np.full(3, float(i)))
    assert np.array_equal(
        np.asarray(store.pull(0).get()), np.repeat(np.arange(4.0), 3).reshape(4, 3)
    )
    store.push(0, np.full(3, 4.0))
    assert store.pull(0).get().shape == (5, 3)


def test_more_pushes_are_gathered_than_an_operator_takes(engine: tn.Engine) -> None:
    store = engine.store(combine="gather")
    for i in range(450):
        store.push("x", np.array([i]))
    assert store.pull("x").get().tolist() == [[i] for i in range(450)]


def test_a_key_starts_with_its_first_push_if_it_has_no_value(engine: tn.Engine) -> None:
    store = engine.store()
    store.push("a", 2)
    store.push("a", 3)
    assert store.pull("a").get() == 5


def test_callback_is_called_once_for_each_pull(engine: tn.Engine) -> None:
    store, calls = engine.store(), []
    store.init(0, np.ones(2))
    handles = [store.pull(0, callback=lambda x: calls.append(x.tolist())) for _ in range(3)]
    store.push(0, np.ones(2))
    engine.flush()
    assert [h.get().tolist() for h in handles] == calls == [[1.0, 1.0]] * 3


def test_an_exception_of_a_callback_is_that_of_its_pull(engine: tn.Engine) -> None:
    store = engine.store()
    store.init(0, 1.0)

    def refuse(_value: Any) -> None:
        raise ZeroDivisionError("refused")

    with pytest.raises(RunError, match="refused"):
        store.pull(0, callback=refuse).get()
    assert store.pull(0).get() == 1.0


def test_updater_is_called_once_a_round_with_what_was_pushed(engine: tn.Engine) -> None:
    seen: list[Any] = []

    def updater(key: str, pushed: tn.Array, value: tn.Array) -> tn.Array:
        seen.append((key, pushed.tolist()))
        return value * 10 + tn.sum(pushed)

    store = engine.store(combine="gather", updater=updater, pushes=2)
    store.init("k", 1)
    for i in range(5):
        store.push("k", np.array(i))
    assert store.pull("k").get().item() == (1 * 10 + 1) * 10 + 5  # the fifth waits for a sixth
    assert seen == [("k", [0, 1]), ("k", [2, 3])]
    sums = engine.store(updater=lambda key, pushed, value: value - pushed, pushes=3)
    sums.init(0, 100.0)
    for i in range(3):
        sums.push(0, float(i))
    assert sums.pull(0).get() == 97.0


def test_a_pulled_value_does_not_change_when_others_push(engine: tn.Engine) -> None:
    store, start = engine.store(), np.zeros(2)
    store.init(0, start)
    before = store.pull(0)
    store.push(0, np.ones(2))
    after = store.pull(0)
    start[:] = 7
    assert (before.get().tolist(), after.get().tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_handles_of_the_engine_are_pushed_before_they_are_done(engine: tn.Engine) -> None:
    store = engine.store()
    store.init(0, np.zeros(2))
    with engine.hold():
        store.push(0, engine.push(tn.operators.exp, np.zeros(2)))
        pulled = store.pull(0)
        assert not pulled.done()
    assert pulled.get().tolist() == [1.0, 1.0]


def test_highest_priority_runs_first() -> None:
    order: list[int] = []
    started, release, done = threading.Event(), threading.Event(), threading.Event()

    class Block(tn.Operator):
        def run(self) -> None:
            started.set()
            release.wait()

    with tn.Engine(threads=1) as engine:
        store = engine.store()
        store.init(0, 1.0)
        engine.flush()
        blocked = engine.push(Block())
        assert started.wait(60)

        def record(priority: int) -> Any:
            def callback(_value: Any) -> None:
                order.append(priority)
                if len(order) == 6:
                    done.set()

            return callback

        pulls = [store.pull(0, priority=p, callback=record(p)) for p in (0, -2, 5, 1, 5, 3)]
        release.set()
        assert done.wait(60)  # without helping: one thread runs them all
        assert order == [5, 5, 3, 1, 0, -2]
        engine.flush()
        assert all(pull.get() == 1.0 for pull in pulls)
        assert blocked.done()


def test_priority_of_an_operator_of_the_user_orders_ready_operators() -> None:
    order: list[str] = []
    started, release, done = threading.Event(), threading.Event(), threading.Event()

    class Named(tn.Operator):
        def __init__(self, name: str, priority: int) -> None:
            self.name, self.priority = name, priority

        def run(self) -> None:
            if self.name == "block":
                started.set()
                release.wait()
            order.append(self.name)
            if len(order) == 4:
                done.set()

    with tn.Engine(threads=1) as engine:
        engine.push(Named("block", 0))
        assert started.wait(60)
        for name, priority in (("low", -1), ("high", 2), ("middle", 1)):
            engine.push(Named(name, priority))
        release.set()
        assert done.wait(60)
    assert order == ["block", "high", "middle", "low"]


def test_sums_of_many_threads_are_exact(engine: tn.Engine) -> None:
    store = engine.store()
    store.init("n", 0)

    def produce() -> None:
        for i in range(500):
            store.push("n", i)

    threads = [threading.Thread(target=produce) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.pull("n").get() == 4 * sum(range(500))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda e, s: s.pull("none"), KeyError, "the key 'none' has no value"),
        (lambda e, s: s.init(0, 1), ValueError, "the key 0 has a value already"),
        (lambda e, s: e.store(combine="max"), ValueError, "combine 'max'"),
        (lambda e, s: e.store(pushes=2), ValueError, "pushes 2"),
        (lambda e, s: e.store(updater=max).push(1, 2), KeyError, "call init first"),
        (lambda e, s: s.push(0, 1, priority=0.5), TypeError, "float"),
    ],
)
def test_misfit_is_named(engine: tn.Engine, call: Any, error: type[Exception], text: str) -> None:
    store = engine.store()
    store.init(0, 0)
    with pytest.raises(error, match=text):
        call(engine, store)
