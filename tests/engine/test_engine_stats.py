"""What an engine shows of itself: numbers and a graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tenfold as tn


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


class Fails(tn.Operator):
    def run(self, x: Any) -> Any:
        raise ValueError("it fails")


def test_numbers_say_what_became_of_the_pushes(engine: tn.Engine) -> None:
    x = engine.put(np.ones(3))
    with engine.hold():
        sums = [engine.push(tn.operators.add, x, 1.0) for _ in range(10)]
        failed = engine.push(Fails(), x)
        cancelled = engine.push(tn.operators.add, x, 2.0)
        cancelled.cancel()
        assert engine.stats()["done"] == 0
    engine.flush()
    stats = engine.stats()
    assert (stats["pushed"], stats["done"], stats["failed"], stats["cancelled"]) == (12, 10, 1, 1)
    assert (stats["ready"], stats["running"], stats["queue_depth"]) == (0, 0, 0)
    assert stats["live_objects"] == 11
    assert stats["live_bytes"] >= 11 * 24
    assert stats["peak_bytes"] >= stats["live_bytes"]
    assert failed.exception() is not None
    assert len(sums) == 10


def test_numbers_have_the_sizes_of_batches(engine: tn.Engine) -> None:
    x = engine.put(np.ones(3))
    with engine.hold():
        handles = [engine.push(tn.operators.add, x, 1.0) for _ in range(10)]
        handles += [engine.push(tn.operators.exp, x) for _ in range(3)]
    engine.flush()
    assert engine.stats()["batches"] == 2
    assert dict(engine.stats()["batch_sizes"]) == {10: 1, 3: 1}
    assert len(handles) == 13


def test_numbers_say_what_runs_now(engine: tn.Engine) -> None:
    gate, begun = threading.Event(), threading.Event()

    class Gate(tn.Operator):
        def run(self) -> int:
            begun.set()
            assert gate.wait(30)
            return 1

    handle = engine.push(Gate())
    assert begun.wait(30)
    assert engine.stats()["running"] == 1
    gate.set()
    assert handle.get() == 1


def test_graph_of_what_is_pending_is_dot(engine: tn.Engine) -> None:
    with engine.hold():
        x = engine.push(tn.operators.exp, np.ones(3))
        y = engine.push(tn.operators.add, x, x)
        text = engine.graph()
        assert y.get() is not None
    assert text.startswith("digraph")
    assert text.count("{") == text.count("}") == 1
    assert text.count("->") >= 1
    assert "exp" in text
    assert "add" in text


def test_handle_shows_what_it_is(engine: tn.Engine) -> None:
    with engine.hold():
        handle = engine.push(tn.operators.add, 1.0, 2.0)
        assert "add" in repr(handle)
        assert "pending" in repr(handle)
    handle.get()
    assert "pending" not in repr(handle)
    assert "Engine" in repr(engine)
