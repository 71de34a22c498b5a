"""Alias and dependence analysis: the safe loop orders of a kernel that reads its own target.

Takes the target and the reads of a map, StridedRegions of one shape. At each index the kernel
writes `target[index]` and needs the old value of every `read[index]`. Hands on a LoopOrder: for
each axis the direction in which its loop may run, or that no direction is safe; then
`plan_staging` gives the fewest bytes to stage. (Compilers test dependences in this way, one loop
at a time: D. Maydan, J. Hennessy, M. Lam, "Efficient and exact data dependence analysis", PLDI
1991, p. 1.)

>>> numbers = lambda address: StridedRegion(address, (9,), (8,), 8)
>>> print(safe_loop_order(numbers(8), [numbers(0)]))
backward: read 0 shares bytes with what lower indices of axis 0 write
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice, product

from tenfold.core.strided_overlap import (
    MAX_TRIES,
    OverlapEquation,
    OverlapVerdict,
    StridedRegion,
    overlap,
)

MAX_DIRECTIONS = 64
"""The most combinations of directions that are compared for a temporary."""

Hazards = dict[tuple[int, int], bool]
"""Of one read: (axis, 1) where it shares bytes with writes at lower indices of that axis,
(axis, -1) at higher ones; False where that was not decided within the limit of steps."""
NamedHazards = tuple[str, Hazards]

UNDECIDED_SUFFIX = " (not decided within the limit of steps, taken for granted)"


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
    """Some elements must be staged first."""


@dataclass(frozen=True, slots=True)
class LoopOrder:
    """The directions of loops that go through the axes in this order, outermost first."""

    axes: tuple[int, ...]
    directions: tuple[int, ...]
    """Of each axis, by its number: 1 up, -1 down, 0 either. With 0 its indices may run in parallel
    at fixed indices of the outer loops. Empty: no order is safe."""
    reason: str
    safe: bool = True

    @property
    def kind(self) -> LoopSafety:
        """The class of this order."""
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
    """Elements to stage: cells of a read, copied before, or results, stored afterwards."""

    read: int | None
    """The number of the read; None: the results for these cells of the target."""
    slices: tuple[slice, ...]
    """The smallest box around the shared cells. Along a broadcast axis (stride 0) one index stands
    for all."""
    bytes: int


@dataclass(frozen=True, slots=True)
class StagedCopy:
    """The elements to stage, and the loop order that is safe then."""

    parts: tuple[StagedPart, ...]
    order: LoopOrder


def safe_loop_order(
    target: StridedRegion,
    reads: Sequence[StridedRegion],
    *,
    axes: Sequence[int] | None = None,
    steps: int = MAX_TRIES,
) -> LoopOrder:
    """Find the directions of loops, `axes` outermost first, that read everything before its write.

    A packet reads its consecutive indices before it writes them. That is never less safe than one
    index after the other: it moves reads before writes, never after. But no index may be visited
    twice: a last packet that overlaps the one before reads what that wrote.

    >>> rows = lambda row: StridedRegion(80 * row, (8, 10), (80, 8), 8)
    >>> safe_loop_order(rows(1), [rows(0)]).directions
    (-1, 0)
    >>> safe_loop_order(rows(1), [rows(0), rows(2)]).kind.name
    'NONE'
    """
    loops = _loop_axes(target, axes)
    return _order_for(loops, _all_hazards(target, reads, loops, steps))


def _loop_axes(target: StridedRegion, axes: Sequence[int] | None) -> tuple[int, ...]:
    all_axes = tuple(range(len(target.shape)))
    assert axes is None or sorted(axes) == list(all_axes), "every axis has one loop"
    return all_axes if axes is None else tuple(axes)


def _order_for(axes: tuple[int, ...], hazards: Sequence[NamedHazards]) -> LoopOrder:
    """Choose the direction of each axis independently of the others.

    The outermost loop where the indices of a read and a write differ decides which comes first. So
    each loop is tested once, at fixed indices of the outer loops.
    """
    directions, reasons = [0] * len(axes), []
    for axis in axes:
        unsafe = _unsafe_directions(hazards, axis)
        if len(unsafe) == 2:
            return LoopOrder(axes, (), "; ".join(unsafe.values()), safe=False)
        for sign, cause in unsafe.items():
            directions[axis] = -sign
            reasons.append(cause)
    joined_reasons = "; ".join(reasons) or "nothing is read that another index writes"
    return LoopOrder(axes, tuple(directions), joined_reasons)


def _unsafe_directions(hazards: Sequence[NamedHazards], axis: int) -> dict[int, str]:
    """Return the unsafe directions of an axis, and the cause of each."""
    unsafe = {}
    for sign, side in ((1, "lower"), (-1, "higher")):
        for name, read_hazards in hazards:
            if (axis, sign) in read_hazards:
                reason = f"{name} shares bytes with what {side} indices of axis {axis} write"
                unsafe[sign] = reason + ("" if read_hazards[axis, sign] else UNDECIDED_SUFFIX)
                break
    return unsafe


def _all_hazards(
    target: StridedRegion, reads: Sequence[StridedRegion], axes: tuple[int, ...], steps: int
) -> list[NamedHazards]:
    """Return the hazards of every read, and of the target's own cells if they share bytes."""
    named_hazards: list[NamedHazards] = []
    disjoint = _cells_disjoint(target)
    for number, read in enumerate(reads):
        assert read.shape == target.shape, "a map reads at the indices that it writes"
        verdict = overlap(target, read, steps=steps).verdict
        harmless = verdict is OverlapVerdict.DISJOINT or (
            verdict is OverlapVerdict.SAME and disjoint
        )
        hazards = {} if harmless else _hazards(target, read, axes, steps)
        named_hazards.append((f"read {number}", hazards))
    # Where two indices write the same bytes the higher one must write last.
    target_hazards = {} if disjoint else _hazards(target, target, axes, steps, signs=(-1,))
    return [*named_hazards, ("the target itself", target_hazards)]


def _cells_disjoint(region: StridedRegion) -> bool:
    """Whether no two cells share bytes: each stride exceeds the extent of all smaller ones."""
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
    """Test each loop; stop at one where neither direction is safe."""
    hazards: Hazards = {}
    for level, axis in enumerate(axes):
        if target.shape[axis] > 1:
            for sign in signs:
                collision = _collides(target, read, axes, level, sign, steps)
                if collision is not False:
                    hazards[axis, sign] = collision is True
            if (axis, 1) in hazards and (axis, -1) in hazards:
                break
    return hazards


def _collides(
    target: StridedRegion,
    read: StridedRegion,
    axes: tuple[int, ...],
    level: int,
    sign: int,
    steps: int,
) -> bool | None:
    """Decide whether a write at i and a read at j share bytes. The indices i and j are equal on the
    axes before a level, j is beyond i on the axis of that level, and later axes are free.
    """
    equation = OverlapEquation(read.address - target.address + read.itemsize - 1)
    shape, write_strides, read_strides = target.shape, target.strides, read.strides
    for axis in axes[:level]:
        equation.add(write_strides[axis] - read_strides[axis], shape[axis] - 1)
    axis = axes[level]
    # The nearer to 0 of both is x, the other x + 1 + y, which is below the length of the axis.
    offset_coefficient = -read_strides[axis] if sign > 0 else write_strides[axis]
    equation.total -= offset_coefficient
    equation.add_pair(write_strides[axis] - read_strides[axis], offset_coefficient, shape[axis] - 2)
    for axis in axes[level + 1 :]:
        equation.add(write_strides[axis], shape[axis] - 1)
        equation.add(-read_strides[axis], shape[axis] - 1)
    return equation.solvable(target.itemsize + read.itemsize - 2, steps)


def independent(
    target: StridedRegion, reads: Sequence[StridedRegion], axis: int, *, steps: int = MAX_TRIES
) -> bool:
    """Whether different indices of an axis share no bytes, so that threads may split it.

    >>> rows = lambda row: StridedRegion(80 * row, (8, 10), (80, 8), 8)
    >>> independent(rows(1), [rows(0)], 0), independent(rows(1), [rows(0)], 1)
    (False, True)
    """
    axes = (axis, *(inner for inner in range(len(target.shape)) if inner != axis))
    if target.empty or target.shape[axis] == 1:
        return True
    for read in reads if _cells_disjoint(target) else (target, *reads):
        for sign in (1, -1):
            if _collides(target, read, axes, 0, sign, steps) is not False:
                return False
    return True


def exchange(target: StridedRegion, read: StridedRegion) -> tuple[int, int] | None:
    """Return the two axes if a read is the target with them exchanged; else None.

    >>> exchange(StridedRegion(0, (9, 9), (72, 8), 8), StridedRegion(0, (9, 9), (8, 72), 8))
    (0, 1)
    """
    pairs = zip(target.strides, read.strides, strict=True)
    differing_axes = [
        axis
        for axis, (target_stride, read_stride) in enumerate(pairs)
        if target_stride != read_stride
    ]
    if len(differing_axes) != 2 or not _cells_disjoint(target):
        return None
    first_axis, second_axis = differing_axes
    strides = list(target.strides)
    strides[first_axis], strides[second_axis] = strides[second_axis], strides[first_axis]
    swapped = StridedRegion(target.address, target.shape, tuple(strides), target.itemsize)
    return (
        (first_axis, second_axis)
        if target.shape[first_axis] == target.shape[second_axis] and swapped == read
        else None
    )


def plan_staging(
    target: StridedRegion,
    reads: Sequence[StridedRegion],
    *,
    axes: Sequence[int] | None = None,
    steps: int = MAX_TRIES,
) -> StagedCopy:
    """Find the fewest bytes to stage so that an order is safe.

    They are the cells that unsafe reads share with the target, or the results that those reads
    share. No parts: an order is safe without staging.

    >>> rows = lambda row: StridedRegion(80 * row, (8, 10), (80, 8), 8)
    >>> plan_staging(rows(1), [rows(0), rows(1), rows(2)]).parts
    (StagedPart(read=0, slices=(slice(1, 8, None), slice(0, 10, None)), bytes=560),)
    """
    loops = _loop_axes(target, axes)
    hazards = _all_hazards(target, reads, loops, steps)
    blocked = [axis for axis in loops if len(_unsafe_directions(hazards, axis)) == 2]
    if not blocked:
        return StagedCopy((), _order_for(loops, hazards))
    copies: dict[int, StagedPart] = {}
    choices: list[tuple[tuple[StagedPart, ...], list[int]]] = []
    for signs in islice(product((1, -1), repeat=len(blocked)), MAX_DIRECTIONS):
        unsafe = set(zip(blocked, signs, strict=True))
        unsafe_reads = [
            number
            for number, (_, read_hazards) in enumerate(hazards)
            if unsafe & read_hazards.keys()
        ]
        if len(reads) in unsafe_reads:
            continue  # staging does not help a target that overlaps itself
        for number in unsafe_reads:
            copies[number] = copies.get(number) or _shared_box(
                number, reads[number], [target], steps
            )
        choices.append((tuple(copies[number] for number in unsafe_reads), unsafe_reads))
        if not hazards[-1][1]:  # else the staged results would be stored in another order
            results = _shared_box(None, target, [reads[number] for number in unsafe_reads], steps)
            choices.append(((results,), unsafe_reads))
    parts, unsafe_reads = min(choices, key=lambda choice: sum(part.bytes for part in choice[0]))
    remaining_hazards = [
        read_name_and_hazards
        for number, read_name_and_hazards in enumerate(hazards)
        if number not in unsafe_reads
    ]
    return StagedCopy(parts, _order_for(loops, remaining_hazards))


def _shared_box(
    number: int | None, region: StridedRegion, others: Sequence[StridedRegion], steps: int
) -> StagedPart:
    """Return the box around all cells of a region that share bytes with others."""
    slices, count = [], region.itemsize
    for axis, (length, stride) in enumerate(zip(region.shape, region.strides, strict=True)):
        if stride == 0:
            slices.append(slice(0, 1))
            continue
        start = _count_disjoint(region, axis, others, steps, from_end=False)
        stop = length - _count_disjoint(region, axis, others, steps, from_end=True)
        slices.append(slice(start, stop))
        region = _sliced(region, axis, start, stop)
        count *= stop - start
    return StagedPart(number, tuple(slices), count)


def _count_disjoint(
    region: StridedRegion, axis: int, others: Sequence[StridedRegion], steps: int, *, from_end: bool
) -> int:
    """Return how many indices at one end of an axis share no byte; at least one index does."""
    length = region.shape[axis]
    disjoint, bound = 0, 1  # `disjoint` indices share no byte; `bound` do, after the loop
    while bound < length and _is_disjoint(region, axis, bound, others, steps, from_end):
        disjoint, bound = bound, bound * 2
    bound = min(bound, length)
    while bound - disjoint > 1:
        middle = (disjoint + bound) // 2
        if _is_disjoint(region, axis, middle, others, steps, from_end):
            disjoint = middle
        else:
            bound = middle
    return disjoint


def _is_disjoint(
    region: StridedRegion,
    axis: int,
    count: int,
    others: Sequence[StridedRegion],
    steps: int,
    from_end: bool,
) -> bool:
    """Whether `count` indices at one end of an axis share no byte with any of the others."""
    length = region.shape[axis]
    edge = _sliced(region, axis, length - count if from_end else 0, length if from_end else count)
    return all(overlap(edge, other, steps=steps).disjoint for other in others)


def _sliced(region: StridedRegion, axis: int, start: int, stop: int) -> StridedRegion:
    address = region.address + start * region.strides[axis]
    shape = (*region.shape[:axis], stop - start, *region.shape[axis + 1 :])
    return StridedRegion(address, shape, region.strides, region.itemsize)
