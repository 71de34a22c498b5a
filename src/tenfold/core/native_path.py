"""Native paths: public functions whose usual calls run native code alone.

Takes a Python function and the name of its native path, hands on a callable with the function's
name, signature and documentation. Calls that the native path leaves to Python run the function.

>>> from tenfold.interop.asarray import asarray
>>> asarray.__name__, asarray.__wrapped__.__name__
('asarray', 'asarray')
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tenfold import _native

P = ParamSpec("P")
R = TypeVar("R")


def native_path(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function with a native path (`native/python/array_transfer.h`)."""

    def decorate(python: Callable[P, R]) -> Callable[P, R]:
        public: Callable[P, R] = _native.function_with_path(python, name)
        return functools.update_wrapper(public, python, updated=())

    return decorate


__all__ = ["native_path"]
