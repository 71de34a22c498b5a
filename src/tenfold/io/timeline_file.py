"""Timeline file: reads the Chrome trace events that `tn.profile().save` writes.

Takes the path of a file of Chrome trace events (JSON), returns a frozen `TimelineFile` in
microseconds. Complete events become slices, counter events peaks. Instant events of the category
`ready` become slices of length 0: an operator's inputs are ready. Other events are ignored. These
`args` of a slice are read: `operators` (numbers of the operators that it ran or pushed), `batch`
(the number of operators or nodes), and `inputs` (the operators whose results a push needs). So are
`running` (not ended) and `apart` (the reason for a batch split). Raises a one-line InputError for
any other file.

    read_timeline("t.json").slices[0].name
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tenfold.io.input_errors import InputError, error_text
from tenfold.runtime.timeline import READY

T = TypeVar("T")
Track = tuple[str, str]
"""Process and thread as text; in files they are numbers or names."""


@dataclass(frozen=True, slots=True)
class TimelineSlice:
    """Work from `begin` to `end` on a track, with the numbers of the operators it ran or pushed."""

    name: str
    category: str
    begin: float
    end: float
    track: Track
    operators: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    batch: int | None = None
    running: bool = False
    apart: str = ""

    @property
    def duration(self) -> float:
        """Its duration in microseconds."""
        return self.end - self.begin


@dataclass(frozen=True)
class TimelineFile:
    """Slices in order of their begin, the names of tracks, and the maximum of each counter."""

    slices: tuple[TimelineSlice, ...]
    names: Mapping[Track, str]
    peaks: Mapping[str, float]


def read_timeline(path: str | os.PathLike[str]) -> TimelineFile:
    """Return the timeline of a file. Raises InputError for an unreadable or other file."""
    name = str(path)
    try:
        content = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{name}: {error_text(error)}") from error
    except (ValueError, RecursionError) as error:  # bad UTF-8, too
        raise InputError(
            f"{name}: not a timeline, since it is not JSON: {error_text(error)}"
        ) from error
    events = content.get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(events, list):
        raise InputError(f"{name}: no timeline, since it has no list traceEvents")
    slices, names, peaks = [], {}, dict[str, float]()
    for number, event in enumerate(events):
        try:
            match _field(event, "ph", str):
                case "X":
                    slices.append(_slice(event, _number(event, "dur")))
                case "i" if event.get("cat") == READY:
                    slices.append(_slice(event, 0.0))
                case "M" if event.get("name") == "thread_name":
                    names[_track(event)] = _field(_arguments(event), "name", str)
                case "C":
                    _raise_peaks(peaks, event)
        except ValueError as error:
            raise InputError(f"{name}: event {number} {error}") from error
    slices.sort(key=lambda timeline_slice: (timeline_slice.begin, timeline_slice.end))
    return TimelineFile(tuple(slices), names, peaks)


def _slice(event: dict[str, object], duration: float) -> TimelineSlice:
    begin = _number(event, "ts")
    arguments = _arguments(event)
    operators = _numbers(arguments, "operators")
    return TimelineSlice(
        _field(event, "name", str),
        str(event.get("cat", "")),
        begin,
        begin + max(duration, 0.0),
        _track(event),
        operators,
        _numbers(arguments, "inputs"),
        _count(arguments.get("batch")) or len(operators) or None,
        arguments.get("running") is True,
        _field(arguments, "apart", str) if "apart" in arguments else "",
    )


def _count(value: object) -> int:
    """Return a count of 1 or more, or 0 for none."""
    if value is None:
        return 0
    if not isinstance(value, int) or value < 1:
        raise ValueError("has a batch that is not a count")
    return int(value)


def _raise_peaks(peaks: dict[str, float], event: dict[str, object]) -> None:
    for series in _arguments(event):
        name = f"{_field(event, 'name', str)}, {series}"
        peaks[name] = max(peaks.get(name, -math.inf), _number(_arguments(event), series))


def _track(event: dict[str, object]) -> Track:
    return str(event.get("pid", "")), str(event.get("tid", ""))


def _arguments(event: dict[str, object]) -> dict[str, object]:
    return _field(event, "args", dict) if "args" in event else {}


def _numbers(arguments: dict[str, object], name: str) -> tuple[int, ...]:
    numbers = arguments.get(name, [])
    if not (isinstance(numbers, list) and all(_is_integer(number) for number in numbers)):
        raise ValueError(f"has {name} that are no list of whole numbers")
    return tuple(numbers)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(event: dict[str, object], name: str) -> float:
    value = event.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"has no number {name}")
    return float(value)


def _field(event: object, name: str, kind: type[T]) -> T:
    value = event.get(name) if isinstance(event, dict) else None
    if not isinstance(value, kind):
        raise ValueError(f"has no {name}")
    return value
