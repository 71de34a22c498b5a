"""Logging: lines about the disk cache in the logger "tenfold", at most once where asked.

Takes a sentence, hands on nothing. Python writes warnings to stderr where a program has not said
otherwise. `logging` costs milliseconds and is imported when there is something to say.

>>> complain("the cache is full", once=True, expected=True)
"""

from __future__ import annotations

# What has been said once and for all; adding is whole under the GIL.
_said: set[str] = set()


def complain(text: str, *, once: bool = False, expected: bool = False) -> None:
    """Write a line: a warning, or information where nothing is wrong; `once`: in this process."""
    if once and text in _said:
        return
    _said.add(text) if once else None
    import logging

    logging.getLogger("tenfold").log(logging.INFO if expected else logging.WARNING, "%s", text)
