"""Trace state: whether a function is being traced, and whether it asked for a value.

Code that refuses to give the values of an array without values records it here, so that the
function can be run with values instead.
"""

from __future__ import annotations

import os
import sys
import traceback
from contextvars import ContextVar
from pathlib import Path

PACKAGE_FOLDER = f"{Path(__file__).parents[1]}{os.sep}"
"""The folder of our own frames: the lines of users are outside of it."""


def user_stacklevel() -> int:
    """Return the `stacklevel` with which a warning of the caller names the user's line."""
    frame, level = sys._getframe(1).f_back, 2
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        frame, level = frame.f_back, level + 1
    return level


def line_of(error: BaseException) -> str:
    """Return the innermost line outside of tenfold that an error went through."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            line = f"{frame.f_code.co_filename}:{number}"
    return line


class TraceState:
    """The state of one trace."""

    def __init__(self, outer: TraceState | None = None) -> None:
        self.outer = outer
        self.waited = False
        """Whether the function has asked for the value of an argument or of a traced result."""
        self.assigned = False
        """Whether it has tried to assign to a view; then `waited` is set too."""
        self.depth: int = outer.depth + 1 if outer else 1
        """The number of open, nested traces."""


TRACE: ContextVar[TraceState | None] = ContextVar("tenfold_trace", default=None)


def note_wait() -> None:
    """Note in the open trace, if any, that the function asked for values not yet computed."""
    trace = TRACE.get()
    if trace is not None:
        trace.waited = True
