"""Operands: what goes into operators and comes out of them, as the engine keeps it.

Takes any Python value, hands on a computed Array, a number or the object itself. How an Array is
made of a foreign one, and computed, is told from above (`surround`).

>>> finished(3)
3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Handle

Import = Callable[[Any], Array]
Evaluate = Callable[[Sequence[Array]], Exception | None]

_surroundings: dict[str, Any] = {}


def surround(asarray: Import, evaluate: Evaluate) -> None:
    """Say how Arrays are made of foreign ones, and how they are computed."""
    _surroundings.update(asarray=asarray, evaluate=evaluate)


def computed(array: Array) -> Array:
    """Return an Array that has its value, and that nobody else can rebind.

    Raises what computing it raises.
    """
    if not _native.replayed(array):
        failure = _surroundings["evaluate"]([array])
        if failure is not None:
            raise failure
    return _native.array_of(_native.node_of(array))


def finished(value: Any) -> Any:
    """Return what an operator returned as the engine keeps it."""
    if isinstance(value, Array):
        return computed(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return computed(_surroundings["asarray"](value))
    if isinstance(value, tuple) and any(isinstance(item, Array) for item in value):
        items = [computed(item) if isinstance(item, Array) else item for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def imported(value: Any) -> Any:
    """Return what was put as the engine keeps it: later changes of an ndarray are not seen.

    Raises TypeError for a list or tuple that has handles in it.
    """
    if isinstance(value, (list, tuple)) and any(isinstance(item, Handle) for item in value):
        raise TypeError(
            "push: an input is a list or tuple that holds handles\n"
            "  remedy: pass each handle as an input of its own"
        )
    return finished(value)
