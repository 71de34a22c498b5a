"""Slice composition: composes slices axis by axis, and moves them through broadcasts and joins.

Input and output: picks (`core/shape_rules.py`), for each axis one position or (start, length,
step).

>>> compose_slices(((4, 3, -1),), (), ((1, 2, 1),), ())
(((3, 2, -1),), ())
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.shape_rules import Pick, Shape

Picks = tuple[Pick, ...]


def compose_slices(
    first: Picks, first_new_axes: tuple[int, ...], second: Picks, second_new_axes: tuple[int, ...]
) -> tuple[Picks, tuple[int, ...]] | None:
    """Compose two indexings; None if the second empties an axis that the first inserts."""
    axes: list[Pick | None] = [pick for pick in first if not isinstance(pick, int)]
    for position in first_new_axes:
        axes.insert(position, None)
    composed: list[Pick] = []
    inserted_axes: list[bool] = []  # for each remaining axis: whether an indexing inserts it
    for axis, pick in zip(axes, second, strict=True):
        if axis is None and not isinstance(pick, int) and pick[1] == 0:
            return None
        if not isinstance(pick, int):
            inserted_axes.append(axis is None)
        if axis is not None:
            composed.append(compose_pick(axis, pick))
    for position in second_new_axes:
        inserted_axes.insert(position, True)
    picks = iter(composed)
    merged = tuple(pick if isinstance(pick, int) else next(picks) for pick in first)
    return merged, tuple(i for i, inserted in enumerate(inserted_axes) if inserted)


def compose_pick(first: Pick, second: Pick) -> Pick:
    """Compose two picks of an axis: `second` selects from the positions of `first`."""
    assert not isinstance(first, int), "an int removes its axis"
    start, _, step = first
    if isinstance(second, int):
        return start + second * step
    return canonical_pick(start + second[0] * step, second[1], step * second[2])


def canonical_pick(start: int, length: int, step: int) -> Pick:
    """Return the canonical pick of these positions: equal picks have one form.

    >>> canonical_pick(4, 1, -3), canonical_pick(7, 0, 2)
    ((4, 1, 1), (0, 0, 1))
    """
    if length < 2:
        return (start, 1, 1) if length else (0, 0, 1)
    return start, length, step


def operand_picks(shape: Shape, result: Shape, picks: Picks) -> Picks:
    """Return the picks for an operand of `shape` that broadcasts to the last axes of `result`."""
    missing = len(result) - len(shape)
    return tuple(
        pick if length == result[missing + axis] else broadcast_pick(pick)
        for axis, (length, pick) in enumerate(zip(shape, picks[missing:], strict=True))
    )


def broadcast_pick(pick: Pick) -> Pick:
    """Return the pick of a broadcast axis: its one element, as an axis if `pick` has one."""
    return 0 if isinstance(pick, int) else (0, 1, 1)


def remaining_axes(picks: Sequence[Pick]) -> list[int]:
    """Return the axes that remain after picks, in order."""
    return [axis for axis, pick in enumerate(picks) if not isinstance(pick, int)]


def overlap(pick: Pick, start: int, length: int) -> tuple[int, int]:
    """Return the range [first, last) of a pick inside positions [start, start + length).

    >>> overlap((1, 4, 2), 3, 4), overlap((0, 0, 1), 2, 3)
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
