"""`tenfold trace`: what it says of a timeline, and of files that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tenfold as tn
from tenfold.runtime.timeline import CounterSample, TimelineEvent, record_events

Command = Callable[..., Any]
WORK = 1_000_000
"""Nanoseconds: a millisecond."""


def event(name: str, begin: float, end: float, *operators: int, **also: Any) -> TimelineEvent:
    """Work on thread 2 between two times in milliseconds."""
    facts = {"category": "kernel", "thread": 2, **also}
    return TimelineEvent(
        name=name, begin=int(begin * WORK), end=int(end * WORK), operators=operators, **facts
    )


def push(number: int, *inputs: int) -> TimelineEvent:
    moment = number / 1000
    return event("", moment, moment, number, category="push", thread=1, inputs=inputs)


@pytest.fixture
def summary(tenfold: Command, tmp_path: Path) -> Callable[..., Any]:
    """Save a timeline of these events, and return what the command says of it as JSON."""

    def run(events: Sequence[TimelineEvent], levels: Sequence[CounterSample] = ()) -> Any:
        with tn.profile() as p:
            record_events(events, levels, {1: "caller", 2: "worker 0", 3: "worker 1"})
        p.save(tmp_path / "t.json")
        done = tenfold("trace", str(tmp_path / "t.json"), "--json")
        assert done.code == 0, done
        return json.loads(done.out)

    return run


def test_operators_that_took_longest_come_first(summary: Command) -> None:
    found = summary([event("add", 0, 1), event("exp", 1, 5), event("add", 5, 7)])
    names = [(each["name"], each["launches"], each["total"]) for each in found["busiest"]]
    assert names == [("exp", 1, 4000.0), ("add", 2, 3000.0)]
    assert found["busiest"][1]["longest"] == 2000.0


def test_work_inside_other_work_is_counted_once(summary: Command) -> None:
    events = [event("outer", 0, 10), event("inner", 1, 4), event("inner", 4, 5), event("b", 2, 3)]
    other = event("inner", 2, 3, thread=3)
    found = {each["name"]: each["total"] for each in summary([*events, other])["busiest"]}
    assert found == {"outer": 6000.0, "inner": 4000.0, "b": 1000.0}


def test_idle_share_counts_nested_work_once(summary: Command) -> None:
    found = summary([event("a", 0, 4), event("b", 1, 2), event("c", 8, 10, thread=3)])
    shares = {each["name"]: round(each["idle_share"], 6) for each in found["tracks"]}
    assert shares == {"worker 0": 0.6, "worker 1": 0.8}


def test_batches_are_counted_by_powers_of_two(summary: Command) -> None:
    sizes = (1, 1, 2, 3, 4, 5, 64)
    begins = [sum(sizes[:index]) for index in range(len(sizes))]
    found = summary(
        [
            event("add", begin, begin + 1, *range(begin, begin + size))
            for begin, size in zip(begins, sizes, strict=True)
        ]
    )
    bars = [(bar["least"], bar["most"], bar["launches"]) for bar in found["batches"]]
    assert bars == [
        (1, 1, 2),
        (2, 2, 1),
        (3, 4, 2),
        (5, 8, 1),
        (9, 16, 0),
        (17, 32, 0),
        (33, 64, 1),
    ]
    assert found["mean_batch"] == pytest.approx(80 / 7)


def test_critical_path_is_the_chain_that_takes_longest(summary: Command) -> None:
    pushes = [push(0), push(1, 0), push(2, 0), push(3, 1, 2)]
    runs = [
        event("load", 1, 2, 0),
        event("short", 2, 3, 1),
        event("long", 2, 6, 2, thread=3),
        event("join", 6, 7, 3),
    ]
    found = summary([*pushes, *runs])
    assert [link["name"] for link in found["critical"]] == ["load", "long", "join"]
    assert sum(link["total"] for link in found["critical"]) == pytest.approx(6000.0)
    assert found["pushes"] == 4


def test_chain_through_one_launch_twice_counts_it_once(summary: Command) -> None:
    pushes = [push(0), push(1, 0), push(2, 1)]
    found = summary([*pushes, event("both", 1, 4, 0, 1), event("add", 4, 5, 2)])
    links = [(each["name"], each["count"], each["total"]) for each in found["critical"]]
    assert links == [("both", 1, 3000.0), ("add", 1, 1000.0)]


def test_equal_links_of_the_critical_path_are_one(summary: Command) -> None:
    pushes = [push(0), *(push(number, number - 1) for number in range(1, 50))]
    runs = [event("add", number + 1, number + 2, number) for number in range(50)]
    found = summary([*pushes, *runs])
    assert found["critical"] == [{"name": "add", "count": 50, "total": pytest.approx(50_000.0)}]


def test_peaks_of_levels_are_told(summary: Command) -> None:
    levels = [
        CounterSample("memory", time * WORK, {"live bytes": 10.0 * time}) for time in (1, 3, 2)
    ]
    assert summary([event("add", 0, 1)], levels)["peaks"] == {"memory, live bytes": 30.0}


def test_timeline_of_plans_has_neither_batches_nor_a_critical_path(
    tenfold: Command, tmp_path: Path
) -> None:
    x = tn.asarray(np.ones((3, 3)))
    with tn.profile() as p:
        tn.max(x @ x * 2).item()
    p.save(tmp_path / "t.json")
    done = tenfold("trace", str(tmp_path / "t.json"))
    assert done.code == 0, done
    assert f"{p.launches} launches" in done.out
    assert "MainThread" in done.out
    assert "batches: none" in done.out
    assert "critical path: not known" in done.out


def test_page_shows_all_parts_within_its_width(tenfold: Command, tmp_path: Path) -> None:
    name = "a+very+long+name+of+a+kernel" * 8
    pushes = [push(number, *([number - 1] if number else [])) for number in range(40)]
    runs = [event(f"op{number}", number + 1, number + 2, number) for number in range(39)]
    levels = [CounterSample("memory", WORK, {"live bytes": 1e9})]
    with tn.profile() as p:
        record_events([*pushes, *runs, event(name, 40, 90, 39)], levels)
    p.save(tmp_path / "t.json")
    out = tenfold("trace", str(tmp_path / "t.json"), "--top", "3").out
    assert max(map(len, out.splitlines())) <= 100
    for text in ("37 others", "thread 2", "batch (mean 1.0)", "28 shorter links", "1,000,000,000"):
        assert text in out


def test_reasons_of_batches_are_told(summary: Command, tenfold: Command, tmp_path: Path) -> None:
    later, dtype = "whose inputs are ready later", "of another dtype, float32"
    events = [event("cell", n, n + 1, members=8, apart=later) for n in range(3)]
    events += [event("cell", 4, 5, members=2, apart=dtype), event("cell", 6, 7, members=9)]
    assert summary(events)["apart"] == [
        {"name": "cell", "reason": later, "launches": 3},
        {"name": "cell", "reason": dtype, "launches": 1},
    ]
    out = tenfold("trace", str(tmp_path / "t.json"), "--top", "1").out
    assert "batches of their own" in out
    assert later in out
    assert dtype not in out
    assert "1 others" in out


def trace(*events: object) -> str:
    return json.dumps({"traceEvents": events})


COMPLETE = {"name": "add", "ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "not a timeline, since it is not JSON"),
        ("\xff", "not a timeline, since it is not JSON"),
        ("[" * 100_000, "not a timeline, since it is not JSON"),
        ("{}", "no timeline, since it has no list traceEvents"),
        ("3", "no timeline, since it has no list traceEvents"),
        ('{"traceEvents": {}}', "no timeline, since it has no list traceEvents"),
        (trace(), "nothing was recorded"),
        (trace({"ph": "M", "name": "process_name"}), "nothing was recorded"),
        (trace(3), "event 0 has no ph"),
        (trace(COMPLETE, {**COMPLETE, "ts": "soon"}), "event 1 has no number ts"),
        (trace({**COMPLETE, "dur": None}), "event 0 has no number dur"),
        (trace({**COMPLETE, "dur": float("inf")}), "event 0 has no number dur"),
        (trace({**COMPLETE, "name": 3}), "event 0 has no name"),
        (trace({**COMPLETE, "args": 3}), "event 0 has no args"),
        (trace({**COMPLETE, "args": {"batch": 0}}), "event 0 has a batch that is not a count"),
        (trace({**COMPLETE, "args": {"apart": 3}}), "event 0 has no apart"),
        (trace({**COMPLETE, "args": {"operators": 3}}), "operators that are no list of whole"),
        (trace({**COMPLETE, "ph": "C", "args": {"bytes": "many"}}), "event 0 has no number bytes"),
        (trace({"ph": "M", "name": "thread_name"}), "event 0 has no name"),
    ],
)
def test_file_that_is_no_timeline_is_refused_in_one_line(
    refused: Callable[..., str], tmp_path: Path, content: str, complaint: str
) -> None:
    (tmp_path / "bad.json").write_bytes(content.encode("latin-1"))
    line = refused(3, "trace", str(tmp_path / "bad.json"))
    assert "bad.json: " in line
    assert complaint in line


def test_file_that_is_missing_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "No such file" in refused(3, "trace", str(tmp_path / "none.json"))


def test_timeline_of_others_may_be_a_bare_list(tenfold: Command, tmp_path: Path) -> None:
    begun = {**COMPLETE, "ph": "B"}
    (tmp_path / "t.json").write_text(json.dumps([COMPLETE, begun]), encoding="utf-8")
    assert "1 launches" in tenfold("trace", str(tmp_path / "t.json")).out


def test_escapes_in_names_do_not_reach_the_terminal(tenfold: Command, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(trace({**COMPLETE, "name": "\x1b[31m[bold]x"}), "utf-8")
    out = tenfold("trace", str(tmp_path / "t.json")).out
    assert "\x1b" not in out
    assert "[bold]x" in out
