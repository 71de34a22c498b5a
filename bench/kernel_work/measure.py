"""One row measured: everybody's values checked, then rounds in which everybody has a turn.

Takes a `Work`, the peers and the floor; hands on a dict for the table and the JSON file: medians in
milliseconds by peer, what is required, and whether it is met.

The peers take turns within a round, each round begun by another one, so that whatever else the
machine does meets all of them. A turn is one call that is not timed (it brings a library's own
data and threads back) and as many timed ones as fill `TURN`; a round counts with its median. The
result of a call is newly allocated by everybody and given up, untimed, before the next call.

With 0 rounds values are checked and nothing is timed: medians and ratios are not numbers then.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tenfold as tn
from kernel_work.floor import SIZE
from kernel_work.peers import Peer
from kernel_work.rows import Need, Work

TURN = 0.03
"""Seconds of timed calls in a turn."""
MOST_CALLS = 50
WARMING = 5
"""Calls before a turn is filled."""
COPIES = 5
"""Calls of the copy in a turn."""
REST = 0.02
"""Seconds between turns: threads that spin while they wait for more work come to rest."""
EPSILON = float(np.finfo(np.float64).eps)

Row = dict[str, Any]


@dataclass
class Runner:
    """One peer at one work: its function, its inputs, and how many calls fill a turn."""

    function: Callable[..., Any]
    make: Callable[[], list[Any]]
    """Makes the inputs of a call; that is not timed."""
    calls: int = 1

    @staticmethod
    def of(work: Work, peer: Peer, arrays: list[np.ndarray]) -> Runner:
        """One whose inputs are made once, or for each call where they are assigned to."""
        if work.steps:
            return Runner(peer.prepare(work), lambda: [peer.give(each.copy()) for each in arrays])
        inputs = [*map(peer.give, arrays)]
        return Runner(peer.prepare(work), lambda: inputs)

    def turn(self) -> float:
        """Median seconds of one turn."""
        self.function(*self.make())
        return statistics.median(self.call() for _ in range(self.calls))

    def fill_turn(self) -> None:
        """Let as many calls as fill a turn be timed, by the best of some: the first ones plan."""
        best = min(self.call() for _ in range(WARMING))
        self.calls = min(max(int(TURN / best), 1), MOST_CALLS)

    def call(self) -> float:
        inputs = self.make()
        begin = time.perf_counter()
        result = self.function(*inputs)
        seconds = time.perf_counter() - begin
        del result
        return seconds


def measure(
    work: Work,
    peers: Mapping[str, Peer],
    copy: Callable[[], float] | None,
    rounds: int,
    factor: float,
) -> Row:
    """Everything the table says of a work."""
    arrays = work.inputs(np.random.default_rng(20), factor)
    expected = peers["numpy"].prepare(work)(*(each.copy() for each in arrays))
    row: Row = {"name": work.name, "title": work.title, "wrong": {}, "verdicts": []}
    row["bytes"] = sum(array.nbytes for array in arrays) + np.asarray(expected).nbytes
    runners: dict[str, Runner] = {}
    for name in work.peers:
        if name in peers:
            peer = peers[name]
            runners[name] = runner = Runner.of(work, peer, arrays)
            values = peer.values(runner.function(*runner.make()))
            if told := difference(values, expected, work.tolerance):
                row["wrong"][name] = told
            if rounds:
                runner.fill_turn()
            if work.error_as_numpy and name in ("tenfold", "numpy"):
                row.setdefault("errors", {})[name] = error_of_sum(arrays, values)
    row["rounds"] = take_turns(runners, copy, rounds)
    row["milliseconds"] = {name: median(row["rounds"][name]) for name in runners}
    if copy is not None:
        row["copy_rate"] = 2e-6 * SIZE / statistics.median(row["rounds"]["copy"])
        rate = row["bytes"] / row["milliseconds"]["tenfold"] * 1e-6
        row["copy_share"] = rate / row["copy_rate"]
    judge(work, row, runners["tenfold"])
    return row


def median(times: Sequence[float]) -> float:
    """The median, not a number of none."""
    return statistics.median(times) if times else math.nan


def take_turns(
    runners: Mapping[str, Runner], copy: Callable[[], float] | None, rounds: int
) -> dict[str, list[float]]:
    """Milliseconds of every round by peer, and of the copy."""
    turns = {name: runner.turn for name, runner in runners.items()}
    if copy is not None:
        turns["copy"] = lambda: statistics.median(copy() for _ in range(COPIES))
    return by_turns(turns, rounds)


def by_turns(turns: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every round by name, of turns that say their seconds; each round is begun by
    another one.
    """
    found: dict[str, list[float]] = {name: [] for name in turns}
    names = list(turns)
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                time.sleep(REST)
                found[name].append(turns[name]() * 1e3)
    finally:
        gc.enable()
    return found


def difference(values: Any, expected: Any, tolerance: tuple[float, float]) -> str:
    """Nothing, or how the values differ from NumPy's."""
    relative, absolute = tolerance
    if values.dtype != np.asarray(expected).dtype:
        return f"dtype {values.dtype}, not {np.asarray(expected).dtype}"
    if values.shape != np.shape(expected):
        return f"shape {values.shape}, not {np.shape(expected)}"
    if np.allclose(values, expected, rtol=relative, atol=absolute):
        return ""
    return f"differs from NumPy's by {np.max(np.abs(values - expected)):.3g}"


def error_of_sum(arrays: list[np.ndarray], total: Any) -> float:
    """Relative error of the sum of the squares, which are taken as they are rounded."""
    exact = math.fsum(((arrays[0] - arrays[1]) ** 2).tolist())
    return abs(float(total) - exact) / exact


def judge(work: Work, row: Row, tenfold: Runner) -> None:
    """Enter what is required into the row, and whether it is met (None: it cannot be told)."""
    for need in work.needs:
        row["verdicts"].append(speed(need, row["milliseconds"]))
    if work.floor is not None:
        share = row.get("copy_share")
        met = None if share is None else share >= work.floor
        text = f">= {work.floor:.0%} of the copy"
        row["verdicts"].append({"required": text, "found": share, "met": met})
    if work.one_kernel:
        with tn.profile() as profile:
            tenfold.function(*tenfold.make())
        steps = profile.kernels + profile.calls
        row["verdicts"].append(
            {"required": "one kernel", "found": steps, "met": steps == 1, "exact": True}
        )
    if work.steps:
        two, all_ = (allocations(work, tenfold.make(), steps) for steps in (2, work.steps))
        text = "nothing allocated after step 2"
        row["verdicts"].append({"required": text, "found": all_ - two, "met": all_ == two})
    if work.error_as_numpy:
        error, limit = row["errors"]["tenfold"], row["errors"].get("numpy", 0) + EPSILON
        text = "error as NumPy's"
        met = error <= limit
        row["verdicts"].append({"required": text, "found": error, "met": met, "exact": True})
    if "tenfold" in row["wrong"]:
        row["verdicts"].append({"required": "NumPy's values", "found": None, "met": False})


def allocations(work: Work, inputs: list[tn.Array], steps: int) -> int:
    """What so many steps take from the system, when the pool has kept nothing."""
    tn.trim()
    with tn.profile() as profile:
        work.formula("tenfold", tn)(*inputs, steps=steps).wait()
    return profile.allocations


def speed(need: Need, milliseconds: Mapping[str, float]) -> Row:
    """A required ratio to the best of some peers."""
    times = [milliseconds[name] for name in need.peers if name in milliseconds]
    ratio = min(times) / milliseconds["tenfold"] if times else None
    others = " and ".join(need.peers)
    text = f">= {need.ratio:.3g}x {'the best of ' if len(need.peers) > 1 else ''}{others}"
    return {"required": text, "found": ratio, "met": None if ratio is None else ratio >= need.ratio}
