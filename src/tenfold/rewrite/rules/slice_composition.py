"""Slice composition: composes the slices of each axis, and carries them through other movements.

Takes and hands on picks (`core/shape_rules.py`): for each axis one position, or (start, length,
step).

>>> composed(((4, 3, -1),), (), ((1, 2, 1),), ())
(((3, 2, -1),), ())
"""

from __future__ import annotations

from collections.abc import Sequence

from tenfold.core.shape_rules import Pick, Shape

Picks = tuple[Pick, ...]


def compose_slices(
    first: Picks, first_new_axes: tuple[int, ...], second: Picks, second_new_axes: tuple[int, ...]
) -> tuple[Picks, tuple[int, ...]] | None:
    """Compose two indexings; None when the second empties an axis that the first put in."""
    axes: list[Pick | None] = [pick for pick in first if not isinstance(pick, int)]
    for position in first_new_axes:
        axes.insert(position, None)
    composed: list[Pick] = []
    inserted_axes: list[
        bool
    ] = []  # for each axis that is left: whether the first indexing put it in
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
    """Return what `second` takes of the positions that `first` took of an axis."""
    assert not isinstance(first, int), "an axis that an int took is not there any more"
    start, _, step = first
    if isinstance(second, int):
        return start + second * step
    return canonical_pick(start + second[0] * step, second[1], step * second[2])


def canonical_pick(start: int, length: int, step: int) -> Pick:
    """Return the pick of these positions in the one form that equal picks have.

    >>> normal(4, 1, -3), normal(7, 0, 2)
    ((4, 1, 1), (0, 0, 1))
    """
    if length < 2:
        return (start, 1, 1) if length else (0, 0, 1)
    return start, length, step


def operand_picks(shape: Shape, result: Shape, picks: Picks) -> Picks:
    """Return the picks for an input of `shape` that was broadcast to the last axes of `result`."""
    missing = len(result) - len(shape)
    return tuple(
        pick if length == result[missing + axis] else broadcast_pick(pick)
        for axis, (length, pick) in enumerate(zip(shape, picks[missing:], strict=True))
    )


def broadcast_pick(pick: Pick) -> Pick:
    """Return the pick of a broadcast axis: its one element, kept if the result's axis is kept."""
    return 0 if isinstance(pick, int) else (0, 1, 1)


def remaining_axes(picks: Sequence[Pick]) -> list[int]:
    """Return the axes that picks leave, in order."""
    return [axis for axis, pick in enumerate(picks) if not isinstance(pick, int)]


def overlap(pick: Pick, start: int, length: int) -> tuple[int, int]:
    """Return which places of a pick, [first, last), lie at positions from `start` on, `length` of
    them.

    >>> within((1, 4, 2), 3, 4), within((0, 0, 1), 2, 3)
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
    """Return the places [first, last) of a pick, in positions counted from `start`."""
    if isinstance(pick, int):
        return pick - start
    return canonical_pick(pick[0] + first * pick[2] - start, last - first, pick[2])
