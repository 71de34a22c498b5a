"""Floating-point errors: `np.errstate(divide="raise")` is honoured by operators and ufuncs.

Takes NumPy's reactions. While one of them is "raise" or "call", NumPy computes the operators of
Arrays and the ufuncs at the call, and reacts. Otherwise nothing is slower: the operators are
exchanged for the time of the block. Other functions do not react.

>>> from tenfold.interop.asarray import asarray
>>> with errstate(divide="raise"):
...     asarray([1.0]) / 0
Traceback (most recent call last):
...
FloatingPointError: divide by zero encountered in divide
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

import numpy as np

from tenfold._native import Array
from tenfold.numpy.arguments import Immediate
from tenfold.numpy.ufuncs import Ufunc

OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "divmod": np.divmod,
}  # fmt: skip
_originals: dict[tuple[type, str], Any] = {}  # while a block reacts; under the GIL
_blocks = [0]


def _reacts() -> bool:
    return bool({"raise", "call"} & {*np.geterr().values()})


def _exchange(owner: type, name: str, at_call: Callable[..., Any]) -> None:
    original = _originals[owner, name] = getattr(owner, name)

    def function(*args: Any, **options: Any) -> Any:
        return (at_call if _reacts() else original)(*args, **options)

    setattr(owner, name, function)


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(y, x)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def assign(x: Array, y: Any) -> Array:
        x[...] = function(x, y)
        return x

    return assign


def _ufunc_at_call(ufunc: Ufunc, *args: Any, **options: Any) -> Any:
    return Immediate(ufunc.ufunc)(*args, **options)


def _begin() -> None:
    _blocks[0] += 1
    if _blocks[0] > 1:
        return
    _exchange(Ufunc, "__call__", _ufunc_at_call)
    for name, ufunc in OPERATORS.items():
        function = Immediate(ufunc)
        _exchange(Array, f"__{name}__", function.__call__)
        _exchange(Array, f"__r{name}__", _reflected(function))
        if hasattr(Array, f"__i{name}__"):
            _exchange(Array, f"__i{name}__", _in_place(function))


def _end() -> None:
    _blocks[0] -= 1
    if not _blocks[0]:
        for (owner, name), original in _originals.items():
            setattr(owner, name, original)
        _originals.clear()


class errstate(ContextDecorator):  # noqa: N801  # NumPy's name
    """Reactions to floating-point errors, in a block or a function; see the module."""

    def __init__(self, **reactions: Any) -> None:
        self.reactions, self.state = reactions, np.errstate(**reactions)
        self.reacts = False

    def _recreate_cm(self) -> errstate:
        return errstate(**self.reactions)

    def __enter__(self) -> None:
        self.state.__enter__()
        self.reacts = _reacts()
        if self.reacts:
            _begin()

    def __exit__(self, *error: Any) -> None:
        if self.reacts:
            _end()
        self.state.__exit__(*error)


def seterr(**reactions: Any) -> Any:
    """Set the reactions to floating-point errors for good; return those before."""
    reacted, before = _reacts(), np.seterr(**reactions)
    if _reacts() != reacted:
        (_end if reacted else _begin)()
    return before
