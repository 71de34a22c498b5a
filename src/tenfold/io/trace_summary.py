"""Trace summary: a timeline's busiest operators, idle shares, batches and critical path.

Takes a `TimelineFile`, hands on a frozen `TraceSummary`, times in microseconds. Idle is a track's
time between the first begin and the last end of the whole timeline in which nothing ran on it. Work
nested in other work on the same track, as the expressions of a user's operator, is counted once.
The critical path is the chain of operators, each needing the one before it, whose work takes
longest; dependences are known of pushed operators alone. One launch that ran several operators
counts whole for each of them, and once where a chain goes through it twice. An operator waits for
its inputs from its push to when they are there, and from then on for others of its batch or a
thread until its launch begins.

    summarise(read_timeline("t.json")).busiest[0].name
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tenfold.io.timeline_file import PUSH, READY, TimelineFile, TimelineSlice, Track


@dataclass(frozen=True)
class OperatorTime:
    """What all launches of one name took together, without what ran inside them.

    `operators` is None where they were not counted. `running` of them had not ended when the
    recording ended; their time up to then is counted.
    """

    name: str
    launches: int
    operators: int | None
    total: float
    longest: float
    running: int


@dataclass(frozen=True)
class QueueTime:
    """Operators of one name that ran, and the times that they took together.

    Of a launch that ran several each counts the whole time.
    """

    name: str
    operators: int
    for_inputs: float
    for_launch: float
    running: float


@dataclass(frozen=True)
class TrackUse:
    """How many slices a track has, and how long something ran on it."""

    name: str
    slices: int
    busy: float
    idle_share: float


@dataclass(frozen=True)
class BatchSizeBar:
    """Launches whose batch had `least` to `most` operators."""

    least: int
    most: int
    launches: int


@dataclass(frozen=True)
class SplitBatches:
    """Launches of one name that were batches of their own for one reason."""

    name: str
    reason: str
    launches: int


@dataclass(frozen=True)
class CriticalPathLink:
    """`count` operators of one name, one after another on the critical path."""

    name: str
    count: int
    total: float


@dataclass(frozen=True)
class TraceSummary:
    """All of it. `critical` is None where no push stands in the timeline."""

    span: float
    launches: int
    pushes: int
    busiest: tuple[OperatorTime, ...]
    waits: tuple[QueueTime, ...]
    tracks: tuple[TrackUse, ...]
    batches: tuple[BatchSizeBar, ...]
    mean_batch: float | None
    apart: tuple[SplitBatches, ...]
    critical: tuple[CriticalPathLink, ...] | None
    peaks: Mapping[str, float]


def summarise(timeline: TimelineFile) -> TraceSummary:
    """Return what a timeline says."""
    work = [each for each in timeline.slices if each.category not in (PUSH, READY)]
    pushes = [each for each in timeline.slices if each.category == PUSH]
    begin = min((each.begin for each in timeline.slices), default=0.0)
    span = max((each.end for each in timeline.slices), default=0.0) - begin
    sizes = [each.batch for each in work if each.batch is not None]
    return TraceSummary(
        span,
        len(work),
        len(pushes),
        tuple(_busiest(work)),
        tuple(_waits(timeline)),
        tuple(_tracks(timeline, span)),
        tuple(_batch_histogram(sizes)),
        sum(sizes) / len(sizes) if sizes else None,
        tuple(_split_batches(work)),
        tuple(_critical_path(work, pushes)) if pushes else None,
        timeline.peaks,
    )


def _busiest(work: Sequence[TimelineSlice]) -> list[OperatorTime]:
    named: dict[str, list[tuple[TimelineSlice, float]]] = defaultdict(list)
    for each, own in _self_times(work):
        named[each.name].append((each, own))
    found = []
    for name, pairs in named.items():
        counts = [each.batch for each, _ in pairs if each.batch is not None]
        times = [own for _, own in pairs]
        running = sum(each.running for each, _ in pairs)
        found.append(
            OperatorTime(name, len(pairs), sum(counts) or None, sum(times), max(times), running)
        )
    return sorted(found, key=lambda each: (-each.total, each.name))


def _waits(timeline: TimelineFile) -> list[QueueTime]:
    """Return what operators waited for, the longest first; slices come in order of begin."""
    pushed: dict[int, float] = {}
    ready: dict[int, float] = {}
    named: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for each in timeline.slices:
        for number in each.operators:
            if each.category == PUSH:
                pushed[number] = each.begin
            elif each.category == READY:
                ready[number] = each.begin
            elif number in pushed and number in ready:
                since = ready[number]
                times = since - pushed[number], each.begin - since, each.duration
                named[each.name].append(times)
    found = [
        QueueTime(name, len(times), *(sum(column) for column in zip(*times, strict=True)))
        for name, times in named.items()
    ]
    return sorted(found, key=lambda each: (-each.for_inputs - each.for_launch, each.name))


def _self_times(work: Sequence[TimelineSlice]) -> list[tuple[TimelineSlice, float]]:
    """Return each piece of work with its duration, less that of what ran inside it."""
    ordered = sorted(work, key=lambda each: (each.track, each.begin, -each.end))
    own = [each.duration for each in ordered]
    around: list[int] = []
    for index, each in enumerate(ordered):
        while around and not _encloses(ordered[around[-1]], each):
            around.pop()
        if around:
            own[around[-1]] -= each.duration
        around.append(index)
    return [*zip(ordered, own, strict=True)]


def _encloses(outer: TimelineSlice, inner: TimelineSlice) -> bool:
    return outer.track == inner.track and inner.end <= outer.end


def _tracks(timeline: TimelineFile, span: float) -> Iterable[TrackUse]:
    on: dict[Track, list[TimelineSlice]] = defaultdict(list)
    for each in timeline.slices:
        if each.category != READY:
            on[each.track].append(each)
    for track in sorted(on, key=lambda track: (timeline.names.get(track, ""), track)):
        busy = _busy_time(on[track])
        name = timeline.names.get(track, f"thread {track[1]}")
        yield TrackUse(name, len(on[track]), busy, 1 - busy / span if span else 0.0)


def _busy_time(slices: Sequence[TimelineSlice]) -> float:
    """Return the time in which at least one of them ran; they come in order of begin."""
    total, until = 0.0, float("-inf")
    for each in slices:
        total += max(0.0, each.end - max(each.begin, until))
        until = max(until, each.end)
    return total


def _batch_histogram(sizes: Sequence[int]) -> list[BatchSizeBar]:
    """Return a histogram whose bars hold 1, 2, 3 to 4, 5 to 8, ... operators."""
    counts: dict[int, int] = defaultdict(int)
    for size in sizes:
        counts[(size - 1).bit_length()] += 1
    return [
        BatchSizeBar((1 << power >> 1) + 1 if power else 1, 1 << power, counts[power])
        for power in range(max(counts, default=-1) + 1)
    ]


def _split_batches(work: Sequence[TimelineSlice]) -> list[SplitBatches]:
    """Return why batches were not one with earlier ones, the most frequent reason first."""
    counts = Counter((each.name, each.apart) for each in work if each.apart)
    found = [SplitBatches(name, reason, launches) for (name, reason), launches in counts.items()]
    return sorted(found, key=lambda each: (-each.launches, each.name, each.reason))


def _critical_path(
    work: Sequence[TimelineSlice], pushes: Sequence[TimelineSlice]
) -> list[CriticalPathLink]:
    """Return the critical path; operators are numbered in the order of their pushes."""
    ran = {number: each for each in work for number in each.operators}
    needs = {number: push.inputs for push in pushes for number in push.operators}
    total: dict[int, float] = {}
    before: dict[int, int | None] = {}
    for number in sorted(ran):
        own, best, last = ran[number], ran[number].duration, None
        for needed in needs.get(number, ()):
            if needed in total:
                added = 0.0 if ran[needed] is own else own.duration
                if last is None or total[needed] + added > best:
                    best, last = total[needed] + added, needed
        total[number], before[number] = best, last
    chain = []
    last = max(total, key=total.__getitem__, default=None)
    while last is not None:
        chain.append(ran[last])
        last = before[last]
    launches = [launch for launch, _ in groupby(reversed(chain))]
    links = []
    for name, same in groupby(launches, key=lambda each: each.name):
        times = [each.duration for each in same]
        links.append(CriticalPathLink(name, len(times), sum(times)))
    return links
