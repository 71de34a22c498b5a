"""Operator specification: what the native core knows of an operator, its batching signature
included.

Takes an operator, hands on a record for native code. Raises an error for anything else.

>>> from tenfold.ops.arithmetic import add
>>> describe(add, None)[:3]
(<OperatorKind.ELEMENTS: 1>, True, 'add')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tenfold._native import Handle
from tenfold.core.op import MOST_OPERANDS, Op, Operation
from tenfold.core.op import Kind as Composed
from tenfold.engine.operands import contains_instance
from tenfold.engine.operators import (
    BatchedOperator,
    CumulativeOperator,
    Deferred,
    InPlaceOperator,
    Operator,
)
from tenfold.engine.python_operators import OperatorKind
from tenfold.errors import message

MAX_INPUTS = 255
"""Inputs of what takes any number."""


class OperatorSpec(NamedTuple):
    """What native code is told of an operator (native/python/engine_bindings.cpp)."""

    kind: int
    pure: bool
    name: str
    fewest: int
    most: int
    plain_run: bool
    plain_add: bool
    op: int


def describe(operator: Any, params: Mapping[str, Any] | None) -> OperatorSpec:
    """Describe an operator; raise TypeError for what is none, and for a handle as a parameter."""
    for name, value in (params or {}).items():
        if isinstance(value, Handle) or (
            isinstance(value, (list, tuple)) and contains_instance(value, Handle)
        ):
            rule = f"parameter {name!r} is a handle, or holds one"
            remedy = "handles are inputs, given by position; parameters are values: handle.get()"
            raise TypeError(message("push", rule, remedy=remedy))
    if isinstance(operator, Operation):
        return _describe_operation(operator, params)
    if isinstance(operator, Operator):
        return _describe_user_operator(operator, params)
    shown = operator.__name__ if isinstance(operator, type) else type(operator).__name__
    rule = f"{shown!r} is not an operator"
    remedy = "push an instance of a tn.Operator, a @tn.function, or one of tn.operators"
    if isinstance(operator, type) and issubclass(operator, Operator):
        rule, remedy = f"{shown} is a class of operators", f"push an instance, {shown}(...)"
    raise TypeError(message("push", rule, remedy=remedy))


def _describe_operation(
    operation: Operation[...], params: Mapping[str, Any] | None
) -> OperatorSpec:
    kind, pure, number = OperatorKind.GENERAL, True, 0
    fewest, most = _arity(operation.function)
    if params:
        _check_names(operation.full_name, operation.function, params)
        fewest = 0
    if isinstance(operation, Op):
        pure, number = operation.pure, operation.id
        plain = operation.kind == Composed.MAP and operation.dtypes is not None
        if not params and plain and fewest == most <= MOST_OPERANDS:
            kind = OperatorKind.ELEMENTS
        elif not params and operation.symbol == "@":
            kind = OperatorKind.PRODUCT
    return OperatorSpec(kind, pure, operation.full_name, fewest, most, False, False, number)


def _describe_user_operator(operator: Operator, params: Mapping[str, Any] | None) -> OperatorSpec:
    made = type(operator)
    kind, fewest, most = _kind_of(made)
    plain_run = plain_add = False
    if isinstance(operator, CumulativeOperator):
        plain_run = _has_default_run(made) and not params
        plain_add = type(operator).add is CumulativeOperator.add
    if params:
        _check_names(made.__name__, made.run, params)
        fewest = min(fewest, 1)
    pure = bool(operator.pure)
    name = operator.name if isinstance(operator, Deferred) else made.__name__
    return OperatorSpec(kind, pure, name, fewest, most, plain_run, plain_add, 0)


_kinds: WeakKeyDictionary[type[Operator], tuple[int, int, int]] = WeakKeyDictionary()
"""What is noted of a class as long as it lives."""


def _kind_of(made: type[Operator]) -> tuple[int, int, int]:
    """Return the kind of a class of operators, and how many inputs it takes."""
    found = _kinds.get(made)
    if found is None:
        found = _kinds[made] = _infer_kind(made)
    return found


def _infer_kind(made: type[Operator]) -> tuple[int, int, int]:
    if issubclass(made, CumulativeOperator):
        if _has_default_run(made):
            return OperatorKind.CUMULATIVE, 2, 2
        fewest, most = _arity(made.run, 1)
        return OperatorKind.CUMULATIVE, fewest + 1, min(MAX_INPUTS, most + 1)
    if issubclass(made, InPlaceOperator):
        fewest, most = _arity(made.run, 1)
        return OperatorKind.IN_PLACE, max(1, fewest), most
    if issubclass(made, BatchedOperator):
        return OperatorKind.BATCHED, 0, MAX_INPUTS
    return OperatorKind.USER, *_arity(made.run, 1)


def _has_default_run(made: type[Operator]) -> bool:
    """Return whether an increment is the one input."""
    return made.run is CumulativeOperator.run and not hasattr(made, "run_batch")


def _arity(function: Callable[..., Any], skipped: int = 0) -> tuple[int, int]:
    """Return the fewest and the most positional arguments, without the first `skipped`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
    except (TypeError, ValueError):
        return 0, MAX_INPUTS
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = MAX_INPUTS if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    return sum(p.default is p.empty for p in positional), most


def _check_names(name: str, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """Raise TypeError for a parameter that the function does not have."""
    known = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in known):
        return
    names = [p.name for p in known if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for param in params:
        if param not in names:
            rule = f"{name} has no parameter {param!r}"
            raise TypeError(message("push", rule, remedy=f"it has {', '.join(names) or 'none'}"))


_numbers: dict[Hashable, int] = {}
_next = count(1)
MAX_SIGNATURES = 65_536
"""Signatures that are remembered; then they are told apart anew."""


def signature(operator: Operator, params: Mapping[str, Any] | None, inputs: Any) -> int:
    """Return a number for what batches with this push; raise TypeError for what has no hash."""
    said = operator.signature(*inputs) if hasattr(operator, "signature") else None
    named = _items(params)
    key = (type(operator), _attributes(operator), object() if named is None else named, said)
    try:
        number = _numbers.get(key)
    except TypeError:
        rule = f"its signature, a {type(said).__name__}, is unhashable"
        remedy = "return a tuple of numbers and texts from signature()"
        raise TypeError(message(type(operator).__name__, rule, remedy=remedy)) from None
    if number is None:
        if len(_numbers) >= MAX_SIGNATURES:
            _numbers.clear()
        number = _numbers[key] = next(_next)
    return number


def _attributes(operator: Operator) -> Hashable:
    """Return what makes two operators of one class equal: their attributes, or themselves."""
    items = _items(vars(operator))
    return operator if items is None else items


def _items(named: Mapping[str, Any] | None) -> Hashable:
    try:
        items = tuple(sorted((named or {}).items(), key=lambda item: item[0]))
        hash(items)
    except TypeError:
        return None
    return items
