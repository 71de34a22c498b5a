"""Traced functions (`@tn.function`): trace a Python function once and call it as one operation.

Takes a function, returns a Function. A call makes one node. Equal calls in a large graph are
batched, and run the fused kernels of the whole function.

>>> import tenfold as tn
>>> @tn.function
... def cell(x, h): return tn.tanh(x + h)
>>> cell(tn.asarray([0.0, 1.0]), tn.asarray([0.0, -1.0])).tolist()
[0.0, 0.0]
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import pickle
import sys
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from itertools import count
from pickle import PicklingError
from threading import get_ident
from typing import Any, ParamSpec, Protocol, TypeVar
from weakref import ref

import numpy as np

from tenfold import _native, pipeline
from tenfold._native import Array, Node
from tenfold.caches import LruCache
from tenfold.core.callable_signature import exact_signature, name_of
from tenfold.core.op import Op
from tenfold.core.pytree import TreeDef, flatten, flatten_one_level
from tenfold.core.trace_state import TRACE, line_of, user_stacklevel
from tenfold.errors import (
    FallbackWarning,
    RunError,
    UnsupportedError,
    message,
    raise_if_failed,
)
from tenfold.interop.asarray import asarray
from tenfold.transforms.call_op import Callee
from tenfold.transforms.loop_carry import checked_callable
from tenfold.transforms.trace_cache import CachedTrace, TraceCache, signature_key
from tenfold.transforms.tracer import (
    CONTROL_REMEDY,
    NeedsValues,
    needs_values_error,
    trace_function,
)

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
MAX_ASSIGNMENTS = 64
"""Limit of dependent assignments in a trace; a function with more of them is not traced."""
MAX_TRACE_DEPTH = 128
"""Limit of nested traces, below Python's recursion limit and the size of the stack."""


class TracedCallable(Protocol[P, R_co]):
    """What `tn.function` and `tn.load_function` return."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Make the node of a call."""

    def save(self, path: Any, /, *args: Any, **kwargs: Any) -> None:
        """Write it to a file: see `Function.save`."""


def function(user_function: Callable[P, R_co]) -> TracedCallable[P, R_co]:
    """Make calls of a Python function of arrays operations of their own: `@tn.function`.

    The function is traced once for each signature: it runs on placeholders for the arrays among its
    arguments. These may be in tuples, lists, dicts and dataclasses, and so may its results. The
    signature is the Types of arrays and the values of all other arguments: control flow may depend
    on them. A function that asks for a value of an array cannot be traced: then each call runs the
    Python function, and waits. Other arrays that it reads are captured: a call reads their current
    values. Rebinding a name or an attribute is not noticed: `w += 1` and `w[...] = y` change the
    captured Array, `w = y` does not.

    A call makes one node. A single call is inlined; in a large graph equal calls, whose inputs are
    ready, are batched.

    Raises TypeError for an argument that is not a function, and for a result that is not an array.

    >>> import tenfold as tn
    >>> w = tn.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> @tn.function
    ... def layer(x): return {"h": tn.tanh(w @ x), "x": x}
    >>> layer(tn.asarray([0.0, 0.0]))["h"].tolist()
    [0.0, 0.0]
    """
    caller: TracedCallable[P, R_co] = caller_of(checked_callable("tn.function", user_function))
    return caller


def caller_of(user_function: Callable[..., Any]) -> Any:
    """Return the object that the user has for a function, which it traces."""
    return caller_for(Function(user_function))


def caller_for(traced: Function) -> Any:
    """Return the object that the user has for a traced function."""
    caller = _native.make_caller(traced)
    functools.update_wrapper(caller, traced.function)
    vars(caller).setdefault("__name__", traced.name)
    vars(caller).setdefault("__qualname__", traced.name)
    traced.caller = ref(caller)
    return caller


def reduce_function(caller: Any) -> Any:
    """Return the pickled form of a traced function: its name in a module, or its Python function.

    The latter is pickled by value, with the arrays that it captures, by cloudpickle. A reader makes
    one traced function of equal bytes. Raises PicklingError without cloudpickle.
    """
    user_function, active = caller.__wrapped__, _being_pickled.get()
    module_name = getattr(caller, "__module__", None)
    found: Any = sys.modules.get(str(module_name))
    for part in caller.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is caller and module_name != "__main__":
        return str(caller.__qualname__)
    if caller in active:  # it calls itself: this is inside the bytes made below
        return function, (user_function,)
    try:
        from cloudpickle import dumps
    except ImportError:
        rule = f"{caller.__qualname__!r} is not what its module {module_name!r} has by that name"
        remedy = "define it in a module that the reader imports too, or pip install cloudpickle"
        raise PicklingError(message("pickle", rule, remedy=remedy)) from None
    with _native.Scope((_being_pickled, active | {caller})):
        return restore_function, (dumps(user_function),)


def restore_function(data: bytes) -> Any:
    """Return the traced function that was pickled by value: the same one for equal bytes."""
    caller = _restored_functions.get(data)
    if caller is None:
        user_function = pickle.loads(data)  # noqa: S301  # as safe as the pickle it comes from
        caller = _restored_functions.setdefault(data, caller_of(user_function))
    return caller


_being_pickled: ContextVar[frozenset[Any]] = ContextVar("functions_pickled", default=frozenset())
_restored_functions: LruCache[bytes, Any] = LruCache(
    64, "unpickled functions", "a task of Dask unpickles its function; a trace takes milliseconds"
)
copyreg.pickle(type(_native.make_caller(caller_of)), reduce_function)


class Function:
    """A traced function: handles the calls that miss the native call cache.

    `caller` is the object that the user has (`native/python/call_cache.cpp`), which alone keeps
    this one: captured arrays go with it, not with a later garbage collection.
    """

    caller: ref[Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.name = function, name_of(function)
        self.signature = exact_signature(function)
        self._page = getattr(function, "__module__", None) or ""
        self._family = object()  # shared by the ops of all traces
        self._traces = TraceCache()
        self._asks: str | None = None
        """Where it first asked for a value; "" once a call has warned of it."""
        self._refusal: UnsupportedError | None = None
        """Why it cannot be traced, at last."""
        self._tracing: set[tuple[int, Hashable]] = (
            set()
        )  # by thread: several threads may trace it at once

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the node of a call; trace the function first if its signature is new."""
        original_leaves, structure = self._flatten_arguments(args, kwargs)
        leaves = [self._convert_leaf(leaf) for leaf in original_leaves]
        call, captured = self._lookup(leaves, structure)
        if call is None:
            return self._call_untraced(leaves, structure)
        if all(leaf is converted for leaf, converted in zip(original_leaves, leaves, strict=True)):
            self._remember(call, args, kwargs)
        return _apply(call, leaves, captured)

    def trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Trace the function for later calls, if its signature is new."""
        leaves, structure = self._flatten_arguments(args, kwargs)
        call, _ = self._lookup([self._convert_leaf(leaf) for leaf in leaves], structure)
        if call is not None:
            self._remember(call, args, kwargs)

    def save(self, path: Any, /, *args: Any, **kwargs: Any) -> None:
        """Write the function to a file that `tn.load_function` reads: `f.save(path, *args)`.

        The file has the trace for arguments such as `args` and `kwargs`, whose values are not
        computed, or without arguments a trace for each signature that it was called with. In it are
        the graph, the Types and the values of captured arrays, and no code. It replaces `path`
        when it is complete.

        Arguments and results are arrays in tuples, lists and dicts, to any depth; a named tuple is
        loaded as a tuple. Other arguments are numbers, texts, dtypes and None: a loaded function
        takes those that it was saved with.

        Raises UnsupportedError for a function that asks for values of arrays, and for an operation
        of the user (`tn.op`, `tn.operator`), with its line; ValueError where there is no trace;
        OSError where the file cannot be written.

        >>> import pathlib, tempfile, tenfold as tn
        >>> scaled = tn.function(lambda x: {"y": 2 * x})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scaled.save(pathlib.Path(folder) / "scaled.tn", tn.ones((2, 3)))
        ...     tn.load_function(pathlib.Path(folder) / "scaled.tn")(tn.ones((2, 3)))["y"].shape
        (2, 3)
        """
        calls = self.saved_calls()
        if args or kwargs or not calls:
            leaves, structure = self._flatten_arguments(args, kwargs)
            call, _ = self._lookup([self._convert_leaf(leaf) for leaf in leaves], structure)
            calls = [call] if call is not None else []
        if not calls:
            assert self._refusal is not None, "it cannot be traced"
            raise UnsupportedError("save", self._refusal.rule, remedy=self._refusal.remedy)
        writer = importlib.import_module("tenfold.io.function_writer")  # the room above, and zip
        writer.write_function(path, self, calls)

    def saved_calls(self) -> list[CachedTrace]:
        """Return the traces of all signatures, without those that are not valid any more."""
        calls = [call for call in self._traces.values() if isinstance(call, CachedTrace)]
        return [call for call in calls if call.trace.current_captures() is not None]

    def _lookup(
        self, leaves: list[Any], structure: TreeDef
    ) -> tuple[CachedTrace | None, list[Node]]:
        """Return the trace for a signature, and the current values of its captures.

        The trace is None if the function asks for values.
        """
        key = signature_key(leaves, structure)
        call, captured = self._traces.find(key, [])
        if call is None:
            call = self._traces[key] = self._trace_signature(key, leaves, structure)
            if isinstance(call, CachedTrace):
                captured = [capture.node for capture in call.trace.captured]
        return call if isinstance(call, CachedTrace) else None, captured

    def _flatten_arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], TreeDef]:
        if self.signature is None:
            return flatten((args, kwargs))
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return flatten((bound.args, bound.kwargs))

    def _remember(self, call: CachedTrace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Store this call in the native call cache."""
        numbers = count()
        numbered_arguments = {
            name: number_arrays(value, numbers) for name, value in [("", args), *kwargs.items()]
        }
        leaves, _ = self._flatten_arguments(numbered_arguments.pop(""), numbered_arguments)
        order = [leaf.number for leaf in leaves if isinstance(leaf, ArrayPlaceholder)]
        trace, op = call.trace, call.callee.op
        arrays = len(trace.subgraph.inputs) - len(trace.captured)
        caller = self.caller()  # None: pushed, and dropped
        if len(order) != arrays or not trace.structure.leaves or caller is None:
            return  # of other lengths: a default is an array
        _native.cache_call(
            caller,
            args,
            kwargs,
            op.id,
            op.signature.bind().params,
            order,
            [(capture.node, capture.source) for capture in trace.captured],
            [*trace.guards],
            structure_tuple(trace.structure),
            functools.partial(_replay_call, op, trace.structure),
        )

    def _convert_leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, (np.ndarray, np.generic)):
            return asarray(leaf)
        if isinstance(leaf, Array):
            return leaf
        try:
            hash(leaf)
        except TypeError:
            rule = f"an argument is a {type(leaf).__name__}: it is not an array, and it is mutable"
            remedy = "pass arrays, and numbers, texts or other hashable values"
            raise TypeError(message(self.name, rule, remedy=remedy)) from None
        return leaf

    def _trace_signature(
        self, key: Hashable, leaves: list[Any], structure: TreeDef
    ) -> CachedTrace | type[NeedsValues]:
        """Trace the function for a signature; NeedsValues if it cannot be traced."""
        active_key = get_ident(), key
        if active_key in self._tracing:
            rule = "it calls itself with arguments of equal Types, so it would never end"
            remedy = "let a Python value that changes, such as a tree, end the recursion"
            raise RunError(self.name, rule, [x for x in leaves if isinstance(x, Array)], remedy)
        outer = TRACE.get()
        if outer is not None and outer.depth >= MAX_TRACE_DEPTH:
            rule = f"{MAX_TRACE_DEPTH} functions are traced inside one another, "
            rule += "and it would be the next"
            remedy = (
                "end the recursion: each call of itself has other Types or numbers, or let Python "
                "recurse, in a function that is not traced, over calls of one that is"
            )
            raise RunError(self.name, rule, [x for x in leaves if isinstance(x, Array)], remedy)
        self._tracing.add(active_key)
        try:
            trace = trace_function(self.function, leaves, structure)
        except NeedsValues as error:
            line = line_of(error.__cause__) if error.__cause__ else self.name
            self._refusal = needs_values_error("save", line, CONTROL_REMEDY, error.__cause__)
            if not error.assigned and self._asks is None:
                self._asks = line
            return NeedsValues
        finally:
            self._tracing.remove(active_key)
        assignments = [node.assignments for node in trace.subgraph.outputs]
        if max(assignments, default=0) > MAX_ASSIGNMENTS:
            rule = f"{self.name} makes more than {MAX_ASSIGNMENTS} assignments to one array"
            self._refusal = UnsupportedError(
                "save", rule, remedy="assign larger parts, or in loops"
            )
            return NeedsValues
        constants = tuple([None if isinstance(leaf, Array) else leaf for leaf in leaves])
        callee = Callee(trace.subgraph, self._page, self._family)
        return CachedTrace(trace, callee, [], (structure, constants))

    def _warn_untraced(self) -> None:
        """Warn once that the function runs untraced, and say where it asks for a value."""
        place, self._asks = self._asks, ""
        text = (
            f"{self.name} runs untraced: {place} asks for a value of an array; "
            "choose with tn.where or tn.cond, repeat with tn.while_loop, or leave out @tn.function"
        )
        warnings.warn(text, FallbackWarning, stacklevel=user_stacklevel())

    def _call_untraced(self, leaves: list[Any], structure: TreeDef) -> Any:
        """Run the Python function on copies of the Arrays, which it may assign to."""
        if self._asks and TRACE.get() is None:
            self._warn_untraced()
        copied_leaves = [
            _native.array_of(_native.node_of(leaf)) if isinstance(leaf, Array) else leaf
            for leaf in leaves
        ]
        args, kwargs = structure.unflatten(copied_leaves)
        return self.function(*args, **kwargs)


def _apply(call: CachedTrace, leaves: list[Any], captured: list[Node]) -> Any:
    """Make the node of a call and return its results in the structure of the function."""
    structure, op = call.trace.structure, call.callee.op
    if not structure.leaves:
        return structure.unflatten(())
    arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
    inputs = (*arrays, *map(_native.array_of, captured))
    result = _native.apply(op.id, inputs, op.signature.bind(*inputs).params)
    return structure.unflatten((result,) if structure.leaves == 1 else result)


def _replay_call(op: Op[...], structure: TreeDef, *arrays: Array) -> Any:
    """Compute a call from its arguments and captured arrays."""
    result = _native.apply(op.id, arrays, op.signature.bind(*arrays).params)
    return compute_tree(structure.unflatten((result,) if structure.leaves == 1 else result))


def compute_tree(tree: Any) -> Any:
    """Compute the Arrays of a tree and return it. Raises the first failure."""
    arrays = [leaf for leaf in flatten(tree)[0] if isinstance(leaf, Array)]
    raise_if_failed(pipeline.evaluate(arrays))
    return tree


class ArrayPlaceholder:
    """The position of an array among the arguments, in the order of the native call cache."""

    def __init__(self, number: int) -> None:
        self.number = number


def number_arrays(value: Any, numbers: Iterator[int]) -> Any:
    """Return a tree of arguments with an ArrayPlaceholder for each array and each component."""
    if isinstance(value, Array) and (kind := flatten_one_level(value)):
        return tuple([ArrayPlaceholder(next(numbers)) for _ in kind[1]])
    if isinstance(value, Array):
        return ArrayPlaceholder(next(numbers))
    if type(value) in (tuple, list):
        return type(value)([number_arrays(item, numbers) for item in value])
    if type(value) is dict:
        return {key: number_arrays(item, numbers) for key, item in value.items()}
    fields = fields_of(type(value))
    if fields is None:
        return value
    if isinstance(value, tuple):
        return type(value)(*[number_arrays(item, numbers) for item in value])
    copy = object.__new__(type(value))
    for name in fields:
        object.__setattr__(copy, name, number_arrays(getattr(value, name), numbers))
    return copy


def fields_of(type_: type) -> tuple[str, ...] | None:
    """Return the fields of a dataclass; () for a named tuple, None for a leaf."""
    if issubclass(type_, tuple) and hasattr(type_, "_fields"):
        return ()
    return tuple([item.name for item in fields(type_)]) if is_dataclass(type_) else None


def structure_tuple(structure: TreeDef) -> Any:
    """Return a structure for native code: None for a leaf, else (type, keys, children)."""
    if structure.type is None:
        return None
    if structure.type is type(None):
        return (None, (), ())
    return (
        structure.type,
        structure.keys,
        tuple([structure_tuple(child) for child in structure.children]),
    )
