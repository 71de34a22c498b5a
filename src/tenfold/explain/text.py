"""Text: numbers in words, and of a long list of lines the beginning and the end.

Takes counts and positions, hands on what is shown of them.

>>> counted(1, "kernel"), counted(2, "kernel")
('1 kernel', '2 kernels')
>>> in_time(2_500)
'2.5 us'
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 1000
"""Lines of one stage that are shown; of a longer one the beginning and the end are."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def ends(positions: Sequence[int]) -> Sequence[int]:
    """Return the positions whose lines are shown, so that a million lines are never made."""
    if len(positions) <= LONGEST:
        return positions
    return [*positions[: LONGEST // 2], *positions[-(LONGEST // 2) :]]


def with_gap(lines: list[str], count: int, noun: str) -> list[str]:
    """Say in the middle of the lines shown how many of `count` are not."""
    if len(lines) == count:
        return lines
    half = len(lines) // 2
    return [*lines[:half], f"  ... {counted(count - len(lines), f'more {noun}')} ...", *lines[half:]]


def shortened(lines: list[str]) -> list[str]:
    """Return the beginning and the end of lines that are there already."""
    shown = [lines[i] for i in ends(range(len(lines)))]
    return with_gap(shown, len(lines), "line")


def in_time(nanoseconds: float) -> str:
    """Return a time in microseconds, or in milliseconds from ten of them on."""
    if nanoseconds >= 1e7:
        return f"{nanoseconds / 1e6:.1f} ms"
    return f"{nanoseconds / 1e3:.1f} us"
