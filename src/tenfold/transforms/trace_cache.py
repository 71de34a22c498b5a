"""Trace cache: stores the traces of Python functions by the Types of their arguments.

Takes a function and its arguments, returns a CachedTrace. A plain function is traced once for each
signature. It is traced again after a relevant change of an array that it reads, or after an object
that it could read was rebound (`transforms/closure_capture.py`). Any other callable, and a function
with captures that cannot be found, is traced each time.

>>> import tenfold as tn
>>> runs = []
>>> def double(x): runs.append(1); return x + x
>>> for _ in range(3): trace = cached_trace("tn.scan", double, (tn.ones((2,)),))
>>> trace.callee, len(runs)
(<double: 1 operation>, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tenfold import _native
from tenfold._native import Array
from tenfold.caches import LruCache
from tenfold.core.interpreter import rebuild_with_origin
from tenfold.core.pytree import flatten
from tenfold.core.trace_state import note_wait
from tenfold.settings import get
from tenfold.transforms.call_op import Callee, interned_callee
from tenfold.transforms.closure_capture import are_same, bindings, contains_array
from tenfold.transforms.tracer import (
    ASSIGNS_WINDOW,
    NeedsValues,
    TracedFunction,
    line_of,
    mutation_error,
    name_of,
    needs_values_error,
    trace_function,
)

MAX_TRACES = 64
"""Capacity of the trace cache of one function (LRU)."""
Function = Callable[..., Any]


class CachedTrace(NamedTuple):
    """A trace, its interned Callee, and the captures that it is valid for."""

    trace: TracedFunction
    callee: Callee
    bindings: list[Any]
    """References to the objects that the function could read; empty for an uncached trace."""


_traces: WeakKeyDictionary[FunctionType, LruCache[Hashable, CachedTrace]] = WeakKeyDictionary()


def cached_trace(
    operation: str, function: Function, args: tuple[Any, ...], **options: bool
) -> CachedTrace:
    """Return the trace of a function for trees of Arrays, from the cache if it is still valid.

    Raises UnsupportedError where the function asks for the values of an Array.
    """
    leaves, structure = flatten((args, {}))
    types = tuple([_native.node_of(leaf).type for leaf in leaves])
    key = structure, types, get("strict_dtypes"), get("device"), *options.items()
    traces: LruCache[Hashable, CachedTrace] = LruCache(MAX_TRACES)
    current_bindings = None
    if isinstance(function, FunctionType):
        traces, current_bindings = _traces.setdefault(function, traces), bindings(function)
    cached = traces.get(key)
    if (
        cached is not None
        and are_same(cached.bindings, current_bindings)
        and cached.trace.current_captures() is not None
    ):
        return cached
    try:
        trace = trace_function(function, leaves, structure, rule=rebuild_with_origin, **options)
    except NeedsValues as error:
        note_wait()  # an enclosing function may run untraced
        if error.assigned:
            raise mutation_error(
                operation, f"{name_of(function)} {ASSIGNS_WINDOW}"
            ) from error.__cause__
        location = line_of(error.__cause__) if error.__cause__ else name_of(function)
        remedy = "choose by values with tn.where or tn.cond, repeat with tn.while_loop"
        raise needs_values_error(operation, location, remedy) from error.__cause__
    current_bindings = (
        bindings(function) if isinstance(function, FunctionType) else None
    )  # the call may have rebound objects
    result = CachedTrace(trace, interned_callee(trace.subgraph), current_bindings or [])
    if current_bindings is not None and all(
        contains_array(current_bindings, array) for array in _read_arrays(trace)
    ):
        traces[key] = result
    return result


def _read_arrays(trace: TracedFunction) -> list[Array]:
    """Return the Arrays that a traced function has read."""
    sources = [capture.source for capture in trace.captured if capture.source is not None]
    return [*sources, *[array for array, _ in trace.guards]]


__all__ = ["CachedTrace", "cached_trace"]
