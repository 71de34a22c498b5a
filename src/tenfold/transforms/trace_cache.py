"""Trace cache: stores the traces of Python functions by the Types of their arguments.

Takes a function and its arguments, hands on a CachedTrace. A plain function is traced once for each
signature. It is traced again where an array that it reads has changed in a way that matters, or
another object that it could read was rebound (`transforms/closure_capture.py`). Any other callable,
and one that reads an array in a way that cannot be seen, is traced each time.

>>> import tenfold as tn
>>> runs = []
>>> def double(x): runs.append(1); return x + x
>>> for _ in range(3): found = cached_trace("tn.scan", double, (tn.ones((2,)),))
>>> found.expression, len(runs)
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
from tenfold.core.pytree import flatten
from tenfold.core.trace_state import note_wait
from tenfold.errors import UnsupportedError
from tenfold.settings import get
from tenfold.transforms.closure_capture import are_same, bindings, contains_array
from tenfold.transforms.subgraph import Subgraph, intern_subgraph
from tenfold.transforms.tracer import NeedsValues, TracedFunction, trace_function
from tenfold.transforms.tracing_scope import ASSIGNS_WINDOW, line_of, mutation_error

MAX_TRACES = 64
"""Traces of one function that are kept; the one not used for longest goes first."""
Function = Callable[..., Any]


class CachedTrace(NamedTuple):
    """What a function is made of."""

    traced: TracedFunction
    expression: Subgraph
    bindings: list[Any]
    """What it could read, where it is kept."""


_traces: WeakKeyDictionary[FunctionType, LruCache[Hashable, CachedTrace]] = WeakKeyDictionary()


def cached_trace(
    operation: str, function: Function, args: tuple[Any, ...], **options: bool
) -> CachedTrace:
    """Return what a function is made of; its arguments are trees of Arrays.

    Raises UnsupportedError where it asks for the values of one.
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
        and cached.traced.present() is not None
    ):
        return cached
    try:
        trace = trace_function(function, leaves, structure, **options)
    except NeedsValues as error:
        note_wait()  # a function around this one can do without a trace
        if error.assigned:
            raise mutation_error(
                operation, f"{name_of(function)} {ASSIGNS_WINDOW}"
            ) from error.__cause__
        location = line_of(error.__cause__) if error.__cause__ else name_of(function)
        rule = f"{location} asks for a value, and an array that is traced has none"
        remedy = "choose by values with tn.where or tn.cond, repeat with tn.while_loop"
        raise UnsupportedError(operation, rule, remedy=remedy) from error.__cause__
    current_bindings = (
        bindings(function) if isinstance(function, FunctionType) else None
    )  # it may count calls
    result = CachedTrace(
        trace,
        intern_subgraph(name_of(function), trace.outputs, trace.inputs),
        current_bindings or [],
    )
    if current_bindings is not None and all(
        contains_array(current_bindings, array) for array in _read_arrays(trace)
    ):
        traces[key] = result
    return result


def name_of(function: Function) -> str:
    """Return what messages call a function."""
    return getattr(function, "__name__", type(function).__name__)


def _read_arrays(trace: TracedFunction) -> list[Array]:
    """Return the Arrays that a function has looked at."""
    sources = [capture.source for capture in trace.captured if capture.source is not None]
    return [*sources, *[array for array, _ in trace.read]]


__all__ = ["CachedTrace", "cached_trace", "name_of"]
