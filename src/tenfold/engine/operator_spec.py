"""Operator specification: the native record of an operator, and its batch signature.

Takes an operator, returns a record for native code. Raises TypeError for any other object.

>>> from tenfold.ops.arithmetic import add
>>> describe(add, None)[:3]
(<OperatorKind.ELEMENTS: 1>, True, 'add')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from itertools import count
from operator import index
from typing import Any, NamedTuple

from tenfold._native import Handle
from tenfold.caches import LruCache
from tenfold.core.op import MAX_OPERANDS, Op, Operation
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
"""Upper limit of inputs of a variadic operator."""


MAX_PRIORITY = 2**31 - 1


class OperatorSpec(NamedTuple):
    """The native record of an operator (native/python/engine_bindings.cpp)."""

    kind: int
    pure: bool
    name: str
    min_inputs: int
    max_inputs: int
    plain_run: bool
    plain_add: bool
    op: int
    priority: int
    stacked_number: int


def describe(operator: Any, params: Mapping[str, Any] | None) -> OperatorSpec:
    """Describe an operator. Raises TypeError for any other object, and for handles in `params`."""
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
    type_name = operator.__name__ if isinstance(operator, type) else type(operator).__name__
    rule = f"{type_name!r} is not an operator"
    remedy = "push an instance of a tn.Operator, a @tn.function, or one of tn.operators"
    if isinstance(operator, type) and issubclass(operator, Operator):
        rule, remedy = f"{type_name} is a class of operators", f"push an instance, {type_name}(...)"
    raise TypeError(message("push", rule, remedy=remedy))


def _describe_operation(
    operation: Operation[...], params: Mapping[str, Any] | None
) -> OperatorSpec:
    kind, pure, op_id = OperatorKind.GENERAL, True, 0
    min_inputs, max_inputs = _arity(operation.function)
    if params:
        _check_names(operation.full_name, operation.function, params)
        min_inputs = 0
    if isinstance(operation, Op):
        pure, op_id = operation.semantics.pure, operation.id
        is_elementwise = (
            operation.semantics.kind == Composed.MAP and operation.semantics.dtypes is not None
        )
        if not params and is_elementwise and min_inputs == max_inputs <= MAX_OPERANDS:
            kind = OperatorKind.ELEMENTS
    return OperatorSpec(
        kind, pure, operation.full_name, min_inputs, max_inputs, False, False, op_id, 0, 0
    )


def _describe_user_operator(operator: Operator, params: Mapping[str, Any] | None) -> OperatorSpec:
    operator_class = type(operator)
    facts = vars(operator_class).get(FACTS_ATTRIBUTE) or _class_facts(operator_class)
    kind, min_inputs, max_inputs, plain_run, plain_add, may_be_stacked, name = facts
    if params:
        _check_names(operator_class.__name__, operator_class.run, params)
        min_inputs, plain_run = min(min_inputs, 1), False
    rank = operator.priority
    if rank or type(rank) is not int:
        rank = max(-MAX_PRIORITY, min(index(rank), MAX_PRIORITY))
    number = _stacked_number(operator) if may_be_stacked and not params else 0
    if name is None:
        assert isinstance(operator, Deferred), "others have the name of their class"
        name = operator.name
    pure = bool(operator.pure)
    return OperatorSpec(
        kind, pure, name, min_inputs, max_inputs, plain_run, plain_add, 0, rank, number
    )


def _stacked_number(operator: Operator) -> int:
    """Return the number that operators of one class with equal attributes share, whose inputs
    native code stacks by their Types; 0 for others.
    """
    assert isinstance(operator, BatchedOperator), "its class may be stacked"
    return _number_of((type(operator), _attributes(operator))) if operator.stacked else 0


class ClassFacts(NamedTuple):
    """What all operators of a class have in common."""

    kind: int
    min_inputs: int
    max_inputs: int
    plain_run: bool
    plain_add: bool
    may_be_stacked: bool
    name: str | None
    """None where each has its own."""


FACTS_ATTRIBUTE = "_tenfold_facts"
"""Where a class of operators stores its facts."""


def _class_facts(operator_class: type[Operator]) -> ClassFacts:
    """Return the facts of a class of operators; the class holds them, from the first push on."""
    plain_run = plain_add = may_be_stacked = False
    if issubclass(operator_class, CumulativeOperator):
        plain_run = _has_default_run(operator_class)
        plain_add = operator_class.add is CumulativeOperator.add
    elif issubclass(operator_class, BatchedOperator):
        may_be_stacked = operator_class.signature is BatchedOperator.signature
    name = None if issubclass(operator_class, Deferred) else operator_class.__name__
    kind = _infer_kind(operator_class)
    facts = ClassFacts(*kind, plain_run, plain_add, may_be_stacked, name)
    setattr(operator_class, FACTS_ATTRIBUTE, facts)
    return facts


def _infer_kind(operator_class: type[Operator]) -> tuple[int, int, int]:
    if issubclass(operator_class, CumulativeOperator):
        if _has_default_run(operator_class):
            return OperatorKind.CUMULATIVE, 2, 2
        min_inputs, max_inputs = _arity(operator_class.run, 1)
        return OperatorKind.CUMULATIVE, min_inputs + 1, min(MAX_INPUTS, max_inputs + 1)
    if issubclass(operator_class, InPlaceOperator):
        min_inputs, max_inputs = _arity(operator_class.run, 1)
        return OperatorKind.IN_PLACE, max(1, min_inputs), max_inputs
    if issubclass(operator_class, BatchedOperator):
        return OperatorKind.BATCHED, 0, MAX_INPUTS
    return OperatorKind.USER, *_arity(operator_class.run, 1)


def _has_default_run(operator_class: type[Operator]) -> bool:
    """Return whether `run` is the default: the increment is the only input."""
    return operator_class.run is CumulativeOperator.run and not hasattr(operator_class, "run_batch")


def _arity(function: Callable[..., Any], skipped: int = 0) -> tuple[int, int]:
    """Return the fewest and the most positional arguments, without the first `skipped`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[skipped:]
    except (TypeError, ValueError):
        return 0, MAX_INPUTS
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    maximum = MAX_INPUTS if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(positional)
    return sum(p.default is p.empty for p in positional), maximum


def _check_names(name: str, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """Raise TypeError for a parameter that the function does not have."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    names = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for param in params:
        if param not in names:
            rule = f"{name} has no parameter {param!r}"
            raise TypeError(message("push", rule, remedy=f"it has {', '.join(names) or 'none'}"))


_numbers: LruCache[Hashable, int] = LruCache(
    65_536, "push signatures", "equal signatures have equal numbers, by which native code batches"
)
_next = count(1)


def signature(operator: Operator, params: Mapping[str, Any] | None, inputs: Any) -> int:
    """Return the number of a push's batch signature. Raises TypeError if it is unhashable."""
    user_signature = operator.signature(*inputs) if hasattr(operator, "signature") else None
    param_items = _items(params)
    key = (
        type(operator),
        _attributes(operator),
        object() if param_items is None else param_items,
        user_signature,
    )
    try:
        return _number_of(key)
    except TypeError:
        rule = f"its signature, a {type(user_signature).__name__}, is unhashable"
        remedy = "return a tuple of numbers and texts from signature()"
        raise TypeError(message(type(operator).__name__, rule, remedy=remedy)) from None


def _number_of(key: Hashable) -> int:
    number = _numbers.get(key)
    return _numbers.setdefault(key, next(_next)) if number is None else number


def _attributes(operator: Operator) -> Hashable:
    """Return the equality key of an operator: its attributes, or itself if one is unhashable."""
    items = _items(vars(operator))
    return operator if items is None else items


def _items(mapping: Mapping[str, Any] | None) -> Hashable:
    try:
        items = tuple(sorted((mapping or {}).items(), key=lambda item: item[0]))
        hash(items)
    except TypeError:
        return None
    return items
