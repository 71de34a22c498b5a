"""What a loop's function reads, at any distance: a change of it is noticed by the next loop."""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tenfold as tn

Read = Callable[[], Any]
Change = Callable[[], Any]
rate = 2.0


class Holder:
    shared = 2.0

    def __init__(self) -> None:
        self.own = 2.0

    def __call__(self) -> Any:
        return rate

    @property
    def doubled(self) -> float:
        return 2 * rate

    def method(self) -> Any:
        return self.own * rate


class Heir(Holder):
    pass


def set_rate() -> None:
    global rate
    rate += 1


def cases() -> dict[str, tuple[Read, Change]]:
    """Return for each way to reach a number the reader and a change of the number."""
    holder, numbers, named = Holder(), [2.0], {"rate": 2.0}
    module = types.ModuleType("settings_of_a_user")
    vars(module)["rate"] = 2.0
    held = functools.partial(lambda holder: holder.own, holder)
    of_list = functools.partial(lambda numbers: numbers[0], numbers=numbers)
    of_name, of_own = named.get, operator.attrgetter("own")
    queue, view = collections.deque([2.0]), types.MappingProxyType(named)
    typed, raw = array.array("d", [2.0]), bytearray(b"\x02")
    memory, values = memoryview(typed), np.array([2.0])
    of_values = functools.partial(lambda values: float(values[0]), values)
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("rate")
    variable.set(2.0)
    heir, static = Heir(), staticmethod(lambda: holder.own)
    lookup = functools.wraps(held)(lambda: held())

    def grow(owner: Any, name: str) -> Change:
        return lambda: setattr(owner, name, getattr(owner, name) + 1)

    def add(owner: Any, key: Any) -> Change:
        return lambda: operator.setitem(owner, key, owner[key] + 1)

    return {
        "argument of a partial": (lambda: held(), grow(holder, "own")),
        "keyword of a partial": (lambda: of_list(), add(numbers, 0)),
        "wrapper of a partial": (lambda: lookup(), grow(holder, "own")),
        "method of a dict": (lambda: of_name("rate"), add(named, "rate")),
        "getter": (lambda: of_own(holder), grow(holder, "own")),
        "class": (lambda: Holder.shared, grow(Holder, "shared")),
        "class of an object": (lambda: heir.shared, grow(Holder, "shared")),
        "call of an object": (lambda: holder(), set_rate),
        "method of an object": (lambda: holder.method(), set_rate),
        "property of an object": (lambda: holder.doubled, set_rate),
        "module": (lambda: module.rate, grow(module, "rate")),
        "name of a module": (lambda: getattr(module, "rate"), grow(module, "rate")),  # noqa: B009
        "globals": (lambda: globals()["rate"], set_rate),
        "deque": (lambda: queue[0], add(queue, 0)),
        "mapping": (lambda: view["rate"], add(named, "rate")),
        "static method": (lambda: static(), grow(holder, "own")),
        "typed array": (lambda: typed[0], add(typed, 0)),
        "bytes": (lambda: raw[0], add(raw, 0)),
        "memory": (lambda: memory[0], add(typed, 0)),
        "ndarray of a partial": (lambda: of_values(), add(values, 0)),
        "context variable": (lambda: variable.get(), lambda: variable.set(variable.get() + 1)),
    }


@pytest.mark.parametrize("name", cases())
def test_a_change_is_noticed_that_a_loop_reads_by(name: str) -> None:
    read, change = cases()[name]

    def step(carry: Any, x: Any) -> Any:
        return carry + x * read(), carry

    x = tn.asarray([1.0, 2.0, 3.0])
    for _ in range(2):
        assert tn.scan(step, 0.0, x)[0].item() == 6 * read()
        change()
    assert tn.scan(step, 0.0, x)[0].item() == 6 * read()


def test_a_loop_that_reads_objects_and_partials_is_traced_once() -> None:
    runs: list[int] = []
    holder, bound = Holder(), functools.partial(lambda holder, x: holder.method() * x, Holder())

    def step(carry: Any, x: Any) -> Any:
        runs.append(1)
        return carry + holder() + bound(x), carry

    for _ in range(3):
        tn.scan(step, 0.0, tn.asarray([1.0, 2.0]))
    assert runs == [1]
