"""Overlap and safe orders of loops, against all pairs of cells and against loops that run."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tenfold.core.strided_overlap import OverlapVerdict, StridedRegion, overlap
from tenfold.schedule.dependence import (
    LoopOrder,
    LoopSafety,
    exchange,
    independent,
    plan_staging,
    safe_loop_order,
)

LONGEST = (1, 12, 6, 4)
"""Of random regions of each rank: the longest axis."""
STRIDES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, -1, -2, -3, -4, -8)
MEMORY = 2000
"""Bytes that random regions lie in; they begin around the middle."""


def region_of(x: np.ndarray) -> StridedRegion:
    return StridedRegion(x.__array_interface__["data"][0], x.shape, x.strides, x.itemsize)


def random_shape(chance: random.Random) -> tuple[int, ...]:
    rank = chance.choice((0, 1, 1, 2, 2, 2, 3, 3, 3))
    return tuple(
        chance.randint(0 if chance.random() < 0.03 else 1, LONGEST[rank]) for _ in range(rank)
    )


def random_region(chance: random.Random, shape: tuple[int, ...], unit: int) -> StridedRegion:
    strides = tuple(chance.choice(STRIDES) * unit for _ in shape)
    start = MEMORY // 2 + chance.randint(0, 40) * chance.choice((1, unit))
    return StridedRegion(start, shape, strides, chance.choice((1, 2, 3, 4, 8)))


def random_map(chance: random.Random) -> tuple[StridedRegion, list[StridedRegion], tuple[int, ...]]:
    """Return a target, its reads and an order of axes; many reads lie as the target does."""
    shape, unit, reads = random_shape(chance), chance.choice((1, 1, 2, 4)), []
    target = random_region(chance, shape, unit)
    if chance.random() < 0.6:
        target = dense(chance, target)
    for _ in range(chance.randint(1, 3)):
        read = random_region(chance, shape, unit)
        form = chance.random()
        if form < 0.5:
            read = StridedRegion(read.address, shape, target.strides, read.itemsize)
        elif form < 0.65:
            read = StridedRegion(target.address, shape, target.strides, target.itemsize)
        elif form < 0.75:
            turned = tuple(chance.choice((1, -1)) * stride for stride in target.strides)
            read = StridedRegion(read.address, shape, turned, read.itemsize)
        elif form < 0.85:
            turned = tuple(chance.sample(target.strides, len(shape)))
            read = StridedRegion(target.address, shape, turned, target.itemsize)
        reads.append(read)
    return target, reads, tuple(chance.sample(range(len(shape)), len(shape)))


def dense(chance: random.Random, region: StridedRegion) -> StridedRegion:
    """Return a region of the same shape whose cells share nothing with each other."""
    strides, step = [0] * len(region.shape), region.itemsize
    for axis in chance.sample(range(len(strides)), len(strides)):
        strides[axis] = step * chance.choice((1, 1, -1))
        step = step * max(region.shape[axis], 1) + chance.choice((0, 0, region.itemsize, 1))
    return StridedRegion(region.address, region.shape, tuple(strides), region.itemsize)


def indices(region: StridedRegion) -> np.ndarray:
    count = int(np.prod(region.shape, dtype=int))
    return np.indices(region.shape).reshape(len(region.shape), count)


def addresses(region: StridedRegion) -> np.ndarray:
    return region.address + np.array(region.strides, int) @ indices(region)


def shared(one: StridedRegion, other: StridedRegion) -> np.ndarray:
    """Return for each cell of one and each of the other whether they share a byte."""
    a, b = addresses(one)[:, None], addresses(other)[None, :]
    return (a < b + other.itemsize) & (b < a + one.itemsize)


def met(target: StridedRegion, read: StridedRegion, axes: Sequence[int]) -> set[tuple[int, int]]:
    """Return (axis, sign) where a read is that way of a write of its bytes, level by level."""
    places, pairs, found = indices(target), shared(target, read), set()
    for axis in axes:
        ahead = np.sign(places[axis][None, :] - places[axis][:, None])
        found |= {(axis, sign) for sign in (1, -1) if (pairs & (ahead == sign)).any()}
        pairs = pairs & (ahead == 0)
    return found


def expected_order(
    target: StridedRegion, reads: Sequence[StridedRegion], axes: Sequence[int]
) -> tuple[int, ...] | None:
    found = {(axis, sign) for axis, sign in met(target, target, axes) if sign < 0}
    found = found.union(*(met(target, read, axes) for read in reads))
    if any({(axis, 1), (axis, -1)} <= found for axis in axes):
        return None
    by_axis = {axis: -sign for axis, sign in found}
    return tuple(by_axis.get(axis, 0) for axis in range(len(axes)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(4))
def test_overlap_is_exact(seed):
    chance = random.Random(seed)
    for _ in range(4000):
        unit = chance.choice((1, 1, 4, 8))
        one = random_region(chance, random_shape(chance), unit)
        other = random_region(chance, random_shape(chance), unit)
        found = overlap(one, other)
        assert found.verdict is not OverlapVerdict.UNKNOWN
        assert found.disjoint != shared(one, other).any(), (one, other, str(found))
        assert overlap(other, one).verdict is found.verdict


def test_overlap_of_views_is_what_numpy_finds():
    chance = random.Random(1)
    bases = [np.zeros(3000), np.zeros((90, 111), "f4"), np.zeros((12, 10, 30), "u1")]
    for _ in range(2000):
        base = chance.choice(bases)
        one, other = random_view(chance, base), random_view(chance, base)
        found = overlap(region_of(one), region_of(other))
        assert found.verdict is not OverlapVerdict.UNKNOWN
        assert found.disjoint != np.shares_memory(one, other), (one, other)


def random_view(chance: random.Random, base: np.ndarray) -> np.ndarray:
    keys = []
    for length in base.shape:
        first, last = sorted(chance.sample(range(length + 1), 2))
        keys.append(slice(first, last, chance.choice((1, 1, 2, 3, 5))))
        if chance.random() < 0.3:
            keys[-1] = slice(last - 1, first - 1 if first else None, -chance.choice((1, 2)))
    return base[tuple(keys)].transpose(chance.sample(range(base.ndim), base.ndim))


def test_same_means_every_index_is_the_same_cell():
    x = StridedRegion(64, (1, 5), (8, 16), 8)
    assert overlap(x, x).verdict is OverlapVerdict.SAME
    assert overlap(x, StridedRegion(64, (1, 5), (-800, 16), 8)).verdict is OverlapVerdict.SAME
    for other in (
        StridedRegion(64, (1, 5), (8, 16), 4),
        StridedRegion(64, (5,), (16,), 8),
        StridedRegion(64, (1, 5), (8, 8), 8),
        StridedRegion(68, (1, 5), (8, 16), 8),
        StridedRegion(128, (1, 5), (8, -16), 8),
    ):
        assert overlap(x, other).verdict is OverlapVerdict.PARTIAL


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (
            StridedRegion(0, (4, 4), (64, 8), 8),
            StridedRegion(224, (2,), (8,), 8),
            "disjoint: their address ranges lie 0 bytes apart",
        ),
        (
            StridedRegion(0, (4, 4), (64, 8), 8),
            StridedRegion(32, (4, 4), (64, 8), 8),
            "disjoint: the cells of one lie between those of the other",
        ),
        (
            StridedRegion(0, (9,), (16,), 4),
            StridedRegion(140, (9,), (-16,), 4),
            "disjoint: multiples of 16 bytes never bring them nearer than 4",
        ),
        (
            StridedRegion(0, (4, 0), (64, 8), 8),
            StridedRegion(0, (4, 4), (64, 8), 8),
            "disjoint: one of them has no cells",
        ),
        (
            StridedRegion(0, (), (), 8),
            StridedRegion(7, (), (), 2),
            "partial: some of their cells share bytes",
        ),
        (
            StridedRegion(0, (), (), 8),
            StridedRegion(0, (), (), 8),
            "same: every index is the same cell in both",
        ),
    ],
)
def test_reasons_say_what_decided(one, other, words):
    assert str(overlap(one, other)) == words


def test_a_long_search_is_given_up():
    one = StridedRegion(0, (1049, 1049, 1049), (36674, 61119, 85569), 1)  # from numpy.shares_memory
    other = StridedRegion(64023025, (1049, 1049, 1), (12223, 12224, 1), 1)
    assert str(overlap(one, other)) == "unknown: not decided in 2000 steps, taken as an overlap"


def test_a_short_search_is_not_always_enough_and_never_wrong():
    chance = random.Random(5)
    undecided = 0
    for _ in range(3000):
        one = random_region(chance, random_shape(chance), 1)
        other = random_region(chance, random_shape(chance), 1)
        found = overlap(one, other, steps=1)
        if found.verdict is OverlapVerdict.UNKNOWN:
            undecided += 1
        else:
            assert found.disjoint != shared(one, other).any()
    assert 0 < undecided < 300


def test_an_order_that_is_not_decided_is_taken_for_unsafe():
    chance = random.Random(6)
    undecided = 0
    for _ in range(1500):
        target, reads, axes = random_map(chance)
        exact, hasty = (
            safe_loop_order(target, reads, axes=axes, steps=steps) for steps in (2000, 0)
        )
        undecided += "not decided within the limit" in hasty.reason
        if hasty.safe:
            pairs = zip(exact.directions, hasty.directions, strict=True)
            assert exact.safe
            assert all(one in (0, other) for one, other in pairs)
    assert undecided


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(4))
def test_order_is_exact(seed):
    chance = random.Random(seed)
    for _ in range(1200):
        target, reads, axes = random_map(chance)
        found = safe_loop_order(target, reads, axes=axes)
        expected = expected_order(target, reads, axes)
        assert found.safe == (expected is not None), (target, reads, axes, str(found))
        assert found.directions == (expected or ())
        assert found.axes == axes


def test_order_of_long_axes_is_exact():
    chance = random.Random(7)
    for _ in range(400):
        shape = chance.choice(((150,), (90,), (13, 11), (4, 40)))
        target = dense(chance, random_region(chance, shape, 1))
        strides = tuple(chance.randint(-9, 30) for _ in shape)
        read = StridedRegion(target.address + chance.randint(-400, 400), shape, strides, 2)
        found = safe_loop_order(target, [read])
        assert (found.directions if found.safe else None) == expected_order(
            target, [read], range(len(shape))
        )


def test_independent_axes_are_those_whose_indices_never_meet():
    chance = random.Random(8)
    for _ in range(1000):
        target, reads, _ = random_map(chance)
        for axis in range(len(target.shape)):
            places = indices(target)[axis]
            differ = places[:, None] != places[None, :]
            pairs = [shared(target, read) & differ for read in (target, *reads)]
            expected = not any(pair.any() for pair in pairs)
            assert independent(target, reads, axis) == expected


def visited(
    chance: random.Random, shape: tuple[int, ...], found: LoopOrder
) -> list[tuple[int, ...]]:
    """Return the indices as loops of that order visit them; where it does not matter, at random."""
    axes = found.axes if any(found.directions) else chance.sample(found.axes, len(shape))
    places = [()]
    for axis in axes:
        grown = []
        for place in places:
            step = list(range(shape[axis]))
            if found.directions[axis] == 0:
                chance.shuffle(step)
            grown += [(*place, i) for i in step[:: found.directions[axis] or 1]]
        places = grown
    back = [axes.index(axis) for axis in range(len(shape))]
    return [tuple(place[level] for level in back) for place in places]


def packets(chance: random.Random, places: list[tuple[int, ...]]) -> Iterator[list]:
    while places:
        lanes = chance.randint(1, 5)
        yield places[:lanes]
        places = places[lanes:]


class Loops:
    """A map run on bytes: each result is made of the bytes that were read and of the index."""

    def __init__(
        self, target: StridedRegion, reads: Sequence[StridedRegion], memory: bytes
    ) -> None:
        self.target, self.reads, self.old = target, reads, memory
        self.now = bytearray(memory)

    def cell(self, region: StridedRegion, place: tuple[int, ...]) -> slice:
        steps = zip(place, region.strides, strict=True)
        address = region.address + sum(i * stride for i, stride in steps)
        return slice(address, address + region.itemsize)

    def read(self, number: int, place: tuple[int, ...]) -> bytes:
        return bytes(self.now[self.cell(self.reads[number], place)])

    def result(self, place: tuple[int, ...]) -> bytes:
        read = [self.read(number, place) for number in range(len(self.reads))]
        made = random.Random(repr((read, place)))
        return made.randbytes(self.target.itemsize)

    def write(self, place: tuple[int, ...], result: bytes) -> None:
        self.now[self.cell(self.target, place)] = result

    def run(self, groups: Iterator[list]) -> bytes:
        for group in groups:
            results = [self.result(place) for place in group]
            for place, result in zip(group, results, strict=True):
                self.write(place, result)
        return bytes(self.now)


class LoopsWithTemporary(Loops):
    """The same with copies of parts of the reads, or with results that are stored at the end."""

    def __init__(self, parts, *given) -> None:
        super().__init__(*given)
        self.parts = {part.read: part.slices for part in parts}
        self.kept: list[tuple[tuple[int, ...], bytes]] = []

    def set_aside(self, number: int | None, place: tuple[int, ...]) -> bool:
        region = self.target if number is None else self.reads[number]
        return number in self.parts and all(
            stride == 0 or each.start <= i < each.stop
            for i, stride, each in zip(place, region.strides, self.parts[number], strict=True)
        )

    def read(self, number: int, place: tuple[int, ...]) -> bytes:
        if self.set_aside(number, place):
            return self.old[self.cell(self.reads[number], place)]
        return super().read(number, place)

    def write(self, place: tuple[int, ...], result: bytes) -> None:
        if self.set_aside(None, place):
            self.kept.append((place, result))
        else:
            super().write(place, result)

    def run(self, groups: Iterator[list]) -> bytes:
        super().run(groups)
        for place, result in self.kept:
            super().write(place, result)
        return bytes(self.now)


def copied_first(target, reads, memory, axes) -> bytes:
    """Return the memory after a map that reads everything before it writes anything."""
    ups = LoopOrder(axes, (1,) * len(axes), "")
    return Loops(target, reads, memory).run(iter([visited(random.Random(0), target.shape, ups)]))


@pytest.mark.parametrize("seed", range(3))
def test_loops_in_a_safe_order_read_nothing_late(seed):
    chance = random.Random(seed)
    for _ in range(250):
        target, reads, axes = random_map(chance)
        memory = chance.randbytes(MEMORY)
        found = safe_loop_order(target, reads, axes=axes)
        if found.safe:
            places = visited(chance, target.shape, found)
            done = Loops(target, reads, memory).run(packets(chance, places))
            assert done == copied_first(target, reads, memory, axes)


@pytest.mark.parametrize("seed", range(3))
def test_loops_with_a_temporary_read_nothing_late(seed):
    chance = random.Random(seed)
    for _ in range(250):
        target, reads, axes = random_map(chance)
        memory = chance.randbytes(MEMORY)
        found = plan_staging(target, reads, axes=axes)
        assert found.order.safe
        assert bool(found.parts) != safe_loop_order(target, reads, axes=axes).safe
        places = visited(chance, target.shape, found.order)
        loops = LoopsWithTemporary(found.parts, target, reads, memory)
        done = loops.run(packets(chance, places))
        assert done == copied_first(target, reads, memory, axes)


def box(target: StridedRegion, read: StridedRegion) -> tuple[tuple[slice, ...], int]:
    """Return the box around what a read shares with the target, and its bytes."""
    touched = indices(read)[:, shared(target, read).any(axis=0)]
    slices = tuple(
        slice(0, 1)
        if stride == 0
        else slice(int(touched[axis].min()), int(touched[axis].max()) + 1)
        for axis, stride in enumerate(read.strides)
    )
    lengths = [each.stop - each.start for each in slices]
    return slices, read.itemsize * int(np.prod(lengths, dtype=int))


def test_box_of_shared_cells_is_set_aside():
    chance = random.Random(9)
    for _ in range(1500):
        target, reads, _ = random_map(chance)
        for part in plan_staging(target, reads).parts:
            if part.read is not None:
                assert (part.slices, part.bytes) == box(target, reads[part.read])


def test_no_choice_of_reads_to_copy_takes_fewer_bytes():
    chance = random.Random(10)
    for _ in range(600):
        target, reads, axes = random_map(chance)
        found = sum(part.bytes for part in plan_staging(target, reads, axes=axes).parts)
        meeting = [read for read in reads if shared(target, read).any()] if found else []
        for copied in itertools.product((False, True), repeat=len(meeting)):
            left = [read for read, gone in zip(meeting, copied, strict=True) if not gone]
            if safe_loop_order(target, left, axes=axes).safe:
                parts = zip(meeting, copied, strict=True)
                assert found <= sum(box(target, read)[1] for read, gone in parts if gone)


GRID = np.zeros((9, 9))


@pytest.mark.parametrize(
    ("target", "reads", "kind", "directions"),
    [
        (np.s_[:, :], [np.s_[:, :]], LoopSafety.ANY, (0, 0)),
        (np.s_[1:], [np.s_[:-1]], LoopSafety.BACKWARD, (-1, 0)),
        (np.s_[:-1], [np.s_[1:]], LoopSafety.FORWARD, (1, 0)),
        (np.s_[:, 1:], [np.s_[:, :-1]], LoopSafety.BACKWARD, (0, -1)),
        (np.s_[1:, 1:], [np.s_[:-1, :-1]], LoopSafety.BACKWARD, (-1, 0)),
        (np.s_[1:, :-1], [np.s_[:-1, 1:]], LoopSafety.BACKWARD, (-1, 0)),
        (np.s_[1:, :-1], [np.s_[:-1, :-1], np.s_[1:, 1:]], LoopSafety.MIXED, (-1, 1)),
        (np.s_[1:-1], [np.s_[:-2], np.s_[1:-1], np.s_[2:]], LoopSafety.NONE, ()),
        (np.s_[:, :], [np.s_[::-1]], LoopSafety.NONE, ()),
        (np.s_[:4], [np.s_[:4:-1]], LoopSafety.ANY, (0, 0)),
        (np.s_[::2], [np.s_[:5]], LoopSafety.BACKWARD, (-1, 0)),
        (np.s_[:5], [np.s_[::2]], LoopSafety.FORWARD, (1, 0)),
    ],
)
def test_orders_of_familiar_assignments(target, reads, kind, directions):
    found = safe_loop_order(region_of(GRID[target]), [region_of(GRID[read]) for read in reads])
    assert (found.kind, found.directions) == (kind, directions)


def test_a_row_shift_may_be_divided_along_its_columns_only():
    target, read = region_of(GRID[1:]), region_of(GRID[:-1])
    assert [independent(target, [read], axis) for axis in (0, 1)] == [False, True]
    assert safe_loop_order(target, [read], axes=(1, 0)).directions == (-1, 0)


def test_part_of_a_cell_may_be_read_in_any_order():
    pairs = np.zeros(8, "c16")
    for part in (pairs.real, pairs.imag):
        assert safe_loop_order(region_of(pairs), [region_of(part)]).kind is LoopSafety.ANY
        assert safe_loop_order(region_of(part), [region_of(pairs)]).kind is LoopSafety.ANY


def test_a_repeated_read_of_a_row_of_the_target_is_copied_alone():
    row = np.broadcast_to(GRID[4], GRID.shape)
    found = plan_staging(region_of(GRID), [region_of(GRID), region_of(row)])
    (part,) = found.parts
    assert (part.read, part.slices, part.bytes) == (1, (slice(0, 1), slice(0, 9)), 72)
    assert found.order.kind is LoopSafety.ANY


def test_lesser_of_reads_and_results_of_a_stencil_is_set_aside():
    target = region_of(GRID[1:-1, 1:-1])
    around = (GRID[:-2, 1:-1], GRID[2:, 1:-1], GRID[1:-1, :-2], GRID[1:-1, 2:])
    found = plan_staging(target, [region_of(x) for x in around])
    assert [part.read for part in found.parts] == [None]
    found = plan_staging(target, [region_of(x) for x in around[:2]])
    assert [(part.read, part.bytes) for part in found.parts] == [(0, 6 * 7 * 8)]
    assert found.order.kind is LoopSafety.FORWARD


def test_a_target_whose_cells_share_bytes_is_written_upwards():
    found = safe_loop_order(StridedRegion(0, (5, 3), (0, 8), 8), [])
    assert (found.kind, found.directions) == (LoopSafety.FORWARD, (1, 0))
    words = "the target itself shares bytes with what higher indices of axis 0 write"
    assert found.reason == words


def test_an_array_without_cells_and_a_single_cell_have_any_order():
    for target in (
        StridedRegion(0, (0, 3), (0, 0), 8),
        StridedRegion(0, (), (), 8),
        StridedRegion(0, (1,), (0,), 8),
    ):
        assert safe_loop_order(target, [target]).kind is LoopSafety.ANY
        assert plan_staging(target, [target]).parts == ()


def test_square_transposes_are_exchanges():
    cube = np.zeros((5, 4, 5))
    assert exchange(region_of(GRID), region_of(GRID.T)) == (0, 1)
    assert exchange(region_of(GRID[2:6, 3:7]), region_of(GRID[2:6, 3:7].T)) == (0, 1)
    assert exchange(region_of(cube), region_of(cube.transpose(2, 1, 0))) == (0, 2)
    assert exchange(region_of(GRID), region_of(GRID)) is None
    assert exchange(region_of(GRID[1:, 1:]), region_of(GRID[:-1, :-1].T)) is None
    assert exchange(region_of(GRID), region_of(GRID[::-1].T)) is None
    itself = StridedRegion(0, (3, 3), (8, 0), 8)
    assert exchange(itself, StridedRegion(0, (3, 3), (0, 8), 8)) is None


def test_reasons_name_what_blocks_every_order():
    target = region_of(GRID[1:-1])
    found = safe_loop_order(target, [region_of(GRID[:-2]), region_of(GRID[2:])])
    assert str(found) == (
        "no order: read 0 shares bytes with what lower indices of axis 0 write; "
        "read 1 shares bytes with what higher indices of axis 0 write"
    )
    assert (
        str(safe_loop_order(target, [target]))
        == "any order: nothing is read that another index writes"
    )
