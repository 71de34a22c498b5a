"""Engine operands: converts the inputs and results of operators to values that the engine stores.

Takes any Python value, returns a computed Array, a number or the object itself.

>>> operator_result(3)
3
"""

from __future__ import annotations

from types import CoroutineType
from typing import Any

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Handle, Value
from tenfold.errors import message, raise_if_failed
from tenfold.settings import checked_device
from tenfold.storage import dense, kinds
from tenfold.storage.rw_lock import EXTERNAL_BUFFER_LOCK


def compute_array(array: Array) -> Array:
    """Compute an Array and return a copy that no other code can rebind.

    What shows an external buffer gets memory of its own: workers read it without the lock that
    assignments to the buffer take. Raises the failure of the computation.
    """
    if kinds.storage_kind(array):
        raise_if_failed(pipeline.compute([_native.node_of(array)]))
        return array
    node = _native.node_of(array)
    array = _native.array_of(node)  # a view of a window makes a node anew each time
    if not _native.try_compute(array):
        raise_if_failed(pipeline.compute([node]))
    if EXTERNAL_BUFFER_LOCK.enabled:
        value = node.value()
        if value is not None and isinstance(value.owner, dense.ExternalMemory):
            with EXTERNAL_BUFFER_LOCK.read_lock():
                copied = dense.copy_to_pool(dense.export(value), array.device)
            return _native.value_array(copied)
    return array


def operator_result(value: Any) -> Any:
    """Return the result of an operator in the form that the engine stores.

    Raises TypeError for a handle, and for a coroutine, which the engine would never await.
    """
    if isinstance(value, (Handle, CoroutineType)):
        kind, remedy = "handle", "return the result itself; push further work on its handle"
        if isinstance(value, CoroutineType):
            value.close()
            kind, remedy = "coroutine", "define run without async"
        raise TypeError(f"it returned a {kind}\n  remedy: {remedy}")
    return stored_value(value)


def stored_value(value: Any) -> Any:
    """Return a value in the form that the engine stores: its Arrays are computed."""
    if isinstance(value, Array):
        return compute_array(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return _native.value_array(_import_values(value))
    if isinstance(value, tuple) and any(isinstance(item, Array) for item in value):
        items = [compute_array(item) if isinstance(item, Array) else item for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        for item in value:
            if isinstance(item, Array):
                compute_array(item)  # the list stays the same object
    return value


def _import_values(values: np.ndarray[Any, Any] | np.generic) -> Value:
    device = checked_device(None)
    if isinstance(values, np.ndarray):
        return dense.import_values(values, device)
    return dense.adopt_as(np.asarray(values), device)


def import_operand(value: Any) -> Any:
    """Return a `put` value in stored form; later writes to an ndarray have no effect.

    Raises TypeError for a list or tuple that has handles in it.
    """
    if isinstance(value, (list, tuple)) and contains_instance(value, Handle):
        rule = "a list or tuple that holds handles"
        raise TypeError(message("put", rule, remedy="push an operator on it; put it without them"))
    return stored_value(value)


def contains_instance(value: list[Any] | tuple[Any, ...], kinds: type | tuple[type, ...]) -> bool:
    """Whether a list or tuple, or one in it, has an item of these types.

    >>> contains_instance([1, (2, "a")], str), contains_instance([1, 2], str)
    (True, False)
    """
    stack, visited = [value], {id(value)}
    while stack:
        for item in stack.pop():
            if isinstance(item, kinds):
                return True
            if isinstance(item, (list, tuple)) and id(item) not in visited:
                visited.add(id(item))
                stack.append(item)
    return False
