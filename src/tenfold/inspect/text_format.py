"""Text formatting: numbers with units, and long lists shortened to their beginning and end.

Takes counts and positions, hands on their text.

>>> count_text(1, "kernel"), count_text(0, "temporary"), in_bytes(2000)
('1 kernel', '0 temporaries', '2,000 bytes')
>>> in_time(2_500)
'2.5 us'
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_STEP_NAMES = 12
"""The most operations of one step that are named."""
MAX_LINES = 1000
"""The most lines of one stage; of longer ones the beginning and the end are shown."""

PLURALS = {"temporary": "temporaries", "launch": "launches"}


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun if count == 1 else PLURALS.get(noun, f'{noun}s')}"


def in_bytes(count: int) -> str:
    """Return a number of bytes, in groups of three digits."""
    return "1 byte" if count == 1 else f"{count:,} bytes"


def ends(positions: Sequence[int]) -> Sequence[int]:
    """Return the positions whose lines are shown, so that a million lines are never built."""
    if len(positions) <= MAX_LINES:
        return positions
    return [*positions[: MAX_LINES // 2], *positions[-(MAX_LINES // 2) :]]


def with_gap(lines: list[str], count: int, noun: str) -> list[str]:
    """Insert in the middle of the lines how many of `count` are omitted."""
    if len(lines) == count:
        return lines
    half = len(lines) // 2
    return [
        *lines[:half],
        f"  ... {count_text(count - len(lines), f'more {noun}')} ...",
        *lines[half:],
    ]


def shortened(lines: list[str]) -> list[str]:
    """Return the beginning and the end of the lines."""
    visible = [lines[i] for i in ends(range(len(lines)))]
    return with_gap(visible, len(lines), "line")


def operations(names: Sequence[str], joint: str) -> str:
    """Return the names of operations, joined; of many the first ones and the count.

    >>> operations(["add"] * 20, "+")
    'add+add+add+add+add+add+add+add+add+add+add+add+... (20 operations)'
    """
    if len(names) <= MAX_STEP_NAMES:
        return joint.join(names)
    return f"{joint.join([*names[:MAX_STEP_NAMES], '...'])} ({len(names)} operations)"


def in_time(nanoseconds: float) -> str:
    """Return a time in microseconds, or in milliseconds from 1 ms."""
    if nanoseconds >= 1e6:
        return f"{nanoseconds / 1e6:.2f} ms"
    return f"{nanoseconds / 1e3:.1f} us"
