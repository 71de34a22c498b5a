"""Engine limits: parses the thread, byte and time arguments of `tn.Engine`.

Takes arguments of `tn.Engine`, returns numbers, or raises an error that names the argument.

>>> parse_bytes("2KiB"), positive_integer("threads", 3)
(2048, 3)
"""

from __future__ import annotations

import operator
import re
from typing import Any

from tenfold.errors import message

DECIMAL_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
MAX_BYTES = 1 << 62
BINARY_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def positive_integer(name: str, value: Any, maximum: int = 2**31 - 1) -> int:
    """Return an integer of at least 1. Raises TypeError for any other type."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(_type_error_text(name, value, f"whole number, from 1 to {maximum}"))
    if not 1 <= number <= maximum:
        raise ValueError(f"Engine: {name} is {number}, not from 1 to {maximum}")
    return number


def seconds(name: str, value: Any, maximum: float) -> float:
    """Return a number of seconds. Raises TypeError for any other type."""
    if isinstance(value, (str, bool)) or not hasattr(type(value), "__float__"):
        raise TypeError(_type_error_text(name, value, "number of seconds, such as 50e-6"))
    if not 0 <= value <= maximum:
        rule = f"{name} is {value} seconds, not from 0 to {maximum:g}"
        raise ValueError(message("Engine", rule, remedy=f"{value} microseconds are {value}e-6"))
    return float(value)


def parse_bytes(size: Any) -> int:
    """Return a size in bytes. Raises TypeError or ValueError for an invalid size."""
    remedy = 'write a number, or text such as "2GiB"; without a limit leave it out'
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?\s*", size, re.ASCII)
        amount = float(match[1]) * (DECIMAL_UNITS | BINARY_UNITS)[match[2] or ""] if match else 0
        number = int(min(amount, MAX_BYTES + 1))
    else:
        try:
            number = operator.index(size)
        except TypeError:
            raise TypeError(message("Engine", _size_rule(size), remedy=remedy)) from None
    if not 0 < number <= MAX_BYTES:
        raise ValueError(message("Engine", _size_rule(size), remedy=remedy))
    return number


def _size_rule(size: object) -> str:
    size_text = (
        f"of {size.bit_length()} bits" if isinstance(size, int) and abs(size) >> 99 else repr(size)
    )
    return f"memory_limit {size_text[:99]} is not a size in bytes, from 1 to 2**62"


def _type_error_text(name: str, value: object, expected: str) -> str:
    return message("Engine", f"{name} is {value!r}", remedy=f"give a {expected}")
