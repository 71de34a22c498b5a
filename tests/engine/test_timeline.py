"""The timeline of an engine: pushes, batches, arrows, workers and memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tenfold as tn
from dag_programs import random_program
from run_program import conduct_beside_others
from tenfold.io.timeline_file import TimelineFile, TimelineSlice, read_timeline
from tenfold.io.trace_summary import summarise
from tenfold.runtime.timeline import PUSH, READY


@pytest.fixture
def engine() -> Iterator[tn.Engine]:
    with tn.Engine(threads=2) as engine:
        yield engine


def trace(path: Path, engine: tn.Engine) -> TimelineFile:
    """The timeline of a chain of three on two inputs each, under hold, and of an operator."""

    class Mine(tn.Operator):
        def run(self, x: tn.Array) -> tn.Array:
            return x

    with tn.profile() as p:
        x = engine.put(np.ones(1000))
        with engine.hold():
            ends = [engine.push(tn.operators.exp, x) for _ in range(4)]
            ends = [engine.push(tn.operators.negative, end) for end in ends]
            last = engine.push(Mine(), ends[0])
        engine.flush()
    assert last.done()
    p.save(path)
    return read_timeline(path)


def launches(timeline: TimelineFile) -> list[TimelineSlice]:
    return [each for each in timeline.slices if each.category not in (PUSH, READY)]


@pytest.mark.cpu
@pytest.mark.usefixtures("fused_multiply_add")
def test_timeline_has_pushes_and_batches(engine: tn.Engine, tmp_path: Path) -> None:
    timeline = trace(tmp_path / "t.json", engine)
    pushes = [each for each in timeline.slices if each.category == PUSH]
    work = launches(timeline)
    assert [each.name for each in pushes] == ["exp"] * 4 + ["negative"] * 4 + ["Mine"]
    assert {each.name: each.batch for each in work} == {"exp": 4, "negative": 4, "Mine": 1}


def test_timeline_lists_push_ready_run_and_done_in_legal_order(
    engine: tn.Engine, tmp_path: Path
) -> None:
    timeline = trace(tmp_path / "t.json", engine)
    pushes = {each.operators[0]: each for each in timeline.slices if each.category == PUSH}
    ran = {number: each for each in launches(timeline) for number in each.operators}
    assert len(pushes) == 9
    assert pushes.keys() == ran.keys()
    for number, push in pushes.items():
        assert push.begin <= ran[number].begin
        for needed in push.inputs:
            if needed in ran:
                assert ran[needed].end <= ran[number].begin


def test_timeline_has_an_arrow_from_each_push_to_its_run(engine: tn.Engine, tmp_path: Path) -> None:
    trace(tmp_path / "t.json", engine)
    events = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["traceEvents"]
    tails = {each["id"] for each in events if each["ph"] == "s"}
    heads = {each["id"] for each in events if each["ph"] == "f"}
    assert tails == heads
    assert len(tails) == 9


def test_timeline_has_a_named_track_for_each_worker(engine: tn.Engine, tmp_path: Path) -> None:
    timeline = trace(tmp_path / "t.json", engine)
    used = {each.track for each in launches(timeline)}
    assert used <= timeline.names.keys()


def test_timeline_has_the_bytes_alive(engine: tn.Engine, tmp_path: Path) -> None:
    timeline = trace(tmp_path / "t.json", engine)
    assert timeline.peaks["engine, live_bytes"] >= 8_000


def test_critical_path_of_an_engine_is_known(engine: tn.Engine, tmp_path: Path) -> None:
    summary = summarise(trace(tmp_path / "t.json", engine))
    assert summary.critical is not None
    assert [link.name for link in summary.critical] == ["exp", "negative", "Mine"]
    assert summary.mean_batch == pytest.approx(3.0)


def test_operators_of_two_engines_have_numbers_of_their_own(tmp_path: Path) -> None:
    with tn.Engine(threads=1) as one, tn.Engine(threads=1) as other, tn.profile() as p:
        one.push(tn.operators.exp, np.ones(3)).get()
        other.push(tn.operators.sin, np.ones(3)).get()
    p.save(tmp_path / "t.json")
    pushes = [each for each in read_timeline(tmp_path / "t.json").slices if each.category == PUSH]
    assert [each.name for each in pushes] == ["exp", "sin"]
    assert pushes[0].operators != pushes[1].operators


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
def test_events_of_random_programs_come_in_legal_order(threads: int, tmp_path: Path) -> None:
    with tn.Engine(threads=threads) as engine, tn.profile() as p:
        for seed in range(40):
            conduct_beside_others(engine, random_program(seed))
        engine.flush()
    p.save(tmp_path / "t.json")
    events: dict[int, list[TimelineSlice]] = {}
    for each in read_timeline(tmp_path / "t.json").slices:
        for number in each.operators:
            events.setdefault(number, []).append(each)
    ran = {
        number: [each for each in found if each.category not in (PUSH, READY)]
        for number, found in events.items()
    }
    assert sum(map(len, ran.values())) > 200
    for number, found in events.items():
        (push,) = (each for each in found if each.category == PUSH)
        ready = [each.begin for each in found if each.category == READY]
        begins = [each.begin for each in ran[number]]
        assert all(push.begin <= time for time in ready)
        assert len(begins) <= len(ready)  # one that is cancelled does not run
        for count, begin in enumerate(begins, 1):
            assert sum(time <= begin for time in ready) >= count
        if push.name in ("Gather", "Collect"):
            continue  # increments do not wait for their target
        ends = [each.end for needed in push.inputs for each in ran.get(needed, ())]
        assert max(ends, default=0.0) <= min(begins, default=float("inf"))


def test_operator_that_runs_when_the_profile_ends_is_said_to(
    engine: tn.Engine, tmp_path: Path
) -> None:
    begun, gate = threading.Event(), threading.Event()

    class Slow(tn.Operator):
        def run(self) -> int:
            begun.set()
            gate.wait()
            return 1

    with tn.profile() as p:
        handle = engine.push(Slow())
        begun.wait()
        with tn.profile() as inner:
            pass
    gate.set()
    assert handle.get() == 1
    for each in (p, inner):
        assert [(event.name, event.running) for event in each.events if event.running] == [
            ("Slow", True)
        ]
    p.save(tmp_path / "t.json")
    assert [each.running for each in launches(read_timeline(tmp_path / "t.json"))] == [True]
    assert summarise(read_timeline(tmp_path / "t.json")).busiest[0].running == 1


def test_summary_says_what_operators_waited_for(engine: tn.Engine, tmp_path: Path) -> None:
    summary = summarise(trace(tmp_path / "t.json", engine))
    assert {each.name: each.operators for each in summary.waits} == {
        "exp": 4,
        "negative": 4,
        "Mine": 1,
    }
    for each in summary.waits:
        assert min(each.for_inputs, each.for_launch, each.running) >= 0
