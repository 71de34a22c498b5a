"""Work that nobody waits for by `get` is done, too, and a cancelled increment harms no other."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest

import tenfold as tn


def test_await_inside_hold_runs_what_it_awaits() -> None:
    async def wait(handle: tn.Handle) -> Any:
        return await handle

    async def main(engine: tn.Engine) -> Any:
        with engine.hold():
            x = engine.push(tn.operators.add, np.ones(2), 1.0)
            y = engine.push(tn.operators.multiply, x, 3.0)
            return await asyncio.wait_for(wait(y), 30)

    with tn.Engine(threads=1) as engine:
        engine.push(tn.operators.add, 1.0, 1.0).get()  # a worker is there, and has gone to sleep
        assert asyncio.run(main(engine)).tolist() == [6.0, 6.0]


def test_cancelled_increment_does_not_cancel_its_input() -> None:
    class Twice(tn.CumulativeOperator):
        def run(self, x: tn.Array) -> tn.Array:
            return x + x

    class Plain(tn.CumulativeOperator):
        pass

    with tn.Engine(threads=1) as engine:
        target = engine.put(np.zeros(2))
        with engine.hold():
            engine.push(Twice(), target, np.ones(2))
            given = engine.push(tn.operators.add, np.ones(2), 1.0)
            version = engine.push(Plain(), target, given)
            assert version.cancel()
        assert given.get().tolist() == [2.0, 2.0]
        with pytest.raises(CancelledError):
            version.get()
