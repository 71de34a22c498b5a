"""Tracing: a user's function runs once on arrays that have no values yet.

Takes the function's name, hands on a block in which nothing is computed for being deep, and in
which asking for a value is an error that names the line.

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
from collections.abc import Iterator
from contextlib import contextmanager

from tenfold.devices.reference import TRACED
from tenfold.errors import UnsupportedError
from tenfold.settings import within


@contextmanager
def tracing(operation: str, remedy: str) -> Iterator[None]:
    """Raise UnsupportedError with the user's line where the block asks for values there are not."""
    with within(pending_depth=0):
        try:
            yield
        except UnsupportedError as error:
            if error.rule != TRACED:
                raise
            rule = f"{_line_of(error)} asks for a value, and an array that is traced has none"
            raise UnsupportedError(operation, rule, remedy=remedy) from error


def _line_of(error: BaseException) -> str:
    """Return the innermost line outside of tenfold that an error went through."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if not frame.f_globals.get("__name__", "").startswith("tenfold."):
            line = f"{frame.f_code.co_filename}:{number}"
    return line
