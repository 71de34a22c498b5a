"""@tn.function: a Python function of arrays that is traced once and called as one operation.

Takes a function, hands on a Function. A call makes one node; equal calls of a large graph are
computed together, by the fused kernels of the whole function.

>>> import tenfold as tn
>>> @tn.function
... def cell(x, h): return tn.tanh(x + h)
>>> cell(tn.asarray([0.0, 1.0]), tn.asarray([0.0, -1.0])).tolist()
[0.0, 0.0]
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node
from tenfold.array import asarray
from tenfold.caches import Recent
from tenfold.errors import RunError, message
from tenfold.functions.calls import call_op
from tenfold.functions.opaque import checked_function
from tenfold.functions.tracing import Traced, Waits, traced
from tenfold.functions.trees import Structure, flatten
from tenfold.ir.op import Op
from tenfold.settings import get

MOST = 256
"""Traces of one function that are kept; the one not used for longest goes first."""
TRACING = object()
"""What stands for a trace while it is made."""


def function(given: Callable[..., Any]) -> Function:
    """Make calls of a Python function of arrays operations of their own: `@tn.function`.

    The function is traced once for each signature: run on stand-ins for the arrays among its
    arguments, which may stand in tuples, lists, dicts and dataclasses; it returns arrays in any of
    these. Types of arrays and all other arguments, by their values, are the signature: control flow
    may depend on them. A function that asks for a value of an array cannot be traced: then each
    call runs it as it is written, and waits. Arrays that it reads and is not given are captured:
    calls read what they are at the time of the call.

    A call makes one node. In a small graph it is computed as if what it is made of was written
    there; in a large one equal calls, whose inputs are there, are computed together.

    Raises TypeError for what is no function, and where it returns something that is no array.

    >>> import tenfold as tn
    >>> w = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> @tn.function
    ... def layer(x): return {"h": tn.tanh(w @ x), "x": x}
    >>> layer(tn.asarray([0.0, 0.0]))["h"].tolist()
    [0.0, 0.0]
    """
    return Function(checked_function("tn.function", given))


def exact(value: Any) -> Any:
    """Return what tells a value from all others: -0.0 is equal to 0.0, and NaN not to itself."""
    return repr(value) if isinstance(value, (float, complex)) else value


class Call:
    """A trace as calls replay it."""

    def __init__(self, function: Callable[..., Any], made: Traced) -> None:
        self.traced = made
        self.op: Op[...] = call_op(function, made)

    def captured(self) -> list[Node] | None:
        """Return what was captured as it is now; None where the function is to be traced anew."""
        for array, node in self.traced.read:
            if _native.kept_node(array) != node:
                return None
        now: list[Node] = []
        for each in self.traced.captured:
            node = each.node if each.source is None else _native.node_of(each.source)
            if node.type != each.node.type:
                return None
            now.append(node)
        return now


class Function:
    """A function whose calls are operations; see `tn.function`."""

    def __init__(self, given: Callable[..., Any]) -> None:
        self._function = given
        self._signature = inspect.signature(given)
        self._calls: Recent[Hashable, Any] = Recent(MOST)
        functools.update_wrapper(self, given)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<tn.function {self._function.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the node of a call."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        leaves, structure = flatten((bound.args, bound.kwargs))
        leaves = [self._leaf(leaf) for leaf in leaves]
        key = self._key(leaves, structure)
        call = self._calls.get(key)
        captured = call.captured() if type(call) is Call else None
        if captured is None:
            call = self._traced(key, leaves, structure, call)
            if call is None:
                return self._as_written(leaves, structure)
            captured = call.captured()
        arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
        inputs = (*arrays, *map(_native.array_of, captured))
        op, form = call.op, call.traced.structure
        made = _native.apply(op.id, inputs, op.bind(*inputs).params) if form.leaves else ()
        return form.unflatten((made,) if form.leaves == 1 else made)

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, (np.ndarray, np.generic)):
            return asarray(leaf)
        if isinstance(leaf, Array):
            return leaf
        try:
            hash(leaf)
        except TypeError:
            rule = f"an argument is a {type(leaf).__name__}: no array, and it could change unseen"
            remedy = "pass arrays, and numbers, texts or other values that have a hash"
            raise TypeError(message(self._function.__name__, rule, remedy=remedy)) from None
        return leaf

    def _key(self, leaves: list[Any], structure: Structure) -> Hashable:
        known = [
            _native.node_of(leaf).type if isinstance(leaf, Array) else (type(leaf), exact(leaf))
            for leaf in leaves
        ]
        return structure, tuple(known), get("strict_dtypes"), get("device")

    def _traced(self, key: Hashable, leaves: list[Any], structure: Structure, before: Any) -> Any:
        """Trace the function for a signature; None where it is to run as it is written."""
        name = self._function.__name__
        if before is TRACING:
            rule = "it calls itself with arguments of equal Types, so it would never end"
            remedy = "let a Python value that changes, such as a tree, end the recursion"
            raise RunError(name, rule, [x for x in leaves if isinstance(x, Array)], remedy)
        if before is Waits:
            return None
        self._calls[key] = TRACING
        try:
            call: Any = Call(self._function, traced(self._function, leaves, structure))
        except Waits:
            self._calls[key] = Waits
            return None
        except BaseException:
            self._calls[key] = None
            raise
        self._calls[key] = call
        return call

    def _as_written(self, leaves: list[Any], structure: Structure) -> Any:
        """Run the function on arrays of its own, which it may assign to."""
        own = [
            _native.array_of(_native.node_of(leaf)) if isinstance(leaf, Array) else leaf
            for leaf in leaves
        ]
        args, kwargs = structure.unflatten(own)
        return self._function(*args, **kwargs)
