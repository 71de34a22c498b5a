"""Picks: moves a slice, axis by axis, through joins and padding.

Input and output: picks (`core/shape_rules.py`), for each axis one position or (start, length,
step).

>>> shift_pick((1, 4, 2), 1, 3, 3)
(0, 2, 2)
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.shape_rules import Pick

Picks = tuple[Pick, ...]


def canonical_pick(start: int, length: int, step: int) -> Pick:
    """Return the canonical pick of these positions: equal picks have one form.

    >>> canonical_pick(4, 1, -3), canonical_pick(7, 0, 2)
    ((4, 1, 1), (0, 0, 1))
    """
    if length < 2:
        return (start, 1, 1) if length else (0, 0, 1)
    return start, length, step


def remaining_axes(picks: Sequence[Pick]) -> list[int]:
    """Return the axes that remain after picks, in order."""
    return [axis for axis, pick in enumerate(picks) if not isinstance(pick, int)]


def intersection(pick: Pick, start: int, length: int) -> tuple[int, int]:
    """Return the range [first, last) of a pick inside positions [start, start + length).

    >>> intersection((1, 4, 2), 3, 4), intersection((0, 0, 1), 2, 3)
    ((1, 3), (0, 0))
    """
    begin, count, step = (pick, 1, 1) if isinstance(pick, int) else pick
    first_offset, last_offset = start - begin, start + length - 1 - begin
    if step < 0:
        first_offset, last_offset, step = -last_offset, -first_offset, -step
    first = min(max(0, -(-first_offset // step)), count)
    last = min(count, last_offset // step + 1)
    return first, max(first, last)


def shift_pick(pick: Pick, first: int, last: int, start: int) -> Pick:
    """Return the range [first, last) of a pick, relative to `start`."""
    if isinstance(pick, int):
        return pick - start
    return canonical_pick(pick[0] + first * pick[2] - start, last - first, pick[2])
