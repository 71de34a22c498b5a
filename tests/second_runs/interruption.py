"""Interruption: KeyboardInterrupt at a chosen point of a call, as a signal would raise it.

Python looks for signals when it enters a function, and after each call of C. Those are the points;
a profile function raises there.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType


class _Interrupt:
    """A profile function that raises KeyboardInterrupt at one point."""

    def __init__(self, point: int) -> None:
        self.left = point

    def __call__(self, frame: FrameType | None, event: str, _: object) -> None:
        assert frame is not None
        resumes = event == "call" and frame.f_code.co_flags & inspect.CO_GENERATOR
        if event not in ("call", "c_return") or resumes:  # a generator that is closed, perhaps
            return
        while frame is not None and frame.f_code is not interrupt.__code__:
            if frame.f_code.co_name == "__del__":  # it would drop the exception
                return
            frame = frame.f_back
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def interrupt(
    action: Callable[[], object], point: int, on_interrupt: Callable[[], object] = lambda: None
) -> bool:
    """Call an action that is interrupted at a point, counted from 1; whether it came there."""
    profile = _Interrupt(point)
    try:
        sys.setprofile(profile)
        try:
            action()
        finally:
            sys.setprofile(None)
    except KeyboardInterrupt:
        on_interrupt()
    return profile.left <= 0
