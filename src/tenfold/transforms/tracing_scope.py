"""Tracing scope: a block in which a user's function runs on arrays without values.

Takes the name of the transform, hands on a block in which deep expressions are not computed early.
Inside it is an error to ask for a value, or to change an array from outside the block. However the
block ends, every Array is what it was before it; no external buffer is written to.

>>> import tenfold as tn
>>> from tenfold import _native
>>> x = _native.placeholder(_native.Type((), tn.float64, "cpu"))
>>> with tracing("tn.vmap", "choose with tn.where"):
...     abs(x) if x < 0 else x
Traceback (most recent call last):
...
tenfold.errors.UnsupportedError: tn.vmap: <doctest ...>:2 asks for a value, and ... has none
  remedy: choose with tn.where
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.core.trace_state import TRACE, TraceState
from tenfold.errors import RunError, UnsupportedError
from tenfold.runtime.reference import TRACED
from tenfold.settings import override

PACKAGE = str(Path(__file__).parents[1])


class TracingScope(TraceState):
    """A trace, and the Arrays that it was about."""

    def __init__(self, outer: TraceState | None) -> None:
        super().__init__(outer)
        self.watch = _native.TraceLog()
        self.changed: list[Array] = []
        """Arrays that it was not given and has changed: they are what they were before."""

    @property
    def seen(self) -> list[tuple[Array, Node]]:
        """Arrays that were there before and were looked at, and what they were."""
        return self.watch.seen


@contextmanager
def open_trace() -> Iterator[TracingScope]:
    """Trace what runs in the block. At its end every Array that was not made in it is what it was
    before; then a trace around this one is told of what was looked at.
    """
    trace = TracingScope(TRACE.get())
    token = TRACE.set(trace)
    try:
        trace.watch.begin()
        with override(pending_depth=0):
            yield trace
    finally:
        trace.changed = trace.watch.end()
        TRACE.reset(token)


@contextmanager
def tracing(operation: str, remedy: str) -> Iterator[None]:
    """Raise UnsupportedError with the user's line where the block asks for values there are not,
    RunError where it changes an array of others.
    """
    with restore_arrays(operation):
        try:
            yield
        except UnsupportedError as error:
            if error.rule != TRACED:
                raise
            rule = f"{line_of(error)} asks for a value, and an array that is traced has none"
            raise UnsupportedError(operation, rule, remedy=remedy) from error


@contextmanager
def restore_arrays(operation: str) -> Iterator[None]:
    """Raise RunError where the block changes an array of others, which has its value back then."""
    with open_trace() as trace:
        try:
            yield
        finally:
            if trace.waited and trace.outer is not None:
                trace.outer.waited = True  # a function around this one can do without a trace
    if trace.assigned:  # and the function went on
        raise mutation_error(operation, f"the function {ASSIGNS_WINDOW}")
    if trace.changed:
        raise mutation_error(operation, f"the function {CHANGES_ARRAY}", trace.changed)


ASSIGNS_WINDOW = "changes the memory of a window"
CHANGES_ARRAY = "changes an array that it was not given"


def mutation_error(operation: str, rule: str, mutated: Sequence[Array] = ()) -> RunError:
    """Return what is wrong with a function that changes arrays of others."""
    remedy = "return the new value, and assign it where the function is called"
    return RunError(operation, rule, mutated[:1], remedy)


def line_of(error: BaseException) -> str:
    """Return the innermost line outside of tenfold that an error went through."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            line = f"{frame.f_code.co_filename}:{number}"
    return line
