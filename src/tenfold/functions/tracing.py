"""Tracing: a user's function runs once on arrays that have no values yet.

Takes the name of who traces, hands on a block in which nothing is computed for being deep, and in
which it is an error to ask for a value, or to change an array that was not made in the block.

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
from tenfold.devices.reference import TRACED
from tenfold.errors import RunError, UnsupportedError
from tenfold.settings import within

PACKAGE = str(Path(__file__).parents[1])


@contextmanager
def tracing(operation: str, remedy: str) -> Iterator[None]:
    """Raise UnsupportedError with the user's line where the block asks for values there are not,
    RunError where it has changed an array of others, which has its value back then.
    """
    seen: list[tuple[Array, Node | None]] = []
    before = _native.watch_arrays(seen)
    try:
        with within(pending_depth=0):
            yield
    except UnsupportedError as error:
        if error.rule != TRACED:
            raise
        rule = f"{line_of(error)} asks for a value, and an array that is traced has none"
        raise UnsupportedError(operation, rule, remedy=remedy) from error
    finally:
        _native.watch_arrays(before)
        changed = _put_back(seen)
        if before is not None:
            before.extend(seen)  # a trace around this one is told as well
    if changed:
        rule = "the function changes an array that it was not given"
        remedy = "return the new value, and assign it where the function is called"
        raise RunError(operation, rule, changed[:1], remedy)


def _put_back(seen: Sequence[tuple[Array, Node | None]]) -> list[Array]:
    """Give arrays that were looked at, and not made, their values back; return those changed."""
    made = {id(array) for array, node in seen if node is None}  # the list keeps them alive
    changed = []
    for array, node in seen:
        if node is not None and id(array) not in made:
            now = _native.kept_node(array)
            if now is not None and now != node:
                _native.rebind(array, node)
                changed.append(array)
    return changed


def line_of(error: BaseException) -> str:
    """Return the innermost line outside of tenfold that an error went through."""
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            line = f"{frame.f_code.co_filename}:{number}"
    return line
