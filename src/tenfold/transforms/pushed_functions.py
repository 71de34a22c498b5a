"""Pushed functions: traces of functions that are pushed to an engine, for native replay.

Takes a Function and its arguments in `engine.push`, with Handles in the place of Arrays. Returns a
trace that native code replays (`native/python/pushed_calls.cpp`), or a deferred call of the
function.

>>> import tenfold as tn
>>> @tn.function
... def cell(x, h): return tn.tanh(x + h)
>>> with tn.Engine() as engine:
...     h = engine.push(cell, tn.asarray([0.0, 1.0]), engine.put(tn.asarray([0.0, -1.0])))
...     h.get().tolist()
[0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenfold import _native
from tenfold._native import Array, Handle
from tenfold.caches import LruCache
from tenfold.core.op import Op, Operation
from tenfold.core.pytree import flatten
from tenfold.engine.operators import Deferred
from tenfold.errors import message
from tenfold.transforms.function import Function, caller_of, compute_tree


def trace_pushed(
    function: Function, arguments: tuple[Any, ...], names: tuple[str, ...] | None
) -> None:
    """Trace a function before it runs, if possible; the last arguments are keyword arguments.

    Raises TypeError for arguments that the function does not take.
    """
    keyword_names = names or ()
    positional_count = len(arguments) - len(keyword_names)
    args = arguments[:positional_count]
    kwargs = dict(zip(keyword_names, arguments[positional_count:], strict=True))
    try:
        if function.signature is not None:
            function.signature.bind(*args, **kwargs)
    except TypeError as error:
        remedy = "push(function, *arguments, **arguments)"
        raise TypeError(message("push", f"{function.name}: {error}", remedy=remedy)) from None
    leaves, structure = flatten((args, kwargs))
    placeholders = [
        _native.traced_placeholder(leaf) if isinstance(leaf, Handle) else leaf for leaf in leaves
    ]
    try:
        function.trace(*structure.unflatten(placeholders))
    except Exception:  # noqa: BLE001  # the call that runs later raises it at the wait
        return


def expected_bytes(operation: Operation[...], inputs: list[Any], params: Mapping[str, Any]) -> int:
    """Return the bytes of an operation's results; 0 where only a run can tell.

    Inputs are placeholders, numbers and other values, and lists of Arrays and Handles.
    """
    try:
        results, _ = flatten(operation(*map(_placeholders, inputs), **params))
        return sum(x.size * x.dtype.itemsize for x in results if isinstance(x, Array))
    except Exception:  # noqa: BLE001  # the run raises it at the wait
        return 0


def _placeholders(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_placeholders(item) for item in value])
    return _native.traced_placeholder(value) if isinstance(value, Handle) else value


def deferred_call(
    function: Function, args: tuple[Any, ...], _params: Mapping[str, Any] | None
) -> Deferred:
    """Return an operator that calls a function when its inputs are ready.

    Raises TypeError for handles that are nested in an argument.
    """
    flatten(args)  # raises for a tree that contains itself
    for value in args:
        if _hides_handle(value):
            rule = f"{function.name}: a {type(value).__name__} holds handles whose Types only "
            rule += "their values will tell"
            remedy = "give such handles by themselves, or in a list or tuple"
            raise TypeError(message("push", rule, remedy=remedy))
    return Deferred(
        function.name, lambda *inputs, **named: compute_tree(function(*inputs, **named))
    )


_traced_operations: LruCache[Operation[...], Any] = LruCache(
    256, "traced operations", "pushes of lists are batched by the trace of their operation"
)


def traced_operation(operator: Any) -> Any:
    """Return the caller of a pure operation's traced function; None for other operators."""
    is_pure = not isinstance(operator, Op) or operator.semantics.pure
    if not isinstance(operator, Operation) or not is_pure:
        return None
    caller = _traced_operations.get(operator)
    if caller is None:

        def call(*args: Any, **kwargs: Any) -> Any:
            return operator(*args, **kwargs)

        call.__name__ = operator.full_name
        caller = _traced_operations[operator] = caller_of(call)
    return caller


def _hides_handle(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_hides_handle, value))
    return not isinstance(value, Handle) and any(isinstance(x, Handle) for x in flatten(value)[0])
