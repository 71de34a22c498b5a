"""Cached property: a lock-free `cached_property` that computes its value once and stores it in the
object.

Before Python 3.12, functools.cached_property holds a lock while it computes. A forked child would
deadlock on a lock that another thread of its parent held. Here two threads may compute the same
value; both get the one that was stored first.

>>> class Circle:
...     @cached
...     def area(self) -> float:
...         print("computed")
...         return 3.0
>>> circle = Circle()
>>> circle.area, circle.area
computed
(3.0, 3.0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached(Generic[T]):  # noqa: N801  # used as property is
    """The property of a method without arguments, for objects that do not change."""

    def __init__(self, method: Callable[[Any], T]) -> None:
        self.method, self.__doc__ = method, method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> cached[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.method.__name__, self.method(instance))


__all__ = ["cached"]
