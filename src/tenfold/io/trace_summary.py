"""Trace summary: a timeline's busiest operators, idle shares, batches and critical path.

Takes a `TimelineFile`, returns a frozen `TraceSummary` with times in microseconds. The idle time of
a track is the part of the timeline's span without a slice on it. Nested work on one track, as the
expressions of a user's operator, is counted once. The critical path is the dependency chain of
operators with the longest work; only pushed operators have known dependences. A launch of several
operators counts fully for each of them, but once for a chain that passes it twice. An operator
waits for its inputs from its push until they are ready, then for its batch or a thread until its
launch begins.

    summarise(read_timeline("t.json")).busiest[0].name
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tenfold.io.timeline_file import TimelineFile, TimelineSlice, Track
from tenfold.runtime.timeline import PUSH, READY


@dataclass(frozen=True)
class OperatorTime:
    """The total time of all launches of one name, without nested launches.

    `operators` is None where they were not counted. `running` launches had not ended at the end of
    the recording; their time until then is counted.
    """

    name: str
    launches: int
    operators: int | None
    total: float
    longest: float
    running: int


@dataclass(frozen=True)
class QueueTime:
    """The total waiting and running times of the operators of one name.

    A launch of several operators counts fully for each of them.
    """

    name: str
    operators: int
    for_inputs: float
    for_launch: float
    running: float


@dataclass(frozen=True)
class TrackUse:
    """The number of slices of a track, and its busy time."""

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
    """The number of launches of one name that were split from a batch for one reason."""

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
    """The whole summary. `critical` is None for a timeline without pushes."""

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
    """Return the summary of a timeline."""
    work = [piece for piece in timeline.slices if piece.category not in (PUSH, READY)]
    pushes = [piece for piece in timeline.slices if piece.category == PUSH]
    begin = min((piece.begin for piece in timeline.slices), default=0.0)
    span = max((piece.end for piece in timeline.slices), default=0.0) - begin
    sizes = [piece.batch for piece in work if piece.batch is not None]
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
    by_name: dict[str, list[tuple[TimelineSlice, float]]] = defaultdict(list)
    for piece, self_time in _self_times(work):
        by_name[piece.name].append((piece, self_time))
    operator_times = []
    for name, pairs in by_name.items():
        counts = [piece.batch for piece, _ in pairs if piece.batch is not None]
        times = [self_time for _, self_time in pairs]
        running = sum(piece.running for piece, _ in pairs)
        operator_times.append(
            OperatorTime(name, len(pairs), sum(counts) or None, sum(times), max(times), running)
        )
    return sorted(operator_times, key=lambda piece: (-piece.total, piece.name))


def _waits(timeline: TimelineFile) -> list[QueueTime]:
    """Return the waiting times of operators, longest first; slices are in order of begin."""
    pushed: dict[int, float] = {}
    ready: dict[int, float] = {}
    times_by_name: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for piece in timeline.slices:
        for number in piece.operators:
            if piece.category == PUSH:
                pushed[number] = piece.begin
            elif piece.category == READY:
                ready[number] = piece.begin
            elif number in pushed and number in ready:
                ready_time = ready[number]
                times = ready_time - pushed[number], piece.begin - ready_time, piece.duration
                times_by_name[piece.name].append(times)
    queue_times = [
        QueueTime(name, len(times), *(sum(column) for column in zip(*times, strict=True)))
        for name, times in times_by_name.items()
    ]
    return sorted(queue_times, key=lambda piece: (-piece.for_inputs - piece.for_launch, piece.name))


def _self_times(work: Sequence[TimelineSlice]) -> list[tuple[TimelineSlice, float]]:
    """Return each piece of work with its duration, minus that of nested work."""
    ordered = sorted(work, key=lambda piece: (piece.track, piece.begin, -piece.end))
    self_times = [piece.duration for piece in ordered]
    enclosing: list[int] = []
    for index, piece in enumerate(ordered):
        while enclosing and not _encloses(ordered[enclosing[-1]], piece):
            enclosing.pop()
        if enclosing:
            self_times[enclosing[-1]] -= piece.duration
        enclosing.append(index)
    return [*zip(ordered, self_times, strict=True)]


def _encloses(outer: TimelineSlice, inner: TimelineSlice) -> bool:
    return outer.track == inner.track and inner.end <= outer.end


def _tracks(timeline: TimelineFile, span: float) -> Iterable[TrackUse]:
    by_track: dict[Track, list[TimelineSlice]] = defaultdict(list)
    for piece in timeline.slices:
        if piece.category != READY:
            by_track[piece.track].append(piece)
    for track in sorted(by_track, key=lambda track: (timeline.names.get(track, ""), track)):
        busy = _busy_time(by_track[track])
        name = timeline.names.get(track, f"thread {track[1]}")
        yield TrackUse(name, len(by_track[track]), busy, 1 - busy / span if span else 0.0)


def _busy_time(slices: Sequence[TimelineSlice]) -> float:
    """Return the time in which at least one slice ran; slices are in order of begin."""
    total, covered_end = 0.0, float("-inf")
    for piece in slices:
        total += max(0.0, piece.end - max(piece.begin, covered_end))
        covered_end = max(covered_end, piece.end)
    return total


def _batch_histogram(sizes: Sequence[int]) -> list[BatchSizeBar]:
    """Return a histogram of batch sizes with bars 1, 2, 3 to 4, 5 to 8, ..."""
    counts: dict[int, int] = defaultdict(int)
    for size in sizes:
        counts[(size - 1).bit_length()] += 1
    return [
        BatchSizeBar((1 << power >> 1) + 1 if power else 1, 1 << power, counts[power])
        for power in range(max(counts, default=-1) + 1)
    ]


def _split_batches(work: Sequence[TimelineSlice]) -> list[SplitBatches]:
    """Return the reasons for batch splits, the most frequent first."""
    counts = Counter((piece.name, piece.apart) for piece in work if piece.apart)
    splits = [SplitBatches(name, reason, launches) for (name, reason), launches in counts.items()]
    return sorted(splits, key=lambda piece: (-piece.launches, piece.name, piece.reason))


def _critical_path(
    work: Sequence[TimelineSlice], pushes: Sequence[TimelineSlice]
) -> list[CriticalPathLink]:
    """Return the critical path; operators are numbered in the order of their pushes."""
    launch_of = {number: piece for piece in work for number in piece.operators}
    inputs_of = {number: push.inputs for push in pushes for number in push.operators}
    total: dict[int, float] = {}
    predecessor: dict[int, int | None] = {}
    for number in sorted(launch_of):
        own, longest, longest_input = launch_of[number], launch_of[number].duration, None
        for input_number in inputs_of.get(number, ()):
            if input_number in total:
                added = 0.0 if launch_of[input_number] is own else own.duration
                if longest_input is None or total[input_number] + added > longest:
                    longest, longest_input = total[input_number] + added, input_number
        total[number], predecessor[number] = longest, longest_input
    chain = []
    longest_input = max(total, key=total.__getitem__, default=None)
    while longest_input is not None:
        chain.append(launch_of[longest_input])
        longest_input = predecessor[longest_input]
    launches = [launch for launch, _ in groupby(reversed(chain))]
    links = []
    for name, run in groupby(launches, key=lambda piece: piece.name):
        times = [piece.duration for piece in run]
        links.append(CriticalPathLink(name, len(times), sum(times)))
    return links
