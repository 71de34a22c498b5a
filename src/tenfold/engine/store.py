"""Key store: values by key that many producers push to and many consumers pull from.

A value is a version on the engine (`engine/operators.py`), so a push returns at once, a pull is a
Handle, and a pulled value does not change when others push. After Li et al. 2014, "Scaling
distributed machine learning with the parameter server", within one process.

>>> import numpy as np
>>> import tenfold as tn
>>> with tn.Engine(threads=2) as engine:
...     store = engine.store()
...     store.init("w", np.zeros(3))
...     for _ in range(4):
...         store.push("w", np.ones(3))
...     store.pull("w").get().tolist()
[4.0, 4.0, 4.0]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from tenfold import _native
from tenfold._native import Handle
from tenfold.engine.operators import CumulativeOperator, Operator
from tenfold.errors import message
from tenfold.jit import fork_safe_lock
from tenfold.ops.joining import concat, stack

COMBINATIONS = ("sum", "gather")
MAX_STACKED_VALUES = 200
"""The most values of one `stack`: an operator takes 255 inputs."""


class _Increment(CumulativeOperator):
    """Adds pushed values to a value, as a tree over the order of the pushes."""


class _Update(Operator):
    """Computes the next value of a key from the values that were pushed."""

    def __init__(self, updater: Callable[..., Any], key: Hashable, priority: int) -> None:
        self.updater, self.key, self.priority = updater, key, priority

    def run(self, *inputs: Any, **_params: Any) -> Any:
        """Return what the updater makes of the pushed values and the value."""
        pushed, value = inputs
        return self.updater(self.key, pushed, value)


class _Deliver(Operator):
    """Hands a pulled value to a callback."""

    def __init__(self, callback: Callable[[Any], object] | None, priority: int) -> None:
        self.callback, self.priority = callback, priority
        self.pure = callback is None

    def run(self, *inputs: Any, **_params: Any) -> Any:
        """Return the value, after the callback has it."""
        (value,) = inputs
        if self.callback is not None:
            self.callback(value)
        return value


@dataclass
class _Entry:
    """The state of a key."""

    value: Handle | None = None
    """The newest value; None before the first push to a key without one."""
    pushed: list[Handle] = field(default_factory=list)
    """Values that are gathered, or that wait for the updater."""
    stacked: Handle | None = None
    """The stack of `pushed`, if it has been pulled."""


class Store:
    """A store of values by key, on one engine; make it with `engine.store()`.

    `push` combines the pushed values of a key: `combine="sum"` adds them to the value of the key,
    as a tree over the order of the pushes; "gather" makes a new axis of them, in that order. With
    an `updater` the value is instead what `updater(key, pushed, value)` returns, called once for
    each `pushes` pushes, with their sum or stack. Any thread may call any method.

    >>> import numpy as np
    >>> import tenfold as tn
    >>> def descend(key, gradient, weights):
    ...     return weights - 0.5 * gradient
    >>> with tn.Engine(threads=2) as engine:
    ...     store = engine.store(updater=descend, pushes=2)
    ...     store.init("w", np.array([8.0]))
    ...     for gradient in (1.0, 3.0):
    ...         store.push("w", np.array([gradient]))
    ...     store.pull("w").get().tolist()
    [6.0]
    """

    def __init__(
        self,
        engine: _native.Engine,
        *,
        combine: str = "sum",
        updater: Callable[[Any, Any, Any], Any] | None = None,
        pushes: int = 1,
    ) -> None:
        if combine not in COMBINATIONS:
            rule = f"combine {combine!r} is none of {', '.join(map(repr, COMBINATIONS))}"
            raise ValueError(message("store", rule, remedy="use one of them"))
        if pushes < 1 or (pushes > 1 and updater is None):
            rule = f"pushes {pushes!r} is not a number of pushes for one call of an updater"
            raise ValueError(message("store", rule, remedy="give 1 or more, and an updater"))
        self._engine, self._updater = engine, updater
        self._gathers, self._round = combine == "gather", pushes
        self._lock = fork_safe_lock.lock()  # protects _entries
        self._entries: dict[Hashable, _Entry] = {}

    def init(self, key: Hashable, value: Any) -> None:
        """Give a new key its value: an array, a number, an object, or a Handle.

        Raises ValueError for a key that exists.
        """
        handle = self._handle_of(value)
        with self._lock:
            if key in self._entries:
                rule = f"the key {key!r} has a value already"
                raise ValueError(message("init", rule, remedy="push to it, or use another key"))
            self._entries[key] = _Entry(handle)

    def push(self, key: Hashable, value: Any, *, priority: int = 0) -> None:
        """Combine a value with that of a key, and return at once.

        A key without a value gets this one, unless there is an updater: then it is a KeyError. Of
        updates that are ready the one with the highest `priority` runs first.
        """
        handle, rank = self._handle_of(value), operator.index(priority)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None and self._updater is not None:
                raise self._unknown(key, "push")
            entry = entry or self._entries.setdefault(key, _Entry())
            if self._updater is not None:
                self._update(key, entry, handle, rank)
            elif self._gathers:
                entry.pushed.append(handle)
                entry.stacked = None
            elif entry.value is None:
                entry.value = handle
            else:
                entry.value = self._engine.push(_Increment(), entry.value, handle)

    def _update(self, key: Hashable, entry: _Entry, handle: Handle, priority: int) -> None:
        assert self._updater is not None, "there is one"
        entry.pushed.append(handle)
        if len(entry.pushed) < self._round:
            return
        pushed = self._stack(entry.pushed) if self._gathers else self._sum(entry.pushed)
        entry.pushed = []
        update = _Update(self._updater, key, priority)
        entry.value = self._engine.push(update, pushed, entry.value)

    def _sum(self, handles: list[Handle]) -> Handle:
        total, *others = handles
        for each in others:
            total = self._engine.push(_Increment(), total, each)
        return total

    def _stack(self, handles: list[Handle]) -> Handle:
        parts = [
            self._engine.push(stack, handles[start : start + MAX_STACKED_VALUES])
            for start in range(0, len(handles), MAX_STACKED_VALUES)
        ]
        while len(parts) > 1:
            parts = [
                self._engine.push(concat, parts[start : start + MAX_STACKED_VALUES])
                for start in range(0, len(parts), MAX_STACKED_VALUES)
            ]
        return parts[0]

    def pull(
        self,
        key: Hashable,
        *,
        priority: int = 0,
        callback: Callable[[Any], object] | None = None,
    ) -> Handle:
        """Return the Handle of the value that a key has after the pushes so far.

        `callback(value)` is called once, by a worker; its exception is that of the Handle. Of pulls
        that are ready the one with the highest `priority` is delivered first. Raises KeyError for a
        key without a value.
        """
        rank = operator.index(priority)
        with self._lock:
            entry = self._entries.get(key)
            value = None if entry is None else self._value_of(entry)
        if value is None:
            raise self._unknown(key, "pull")
        if callback is None and not rank:
            return value
        return self._engine.push(_Deliver(callback, rank), value)

    def _value_of(self, entry: _Entry) -> Handle | None:
        if not self._gathers or self._updater is not None or not entry.pushed:
            return entry.value
        entry.stacked = entry.stacked or self._stack(entry.pushed)
        return entry.stacked

    def _handle_of(self, value: Any) -> Handle:
        return value if isinstance(value, Handle) else self._engine.put(value)

    def _unknown(self, key: Hashable, name: str) -> KeyError:
        return KeyError(message(name, f"the key {key!r} has no value", remedy="call init first"))
