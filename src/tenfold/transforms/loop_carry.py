"""Loop carry: checks that a loop's or branch's array trees keep their structure and Types.

Takes the user's values and the traced ones. Returns arrays, or raises an error with the leaf that
differs, both Types and a remedy.

>>> import tenfold as tn
>>> leaves, form = flatten_arrays("tn.scan", "init", {"h": 0.0, "n": (1, None)})
>>> [leaf.dtype.name for leaf in leaves], str(form)
(['float64', 'int64'], "{'h': *, 'n': (*, None)}")
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tenfold import _native
from tenfold._native import Array, Node, Type
from tenfold.core.callable_signature import name_of
from tenfold.core.graph import type_text
from tenfold.core.pytree import TreeDef, flatten
from tenfold.dtypes import BOOL
from tenfold.errors import DTypeError, ShapeError, message
from tenfold.interop.asarray import asarray
from tenfold.transforms.tracer import TracedFunction

Function = Callable[..., Any]


def flatten_arrays(operation: str, subject: str, value: Any) -> tuple[list[Array], TreeDef]:
    """Return the leaves of a tree as arrays, and its structure."""
    leaves, structure = flatten(value)
    arrays = []
    for leaf, path in zip(leaves, structure.paths(), strict=True):
        try:
            arrays.append(leaf if isinstance(leaf, Array) else asarray(leaf))
        except (TypeError, ValueError):
            rule = f"{subject}{path} is a {type(leaf).__name__}, not an array"
            remedy = "give arrays and numbers; the function can read other values itself"
            raise DTypeError(operation, rule, remedy=remedy) from None
    return arrays, structure


def checked_callable(operation: str, function: Any) -> Function:
    """Return the function, or raise TypeError if it is not callable."""
    if not callable(function):
        rule = f"{type(function).__name__} is not a function"
        raise TypeError(message(operation, rule, remedy="give a function of arrays, as a lambda"))
    result: Function = function
    return result


def structure_text(structure: TreeDef) -> str:
    """Return the structure of a tree as text for messages."""
    return "an array" if structure.type is None else str(structure)


def checked_length(rows: Sequence[Array], structure: TreeDef, length: Any) -> int:
    """Return the number of steps of a scan: the rows of xs, or `length`, which must agree."""
    name = "tn.scan"
    descriptions: dict[int, str] = {}
    for x, path in zip(rows, structure.paths(), strict=True):
        if x.ndim == 0:
            rule = f"xs{path} has no axis to go along"
            raise ShapeError(name, rule, [x], "let f read it, or carry it")
        descriptions.setdefault(x.shape[0], f"xs{path} has {x.shape[0]} rows")
    if length is not None:
        try:
            steps = operator.index(length)
        except TypeError:
            rule = f"length {length!r} is not an int"
            raise TypeError(message(name, rule, remedy="give a number of steps")) from None
        if steps < 0:
            raise ShapeError(name, f"length {steps} is negative", remedy="give 0 or more")
        descriptions.setdefault(steps, f"length is {steps}")
    if not descriptions:
        rule = "neither xs nor length say how many steps there are"
        raise ShapeError(name, rule, remedy="give arrays, or length=")
    if len(descriptions) > 1:
        rule = f"the numbers of steps differ: {', '.join(descriptions.values())}"
        raise ShapeError(name, rule, remedy="give arrays of one length along their first axis")
    return next(iter(descriptions))


def check_carry(
    operation: str, function: Function, init: Any, outputs: Sequence[Node], structure: TreeDef
) -> None:
    """Raise an error where the structure or a Type of the carry changes."""
    leaves, init_structure = flatten(init)
    init_types, name = [type_of(leaf) for leaf in leaves], name_of(function)
    if structure != init_structure:
        expected, actual = structure_text(init_structure), structure_text(structure)
        rule = f"the carry is {expected} in init, and {name} returned {actual}"
        remedy = "return what was given, in the same containers"
        raise TypeError(message(operation, rule, remedy=remedy))
    for leaf, init_type, node, path in zip(
        leaves, init_types, outputs, init_structure.paths(), strict=True
    ):
        if (init_type.shape, init_type.dtype) == (node.type.shape, node.type.dtype):
            continue
        rule = (
            f"the carry changes: carry{path} is {type_text(init_type)} before a step, "
            f"and {type_text(node.type)} after it, in {name}"
        )
        if init_type.shape != node.type.shape:
            remedy = "return the shape of init, or begin with the shape of the returned value"
            raise ShapeError(operation, rule, remedy=remedy)
        begin = f"tn.astype(init{path}, tn.{node.type.dtype})"
        if not isinstance(leaf, (Array, np.ndarray)):
            begin = f"tn.asarray({leaf!r}, dtype=tn.{node.type.dtype})"
        remedy = f"begin with {begin}, or return tn.astype(..., tn.{init_type.dtype})"
        raise DTypeError(operation, rule, remedy=remedy)


def type_of(leaf: Any) -> Type:
    """Return the Type of a leaf converted to an array."""
    return _native.node_of(leaf if isinstance(leaf, Array) else asarray(leaf)).type


def without_structure(x: Array) -> Array:
    """Return an array for the trace of a loop's step: later carries need not have the structure
    of the first one.
    """
    type_ = _native.node_of(x).type
    return _native.placeholder(type_.with_structure(0)) if type_.structure else x


def check_condition(
    operation: str, subject: str, structure: TreeDef, types: Sequence[Type]
) -> None:
    """Raise an error for a condition that is not a 0-d bool."""
    if structure.type is not None:
        rule = f"{subject} is {structure_text(structure)}, no 0-d array of bool"
        raise TypeError(message(operation, rule, remedy="give one comparison of two numbers"))
    (type_,) = types
    if type_.shape != ():
        rule = f"{subject} has shape {type_.shape}, and one truth value is wanted"
        raise ShapeError(operation, rule, remedy="fold it, with tn.any or tn.all")
    if type_.dtype != BOOL:
        rule = f"{subject} is {type_.dtype}, no bool"
        raise DTypeError(operation, rule, remedy="compare it, as in x != 0")


def check_same_results(
    true_function: Function,
    true_trace: TracedFunction,
    false_function: Function,
    false_trace: TracedFunction,
) -> None:
    """Raise an error where two branches do not return the same structure and Types."""
    true_label, false_label = (
        f"true_function ({name_of(true_function)})",
        f"false_function ({name_of(false_function)})",
    )
    if true_trace.structure != false_trace.structure:
        true_structure, false_structure = (
            structure_text(true_trace.structure),
            structure_text(false_trace.structure),
        )
        rule = f"{true_label} returned {true_structure}, {false_label} returned {false_structure}"
        remedy = "return the same containers from both"
        raise TypeError(message("tn.cond", rule, remedy=remedy))
    paths = true_trace.structure.paths()
    true_outputs, false_outputs = true_trace.subgraph.outputs, false_trace.subgraph.outputs
    for node, false_node, path in zip(true_outputs, false_outputs, paths, strict=True):
        a, b = node.type, false_node.type
        if (a.shape, a.dtype) == (b.shape, b.dtype):
            continue
        subject = f"result{path}" if path else "the result"
        rule = f"{subject} is {type_text(a)} of {true_label}, and {type_text(b)} of {false_label}"
        if a.shape != b.shape:
            remedy = "return one shape from both, as with tn.broadcast_to"
            raise ShapeError("tn.cond", rule, remedy=remedy)
        remedy = f"return one dtype from both, as in tn.astype(..., tn.{a.dtype})"
        raise DTypeError("tn.cond", rule, remedy=remedy)


__all__ = [
    "check_carry",
    "check_condition",
    "check_same_results",
    "checked_callable",
    "checked_length",
    "flatten_arrays",
    "structure_text",
]
