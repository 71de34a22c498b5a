"""Sizes: numbers of bytes as people write them.

>>> bytes_from("2KiB"), bytes_from(100), bytes_from(None)
(2048, 100, 0)
"""

from __future__ import annotations

import re

from tenfold.errors import message

UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
BINARY_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def bytes_from(size: int | str | None) -> int:
    """Return a size in bytes; 0 for None. Raise ValueError for what is none."""
    if size is None:
        return 0
    if isinstance(size, int) and size > 0:
        return int(size)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?\s*", str(size), re.ASCII)
    if not isinstance(size, str) or not found or not float(found[1]):
        rule = f"memory_limit {size!r} is no size in bytes"
        raise ValueError(message("Engine", rule, remedy='write a number, or text such as "2GiB"'))
    return int(float(found[1]) * (UNITS | BINARY_UNITS)[found[2] or ""])
