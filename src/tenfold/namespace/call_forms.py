"""Call hints: the remedy that the TypeError of a wrong call adds to Python's message.

Takes an operation and the arguments that do not fit its signature, hands on the error: how the
argument is called here, or how the call is written.

>>> from tenfold.core.op import OPS
>>> print(hint(OPS["clip"], (None,), {"a_min": 1}))
write min=
>>> print(hint(OPS["reshape"], (None, 2, -1), {}))
give the shape as one tuple, as in (2, -1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any

from tenfold.core.op import Operation
from tenfold.interop.numpy_dispatch import public_name

RENAMED_PARAMETERS = {"a_min": "min", "a_max": "max", "newshape": "shape"}
"""NumPy's parameter names and those of the standard."""

SUBSTITUTES = {
    "out": "assign the result instead, as in y = {call}(x)",
    "where": "choose the elements first with tn.where",
    "dtype": "convert first with tn.astype",
    "initial": "combine the result with the initial value yourself",
}
"""Remedies by NumPy's name of an argument that an operation does not have."""

# What other libraries call an argument. Table.
NAMES = {**RENAMED_PARAMETERS, "dim": "axis", "keepdim": "keepdims", "dims": "axis"}

# What has no argument at all. Table.
CALL_HINTS = {"round": "for n decimals write tn.round(x * 10**n) / 10**n"}

TUPLE_ARGUMENTS = ("shape", "axes", "repetitions")
"""Arguments that are one tuple, where NumPy's methods take its elements one by one."""


def fits(operation: Operation[...], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the arguments are such as the operation takes: then the error is another one."""
    try:
        operation.public_signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def wrong_call(
    operation: Operation[...], args: Sequence[Any], kwargs: Mapping[str, Any], error: TypeError
) -> TypeError:
    """Return the error of a call, to be raised: what it said, and what to write."""
    text = str(error)
    remedy = (
        "" if ";" in text and operation.name not in CALL_HINTS else hint(operation, args, kwargs)
    )
    return TypeError("; ".join(filter(None, (text, remedy))))


def hint(operation: Operation[...], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return what to write instead of a call that does not fit; "" where nothing is known."""
    parameters = operation.public_signature.parameters
    unknown = [name for name in kwargs if name not in parameters]
    if unknown:
        return _unknown(operation, unknown[0])
    positional = [p for p in parameters.values() if p.kind <= Parameter.POSITIONAL_OR_KEYWORD]
    if len(args) <= len(positional):
        return ""
    if operation.name in CALL_HINTS:
        return CALL_HINTS[operation.name]
    last = len(positional) - 1
    if positional[last].name in TUPLE_ARGUMENTS and all(
        type(argument) is int for argument in args[last:]
    ):
        return f"give the {positional[last].name} as one tuple, as in {tuple(args[last:])}"
    keyword_names = _keyword_only(operation)
    return f"by name alone: {', '.join(keyword_names)}" if keyword_names else ""


def _keyword_only(operation: Operation[...]) -> list[str]:
    """The arguments that are given by name alone."""
    parameters = operation.public_signature.parameters.values()
    return [f"{p.name}=" for p in parameters if p.kind is Parameter.KEYWORD_ONLY]


def _unknown(operation: Operation[...], name: str) -> str:
    """What to write for an argument of a name that the operation has not."""
    parameters = operation.public_signature.parameters
    tenfold_name = NAMES.get(name, "")
    if tenfold_name in parameters:
        return f"write {tenfold_name}="
    import difflib  # imported only for errors

    matches = difflib.get_close_matches(name, parameters, n=1, cutoff=0.7)
    if matches:
        return f"did you mean {matches[0]}=?"
    if name in SUBSTITUTES:
        return SUBSTITUTES[name].format(call=public_name(operation))
    keyword_text = ", ".join(_keyword_only(operation))
    return f"it takes {keyword_text}" if keyword_text else ""
