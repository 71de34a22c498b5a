"""Engine limits: parses the thread, byte and time arguments of `tn.Engine`.

Takes arguments of `tn.Engine`, hands on numbers, or an error that names the argument.

>>> bytes_from("2KiB"), whole("threads", 3)
(2048, 3)
"""

from __future__ import annotations

import operator
import re
from typing import Any

from tenfold.errors import message

UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
MAX_BYTES = 1 << 62
BINARY_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def positive_integer(name: str, value: Any, most: int = 2**31 - 1) -> int:
    """Return a whole number from 1 on; raise TypeError for what is none."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(_type_error_text(name, value, f"whole number, from 1 to {most}"))
    if not 1 <= number <= most:
        raise ValueError(f"Engine: {name} is {number}, not from 1 to {most}")
    return number


def seconds(name: str, value: Any, most: float) -> float:
    """Return a number of seconds; raise TypeError for what is none."""
    if isinstance(value, (str, bool)) or not hasattr(type(value), "__float__"):
        raise TypeError(_type_error_text(name, value, "number of seconds, such as 50e-6"))
    if not 0 <= value <= most:
        raise ValueError(f"Engine: {name} is {value} seconds, not from 0 to {most:g}")
    return float(value)


def parse_bytes(size: Any) -> int:
    """Return a size in bytes. Raise TypeError or ValueError for what is none."""
    remedy = 'write a number, or text such as "2GiB"; without a limit leave it out'
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?\s*", size, re.ASCII)
        amount = float(found[1]) * (UNITS | BINARY_UNITS)[found[2] or ""] if found else 0
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
    shown = (
        f"of {size.bit_length()} bits" if isinstance(size, int) and abs(size) >> 99 else repr(size)
    )
    return f"memory_limit {shown[:99]} is not a size in bytes, from 1 to 2**62"


def _type_error_text(name: str, value: object, what: str) -> str:
    return message("Engine", f"{name} is {value!r}", remedy=f"give a {what}")
