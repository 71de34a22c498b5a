"""Alias and dependence analysis: the safe loop orders of a kernel that reads its own target.

Takes the target and the reads of a map, StridedRegions of one shape. At each index the kernel
writes `target[index]` and needs of every read the value that `read[index]` had before. Hands on a
LoopOrder: for each axis the direction in which its loop may run, or that none will do; then
`temporary` gives the least that must be staged. (Compilers test dependences in this way, one loop
at a time: D. Maydan, J. Hennessy, M. Lam, "Efficient and exact data dependence analysis", PLDI
1991, p. 1.)

>>> numbers = lambda address: StridedRegion(address, (9,), (8,), 8)
>>> print(order(numbers(8), [numbers(0)]))
backward: read 0 shares bytes with what lower indices of axis 0 write
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice, product

from tenfold.schedule.strided_overlap import (
    STEPS,
    OverlapEquation,
    OverlapVerdict,
    StridedRegion,
    overlap,
)

CHOICES = 64
"""The most choices of directions that are weighed for a temporary."""

Hazards = dict[tuple[int, int], bool]
"""Of one read: (axis, 1): it shares bytes with what lower indices of that axis write, (axis, -1):
higher ones; False where that was not decided within the limit of steps."""
Named = tuple[str, Hazards]

UNDECIDED = " (not decided within the limit of steps, taken for granted)"


class LoopSafety(Enum):
    """Which orders are safe."""

    ANY = "any order"
    """All: indices may go in parallel, in tiles, in any order of axes."""
    FORWARD = "forward"
    """Every loop may count up."""
    BACKWARD = "backward"
    """Some loops must count down, none must count up."""
    MIXED = "mixed"
    """Some loops must count down and some up."""
    NONE = "no order"
    """Something must be set aside first."""


@dataclass(frozen=True, slots=True)
class LoopOrder:
    """The directions of loops that go through the axes in this order, outermost first."""

    axes: tuple[int, ...]
    directions: tuple[int, ...]
    """Of each axis, by its number: 1 up, -1 down, 0 either, and then, while the loops around it
    stand still, its indices may go in parallel. Empty: no order is safe."""
    reason: str
    safe: bool = True

    @property
    def kind(self) -> LoopSafety:
        """What it is called."""
        if not self.safe:
            return LoopSafety.NONE
        if not any(self.directions):
            return LoopSafety.ANY
        if -1 not in self.directions:
            return LoopSafety.FORWARD
        return LoopSafety.MIXED if 1 in self.directions else LoopSafety.BACKWARD

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StagedPart:
    """What is to be set aside: cells of a read, copied before, or results, stored afterwards."""

    read: int | None
    """The number of the read; None: the results for these cells of the target."""
    slices: tuple[slice, ...]
    """Which cells: the smallest box around those that are shared. Of an axis along which a read is
    repeated (stride 0) one index stands for all."""
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedCopy:
    """What is to be set aside, and the order that is safe then."""

    parts: tuple[StagedPart, ...]
    order: LoopOrder


def order(
    target: StridedRegion,
    reads: Sequence[StridedRegion],
    *,
    axes: Sequence[int] | None = None,
    steps: int = STEPS,
) -> LoopOrder:
    """Find the directions of loops, `axes` outermost first, that read everything before its write.

    A packet reads its consecutive indices before it writes them. That is never less safe than one
    index after the other: some reads come before writes that they followed, none after. But no
    index may be visited twice: a last packet that overlaps the one before reads what that wrote.

    >>> rows = lambda row: StridedRegion(80 * row, (8, 10), (80, 8), 8)
    >>> order(rows(1), [rows(0)]).directions, order(rows(1), [rows(0), rows(2)]).kind.name
    ((-1, 0), 'NONE')
    """
    loops = _loops(target, axes)
    return _order(loops, _all_hazards(target, reads, loops, steps))


def _loops(target: StridedRegion, axes: Sequence[int] | None) -> tuple[int, ...]:
    every = tuple(range(len(target.shape)))
    assert axes is None or sorted(axes) == list(every), "every axis has one loop"
    return every if axes is None else tuple(axes)


def _order(axes: tuple[int, ...], hazards: Sequence[Named]) -> LoopOrder:
    """Choose the direction of each axis by itself: whether the others turn changes nothing there.

    A read comes after the write of its bytes if, at the outermost loop where their indices differ,
    it does. So the question is asked once for each loop, with those around it standing still.
    """
    directions, said = [0] * len(axes), []
    for axis in axes:
        blamed = _blamed(hazards, axis)
        if len(blamed) == 2:
            return LoopOrder(axes, (), "; ".join(blamed.values()), safe=False)
        for sign, words in blamed.items():
            directions[axis] = -sign
            said.append(words)
    reason = "; ".join(said) or "nothing is read that another index writes"
    return LoopOrder(axes, tuple(directions), reason)


def _blamed(hazards: Sequence[Named], axis: int) -> dict[int, str]:
    """Return which directions of an axis are unsafe, and because of what."""
    blamed = {}
    for sign, side in ((1, "lower"), (-1, "higher")):
        for name, each in hazards:
            if (axis, sign) in each:
                words = f"{name} shares bytes with what {side} indices of axis {axis} write"
                blamed[sign] = words + ("" if each[axis, sign] else UNDECIDED)
                break
    return blamed


def _all_hazards(
    target: StridedRegion, reads: Sequence[StridedRegion], axes: tuple[int, ...], steps: int
) -> list[Named]:
    """Return the hazards of every read, and of the target's own cells if they share bytes."""
    found: list[Named] = []
    apart = _apart(target)
    for number, read in enumerate(reads):
        assert read.shape == target.shape, "a map reads at the indices that it writes"
        verdict = overlap(target, read, steps=steps).verdict
        harmless = verdict is OverlapVerdict.DISJOINT or (verdict is OverlapVerdict.SAME and apart)
        hazards = {} if harmless else _hazards(target, read, axes, steps)
        found.append((f"read {number}", hazards))
    # Where two indices write the same bytes the higher one has the last word.
    own = {} if apart else _hazards(target, target, axes, steps, signs=(-1,))
    return [*found, ("the target itself", own)]


def _apart(region: StridedRegion) -> bool:
    """Whether no two cells share bytes because each axis steps over all that inner ones reach."""
    extent = region.itemsize
    steps = [(abs(s), n) for n, s in zip(region.shape, region.strides, strict=True) if n > 1]
    for stride, length in sorted(steps):
        if stride < extent and not region.empty:
            return False
        extent += stride * (length - 1)
    return True


def _hazards(
    target: StridedRegion,
    read: StridedRegion,
    axes: tuple[int, ...],
    steps: int,
    signs: tuple[int, ...] = (1, -1),
) -> Hazards:
    """Ask of every loop; once neither direction of one will do the others do not matter."""
    found: Hazards = {}
    for level, axis in enumerate(axes):
        if target.shape[axis] > 1:
            for sign in signs:
                answer = _meet(target, read, axes, level, sign, steps)
                if answer is not False:
                    found[axis, sign] = answer is True
            if (axis, 1) in found and (axis, -1) in found:
                break
    return found


def _meet(
    target: StridedRegion,
    read: StridedRegion,
    axes: tuple[int, ...],
    level: int,
    sign: int,
    steps: int,
) -> bool | None:
    """Decide whether a write at i and a read at j share bytes, where i and j are equal on the axes
    before a level, j is beyond i on the axis of that level, and all is free on later ones.
    """
    equation = OverlapEquation(read.address - target.address + read.itemsize - 1)
    shape, written, wanted = target.shape, target.strides, read.strides
    for axis in axes[:level]:
        equation.add(written[axis] - wanted[axis], shape[axis] - 1)
    axis = axes[level]
    # The nearer to 0 of both is x, the other x + 1 + y, which is below the length of the axis.
    beyond = -wanted[axis] if sign > 0 else written[axis]
    equation.total -= beyond
    equation.add_pair(written[axis] - wanted[axis], beyond, shape[axis] - 2)
    for axis in axes[level + 1 :]:
        equation.add(written[axis], shape[axis] - 1)
        equation.add(-wanted[axis], shape[axis] - 1)
    return equation.solvable(target.itemsize + read.itemsize - 2, steps)


def independent(
    target: StridedRegion, reads: Sequence[StridedRegion], axis: int, *, steps: int = STEPS
) -> bool:
    """Whether different indices of an axis share no bytes: threads may divide it among them.

    >>> rows = lambda row: StridedRegion(80 * row, (8, 10), (80, 8), 8)
    >>> independent(rows(1), [rows(0)], 0), independent(rows(1), [rows(0)], 1)
    (False, True)
    """
    axes = (axis, *(other for other in range(len(target.shape)) if other != axis))
    if target.empty or target.shape[axis] == 1:
        return True
    for read in reads if _apart(target) else (target, *reads):
        for sign in (1, -1):
            if _meet(target, read, axes, 0, sign, steps) is not False:
                return False
    return True


def exchange(target: StridedRegion, read: StridedRegion) -> tuple[int, int] | None:
    """Return the two axes if a read is the target with them exchanged: pairs of cells may swap.

    >>> exchange(StridedRegion(0, (9, 9), (72, 8), 8), StridedRegion(0, (9, 9), (8, 72), 8))
    (0, 1)
    """
    pairs = zip(target.strides, read.strides, strict=True)
    moved = [axis for axis, (stride, other) in enumerate(pairs) if stride != other]
    if len(moved) != 2 or not _apart(target):
        return None
    one, two = moved
    strides = list(target.strides)
    strides[one], strides[two] = strides[two], strides[one]
    swapped = StridedRegion(target.address, target.shape, tuple(strides), target.itemsize)
    return (one, two) if target.shape[one] == target.shape[two] and swapped == read else None


def temporary(
    target: StridedRegion,
    reads: Sequence[StridedRegion],
    *,
    axes: Sequence[int] | None = None,
    steps: int = STEPS,
) -> StagedCopy:
    """Find what is to be set aside so that an order is safe: the fewest bytes.

    Either of each read that no direction suits the cells that it shares with the target, or once
    the results that those reads share. No parts: an order is safe as it is.

    >>> rows = lambda row: StridedRegion(80 * row, (8, 10), (80, 8), 8)
    >>> temporary(rows(1), [rows(0), rows(1), rows(2)]).parts
    (StagedPart(read=0, slices=(slice(1, 8, None), slice(0, 10, None)), bytes=560),)
    """
    loops = _loops(target, axes)
    hazards = _all_hazards(target, reads, loops, steps)
    blocked = [axis for axis in loops if len(_blamed(hazards, axis)) == 2]
    if not blocked:
        return StagedCopy((), _order(loops, hazards))
    copies: dict[int, StagedPart] = {}
    chosen: list[tuple[tuple[StagedPart, ...], list[int]]] = []
    for signs in islice(product((1, -1), repeat=len(blocked)), CHOICES):
        wrong = set(zip(blocked, signs, strict=True))
        harmed = [number for number, (_, each) in enumerate(hazards) if wrong & each.keys()]
        if len(reads) in harmed:
            continue  # nothing that is set aside spares a target that meets itself
        for number in harmed:
            copies[number] = copies.get(number) or _part(number, reads[number], [target], steps)
        chosen.append((tuple(copies[number] for number in harmed), harmed))
        if not hazards[-1][1]:  # else what is stored last would not be what has the last word
            results = _part(None, target, [reads[number] for number in harmed], steps)
            chosen.append(((results,), harmed))
    parts, harmed = min(chosen, key=lambda choice: sum(part.bytes for part in choice[0]))
    left = [named for number, named in enumerate(hazards) if number not in harmed]
    return StagedCopy(parts, _order(loops, left))


def _part(
    number: int | None, region: StridedRegion, others: Sequence[StridedRegion], steps: int
) -> StagedPart:
    """Return the box around all cells of a region that share bytes with others."""
    slices, count = [], region.itemsize
    for axis, (length, stride) in enumerate(zip(region.shape, region.strides, strict=True)):
        if stride == 0:
            slices.append(slice(0, 1))
            continue
        first = _untouched(region, axis, others, steps, from_end=False)
        last = length - _untouched(region, axis, others, steps, from_end=True)
        slices.append(slice(first, last))
        region = _cut(region, axis, first, last)
        count *= last - first
    return StagedPart(number, tuple(slices), count)


def _untouched(
    region: StridedRegion, axis: int, others: Sequence[StridedRegion], steps: int, *, from_end: bool
) -> int:
    """Return how many indices at one end of an axis share nothing; that some do is known."""
    length = region.shape[axis]
    free, last = 0, 1  # so many do not; so many do, once the loop is left
    while last < length and _free(region, axis, last, others, steps, from_end):
        free, last = last, last * 2
    last = min(last, length)
    while last - free > 1:
        middle = (free + last) // 2
        if _free(region, axis, middle, others, steps, from_end):
            free = middle
        else:
            last = middle
    return free


def _free(
    region: StridedRegion,
    axis: int,
    count: int,
    others: Sequence[StridedRegion],
    steps: int,
    from_end: bool,
) -> bool:
    """Whether so many indices at one end of an axis share nothing with any of the others."""
    length = region.shape[axis]
    end = _cut(region, axis, length - count if from_end else 0, length if from_end else count)
    return all(overlap(end, other, steps=steps).disjoint for other in others)


def _cut(region: StridedRegion, axis: int, first: int, last: int) -> StridedRegion:
    address = region.address + first * region.strides[axis]
    shape = (*region.shape[:axis], last - first, *region.shape[axis + 1 :])
    return StridedRegion(address, shape, region.strides, region.itemsize)
