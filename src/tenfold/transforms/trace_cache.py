"""Trace cache: stores the traces of Python functions by the Types of their arguments.

Takes a function and its arguments, returns a CachedTrace. A plain function is traced once for each
signature. It is traced again after a relevant change of an array that it reads. The function of a
loop or branch is traced again after an object that it could read was rebound
(`transforms/closure_capture.py`). Any other callable there, and a function with captures that
cannot be found, is traced each time.

>>> import tenfold as tn
>>> runs = []
>>> def double(x): runs.append(1); return x + x
>>> for _ in range(3): trace = cached_trace("tn.scan", double, (tn.ones((2,)),))
>>> trace.callee, len(runs)
(<double: 1 operation>, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.caches import LruCache
from tenfold.core.callable_signature import name_of
from tenfold.core.interpreter import rebuild_with_origin
from tenfold.core.op import exact_params
from tenfold.core.pytree import TreeDef, flatten
from tenfold.core.trace_state import line_of, note_wait
from tenfold.settings import get
from tenfold.transforms.call_op import Callee, interned_callee
from tenfold.transforms.closure_capture import are_same, bindings, contains_array
from tenfold.transforms.tracer import (
    ASSIGNS_WINDOW,
    CONTROL_REMEDY,
    NeedsValues,
    TracedFunction,
    mutation_error,
    needs_values_error,
    trace_function,
)

MAX_TRACES = 256
"""Capacity of the trace cache of one function (LRU)."""
Function = Callable[..., Any]


class CachedTrace(NamedTuple):
    """A trace with the Callee of its calls, and the bindings that it is valid for."""

    trace: TracedFunction
    callee: Callee
    bindings: list[Any]
    """References to the objects that the function could read; empty where they are not compared."""
    arguments: tuple[TreeDef, tuple[Any, ...]] = (TreeDef(), ())
    """For a `tn.function` the tree of its arguments, and its leaves, None for arrays."""


class TraceCache(LruCache[Hashable, CachedTrace | type[NeedsValues]]):
    """The traces of one function by signature; NeedsValues for one that cannot be traced."""

    def __init__(self) -> None:
        super().__init__(
            MAX_TRACES, "traces", "tracing a function and planning it takes milliseconds"
        )

    def find(
        self, key: Hashable, current_bindings: list[Any] | None
    ) -> tuple[CachedTrace | type[NeedsValues] | None, list[Node]]:
        """Return the entry of a signature and the current nodes of its captures.

        Return None for a trace that is not valid any more.
        """
        cached = self.get(key)
        if not isinstance(cached, CachedTrace):
            return cached, []
        if not are_same(cached.bindings, current_bindings):
            return None, []
        captured = cached.trace.current_captures()
        return (None, []) if captured is None else (cached, captured)


def signature_key(leaves: Sequence[Any], structure: TreeDef, *options: Hashable) -> Hashable:
    """Return the key of a call: the Types of Arrays, other values, and the options in force."""
    leaf_keys = [
        _native.node_of(leaf).type if isinstance(leaf, Array) else exact_params(leaf)
        for leaf in leaves
    ]
    return structure, tuple(leaf_keys), get("strict_dtypes"), get("device"), *options


_traces: WeakKeyDictionary[FunctionType, TraceCache] = WeakKeyDictionary()


def cached_trace(
    operation: str, function: Function, args: tuple[Any, ...], **options: bool
) -> CachedTrace:
    """Return the trace of a function for trees of Arrays, from the cache if it is still valid.

    Raises UnsupportedError where the function asks for the values of an Array.
    """
    leaves, structure = flatten((args, {}))
    key = signature_key(leaves, structure, *options.items())
    traces, current_bindings = TraceCache(), None
    if isinstance(function, FunctionType):
        traces, current_bindings = _traces.setdefault(function, traces), bindings(function)
    cached, _ = traces.find(key, current_bindings)
    if isinstance(cached, CachedTrace):
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
        cause = error.__cause__
        raise needs_values_error(operation, location, CONTROL_REMEDY, cause) from cause
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


__all__ = ["MAX_TRACES", "CachedTrace", "TraceCache", "cached_trace", "signature_key"]
