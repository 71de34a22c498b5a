"""Draw counters: the state of a Generator, with single numbers that are made ahead.

Takes a key and the first draw number, hands on one draw after the other, or the numbers of draws.
A number that is made ahead has the bits of the same draw alone.

>>> counter = DrawCounter(1, 2)
>>> counter.next(), counter.state
((1, 2), (1, 3))
>>> numbers = [counter.number(NORMAL) or counter.next() for _ in range(RUN + 1)]
>>> numbers[0], type(numbers[-1]).__name__
((1, 3), 'float')
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from tenfold.core.trace_state import TRACE
from tenfold.interop.asarray import asarray
from tenfold.ops import random as draws
from tenfold.settings import get

DRAW_BITS = 62
RUN, LONGEST_GAP, AHEAD = 16, 8, 256
"""After RUN single numbers of one form, each at most LONGEST_GAP draws after the one before, the
numbers of AHEAD draws are made at once.
"""
MAX_FORMS = 16
"""The forms that are counted."""
Form = tuple[Any, ...]
"""The operation of a draw, its parameters, and its options: (name, value) of each."""
UNIT: Form = (draws.random, ())
NORMAL: Form = (draws.standard_normal, ())


class Ahead(NamedTuple):
    """Single numbers of one form: those of the draws from `first` on are made."""

    first: int
    numbers: list[Any]
    run: int
    """How many were asked for one by one."""


NO_DRAWS = Ahead(0, [], 0)


class DrawCounter:
    """The key and the next draw number of a Generator; several threads may use it."""

    __slots__ = ("_ahead", "_draw", "_key", "_lock")

    def __init__(self, key: int, draw: int) -> None:
        self._key, self._draw = key, draw
        self._lock = threading.Lock()  # protects all of them
        self._ahead: dict[Form, Ahead] = {}  # replaced as a whole: a number belongs to the key

    @property
    def state(self) -> tuple[int, int]:
        """The key and the next draw number."""
        with self._lock:
            return self._key, self._draw

    @state.setter
    def state(self, state: tuple[int, int]) -> None:
        with self._lock:
            self._ahead = {}
            self._key, self._draw = state

    def next(self) -> tuple[int, int]:
        """Take the next draw: the key and the draw number."""
        with self._lock:
            draw = self._draw
            self._draw = (draw + 1) % 2**DRAW_BITS
            return self._key, draw

    def number(self, form: Form) -> Any:
        """Take the next draw, and return its only number, if it was made ahead; else None, and no
        draw is taken.
        """
        with self._lock:
            draw = self._draw
            ahead = self._ahead.get(form, NO_DRAWS)
            if 0 <= draw - ahead.first < len(ahead.numbers) and TRACE.get() is None:
                self._draw = draw + 1  # no run goes beyond the last draw
                return ahead.numbers[draw - ahead.first]
            key = self._key
            if not self._is_due(form, draw):
                return None
        draw_op, parameters, *options = form
        several = asarray(np.arange(draw, draw + AHEAD))
        numbers: list[Any] = draw_op(key, several, *parameters, **dict(options)).tolist()
        with self._lock:
            if self._key != key or self._draw != draw:  # another thread was faster
                return None
            self._ahead[form] = Ahead(draw, numbers, RUN)
            self._draw = draw + 1
            return numbers[0]

    def _is_due(self, form: Form, draw: int) -> bool:
        """Count a single number that was not made ahead; whether some are to be made now."""
        if len(self._ahead) >= MAX_FORMS:
            self._ahead.clear()
        first, numbers, run = self._ahead.get(form, (draw, (), 0))
        run = run + 1 if 0 <= draw - first - len(numbers) <= LONGEST_GAP else 1
        self._ahead[form] = Ahead(draw, [], run)
        may_wait = TRACE.get() is None and not get("strict_sync")
        return run > RUN and may_wait and draw + AHEAD < 2**DRAW_BITS


__all__ = ["AHEAD", "DRAW_BITS", "NORMAL", "RUN", "UNIT", "DrawCounter", "Form"]
