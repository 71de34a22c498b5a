"""Cached: a property that is computed at the first look and then kept in the object.

As functools.cached_property, which before Python 3.12 holds a lock while it computes: a child of a
fork would wait for ever for one that another thread of its parent held. Two threads may compute the
same value here; both find the one that was kept first.

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
