"""Profiles count where the work is done, and write a timeline that a viewer can open."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.runtime.timeline import CounterSample, TimelineEvent, record_events


def test_building_counts_nothing() -> None:
    x = tn.asarray(np.ones(4))
    with tn.profile() as p:
        tn.sum(x * 2 + 1)
    assert set(p.counters().values()) == {0}


def test_computing_counts_kernels_calls_launches_and_waits() -> None:
    x = tn.asarray(np.ones((3, 3)))
    with tn.profile() as p:
        tn.max(x @ x * 2).item()
    assert (p.kernels, p.launches, p.host_syncs, p.multiply_adds) == (2, 2 + p.calls, 1, 27)


def test_temporary_is_what_a_step_makes_and_nobody_sees() -> None:
    x = tn.asarray(np.ones((4, 4)))
    with tn.profile() as p:
        (x @ x @ x).wait()
    assert p.temporaries == 1
    with tn.profile() as p:
        (x @ x + 1).wait()  # the sum is written over the product
    assert p.temporaries == 0
    shown = x @ x
    with tn.profile() as p:
        (shown + 1).wait()
    assert p.temporaries == 0
    with tn.profile() as p:
        (x @ x).T.wait()
    assert p.temporaries == 0


def test_event_of_a_kernel_is_named_as_its_operations() -> None:
    x = tn.asarray(np.ones(4))
    with tn.options(tier=1), tn.profile() as p:
        ((x + 1) * x).wait()
    assert [(event.name, event.category) for event in p.events] == [("add+multiply", "kernel")]


def test_import_of_a_writeable_array_counts_one_copy_and_its_bytes() -> None:
    values = np.ones(1000)
    tn.trim()  # what the pool has kept is not counted
    with tn.profile() as p:
        tn.asarray(values)
    assert (p.copies, p.allocations) == (1, 1)
    assert 8000 <= p.bytes_allocated < 10_000
    values.flags.writeable = False
    with tn.profile() as p:
        tn.asarray(values)
    assert (p.copies, p.allocations) == (0, 0)


def test_counters_stand_still_after_the_block() -> None:
    x = tn.asarray([1.0])
    with tn.profile() as p:
        assert p.launches == 0
        (x + 1).wait()
        assert p.launches == 1
    (x + 2).wait()
    assert p.launches == 1
    assert repr(p).startswith("<profile kernels=1, launches=1, ")


def test_profiles_nest_and_count_the_work_of_every_thread() -> None:
    with tn.profile() as outer:
        with tn.profile() as inner:
            thread = threading.Thread(target=lambda: (tn.asarray([1.0]) + 1).wait())
            thread.start()
            thread.join()
        (tn.asarray([1.0]) * 2).wait()
    assert [event.name for event in inner.events] == ["add"]
    assert [event.name for event in outer.events] == ["add", "multiply"]
    assert outer.launches == 2
    assert len({event.thread for event in outer.events}) == 2


@pytest.mark.usefixtures("fused_multiply_add")
def test_saved_timeline_is_a_trace_of_complete_events(tmp_path: Path) -> None:
    with tn.profile() as p:
        tn.exp(tn.asarray([1.0])).wait()
    p.save(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    (event,) = events_of(tmp_path / "t.json", "X")
    assert (event["name"], event["cat"], event["ph"]) == ("exp", "kernel", "X")
    assert event["dur"] > 0
    assert trace["otherData"]["kernels"] == 1


def test_timeline_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old", encoding="utf-8")
    profile = tn.profile()
    with profile:
        pass
    with pytest.raises(OSError, match=r"folder does not exist: .*missing'"):
        profile.save(tmp_path / "missing" / "t.json")
    profile.events.append(object())  # type: ignore[arg-type]  # what cannot be written
    with pytest.raises(AttributeError):
        profile.save(tmp_path / "old.json")
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert (tmp_path / "old.json").read_text(encoding="utf-8") == "old"


def test_name_that_is_no_counter_is_refused_with_those_there_are() -> None:
    with tn.profile() as p:
        pass
    with pytest.raises(AttributeError, match=r"no counter 'kernel'; it has kernels, "):
        p.kernel


def test_debug_level_2_writes_each_step_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with tn.options(debug=2):
        (tn.asarray([1.0]) + 1).wait()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "tenfold: device cpu computes 3 nodes"
    assert lines[-1].startswith("tenfold: kernel add ")
    (tn.asarray([1.0]) + 1).wait()
    assert capsys.readouterr().err == ""


def test_timeline_names_the_threads_that_worked(tmp_path: Path) -> None:
    with tn.profile() as p:
        (tn.asarray([1.0]) + 1).wait()
    p.save(tmp_path / "t.json")
    (named,) = events_of(tmp_path / "t.json", "M")
    assert (named["name"], named["args"]) == ("thread_name", {"name": "MainThread"})
    assert named["tid"] == threading.get_ident()


def test_timeline_of_an_engine_has_an_arrow_from_each_push_to_its_run(tmp_path: Path) -> None:
    with tn.profile() as p:
        record_events(
            [
                TimelineEvent("add", "push", 1000, 1500, 1, operators=(7,)),
                TimelineEvent("add", "push", 2000, 2500, 1, operators=(8,), inputs=(7,)),
                TimelineEvent("add", "kernel", 4000, 9000, 2, operators=(7, 8), depth=1.5),
            ],
            threads={2: "worker 1"},
        )
    p.save(tmp_path / "t.json")
    first, second, run = events_of(tmp_path / "t.json", "X")
    assert first["args"] == {"operators": [7], "inputs": []}
    assert second["args"] == {"operators": [8], "inputs": [7]}
    assert run["args"] == {"operators": [7, 8], "batch": 2, "depth": 1.5}
    tails, heads = (events_of(tmp_path / "t.json", phase) for phase in "sf")
    assert [(each["id"], each["ts"], each["tid"]) for each in tails] == [(7, 1.0, 1), (8, 2.0, 1)]
    assert [(each["id"], each["ts"], each["tid"]) for each in heads] == [(7, 4.0, 2), (8, 4.0, 2)]
    assert {each["bp"] for each in heads} == {"e"}
    assert [each["args"]["name"] for each in events_of(tmp_path / "t.json", "M")] == ["worker 1"]


def test_arrow_needs_a_push_that_was_seen(tmp_path: Path) -> None:
    with tn.profile() as p:
        record_events([TimelineEvent("add", "kernel", 4000, 9000, 2, operators=(7,))])
    p.save(tmp_path / "t.json")
    assert events_of(tmp_path / "t.json", "s") == events_of(tmp_path / "t.json", "f") == []


def test_levels_are_counters_of_the_timeline(tmp_path: Path) -> None:
    with tn.profile() as p:
        record_events([], [CounterSample("memory", 3000, {"live bytes": 64})])
    p.save(tmp_path / "t.json")
    (level,) = events_of(tmp_path / "t.json", "C")
    assert (level["name"], level["ts"], level["args"]) == ("memory", 3.0, {"live bytes": 64})


def events_of(path: Path, phase: str) -> list[dict[str, Any]]:
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return [event for event in events if event["ph"] == phase]
