"""Trace cache: stores the traces of Python functions by the Types of their arguments.

Takes a function and its arguments, hands on a CachedTrace. A plain function is traced once for each
signature. It is traced again where an array that it reads has changed in a way that matters, or
another object that it could read was rebound (`transforms/closure_capture.py`). Any other callable,
and one that reads an array in a way that cannot be seen, is traced each time.

>>> import tenfold as tn
>>> runs = []
>>> def double(x): runs.append(1); return x + x
>>> for _ in range(3): found = trace("tn.scan", double, (tn.ones((2,)),))
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
from tenfold.transforms.closure_capture import are_same, bindings, has
from tenfold.transforms.subgraph import Subgraph, expression
from tenfold.transforms.tracer import NeedsValues, TracedFunction, traced
from tenfold.transforms.tracing_scope import ASSIGNS, line_of, refused

MOST = 64
"""Traces of one function that are kept; the one not used for longest goes first."""
Function = Callable[..., Any]


class CachedTrace(NamedTuple):
    """What a function is made of."""

    traced: TracedFunction
    expression: Subgraph
    bindings: list[Any]
    """What it could read, where it is kept."""


_kept: WeakKeyDictionary[FunctionType, LruCache[Hashable, CachedTrace]] = WeakKeyDictionary()


def trace(operation: str, function: Function, args: tuple[Any, ...], **how: bool) -> CachedTrace:
    """Return what a function is made of; its arguments are trees of Arrays.

    Raises UnsupportedError where it asks for the values of one.
    """
    leaves, structure = flatten((args, {}))
    types = tuple([_native.node_of(leaf).type for leaf in leaves])
    key = structure, types, get("strict_dtypes"), get("device"), *how.items()
    kept: LruCache[Hashable, CachedTrace] = LruCache(MOST)
    own = None
    if isinstance(function, FunctionType):
        kept, own = _kept.setdefault(function, kept), bindings(function)
    known = kept.get(key)
    if known is not None and are_same(known.bindings, own) and known.traced.present() is not None:
        return known
    try:
        made = traced(function, leaves, structure, **how)
    except NeedsValues as error:
        note_wait()  # a function around this one can do without a trace
        if error.assigned:
            raise refused(operation, f"{name_of(function)} {ASSIGNS}") from error.__cause__
        place = line_of(error.__cause__) if error.__cause__ else name_of(function)
        rule = f"{place} asks for a value, and an array that is traced has none"
        remedy = "choose by values with tn.where or tn.cond, repeat with tn.while_loop"
        raise UnsupportedError(operation, rule, remedy=remedy) from error.__cause__
    own = bindings(function) if isinstance(function, FunctionType) else None  # it may count calls
    found = CachedTrace(made, expression(name_of(function), made.outputs, made.inputs), own or [])
    if own is not None and all(has(own, array) for array in _read(made)):
        kept[key] = found
    return found


def name_of(function: Function) -> str:
    """Return what messages call a function."""
    return getattr(function, "__name__", type(function).__name__)


def _read(made: TracedFunction) -> list[Array]:
    """Return the Arrays that a function has looked at."""
    named = [each.source for each in made.captured if each.source is not None]
    return [*named, *[array for array, _ in made.read]]


__all__ = ["CachedTrace", "name_of", "trace"]
