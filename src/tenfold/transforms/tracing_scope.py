"""Tracing scope: a block in which a user's function runs on arrays without values.

Takes the name of the transform, returns a context manager. In its block deep expressions are not
computed early. It is an error to ask for a value, or to change an array from outside the block.
After the block, even on an error, every Array has its former value; no external buffer is written.

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
    """The state of a trace, with the Arrays that it read and changed."""

    def __init__(self, outer: TraceState | None) -> None:
        super().__init__(outer)
        self.log = _native.TraceLog()
        self.mutated: list[Array] = []
        """Outside Arrays that the block has changed; their former values are restored."""

    @property
    def accessed(self) -> list[tuple[Array, Node]]:
        """Outside Arrays that were read, with their nodes."""
        return self.log.seen


@contextmanager
def open_trace() -> Iterator[TracingScope]:
    """Trace the block. At its end outside Arrays get their former values back, and the accesses are
    recorded in an enclosing trace.
    """
    trace = TracingScope(TRACE.get())
    token = TRACE.set(trace)
    try:
        trace.log.begin()
        with override(pending_depth=0):
            yield trace
    finally:
        trace.mutated = trace.log.end()
        TRACE.reset(token)


@contextmanager
def tracing(operation: str, remedy: str) -> Iterator[None]:
    """Raise UnsupportedError with the user's line where the block asks for missing values.

    Raises RunError where it changes an outside array.
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
    """Raise RunError where the block changes an outside array, and restore the array's value."""
    with open_trace() as trace:
        try:
            yield
        finally:
            if trace.waited and trace.outer is not None:
                trace.outer.waited = True  # an enclosing function may run untraced
    if trace.assigned:  # and the function went on
        raise mutation_error(operation, f"the function {ASSIGNS_WINDOW}")
    if trace.mutated:
        raise mutation_error(operation, f"the function {CHANGES_ARRAY}", trace.mutated)


ASSIGNS_WINDOW = "changes the memory of a window"
CHANGES_ARRAY = "changes an array that it was not given"


def mutation_error(operation: str, rule: str, mutated: Sequence[Array] = ()) -> RunError:
    """Return the error of a function that changes outside arrays."""
    remedy = "return the new value, and assign it where the function is called"
    return RunError(operation, rule, mutated[:1], remedy)


def line_of(error: BaseException) -> str:
    """Return the innermost line outside of tenfold that an error went through."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            line = f"{frame.f_code.co_filename}:{number}"
    return line
