"""Callable signatures: the name and the parameters of any Python callable.

Takes a function, a bound method, a `functools.partial`, an object with `__call__`, a ufunc or a
builtin. Hands on its name for messages and its `inspect.Signature`, which exist for all of them.

>>> import functools, numpy as np
>>> name_of(functools.partial(np.hypot, 3.0)), str(signature_of(np.hypot)), str(signature_of(max))
('hypot', '(x1, x2, /)', '(*args)')
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter, Signature
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from tenfold._native import Array

INPUTS = (Array, np.ndarray, np.generic, int, float, complex)
"""Types of defaults that can be inputs of an operation."""


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a callable: its own, that of the partial's function, or of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a callable; the operands of a ufunc; `(*args)` where it has none.

    The `**kwargs` of an object or builtin are its options, with defaults of its own: left out.
    """
    source, given = inspect.unwrap(function), 0
    while isinstance(source, functools.partial):
        source, given = inspect.unwrap(source.func), given + len(source.args)
    operands = getattr(source, "nin", None)
    if isinstance(operands, int):
        names = ["x"] if operands == 1 else [f"x{i + 1}" for i in range(operands)][given:]
        return Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return Signature([Parameter("args", Parameter.VAR_POSITIONAL)])
    if isinstance(source, (FunctionType, MethodType)):
        return signature
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    return signature.replace(parameters=named)


def input_signature(function: Callable[..., Any]) -> Signature:
    """Return the signature of a callable whose positional parameters are inputs.

    It ends before the first positional parameter whose default cannot be an input, such as None,
    and lacks keywords whose default is an array: the callable uses its own defaults.
    """
    kept: list[Parameter] = []
    ended = False
    for parameter in signature_of(function).parameters.values():
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        is_input = parameter.default is parameter.empty or isinstance(parameter.default, INPUTS)
        ended |= not by_name and not is_input
        if not (isinstance(parameter.default, (Array, np.ndarray)) if by_name else ended):
            kept.append(parameter)
    return Signature(kept)


def exact_signature(function: Callable[..., Any]) -> Signature | None:
    """Return the signature of a plain function or method, else None.

    A wrapper may take other arguments than it tells, and a ufunc refuses its own defaults.
    """
    is_plain = isinstance(function, (FunctionType, MethodType))
    if not is_plain or hasattr(function, "__wrapped__"):
        return None
    return inspect.signature(function)
