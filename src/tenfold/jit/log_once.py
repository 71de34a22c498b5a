"""Logging: writes lines about the disk cache to the logger "tenfold", optionally only once.

Takes a sentence. By default Python writes warnings to stderr. `logging` takes milliseconds to
import and is imported at the first line.

>>> log_warning("the cache is full", once=True, expected=True)
"""

from __future__ import annotations

# Lines that were logged once; adding is atomic under the GIL.
_logged: set[str] = set()


def log_warning(text: str, *, once: bool = False, expected: bool = False) -> None:
    """Log a line: a warning, or information if `expected`; `once`: once in this process."""
    if once and text in _logged:
        return
    _logged.add(text) if once else None
    import logging

    logging.getLogger("tenfold").log(logging.INFO if expected else logging.WARNING, "%s", text)
